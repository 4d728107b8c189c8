import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../../../server/test/support/until.ts'
import { browserTest, openPage } from '../support/browser.ts'
import { differentShare } from '../support/pictures.ts'
import { android, ask, button, checks, create, field, herald, iphone, open, view } from './shared.ts'

// A letter that is drawn a fraction of a pixel further right differs at few pixels.
const MAX_SHARE = 0.0005

const URL_BUTTON = { id: 'track', type: 'url', text: 'Order {{order}}', url: 'https://example.com/{{order}}' }
const PERSONAL = {
  type: 'CARD',
  content: 'Order {{order}} for {{city|you}} is on its way, {{name}}.',
  data: { title: 'Hello {{name}}' },
  buttons: [URL_BUTTON],
}
const VALUES = { name: 'Anna Ńowak', order: '10/01', city: 'Łódź' }
const SENT = {
  type: 'CARD',
  content: 'Order 10/01 for Łódź is on its way, Anna Ńowak.',
  data: { title: 'Hello Anna Ńowak' },
  buttons: [{ ...URL_BUTTON, text: 'Order 10/01', url: 'https://example.com/10%2F01' }],
}

async function fillSamples(page: Page): Promise<void> {
  for (const [name, value] of Object.entries(VALUES)) await field(page, name).fill(value)
}

/** Both phones as they are drawn, once they show the text. */
async function picturesOf(page: Page, text: string): Promise<Buffer[]> {
  const pictures: Buffer[] = []
  for (const phone of [android(page), iphone(page)]) {
    await phone.getByText(text).waitFor()
    await page.evaluate('document.fonts.ready')
    pictures.push(await phone.screenshot({ animations: 'disabled', caret: 'hide' }))
  }
  return pictures
}

test('lists the variables of a template with their space, and draws it with sample values', browserTest, async () => {
  const { page, end } = await open('/new')
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('{{greeting|Hello}} {{name}}, order {{order}} is here.')
  await field(page, 'name').waitFor()
  await checks(page).getByText('Text: 3,054 characters in total.').first().waitFor()
  for (const phone of [android(page), iphone(page)]) await phone.getByText('Hello {{name}}, order {{order}} is here.').waitFor()
  await field(page, 'name').fill('Anna')
  for (const phone of [android(page), iphone(page)]) await phone.getByText('Hello Anna, order … is here.').waitFor()
  await field(page, 'order').fill('{{name}}')
  await android(page).getByText('Hello Anna, order {{name}} is here.').waitFor()
  await checks(page).getByText('35 of 3,072').waitFor()
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Nothing to put in.')
  await field(page, 'name').waitFor({ state: 'detached' })
  await android(page).getByText('Nothing to put in.').waitFor()
  await end()
})

test('names the field and the variable if a sample is too long', browserTest, async () => {
  const id = await create('too-long', { ...PERSONAL, buttons: [URL_BUTTON] })
  const { page, end } = await open(`/${id}`)
  await fillSamples(page)
  await checks(page).getByText('Herald accepts this content').waitFor()
  await checks(page).getByText('Button 1: Label: 19 characters in total.').waitFor()
  await field(page, 'order').fill('x'.repeat(20))
  await checks(page).getByText('must have at most 25 characters, with the value of the variable order.').waitFor()
  await end()
})

for (const isDark of [false, true]) {
  test(`draws variables with samples as phones draw the message, in ${isDark ? 'dark' : 'light'}`, browserTest, async () => {
    const [personal, sent] = [await create('personal', PERSONAL), await create('sent', SENT)]
    const cookie = await herald.signIn('admin')
    // High enough that nothing scrolls: the bar above would cover the phones.
    const { page, problems, close } = await openPage({ base: herald.url, cookie, isDark, height: 2_000 })
    const openTemplate = (id: number) => page.goto(`/console#/${herald.accountId}/templates/${id}`)
    await openTemplate(sent)
    const expected = await picturesOf(page, SENT.content)
    await openTemplate(personal)
    await fillSamples(page)
    const drawn = await picturesOf(page, SENT.content)
    await field(page, 'order').fill('other')
    const others = await picturesOf(page, 'Order other for Łódź')
    for (const [index, picture] of expected.entries()) {
      const [same, another] = [
        await differentShare(picture, drawn[index] as Buffer),
        await differentShare(picture, others[index] as Buffer),
      ]
      assert.ok(same < MAX_SHARE && another > MAX_SHARE, `${same} of the pixels differ, and ${another} with another value`)
    }
    assert.deepEqual(problems, [])
    await close()
  })
}

test('sends a test with the sample values, which survive a reload', browserTest, async () => {
  const id = await create('to-test', PERSONAL)
  const { page, end } = await open(`/${id}`)
  await fillSamples(page)
  await page.reload()
  assert.equal(await field(page, 'city').inputValue(), VALUES.city)
  await button(page, 'Send a test').click()
  const dialog = page.getByRole('dialog')
  await field(page, 'To').fill('+48500700199')
  await dialog.getByRole('button', { name: 'Send', exact: true }).click()
  await dialog.getByText('Hello Anna Ńowak').first().waitFor()
  await end()
  const { message } = await ask('GET', `templates/${id}`)
  assert.deepEqual(message, PERSONAL, 'the template stays as it is')
})

test('a viewer tries sample values of a template, too', browserTest, async () => {
  const id = await create('for-a-viewer', PERSONAL)
  const { page, end } = await open(`/${id}`, { cookie: await herald.signIn('viewer') })
  await field(page, 'name').fill('Anna')
  await android(page).getByText('Hello Anna').waitFor()
  await view(page, 'JSON')
  await until('the phones keep the values', async () => (await android(page).textContent())?.includes('Hello Anna'))
  await end()
})
