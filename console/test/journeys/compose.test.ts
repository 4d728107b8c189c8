import type { Locator, Page } from 'playwright-core'
import { until } from '../../../server/test/support/until.ts'
import { assertWithin } from '../support/timed.ts'
import { newAccount, testJourney } from './shared.ts'

// Journey 3: compose a template with both previews, the meters and the result of the check, and approve it.

const TARGET_MS = 200
const PARTS = { android: '.ph-android', iphone: '.ph-iphone', check: '.checks' } as const

type Times = Record<keyof typeof PARTS, number>

/** How long after the last key each part of the page shows its text, measured in the page. */
async function measure(page: Page, texts: Record<keyof typeof PARTS, string>): Promise<() => Promise<Times>> {
  await page.evaluate(`{
    let pressedAt
    document.addEventListener('keydown', () => { pressedAt = performance.now() }, { capture: true })
    const times = {}
    globalThis.times = times
    for (const [name, selector] of Object.entries(${JSON.stringify(PARTS)})) {
      const part = document.querySelector(selector)
      const text = ${JSON.stringify(texts)}[name]
      new MutationObserver(() => {
        if (part.textContent.includes(text)) times[name] ??= performance.now() - pressedAt
      }).observe(part, { childList: true, characterData: true, subtree: true })
    }
  }`)
  return async () => {
    await until('all parts have changed', async () => (await page.evaluate<number>('Object.keys(globalThis.times).length')) === 3)
    return await page.evaluate<Times>('globalThis.times')
  }
}

/** Chooses a type of content, as its radio button: by its tile, or with the arrow keys. */
async function chooseCard(page: Page, way: 'mouse' | 'keyboard'): Promise<void> {
  const types = page.getByRole('group', { name: 'What it is' })
  if (way === 'mouse') return await types.getByText('Card', { exact: true }).click()
  await types.getByRole('radio', { name: 'Text', exact: true }).focus()
  await page.keyboard.press('ArrowRight')
}

testJourney('composes a card whose previews, meters and result follow each key within 200 ms', newAccount, async (journey) => {
  const { t, page, person, way, accountId } = journey
  const field = (name: string): Locator => page.getByRole('textbox', { name, exact: true })
  await page.goto(`/console#/${accountId}/templates`)
  await person.press(page.getByRole('banner').or(page.getByRole('main')).getByRole('link', { name: 'New template' }).first())
  await person.write(field('Name'), 'Order on its way')
  await chooseCard(page, way)
  await person.write(field('Text'), 'It comes tomorrow between 9 and 12.')
  const checks = page.getByRole('complementary', { name: 'Check' })
  await checks.getByText('35 of 2,000').waitFor()
  const title = 'Your order is on its way'
  const times = await measure(page, { android: title, iphone: title, check: '24 of 200' })
  await person.write(field('Title'), title)
  const { android, iphone, check } = await times()
  assertWithin(t, `the Android preview with the ${way}`, android, TARGET_MS)
  assertWithin(t, `the iPhone preview with the ${way}`, iphone, TARGET_MS)
  assertWithin(t, `the result of the check with the ${way}`, check, TARGET_MS)
  await person.press(page.getByRole('button', { name: 'Add a button' }))
  await person.write(field('Label'), 'Another day, please')
  for (const phone of ['Android phone', 'iPhone']) {
    await page.getByRole('figure', { name: phone }).getByText('Another day, please').waitFor()
  }
  await checks.getByText('Herald accepts this content').waitFor()
  await checks.getByText('single', { exact: true }).waitFor()
  await person.press(page.getByRole('button', { name: 'Approve' }))
  await page.waitForURL(/\/templates\/\d+$/)
  await page.getByRole('main').getByText('Approved', { exact: true }).waitFor()
})
