import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertAccessible, browserTest, openPage } from '../support/browser.ts'
import { controlsOf, lostControls, lostTexts } from '../support/fits.ts'
import { cookieOf, herald } from './shared.ts'
import type { State } from './state.ts'
import { STATES } from './states.ts'

type Opened = Awaited<ReturnType<typeof openPage>>
const pages = new Map<string, Opened>()

/** The page that all states of a role share, since a new browser profile takes long. */
async function pageOf({ role = 'operator' }: Pick<State, 'role'>): Promise<Opened> {
  const known = pages.get(role) ?? (await openPage({ base: herald.url, ...(role !== 'nobody' && { cookie: await cookieOf(role) }) }))
  pages.set(role, known)
  return known
}

const WIDE = { width: 1400, height: 900 }
const SIZES = [
  { name: 'a laptop of 1280 pixels', size: { width: 1280, height: 720 } },
  { name: 'a window of 320 pixels', size: { width: 320, height: 640 } },
  // A window of 1280 × 720 that is zoomed has half as many pixels of CSS.
  { name: 'a zoom of 200 %', size: { width: 640, height: 360 } },
]

for (const state of STATES) {
  test(state.name, browserTest, async (t) => {
    const { page, problems } = await pageOf(state)
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await page.goto('about:blank')
    problems.length = 0
    await page.setViewportSize(WIDE)
    await state.open(page)
    for (const colorScheme of ['light', 'dark'] as const) {
      await t.test(`has no barrier in ${colorScheme}`, async () => {
        await page.emulateMedia({ colorScheme })
        await assertAccessible(page, state.name, { onlyColours: colorScheme === 'dark' })
      })
    }
    await page.emulateMedia({ colorScheme: 'light' })
    const controls = await controlsOf(page)
    for (const { name, size } of SIZES) {
      await t.test(`loses nothing at ${name}`, async () => {
        await page.setViewportSize(size)
        const texts = await lostTexts(page)
        assert.deepEqual([...texts, ...(await lostControls(page, controls))], [])
      })
    }
    // Chromium reports a refused request as an error of the page.
    const expected = state.problem ?? `status of ${state.refused}`
    const others = problems.filter((problem) => !problem.includes(expected))
    assert.deepEqual(others, [])
  })
}

test('the checks find a barrier, a text that is cut off, and controls that are missing or covered', browserTest, async () => {
  const { page } = await pageOf({})
  await page.goto('about:blank')
  await page.setViewportSize(WIDE)
  await page.goto(`/console#/${herald.accountId}/webhooks`)
  await page.getByText('fails', { exact: true }).waitFor()
  const controls = await controlsOf(page)
  await page.setViewportSize({ width: 320, height: 640 })
  assert.deepEqual([...(await lostTexts(page)), ...(await lostControls(page, controls))], [])
  await page.evaluate(`(() => {
    const style = (selector, styles) => Object.assign(document.querySelector(selector).style, styles)
    style('h1', { color: '#ddd' })
    style('.endpoint-row a', { display: 'block', width: '90px', overflow: 'hidden', whiteSpace: 'nowrap' })
    style('.palette-button', { display: 'none' })
    style('.avatar.me', { pointerEvents: 'none' })
  })()`)
  assert.match((await lostTexts(page)).join(), /^cut off: <a href=[^,]*$/)
  assert.deepEqual(await lostControls(page, controls), [
    'button Find a message, number, page, action…Ctrl K',
    'button Signed in as Anna Nowak',
  ])
  await assert.rejects(assertAccessible(page, 'a page'), /color-contrast: h1/)
})
