import assert from 'node:assert/strict'
import { call } from '../../../server/test/support/service.ts'
import { until } from '../../../server/test/support/until.ts'
import { herald, newAccount, startReceiver, testJourney } from './shared.ts'

// Journey 6: an endpoint is down. Notice it, fix it, and post everything again that failed.

const TEXT = { type: 'MESSAGE', content: 'Your parcel is on its way.' }
/** From the fifth failure in a row on, Herald pauses the endpoint. */
const MESSAGES = 6
/** The pause that the endpoint asks for at last. Only a replay ends it during the test. */
const PAUSE_SECONDS = 300
const MAX_PRESSES = 3

/** An account whose endpoint has accepted nothing, and is paused. Every event has failed, and most are due again. */
async function start() {
  const account = await newAccount()
  const { authorization } = account
  const receiver = await startReceiver()
  receiver.isDown = true
  const endpoint = { url: receiver.url, types: ['message.delivered'] }
  const { status } = await call(`${herald.url}/v1/webhook-endpoints`, { method: 'POST', authorization, body: endpoint })
  assert.equal(status, 201)
  for (let index = 0; index < MESSAGES; index++) await account.send(`+485001113${index}01`, TEXT)
  await until('every event has failed', () => new Set(receiver.refused).size === MESSAGES)
  receiver.retryAfterSeconds = PAUSE_SECONDS
  const isPaused = `select from webhook_endpoints where account_id = $1 and paused_until > now() + interval '1 minute'`
  await until('the endpoint is paused', async () => (await herald.pool.query(isPaused, [account.accountId])).rowCount === 1)
  return { ...account, receiver, failedIds: [...new Set(receiver.refused)] }
}

testJourney('posts all failed events again in three presses after an endpoint was down', start, async (journey) => {
  const { t, page, person, way, receiver, failedIds } = journey
  await page.goto('/console')
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Webhooks 1 failing endpoint' }).waitFor()
  const link = page.getByRole('link', { name: receiver.url })
  await page.getByRole('listitem').filter({ has: link }).getByText('fails', { exact: true }).waitFor()

  receiver.isDown = false
  const from = performance.now()
  const before = person.presses()
  await person.press(link)
  await page.getByText('It has accepted nothing since').waitFor()
  await person.press(page.getByRole('button', { name: 'Post events again' }))
  await person.press(page.getByRole('button', { name: 'Post all that failed' }))
  assert.ok(person.presses() - before <= MAX_PRESSES)
  await page.getByText(`${MESSAGES} events are posted again`).waitFor()
  await until('all events have arrived', () => receiver.accepted.length >= MESSAGES)
  assert.deepEqual(receiver.accepted.sort(), failedIds.sort())
  await page.getByText('accepts events').waitFor()
  t.diagnostic(
    `all failed events posted again with the ${way} in ${person.presses() - before} presses, ${Math.round(performance.now() - from)} ms`,
  )

  // The person goes on: what a dialog closed over is still at hand.
  await person.press(page.getByRole('button', { name: 'Send a test event' }))
  await page.getByText('The endpoint accepted the test event').waitFor()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Webhooks', exact: true }).waitFor()
})
