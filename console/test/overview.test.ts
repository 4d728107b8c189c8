import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { untilFarFromMidnight } from '../../server/test/support/midnight.ts'
import { call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { assertAccessible, browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald()
const TEXT = { type: 'MESSAGE', content: 'Your parcel is on its way.' }
const WEEK_MS = 7 * 86_400_000
const WEEKS_MS = 13 * 86_400_000

/** A report as callers of the API get it. */
async function report(path: string) {
  const { status, body } = await call(`${herald.url}/v1/reports/messages/${path}`, { authorization: herald.authorization })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
const texts = async (page: Page, selector: string) => await page.locator(selector).allTextContents()
/** The number that a part of the page begins with. */
const numbersOf = (page: Page, selector: string) =>
  page.evaluate<number[]>(
    `[...document.querySelectorAll('${selector}')].map((element) => Number(element.firstChild.data.replaceAll(',', '')))`,
  )

test('the overview has the numbers of the report, the reasons of failures, and the state of webhooks', browserTest, async (t) => {
  await untilFarFromMidnight()
  const smsFallback = { planParams: { sender: 'Greenhouse' }, smsMessagesPlan: [{ content: 'By SMS.' }] }
  const endings = ['10', '10', '01', '03', '02']
  for (const [index, ending] of endings.entries())
    await herald.send(`+4850070${index}1${ending}`, TEXT, ending === '02' ? { smsFallback } : {})
  await call(`${herald.url}/v1/webhook-endpoints`, {
    method: 'POST',
    authorization: herald.authorization,
    body: { url: 'http://127.0.0.1:9/nobody' },
  })
  const today = `from=${dayOf(Date.now())}&to=${dayOf(Date.now())}`
  await until('all are settled', async () => {
    const { read, delivered, failed, smsFallback: sms } = await report(`summary?${today}`)
    return read === 2 && delivered === 3 && failed === 2 && sms.delivered === 1
  })
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  t.after(close)
  await page.goto(`/console#/${herald.accountId}`)
  await page.locator('.funnel li').first().waitFor()

  const { accepted, delivered, read, failed } = await report(`summary?${today}`)
  await until('the numbers of today are shown', async () => {
    const shown = await numbersOf(page, '.today dd')
    return shown.length === 4 && shown.every(Number.isFinite)
  })
  assert.deepEqual(await texts(page, '.today dt'), ['Accepted', 'Delivered', 'Read', 'Failed'])
  assert.deepEqual(await numbersOf(page, '.today dd'), [accepted, delivered, read, failed])
  await page.getByRole('heading', { name: 'Single messages today so far (UTC)' }).waitFor()
  const weekAgo = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' })
  await page
    .getByText(`0 on ${weekAgo.format(Date.now() - WEEK_MS)}, the whole day`)
    .first()
    .waitFor()

  const range = `from=${dayOf(Date.now() - WEEKS_MS)}&to=${dayOf(Date.now())}`
  const all = await report(`summary?${range}`)
  assert.deepEqual(await numbersOf(page, '.funnel b'), [all.accepted, all.sent, all.delivered, all.read, all.smsFallback.delivered])

  const { items } = await report(`aggregations?${range}`)
  await page.getByText('as a table').click()
  const last = items.at(-1)
  assert.deepEqual(await numbersOf(page, '.chart tbody tr:last-child td'), [last.sent, last.delivered, last.read, last.failed])
  assert.equal(await page.locator('.chart tbody tr').count(), items.length)

  const failures = page.locator('.part', { has: page.getByRole('heading', { name: 'Why messages failed' }) })
  await failures.locator('li b').nth(1).waitFor()
  assert.deepEqual((await failures.locator('li b').allTextContents()).sort(), ['1', '1'])
  await failures.getByText('The network refused the message').click()
  await page.getByRole('row', { name: /500 703 103/ }).waitFor()
  await page.goBack()
  const webhooks = page.locator('.part', { has: page.getByRole('heading', { name: 'Webhooks' }) })
  await webhooks.getByRole('link', { name: 'http://127.0.0.1:9/nobody' }).click()
  await page.getByRole('heading', { name: 'http://127.0.0.1:9/nobody' }).waitFor()
  assert.deepEqual(problems, [])
})

test('the overview counts single messages, and the failures of campaigns, too', browserTest, async (t) => {
  await untilFarFromMidnight()
  const { accountId, authorization, signIn, send, sendCampaign } = await herald.newAccount()
  await send('+48500700303', TEXT)
  const campaignId = await sendCampaign('Spring sale', ['+48500700401', '+48500700403', '+48500700503'], TEXT)
  const readCampaign = async () => (await call(`${herald.url}/v1/campaigns/${campaignId}`, { authorization })).body
  await until('the campaign is settled', async () => {
    const { DELIVERED, FAILED } = (await readCampaign()).counts
    return DELIVERED === 1 && FAILED === 2
  })
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await signIn('admin') })
  t.after(close)
  await page.goto(`/console#/${accountId}`)
  const part = (name: string) => page.locator('.part', { has: page.getByRole('heading', { name, exact: true }) })
  const failures = part('Why messages failed')
  await failures.getByText('Of the last 3 failed messages.').waitFor()
  assert.deepEqual(await failures.locator('li b').allTextContents(), ['3'])
  await until('the single message is counted', async () => (await numbersOf(page, '.today dd'))[3] === 1)
  assert.deepEqual(await numbersOf(page, '.today dd'), [1, 0, 0, 1])
  await page.getByRole('heading', { name: 'How far single messages of these 14 days got' }).waitFor()
  await assertAccessible(page, 'the overview with a campaign')
  assert.deepEqual(problems, [])
})

test('the reports of the overview have their API calls', browserTest, async (t) => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  t.after(close)
  await page.goto(`/console#/${herald.accountId}`)
  const calls = page.getByRole('button', { name: 'As curl' })
  await calls.nth(2).waitFor()
  const commands: string[] = []
  for (const button of await calls.all()) {
    await button.click()
    commands.push((await page.getByRole('region', { name: 'The same request to the API' }).textContent()) ?? '')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  const today = new Date().toISOString().slice(0, 10)
  assert.match(commands[0] ?? '', new RegExp(`/v1/reports/messages/summary\\?from=${today}&to=${today}'$`))
  assert.match(commands[1] ?? '', /\/v1\/reports\/messages\/aggregations\?from=/)
  assert.match(commands[2] ?? '', /\/v1\/reports\/messages\/summary\?from=/)
  assert.deepEqual(problems, [])
})

test('each part of the overview that cannot be read says so, and offers to try again', browserTest, async (t) => {
  const { accountId, signIn, send } = await herald.newAccount()
  await send('+48500700110', TEXT)
  const { page, close } = await openPage({ base: herald.url, cookie: await signIn('admin') })
  t.after(close)
  let isFailing = true
  // The reports, the failed messages, the endpoints and the campaigns. The first message of the account still works.
  await page.route(/reports\/messages\/.*from=|messages\?status|webhook-endpoints|campaigns/, (route) =>
    isFailing ? route.fulfill({ status: 500, json: { code: 'RCS_INTERNAL', requestId: 'request-1' } }) : route.continue(),
  )
  await page.goto(`/console#/${accountId}`)
  await until('today and five cards have a problem', async () => (await page.getByRole('alert').count()) === 6)
  assert.equal(await page.locator('.chart, .funnel, .today').count(), 0, 'no zeros')
  // Otherwise the page may read the part again by itself before the button is pressed.
  await page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: 'hidden' })`)
  isFailing = false
  const history = page.locator('.part', { has: page.getByRole('heading', { name: 'Single messages of the last 14 days (UTC)' }) })
  await history.getByRole('button', { name: 'Try again' }).click()
  await history.locator('.chart').waitFor()
  assert.equal(await history.getByRole('alert').count(), 0)
})

test('the overview reads once whether the account has a message, and nothing while it is hidden', browserTest, async (t) => {
  await untilFarFromMidnight()
  const { accountId, signIn, send } = await herald.newAccount()
  await send('+48500700110', TEXT)
  const { page, close } = await openPage({ base: herald.url, cookie: await signIn('admin') })
  t.after(close)
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  await page.goto(`/console#/${accountId}`)
  await until('the message is counted', async () => (await numbersOf(page, '.today dd'))[2] === 1)
  await page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })`)
  const before = requests.filter((url) => url.includes('/reports/')).length
  await send('+48500700210', TEXT)
  await until('both messages are read', async () => {
    const { body } = await call(`${herald.url}/admin/v1/accounts/${accountId}/reports/messages/summary`, {
      headers: { cookie: `herald-local=${await signIn('admin')}` },
    })
    return body.read === 2
  })
  assert.equal(requests.filter((url) => url.includes('/reports/')).length, before)
  await page.evaluate(`delete document.visibilityState; document.dispatchEvent(new Event('visibilitychange'))`)
  await until('the second message is counted', async () => (await numbersOf(page, '.today dd'))[2] === 2)
  assert.equal(requests.filter((url) => url.endsWith('/messages?limit=1')).length, 1)
})

test('the overview counts a message of a campaign as processed once it was sent', browserTest, async (t) => {
  const { accountId, signIn, send } = await herald.newAccount()
  await send('+48500700110', TEXT)
  const { page, close } = await openPage({ base: herald.url, cookie: await signIn('admin') })
  t.after(close)
  const counts = { ACCEPTED: 20, SENDING: 30, SENT: 10, DELIVERED: 25, READ: 10, FAILED: 5, EXPIRED: 0 }
  const campaign = { campaignId: '0198c0de-0000-7000-8000-000000000001', name: 'Spring sale', recipients: 100, counts }
  await page.route('**/campaigns?status=RUNNING*', (route) => route.fulfill({ json: { items: [campaign], nextCursor: null } }))
  await page.goto(`/console#/${accountId}`)
  await page.getByText('50 of 100 processed').waitFor()
})
