import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { readCsv, readZip } from '../../../server/test/reports/exports/support.ts'
import { untilFarFromMidnight } from '../../../server/test/support/midnight.ts'
import { call } from '../../../server/test/support/service.ts'
import { until } from '../../../server/test/support/until.ts'
import { assertWithin } from '../support/timed.ts'
import { herald, newAccount, testJourney } from './shared.ts'

// Journey 8: a report, its plot and its export have the same numbers as the API.

const TARGET_MS = 1_000
const TEXT = { type: 'MESSAGE', content: 'Tulips are in flower.' }
/** The last two digits choose what a phone does: it reads the message, keeps it, or has no RCS. */
const NUMBERS = ['+48500881110', '+48500881210', '+48500881301', '+48500881402']

async function start() {
  await untilFarFromMidnight()
  const account = await newAccount()
  const report = async (path: string) => {
    const { status, body } = await call(`${herald.url}/v1/reports/${path}`, { authorization: account.authorization })
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  for (const number of NUMBERS) await account.send(number, TEXT)
  const campaignId = await account.sendCampaign('Spring sale', NUMBERS, TEXT)
  for (const what of ['messages', `campaigns/${campaignId}`]) {
    await until(`${what} is settled`, async () => {
      const { read, delivered, failed } = await report(`${what}/summary`)
      return read === 2 && delivered === 3 && failed === 1
    })
  }
  return { ...account, campaignId, report }
}

/** Measures how long after the next navigation the numbers and the plot are in the page. */
const SEEN = `addEventListener('hashchange', () => {
  const from = performance.now()
  const look = () => {
    if (document.querySelector('.chart-line') === null || document.querySelector('.report-numbers') === null) requestAnimationFrame(look)
    else globalThis.seenAfterMs = performance.now() - from
  }
  requestAnimationFrame(look)
}, { once: true })`

/** The counts of the page, in the order of the names. */
async function countsOf(page: Page, names: string[]): Promise<number[]> {
  const rows = page.getByRole('table', { name: 'All counts' }).getByRole('row')
  const texts = names.map((name) =>
    rows
      .filter({ has: page.getByRole('rowheader', { name, exact: true }) })
      .getByRole('cell')
      .first(),
  )
  return await Promise.all(texts.map(async (cell) => Number(await cell.innerText())))
}

testJourney('a report, its plot and its export have the numbers of the API', start, async (journey) => {
  const { t, page, person, way, report, campaignId } = journey
  await page.goto('/console')
  await page.getByText('live', { exact: true }).first().waitFor()

  // The time of the page itself: the browser reports every step of the Tab key to the test, which takes longer than the page.
  await page.evaluate(SEEN)
  await person.press(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Reports' }))
  await page.locator('.chart-line').first().waitFor()
  await page.getByRole('table', { name: 'All counts' }).waitFor()
  assertWithin(t, `the report with the ${way}`, await page.evaluate<number>('globalThis.seenAfterMs'), TARGET_MS)

  const NAMES = ['Accepted', 'Sent', 'Delivered', 'Read', 'Failed']
  const wanted = ({ accepted, sent, delivered, read, failed }: Record<string, number>) => [accepted, sent, delivered, read, failed]
  assert.deepEqual(await countsOf(page, NAMES), wanted(await report('messages/summary')))

  await person.press(page.getByText('as a table'))
  const day = new Date().toISOString().slice(0, 10)
  const { items } = await report(`messages/aggregations?from=${day}&to=${day}`)
  const last = page.getByRole('table', { name: 'Messages by day (UTC)' }).getByRole('row').last()
  const { period: _, ...counts } = items[0]
  assert.deepEqual((await last.getByRole('cell').allInnerTexts()).map(Number), Object.values(counts))

  const save = async (name: string) => {
    const saving = page.waitForEvent('download')
    await person.press(page.getByRole('link', { name }))
    return await readFile(await (await saving).path())
  }
  const messages = readCsv((await save('Export the messages (CSV)')).toString('utf8').replace(/^\ufeff/, ''))
  const { accepted, read } = await report('messages/summary')
  assert.deepEqual([messages.length, messages.filter(({ status }) => status === 'READ').length], [accepted, read])

  await page.getByLabel('Messages', { exact: true }).selectOption('Spring sale')
  await page.getByRole('heading', { name: 'Campaign Spring sale' }).waitFor()
  await page.getByRole('heading', { name: 'Messages by hour (UTC)' }).waitFor()
  await page.locator('.chart-line').first().waitFor()
  const ofCampaign = await report(`campaigns/${campaignId}/summary`)
  assert.deepEqual(await countsOf(page, NAMES), wanted(ofCampaign))
  const archive = readZip(await save('Export the whole campaign (ZIP)'))
  const [summary = {}] = readCsv((archive.get('summary.csv') ?? '').replace(/^\ufeff/, ''))
  assert.deepEqual(wanted(Object.fromEntries(Object.entries(summary).map(([name, value]) => [name, Number(value)]))), wanted(ofCampaign))
})
