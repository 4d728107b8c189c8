import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { assignAgent, createAgent } from '../../server/src/agents/agents.ts'
import { until } from '../../server/test/support/until.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'
import { startProxy } from './support/proxy.ts'

// The page Phones when something goes wrong: connections, other operators, long conversations, double clicks.

const herald = await startHerald()
const proxy = await startProxy(herald.url)
const text = (content: string) => ({ type: 'MESSAGE', content })

type Options = { role?: 'viewer' | 'admin' | 'operator'; phone: string; prepare?: (page: Page) => Promise<unknown> }

async function openPhone({ role = 'admin', phone, prepare }: Options) {
  const opened = await openPage({ base: proxy.url, cookie: await herald.signIn(role), height: 1000 })
  await prepare?.(opened.page)
  await opened.page.goto(`/console#/${herald.accountId}/phones${role === 'viewer' ? '' : `?phone=${encodeURIComponent(phone)}`}`)
  await opened.page.getByRole('log').waitFor()
  return opened
}

test('a phone gets its messages although a request that waits for them never ends', browserTest, async () => {
  const phone = '+48500711101'
  const { page, problems, close } = await openPhone({
    phone,
    prepare: async (page) => {
      // The page waits 35 s for a response; a test can't.
      await page.addInitScript(
        'const timeout = AbortSignal.timeout; AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms === 35_000 ? 500 : ms)',
      )
      await page.route('**/ledger?*wait=25*', () => {})
    },
  })
  await herald.send(phone, text('Still here?'))
  await page.getByRole('log').getByText('Still here?').waitFor()
  assert.equal(await page.getByRole('alert').count(), 0)
  assert.deepEqual(problems, [])
  await close()
})

test('a hidden page ends its request for news of the phone, and reads them when it is visible again', browserTest, async () => {
  const phone = '+48500711151'
  const { page, problems, close } = await openPhone({ phone })
  await page.waitForRequest(/ledger\?.*wait=25/)
  const ended = page.waitForEvent('requestfailed', (request) => /ledger\?.*wait=25/.test(request.url()))
  const setVisibility = (change: string) => page.evaluate(`${change}; document.dispatchEvent(new Event('visibilitychange'))`)
  await setVisibility(`Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })`)
  assert.equal((await ended).failure()?.errorText, 'net::ERR_ABORTED')
  await herald.send(phone, text('While nobody looked'))
  await until('the phone has it', async () => JSON.stringify(await herald.simulator.ask(`phones/${phone}/ledger`)).includes('delivered'))
  await setVisibility('delete document.visibilityState')
  await page.getByRole('log').getByText('While nobody looked').waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('a lost connection is reported once, and moves nothing beside the phone', browserTest, async () => {
  const phone = '+48500711201'
  await herald.send(phone, text('Before the outage'))
  const { page, close } = await openPhone({ phone })
  await page.getByRole('log').getByText('Before the outage').waitFor()
  const left = async () => (await page.getByRole('figure').boundingBox())?.x
  const before = await left()
  await proxy.cut()
  await page.getByRole('alert').waitFor()
  // A request of the person fails, too.
  await page.getByRole('button', { name: 'STOP' }).click()
  await herald.send(phone, text('During the outage'))
  await page.waitForEvent('requestfailed', (request) => request.url().includes('/ledger'))
  await page.waitForEvent('requestfailed', (request) => request.url().endsWith('/phones'))
  assert.equal(await page.getByRole('alert').count(), 1)
  assert.equal(await left(), before)
  await proxy.restore()
  await page.getByRole('log').getByText('During the outage').waitFor()
  // What the person asked for was not done, and the page says so until the next action.
  await page.getByRole('button', { name: 'STOP' }).click()
  await page.getByRole('alert').waitFor({ state: 'detached' })
  await close()
})

test('an operator who switches a fault keeps the faults that another one has switched on meanwhile', browserTest, async () => {
  let read: Promise<unknown> | undefined
  const { page, problems, close } = await openPhone({
    role: 'operator',
    phone: '+48500711301',
    prepare: async (page) => {
      read = page.waitForResponse(/\/faults$/)
    },
  })
  const button = page.getByRole('button', { name: 'Faults: none' })
  // Before that, the button says "none" as well, and would change its name before the click.
  await read
  const lost = { webhooks: { lost: { rate: 1 } } }
  await herald.simulator.ask('faults', lost, 'PUT')
  await button.click()
  const dialog = page.getByRole('dialog', { name: 'Faults of the simulated network' })
  await dialog.getByRole('switch', { name: 'Loses receipts', checked: true }).first().waitFor()

  await herald.simulator.ask('faults', { ...lost, smpp: { throttled: { rate: 1 } } }, 'PUT')
  await dialog.getByRole('switch', { name: 'Refuses with 503' }).click()
  await page.getByRole('button', { name: 'Faults: 3 on', includeHidden: true }).waitFor()
  const { api, webhooks, smpp } = await herald.simulator.ask('faults')
  assert.deepEqual({ api, webhooks, smpp }, { api: { serverError: { rate: 1, status: 503 } }, ...lost, smpp: { throttled: { rate: 1 } } })
  await dialog.getByRole('button', { name: 'End all faults' }).click()
  await page.getByRole('button', { name: 'Faults: none', includeHidden: true }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('faults that were not loaded are loaded again', browserTest, async () => {
  const { page, close } = await openPhone({
    role: 'operator',
    phone: '+48500711351',
    prepare: (page) => page.route('**/carriers', (route) => route.abort()),
  })
  await page.getByRole('button', { name: 'Faults: none' }).click()
  const dialog = page.getByRole('dialog', { name: 'Faults of the simulated network' })
  await dialog.getByRole('alert').getByText('Herald does not respond.').waitFor()
  await page.unroute('**/carriers')
  await dialog.getByRole('button', { name: 'Try again' }).click()
  await dialog.getByRole('switch').first().waitFor()
  await close()
})

test('a phone with a long conversation says that older messages are not shown', browserTest, async () => {
  const phone = '+48500711401'
  // The page reads the last 200 entries: that the message was delivered, but not the older one with its content.
  const replies = 199
  await herald.send(phone, text('The first message.'))
  const entries = async () => (await herald.simulator.ask(`phones/${phone}/ledger`)).entries as { kind: string }[]
  await until('it is delivered', async () => (await entries()).some(({ kind }) => kind === 'delivered'))
  for (let index = 1; index <= replies; index++) {
    await herald.simulator.ask(`phones/${phone}/reply`, { agentId: herald.agentId, text: `Reply ${index}.` }, 'POST')
  }
  const admin = await openPhone({ phone })
  await admin.page.getByRole('log').getByText(`Reply ${replies}.`).waitFor()
  await admin.page.getByRole('log').getByText('Reply 1.', { exact: true }).waitFor()
  assert.equal(await admin.page.getByRole('log').getByText('The first message.').count(), 0)
  const stage = admin.page.getByRole('region', { name: 'The phone' })
  await stage.getByText('Older messages are not shown here.').waitFor()
  await admin.page.getByRole('link', { name: 'All messages' }).click()
  await admin.page.waitForURL(/messages\?recipient=/)

  const viewer = await openPhone({ role: 'viewer', phone })
  await viewer.page.getByText('Older messages are not shown here.').waitFor()
  assert.equal(await viewer.page.getByRole('link', { name: 'All messages' }).count(), 0)
  for (const { problems, close } of [admin, viewer]) {
    assert.deepEqual(problems, [])
    await close()
  }
})

test('a reply that is tapped twice is sent once', browserTest, async () => {
  const phone = '+48500711501'
  await herald.send(phone, {
    ...text('Shall it come on Monday?'),
    buttons: [{ id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'yes' }],
  })
  const { page, problems, close } = await openPhone({ phone })
  let taps = 0
  const held = Promise.withResolvers<void>()
  await page.route('**/tap', async (route) => {
    taps += 1
    await held.promise
    await route.continue()
  })
  const reply = page.getByRole('log').getByRole('button', { name: 'Yes' })
  await reply.dblclick()
  await reply.click()
  assert.equal(await reply.isDisabled(), false)
  held.resolve()
  await page.getByRole('log').locator('.an-mine').getByText('Yes').waitFor()
  assert.equal(taps, 1)
  assert.deepEqual(problems, [])
  await close()
})

test('an unused phone shows the agent that Send suggests', browserTest, async () => {
  const { accountId, signIn } = await herald.newAccount()
  await createAgent(herald.pool, { agentId: 'alerts', name: 'Alerts', billingType: 'basic', carrier: herald.simulator.rcs.name })
  await assignAgent(herald.pool, 'alerts', accountId)
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await signIn('admin') })
  await page.goto(`/console#/${accountId}/phones?phone=%2B48500711601`)
  await page.getByRole('log').getByText('Greenhouse').waitFor()
  assert.deepEqual(problems, [])
  await close()
})
