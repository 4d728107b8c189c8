import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { type PastMessage, writeCampaign, writeMessages } from '../../server/test/reports/api/past.ts'
import { readCsv, readZip } from '../../server/test/reports/exports/support.ts'
import { untilFarFromMidnight } from '../../server/test/support/midnight.ts'
import { call } from '../../server/test/support/service.ts'
import { csvOf } from '../src/app/csv.ts'
import { toTooEarly } from '../src/words/en-report-filters.ts'
import * as say from '../src/words/en-reports.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald({ byHand: 'a report needs messages of several days' })
const DAY_MS = 86_400_000
const { counts } = say

/** A message of so many days ago. All steps are within its hour, which is the same for all. */
function messageOf(n: number, daysAgo: number, more: (time: (seconds: number) => string) => Partial<PastMessage>): PastMessage {
  const start = Date.parse(`${new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10)}T10:00:00Z`)
  const time = (seconds: number) => new Date(start + seconds * 1_000).toISOString()
  return { recipient: `+4850061${String(n).padStart(4, '0')}`, acceptedAt: time(0), ...more(time) }
}

const isRead = (time: (seconds: number) => string) => ({ sentAt: time(1), deliveredAt: time(2), readAt: time(60) })
const isKept = (time: (seconds: number) => string) => ({ sentAt: time(1), deliveredAt: time(2) })
const hasFailed = (time: (seconds: number) => string) => ({
  failedAt: time(1),
  reason: 'NOT_REACHABLE',
  sms: { sentAt: time(5), deliveredAt: time(9) },
})
const answers = (time: (seconds: number) => string) => ({
  ...isRead(time),
  actions: [
    { kind: 'clicked' as const, at: time(90), url: 'https://example.com/tulips' },
    { kind: 'wrote' as const, at: time(120), text: '=1+1, "please"' },
  ],
})
/** Seven messages of three days, none today: the clock of a test may be just after midnight. */
const HISTORY = [
  messageOf(1, 3, isRead),
  messageOf(2, 3, isKept),
  messageOf(3, 2, answers),
  messageOf(4, 2, hasFailed),
  messageOf(5, 1, isRead),
  messageOf(6, 1, isRead),
  messageOf(7, 1, (time) => ({ sentAt: time(1) })),
]

await untilFarFromMidnight()
await writeMessages(herald.pool, herald, HISTORY)
const { campaignId } = await writeCampaign(herald.pool, herald, HISTORY)
const ofCampaign = `campaigns/${campaignId}`

async function report(path: string) {
  const { status, body } = await call(`${herald.url}/v1/reports/${path}`, { authorization: herald.authorization })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

const cookies = { admin: await herald.signIn('admin'), viewer: await herald.signIn('viewer') }

async function open(query = '', role: keyof typeof cookies = 'admin') {
  const opened = await openPage({ base: herald.url, cookie: cookies[role] })
  await opened.page.goto(`/console#/${herald.accountId}/reports${query}`)
  const end = async () => {
    assert.deepEqual(opened.problems, [])
    await opened.close()
  }
  return { ...opened, end }
}

const numbers = (page: Page) => page.getByRole('table', { name: 'All counts' })

/** The rows of a table, each as its texts. */
const rowsOf = async (table: Locator) =>
  await Promise.all((await table.getByRole('row').all()).map(async (row) => await row.locator('th, td').allInnerTexts()))

/** The text of the file that a click downloads, without the mark that Excel needs. */
async function download(page: Page, target: Locator): Promise<{ name: string; bytes: Buffer }> {
  const downloading = page.waitForEvent('download')
  await target.click()
  const file = await downloading
  return { name: file.suggestedFilename(), bytes: await readFile(await file.path()) }
}
const textOf = (bytes: Buffer) => bytes.toString('utf8').replace(/^\ufeff/, '')

test('a report shows the numbers of the API, each percentage with its base', browserTest, async () => {
  const body = await report('messages/summary')
  const { page, end } = await open('?range=all')
  await numbers(page).waitFor()
  const shown = new Map((await rowsOf(numbers(page))).slice(1).map(([name = '', value = '', share = '']) => [name.trim(), [value, share]]))
  const { smsFallback: sms, deliveryRate, readRate, clickRate } = body
  const percent = (rate: number) => `${Number((rate * 100).toFixed(2))}%`
  assert.deepEqual(Object.fromEntries(shown), {
    [counts.recipients]: [`${body.recipients}`, ''],
    [counts.accepted]: ['7', ''],
    [counts.sent]: [`${body.sent}`, `${percent(0.8571)} of accepted`],
    [counts.delivered]: [`${body.delivered}`, `${percent(deliveryRate)} of sent`],
    [counts.read]: [`${body.read}`, `${percent(readRate)} of delivered`],
    [counts.clicked]: [`${body.clicked}`, `${percent(clickRate)} of delivered`],
    [counts.replied]: [`${body.replied}`, '20% of delivered'],
    [counts.optedOut]: ['0', '0% of delivered'],
    [counts.failed]: [`${body.failed}`, `${percent(0.1429)} of accepted`],
    [counts.expired]: ['0', '0% of accepted'],
    [counts['smsFallback.sent']]: [`${sms.sent}`, `${percent(0.1429)} of accepted`],
    [counts['smsFallback.delivered']]: [`${sms.delivered}`, '100% of SMS sent'],
    [counts['smsFallback.failed']]: ['0', ''],
    [counts['smsFallback.skipped']]: ['0', ''],
  })
  await end()
})

test('a report plots a campaign by hour and by day, and its table has the same counts as the API', browserTest, async () => {
  const { page, end } = await open(`?campaignId=${campaignId}`)
  for (const [interval, text] of [
    ['hour', 'By hour'],
    ['day', 'By day'],
  ] as const) {
    await page.getByLabel('Plot').selectOption(text)
    const table = page.getByRole('table', { name: say.overTime[interval], includeHidden: true })
    await table.waitFor({ state: 'attached' })
    assert.equal(await page.locator('.chart-line').count(), 4)
    const { items } = await report(`${ofCampaign}/aggregations?interval=${interval}`)
    const shown = await table.evaluate((element) =>
      [...element.rows]
        .slice(1)
        .map((row: { cells: Iterable<{ textContent: string }> }) => [...row.cells].slice(1).map((cell) => Number(cell.textContent))),
    )
    const wanted = items.map((item: Record<string, number>) =>
      ['sent', 'delivered', 'read', 'failed', 'expired', 'clicked', 'replied'].map((name) => item[name]),
    )
    assert.deepEqual(shown, wanted, interval)
  }
  assert.match(page.url(), /&interval=day$/)
  await page.reload()
  await page.getByRole('heading', { name: 'Messages by day (UTC)' }).waitFor()
  await end()
})

test('a report says that single messages are counted by day, and offers no hours', browserTest, async () => {
  const { page, end } = await open('?interval=hour')
  await page.getByRole('heading', { name: 'Messages by day (UTC)' }).waitFor()
  await page.getByText(say.onlyDays).waitFor()
  assert.equal(await page.getByLabel('Plot').count(), 0)
  await end()
})

test('a report shows the call of each part, and of the export', browserTest, async () => {
  const { page, end } = await open('?from=2026-01-01&to=2026-01-31')
  await numbers(page).waitFor()
  const query = 'from=2026-01-01&to=2026-01-31'
  for (const path of [`export?${query}&bom=true`, `aggregations?${query}`, `summary?${query}`].entries()) {
    await page.getByRole('button', { name: 'As curl' }).nth(path[0]).click()
    await page.getByRole('dialog').getByText(`/v1/reports/messages/${path[1]}'`).waitFor()
    await page.keyboard.press('Escape')
  }
  await end()
})

test('a report has an empty state, and says what to do', browserTest, async () => {
  const { page, end } = await open('?from=2001-01-01&to=2001-01-02')
  await page.getByRole('heading', { name: say.nothing }).waitFor()
  await page.getByText(say.nothingHint).waitFor()
  await end()
})

test('a report of an unknown campaign says that it does not exist', browserTest, async () => {
  const { page, close } = await open('?campaignId=0198c0de-0000-7000-8000-000000000009')
  await page.getByRole('alert').first().waitFor()
  assert.equal(await numbers(page).count(), 0)
  await close()
})

test('a report follows new messages', browserTest, async () => {
  const account = await herald.newAccount()
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await account.signIn('admin') })
  await page.goto(`/console#/${account.accountId}/reports`)
  await page.getByText('live', { exact: true }).first().waitFor()
  await numbers(page).waitFor()
  await account.send('+48500611110', { type: 'MESSAGE', content: 'Hello' })
  await numbers(page).getByRole('row', { name: 'Read 1 100% of delivered' }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('the filters of a report are in the address, survive a reload, and can be cleared', browserTest, async () => {
  const { page, end } = await open()
  assert.equal(await page.getByLabel('Range').inputValue(), 'fortnight')
  await page.getByLabel('Range').selectOption('Yesterday')
  await page.waitForURL(/\?range=yesterday$/)
  await numbers(page).getByRole('row', { name: 'Accepted 3' }).waitFor()
  await page.getByLabel('Messages', { exact: true }).selectOption('Spring sale')
  await page.waitForURL(new RegExp(`campaignId=${campaignId}`))
  await page.reload()
  await page.getByRole('heading', { name: 'Campaign Spring sale' }).waitFor()
  assert.equal(await page.getByLabel('Range').inputValue(), 'yesterday')
  await numbers(page).getByRole('row', { name: 'Accepted 3' }).waitFor()
  await page.getByRole('button', { name: 'Clear the filters' }).click()
  await page.waitForURL(/\/reports$/)
  await numbers(page).getByRole('row', { name: 'Accepted 7' }).waitFor()
  await end()
})

test('the filters of a report take days, and refuse a range that ends before it begins without a request', browserTest, async () => {
  const { page, end } = await open()
  await numbers(page).waitFor()
  const day = (daysAgo: number) => new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10)
  await page.getByLabel('First day (UTC)').fill(day(3))
  await page.getByLabel('Last day (UTC)').fill(day(2))
  await page.waitForURL(new RegExp(`from=${day(3)}&to=${day(2)}$`))
  assert.equal(await page.getByLabel('Range').inputValue(), 'own')
  await numbers(page).getByRole('row', { name: 'Accepted 4' }).waitFor()
  await page.getByLabel('Last day (UTC)').fill(day(5))
  await page.getByText(toTooEarly).waitFor()
  await numbers(page).waitFor({ state: 'detached' })
  await end()
})

test('a report ignores invalid days in its address', browserTest, async () => {
  const { page, end } = await open('?from=yesterday&to=2026-13-40&list=toString')
  await numbers(page).getByRole('row', { name: 'Accepted 7' }).waitFor()
  assert.equal(await page.getByLabel('Range').inputValue(), 'fortnight')
  await end()
})

test('the files of a report have the numbers and the plot as the API has them', browserTest, async () => {
  const { page, end } = await open(`?campaignId=${campaignId}&interval=day`)
  await numbers(page).waitFor()
  const summary = await download(page, page.getByRole('button', { name: 'Download “All counts” as CSV' }))
  const body = await report(`${ofCampaign}/summary`)
  const read = Object.fromEntries(readCsv(textOf(summary.bytes)).map(({ name = '', value }) => [name, Number(value)]))
  const { smsFallback, campaignId: _, from, to, ...flat } = body
  const sms = Object.entries(smsFallback).map(([name, value]) => [`smsFallback.${name}`, value])
  assert.deepEqual(read, { ...flat, ...Object.fromEntries(sms) })
  const days = await download(page, page.getByRole('button', { name: 'Download “Messages by day (UTC)” as CSV' }))
  const { items } = await report(`${ofCampaign}/aggregations`)
  assert.deepEqual(
    readCsv(textOf(days.bytes)),
    items.map((item: object) => Object.fromEntries(Object.entries(item).map(([name, value]) => [name, String(value)]))),
  )
  assert.deepEqual([summary.name, days.name], [`campaign-${campaignId}-summary.csv`, `campaign-${campaignId}-by-day.csv`])
  await end()
})

test('the files of a report are the exports of the API: a row for each message, or an archive', browserTest, async () => {
  const { page, end } = await open('?range=yesterday')
  await numbers(page).waitFor()
  const messages = await download(page, page.getByRole('link', { name: say.exportCsv }))
  assert.equal(readCsv(textOf(messages.bytes)).length, 3)
  await page.getByLabel('Messages', { exact: true }).selectOption('Spring sale')
  const archive = await download(page, page.getByRole('link', { name: say.exportZip }))
  const files = readZip(archive.bytes)
  assert.deepEqual([...files.keys()].sort(), ['actions.csv', 'aggregations.csv', 'recipients.csv', 'summary.csv'])
  assert.equal(readCsv(textOf(Buffer.from(files.get('recipients.csv') ?? ''))).length, HISTORY.length)
  await end()
})

test('the files of a report have a list of a campaign as a whole, with texts that no spreadsheet runs', browserTest, async () => {
  const { page, end } = await open(`?campaignId=${campaignId}&list=actions`)
  const row = page.getByRole('row').filter({ hasText: 'please' })
  await row.getByRole('link', { name: '+48 500 610 003' }).waitFor()
  const actions = await download(page, page.getByRole('button', { name: 'Download “What they did” as CSV' }))
  const rows = readCsv(textOf(actions.bytes))
  assert.deepEqual(
    rows.map(({ recipient, action, text, url }) => [recipient, action, text, url]),
    [
      ['+48500610003', 'wrote', `'=1+1, "please"`, ''],
      ['+48500610003', 'clicked', '', 'https://example.com/tulips'],
    ],
  )
  await page.getByLabel('List').selectOption('Delivered')
  await page.waitForURL(/list=delivered$/)
  await page.getByRole('row').nth(5).waitFor()
  const recipients = await download(page, page.getByRole('button', { name: 'Download “Delivered” as CSV' }))
  const { items } = await report(`${ofCampaign}/recipients/delivered`)
  assert.deepEqual(
    readCsv(textOf(recipients.bytes)).map(({ messageId }) => messageId),
    items.map(({ messageId }: { messageId: string }) => messageId),
  )
  await end()
})

test('the files of a report defuse formulas as the exports of the API do, and quote as RFC 4180', () => {
  const rows = [
    ['+48500100200', '=1+1'],
    ['', 'order-1'],
    [null, 'x;=1\n @a'],
    [-5, '" -1'],
  ]
  const csv = csvOf({ names: ['number', 'text'], rows })
  assert.equal(csv, `number,text\r\n+48500100200,'=1+1\r\n,order-1\r\n,"x;'=1\n '@a"\r\n-5,""" '-1"\r\n`)
})

test('a viewer sees the numbers and masked recipients, and gets no export', browserTest, async () => {
  const { page, end } = await open(`?campaignId=${campaignId}&list=failed`, 'viewer')
  await numbers(page).getByRole('row', { name: 'Accepted 7' }).waitFor()
  await page
    .getByRole('row')
    .filter({ hasText: 'The number has no RCS' })
    .getByRole('link', { name: /^\+48 •/ })
    .waitFor()
  assert.doesNotMatch(await page.content(), /50061000|500 610 00/)
  assert.equal(await page.getByRole('link', { name: /Export/ }).count(), 0)
  assert.equal(await page.getByRole('button', { name: 'Download “Failed” as CSV' }).count(), 0)
  await page.getByRole('button', { name: 'Download “All counts” as CSV' }).waitFor()
  await end()
})
