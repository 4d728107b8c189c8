import assert from 'node:assert/strict'
import { createAccount } from '../../../server/src/accounts/accounts.ts'
import { call } from '../../../server/test/support/service.ts'
import { until } from '../../../server/test/support/until.ts'
import { startHerald } from '../support/herald.ts'
import { assertWithin } from '../support/timed.ts'
import { startReceiver, testJourney } from './shared.ts'

// Journey 10: forty accounts: which one has trouble?

const ACCOUNTS = 40
/** Each page is usable within a second of navigation. */
const TARGET_MS = 1_000
const MAX_PRESSES = 3

// The accounts of other journeys have troubles of their own.
const herald = await startHerald()
let made = 0

/** Forty accounts, of which one has an endpoint that is down. An operator is at work in another account. */
async function start() {
  const ill = await herald.newAccount()
  made += 1
  const name = `Shop with trouble ${made}`
  await herald.pool.query('update accounts set name = $2 where id = $1', [ill.accountId, name])
  const { rows } = await herald.pool.query<{ accounts: number }>('select count(*)::int as accounts from accounts')
  for (let n = rows[0]?.accounts ?? 0; n < ACCOUNTS; n += 1) await createAccount(herald.pool, `Shop ${n}`, ['rcs', 'sms'])
  const receiver = await startReceiver()
  receiver.isDown = true
  receiver.retryAfterSeconds = 300
  const { authorization } = ill
  const endpoint = { url: receiver.url, types: ['message.delivered'] }
  const endpoints = `${herald.url}/v1/webhook-endpoints`
  const { status, body } = await call(endpoints, { method: 'POST', authorization, body: endpoint })
  assert.equal(status, 201)
  await ill.send('+48500111301', { type: 'MESSAGE', content: 'Hello' })
  const fails = 'select from webhook_endpoints where account_id = $1 and failing_since is not null'
  await until('the endpoint fails', async () => (await herald.pool.query(fails, [ill.accountId])).rowCount === 1)
  const end = () => call(`${endpoints}/${body.endpointId}`, { method: 'DELETE', authorization })
  return { base: herald.url, cookie: await herald.signIn('operator'), end, name, receiver }
}

testJourney('finds the one of forty accounts that has trouble, and what it is', start, async (journey) => {
  const { t, page, person, way, name, receiver } = journey
  await page.goto('/console')
  const link = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Accounts' })
  await link.waitFor()
  await person.press(link)
  const from = performance.now()
  await page.getByText(/^1 account of \d+ has problems\.$/).waitFor()
  const rows = page.getByRole('row')
  const first = rows.nth(1)
  await first.getByRole('link', { name, exact: true }).waitFor()
  assertWithin(t, `the account with trouble is first, with the ${way}`, performance.now() - from, TARGET_MS)
  assert.ok((await rows.count()) > ACCOUNTS, 'all accounts are listed')

  await person.press(first.getByRole('link', { name: 'a webhook endpoint fails' }))
  await page.getByRole('link', { name: receiver.url }).waitFor()
  assert.ok(person.presses() <= MAX_PRESSES)
  t.diagnostic(`at the failing endpoint with the ${way} in ${person.presses()} presses, ${Math.round(performance.now() - from)} ms`)
})
