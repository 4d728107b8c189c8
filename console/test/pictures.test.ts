import assert from 'node:assert/strict'
import { statSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { pictureTest } from './support/browser.ts'
import { compareSheet, drawSheet, fileOf, type Sheet } from './support/pictures.ts'

// `npm run pictures` stores the sheets anew. Look at them before you commit them.
const RENEWS = process.env.HERALD_RENEW_PICTURES !== undefined
const MAX_SHARE = 0.002
const MAX_BYTES = 2_000_000

const SHEETS: Sheet[] = [
  { platform: 'android', isDark: false },
  { platform: 'android', isDark: true },
  { platform: 'iphone', isDark: false },
  { platform: 'iphone', isDark: true },
]

for (const sheet of SHEETS) {
  const name = `the ${sheet.platform} in ${sheet.isDark ? 'dark' : 'light'}`
  test(`${name} draws every type of content and button as in the stored pictures`, pictureTest, async () => {
    const drawing = await drawSheet(sheet)
    if (RENEWS) writeFileSync(fileOf(sheet), drawing.png)
    const shares = await compareSheet(sheet, drawing)
    assert.ok(shares !== undefined, 'the size of the sheet differs. If that is intended: npm run pictures')
    const different = [...shares].filter(([, share]) => share > MAX_SHARE)
    assert.deepEqual(different, [], 'If that is intended: npm run pictures')
  })
}

test('the comparison finds a missing icon and a missing button', pictureTest, async () => {
  const [sheet] = SHEETS as [Sheet]
  const drawing = await drawSheet(sheet, async (page) => {
    await page.evaluate(`(() => {
      const hide = (selector) => { document.querySelector(selector).style.visibility = 'hidden' }
      hide('[data-cell="MESSAGE with call"] .an-chips .icon')
      hide('[data-cell="CARD with quick_reply"] .an-buttons button')
    })()`)
  })
  const shares = await compareSheet(sheet, drawing)
  const different = [...(shares ?? [])].filter(([, share]) => share > MAX_SHARE).map(([name]) => name)
  assert.deepEqual(different, ['MESSAGE with call', 'CARD with quick_reply'])
})

test('the stored pictures have less than 2 MB', () => {
  const bytes = SHEETS.reduce((sum, sheet) => sum + statSync(fileOf(sheet)).size, 0)
  assert.ok(bytes < MAX_BYTES, `${bytes}`)
})
