import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { untilFarFromMidnight } from '../../server/test/support/midnight.ts'
import { call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'
import { startProxy } from './support/proxy.ts'
import { assertWithin, repeatIfSlow } from './support/timed.ts'

const herald = await startHerald()
const proxy = await startProxy(herald.url)
const cookie = await herald.signIn('admin')
const TEXT = { type: 'MESSAGE', content: 'Your parcel is on its way.' }
const SECOND_MS = 1_000

const at = (path: string) => `/console#/${herald.accountId}/${path}`
const row = (page: Page, reference: string) => page.getByRole('row').filter({ hasText: reference })
const outcome = (page: Page, begin: string) => page.locator('.outcome', { hasText: begin })
const shows = (page: Page, state: 'live' | 'connection lost, trying again') =>
  page
    .getByRole('status')
    .filter({ hasText: new RegExp(`^${state}$`), visible: true })
    .waitFor()
/** From the database, since callers may read only so often. */
const statusOf = async (messageId: string) =>
  (await herald.pool.query('select status from messages where id = $1', [messageId])).rows[0].status

/** How many streams the service serves. */
async function streams(): Promise<number> {
  const { body } = await call(herald.service.metricsUrl)
  return Number(/^herald_streams (\d+)/m.exec(body)?.[1])
}

/** Another tab of the same browser profile. */
async function openTab(page: Page, path: string): Promise<Page> {
  const tab = await page.context().newPage()
  await tab.goto(at(path))
  return tab
}

/** A message that the phone gets when `deliver` is called. */
async function sendWaiting(phone: string, clientReferenceId: string) {
  const messageId = await herald.send(phone, TEXT, { clientReferenceId })
  await until('the network has it', async () => (await statusOf(messageId)) === 'SENT')
  const deliver = async () => {
    await herald.simulator.ask(`phones/${phone}/deliver`, { agentId: herald.agentId, messageId })
    await until('the receipts are stored', async () => (await statusOf(messageId)) === 'READ')
  }
  return { messageId, deliver }
}

/** How many messages of today were read, as the overview says. */
const readToday = (page: Page) => page.evaluate<string>(`document.querySelectorAll('.today dd')[2]?.firstChild.data ?? '…'`)

const PLACES: [name: string, path: (messageId: string) => string, changed: (page: Page, reference: string) => Promise<unknown>][] = [
  ['the list of messages', () => 'messages', (page, reference) => row(page, reference).getByText('Read', { exact: true }).waitFor()],
  ['the page of a message', (messageId) => `messages/${messageId}`, (page) => outcome(page, 'The recipient read it').waitFor()],
  [
    'the overview',
    () => '',
    async (page) => {
      const today = `read_at >= date_trunc('day', now(), 'UTC')`
      const { rows } = await herald.pool.query(`select count(*) as read from messages where status = 'READ' and ${today}`)
      await until('it counts them', async () => (await readToday(page)) === rows[0].read.toString())
    },
  ],
]

for (const [name, path, changed] of PLACES) {
  test(`a change appears on ${name} within a second`, browserTest, async (t) => {
    const { page, problems, close } = await openPage({ base: herald.url, cookie })
    t.after(close)
    let turn = 0
    const measure = async () => {
      await untilFarFromMidnight()
      turn += 1
      const reference = `${name}-${turn}`.replaceAll(' ', '-')
      const { messageId, deliver } = await sendWaiting(`+48500${410 + turn}104`, reference)
      await page.goto('about:blank')
      await page.goto(at(path(messageId)))
      await shows(page, 'live')
      await deliver()
      const from = performance.now()
      await changed(page, reference)
      return performance.now() - from
    }
    await repeatIfSlow(async () => {
      const times = [await measure(), await measure(), await measure()].sort((a, b) => a - b)
      assertWithin(t, `a change on ${name}`, times[1] as number, SECOND_MS)
    })
    assert.deepEqual(problems, [])
  })
}

test('changes appear while messages keep coming, also if each response takes longer than the time between them', browserTest, async (t) => {
  const { page, close } = await openPage({ base: herald.url, cookie })
  t.after(close)
  await page.route(/\/messages\?/, async (route) => {
    await sleep(1_000)
    await route.continue()
  })
  await page.goto(at('messages'))
  await shows(page, 'live')
  let isSeen = false
  const sending = (async () => {
    while (!isSeen) {
      await herald.send('+48500400200', TEXT)
      await sleep(200)
    }
  })()
  await herald.send('+48500400200', TEXT, { clientReferenceId: 'in-the-middle' })
  await row(page, 'in-the-middle').waitFor()
  isSeen = true
  await sending
})

test('a lost connection is shown, and all that happened meanwhile appears without a reload', browserTest, async (t) => {
  const phone = '+48500500101'
  await herald.send(phone, TEXT)
  const waiting = await sendWaiting('+48500500104', 'waited')
  const { page: list, close } = await openPage({ base: proxy.url, cookie })
  t.after(close)
  await list.goto(at('messages'))
  const message = await openTab(list, `messages/${waiting.messageId}`)
  const phones = await openTab(list, `phones?phone=${encodeURIComponent(phone)}`)
  const tabs = [list, message, phones]
  for (const tab of tabs) {
    await shows(tab, 'live')
    await tab.evaluate('window.isSamePage = true')
  }
  await phones.getByRole('log').getByText(TEXT.content).waitFor()

  await proxy.cut()
  for (const tab of tabs) await shows(tab, 'connection lost, trying again')
  await list.locator('.tail').getByText('connection lost, trying again').waitFor()
  await waiting.deliver()
  for (const turn of [1, 2, 3])
    await herald.send(phone, { ...TEXT, content: `While it was cut: ${turn}` }, { clientReferenceId: `cut-${turn}` })
  await proxy.restore()

  for (const tab of tabs) await shows(tab, 'live')
  await list.locator('.tail').getByText('New messages appear').waitFor()
  for (const turn of [1, 2, 3]) {
    await row(list, `cut-${turn}`).getByText('Delivered').waitFor()
    await phones.getByRole('log').getByText(`While it was cut: ${turn}`).waitFor()
  }
  await row(list, 'waited').getByText('Read', { exact: true }).waitFor()
  await outcome(message, 'The recipient read it').waitFor()
  for (const tab of tabs) {
    await tab.getByRole('alert').waitFor({ state: 'detached' })
    assert.equal(await tab.evaluate('window.isSamePage'), true)
  }
})

test('errors of a lost connection go away when it is back, even if nothing happened meanwhile', browserTest, async (t) => {
  const phone = '+48500500201'
  const messageId = await herald.send(phone, TEXT)
  const { page, close } = await openPage({ base: proxy.url, cookie })
  t.after(close)
  await page.goto(at(`phones?phone=${encodeURIComponent(phone)}`))
  await page.getByRole('log').getByText(TEXT.content).waitFor()
  await shows(page, 'live')
  await proxy.cut()
  await page.getByRole('alert').filter({ hasText: 'Herald does not respond' }).first().waitFor()
  await proxy.restore()
  await shows(page, 'live')
  await page.getByRole('alert').first().waitFor({ state: 'detached' })
  await page.goto(at(`messages/${messageId}`))
  await outcome(page, 'The recipient got it').waitFor()
})

test('a lost connection leaves nothing of the streams that could not be opened', browserTest, async (t) => {
  const { page, close } = await openPage({ base: proxy.url, cookie })
  t.after(close)
  await page.addInitScript(`
    window.waiting = 0
    for (const [name, change] of [['addEventListener', 1], ['removeEventListener', -1]]) {
      const before = AbortSignal.prototype[name]
      AbortSignal.prototype[name] = function (...args) {
        window.waiting += change
        return before.apply(this, args)
      }
    }
  `)
  await page.goto(at('webhooks'))
  await shows(page, 'live')
  const before = await page.evaluate<number>('window.waiting')
  assert.equal(before, 1)
  await proxy.cut()
  for (const _ of [1, 2, 3]) await page.waitForEvent('requestfailed', (request) => request.url().includes('/stream'))
  await proxy.restore()
  await shows(page, 'live')
  assert.equal(await page.evaluate('window.waiting'), before)
})

test('a connection that goes silent without being closed is detected and replaced', browserTest, async (t) => {
  const { page, close } = await openPage({ base: proxy.url, cookie })
  t.after(close)
  await page.clock.install()
  await page.goto(at('webhooks'))
  await shows(page, 'live')
  proxy.freeze()
  await page.clock.fastForward(40_000)
  await shows(page, 'connection lost, trying again')
  proxy.thaw()
  await shows(page, 'live')
})

test('a lost connection is shown on a narrow page', browserTest, async (t) => {
  const { page, close } = await openPage({ base: proxy.url, cookie, width: 320, height: 640 })
  t.after(close)
  await page.goto(at('webhooks'))
  await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor()
  await until('it is live', async () => (await streams()) === 1)
  await proxy.cut()
  await shows(page, 'connection lost, trying again')
  await proxy.restore()
  await page.getByRole('status').filter({ hasText: 'connection lost', visible: true }).waitFor({ state: 'hidden' })
})

test('tabs share one stream, and another tab reads on when the one that reads is closed', browserTest, async (t) => {
  await until('no other page is open', async () => (await streams()) === 0)
  const { page: reader, close } = await openPage({ base: herald.url, cookie })
  t.after(close)
  await reader.goto(at('messages'))
  await shows(reader, 'live')
  const second = await openTab(reader, 'messages')
  const third = await openTab(reader, 'messages')
  for (const tab of [second, third]) await shows(tab, 'live')
  assert.equal(await streams(), 1)
  await herald.send('+48500600101', TEXT, { clientReferenceId: 'to-all' })
  for (const tab of [reader, second, third]) await row(tab, 'to-all').getByText('Delivered').waitFor()

  await Promise.all([reader.close(), herald.send('+48500600101', TEXT, { clientReferenceId: 'while-closing' })])
  await herald.send('+48500600101', TEXT, { clientReferenceId: 'after-closing' })
  for (const tab of [second, third]) {
    for (const reference of ['while-closing', 'after-closing']) await row(tab, reference).getByText('Delivered').waitFor()
    await shows(tab, 'live')
  }
  assert.equal(await streams(), 1)
})
