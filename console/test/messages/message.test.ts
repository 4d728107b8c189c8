import assert from 'node:assert/strict'
import { test } from 'node:test'
import { moveExpiry } from '../../../server/test/support/expiring.ts'
import { until } from '../../../server/test/support/until.ts'
import { browserTest, openPage } from '../support/browser.ts'
import { admin, ask, herald, open, startEndpoint, step, TEXT, waitForOutcome, withSms } from './shared.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

test('says of a number without RCS that the SMS arrived, and why each step happened', browserTest, async () => {
  const messageId = await herald.send('+48500100202', TEXT, withSms({ quarantine: true }, { clientReferenceId: 'order-4711' }))
  const { page, end } = await open(`/${messageId}`)
  const outcome = await waitForOutcome(page, 'The recipient got it by SMS after')
  assert.match(outcome, /The number has no RCS; the SMS of the request went out/)
  const failed = step(page, 'Failed: the number has no RCS')
  assert.match((await failed.textContent()) ?? '', /agent is not launched on the recipient’s network.*404 NOT_FOUND/s)
  const rules = page.getByRole('list', { name: 'The rules of the SMS' }).getByRole('listitem')
  await rules.nth(7).waitFor()
  assert.equal(await rules.count(), 8)
  assert.match((await rules.last().textContent()) ?? '', /Quarantine.*24 hours; there was no SMS before/)
  await step(page, 'SMS delivered').waitFor()
  const phone = page.getByRole('figure', { name: 'Android phone' })
  await phone.getByText('Your parcel is on its way, by SMS.').waitFor()
  await page.getByText('What was meant').click()
  await phone.getByText('Your parcel is on its way.', { exact: true }).waitFor()
  await page.getByText('iPhone').click()
  await page.getByRole('figure', { name: 'iPhone' }).getByText('Your parcel is on its way.', { exact: true }).waitFor()
  assert.match(page.url(), /show=meant/, 'the choice is in the address')
  await page.getByRole('button', { name: 'Copy order-4711' }).waitFor()
  await end()
})

test('draws what the network received: the short link of an SMS, and not the link of the request', browserTest, async () => {
  const sms = { content: 'Follow it: https://example.com/parcel', urlShortening: true }
  const messageId = await herald.send('+48500100302', TEXT, {
    smsFallback: { planParams: { sender: 'Greenhouse', smsShipmentType: 1 }, smsMessagesPlan: [sms] },
  })
  const { page, end } = await open(`/${messageId}`)
  const phone = page.getByRole('figure', { name: 'Android phone' })
  await phone.getByText(new RegExp(`${herald.url}/l/\\w{11}`)).waitFor()
  assert.equal(await phone.getByText('https://example.com').count(), 0)
  await end()
})

test('says of a failed SMS that nothing arrived, with the words of both networks', browserTest, async () => {
  const messageId = await herald.send('+48500100208', TEXT, withSms())
  const { page, end } = await open(`/${messageId}`)
  assert.match(await waitForOutcome(page, 'The recipient got nothing.'), /The SMS failed, too: the network could not deliver the SMS\.$/)
  assert.match((await step(page, 'SMS failed').textContent()) ?? '', /UNDELIVERABLE.*never sends an SMS twice.*UNDELIV, error 001/s)
  await page.getByRole('heading', { name: 'Nothing arrived' }).waitFor()
  await end()
})

test('shows each attempt that the network refused, with its response', browserTest, async () => {
  const messageId = await herald.send('+48500100205', TEXT)
  const { page, end } = await open(`/${messageId}`)
  await waitForOutcome(page, 'The recipient read it after')
  const attempts = step(page, 'The network did not accept it')
  await attempts.nth(1).waitFor()
  assert.equal(await attempts.count(), 2)
  for (const attempt of await attempts.all()) assert.match((await attempt.textContent()) ?? '', /503 UNAVAILABLE/)
  await end()
})

test('follows a message live until it expires and its SMS arrives', browserTest, async () => {
  const expiresAt = new Date(Date.now() + HOUR_MS).toISOString()
  const messageId = await herald.send('+48500100204', TEXT, withSms({}, { expiresAt, smsFallbackAfterExpiry: { delay: 0 } }))
  const { page, end } = await open(`/${messageId}`)
  assert.match(
    await waitForOutcome(page, 'The network has it, but has reported no delivery'),
    /It can be delivered until .*; if RCS fails, the SMS/,
  )
  await page.getByRole('heading', { name: 'Nothing arrived yet' }).waitFor()
  await moveExpiry(herald.pool, [messageId])
  assert.match(await waitForOutcome(page, 'The recipient got it by SMS'), /It was not delivered before it expired/)
  await step(page, 'Asked to revoke it').waitFor()
  await step(page, 'Expired').waitFor()
  await end()
})

test('shows that the network revoked a message at its expiry', browserTest, async () => {
  const expiresAt = new Date(Date.now() + 5_000).toISOString()
  const messageId = await herald.send('+48500100704', TEXT, withSms({}, { expiresAt, smsFallbackAfterExpiry: { delay: 0 } }))
  const { page, end } = await open(`/${messageId}`)
  assert.match(await waitForOutcome(page, 'The recipient got it by SMS'), /It was not delivered before it expired/)
  await step(page, 'Revoked').waitFor()
  await step(page, 'Expired').waitFor()
  await end()
})

test('cancels a message that waits, after a question that says what this does', browserTest, async (t) => {
  await herald.simulator.ask('faults', { api: { serverError: { rate: 1 } } }, 'PUT')
  t.after(() => herald.simulator.ask('faults', undefined, 'DELETE'))
  const messageId = await herald.send('+48500100310', TEXT, withSms())
  const { page, end } = await open(`/${messageId}`)
  await waitForOutcome(page, 'It is being sent. The network did not accept it')
  await page.getByRole('button', { name: 'Cancel the message' }).click()
  const dialog = page.getByRole('dialog', { name: 'Cancel this message?' })
  assert.match((await dialog.textContent()) ?? '', /becomes FAILED, with the reason CANCELLED.*SMS of the request is not sent either/)
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await waitForOutcome(page, 'It is being sent. The network did not accept it 4 times')
  // During an attempt, a message can't be cancelled.
  const postpone = `update queue set due_at = now() + interval '10 minutes' where message_id = $1 and leased_until <= now()`
  await until('no attempt runs or is due', async () => (await herald.pool.query(postpone, [messageId])).rowCount === 1)
  await page.getByRole('button', { name: 'Cancel the message' }).click()
  await dialog.getByRole('button', { name: 'Cancel the message' }).click()
  await waitForOutcome(page, 'It was cancelled before it was sent.')
  assert.equal((await ask(`/messages/${messageId}`)).failure.reason, 'CANCELLED')
  await end()
})

test('shows the date where the day of a step changes, and the exact time on hover', browserTest, async () => {
  const messageId = await herald.send('+48500100610', TEXT)
  const { page, end } = await open(`/${messageId}`)
  await waitForOutcome(page, 'The recipient read it after')
  const timeOf = (title: string) => step(page, title).locator('time')
  const dateOf = (ms: number) => new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' }).format(ms)
  let acceptedAt = 0
  // A night later than it was: nobody waits for that in a test.
  await page.route(/\/timeline$/, async (route) => {
    const response = await route.fetch()
    const { items, ...rest } = await response.json()
    acceptedAt = Date.parse(items.find(({ step }: { step: string }) => step === 'accepted').occurredAt)
    const later = items.map((item: { occurredAt: string; step: string }) => {
      const ms = acceptedAt + (['accepted', 'sent'].includes(item.step) ? 0 : DAY_MS)
      return { ...item, occurredAt: new Date(ms).toISOString() }
    })
    await route.fulfill({ json: { ...rest, items: later } })
  })
  await page.reload()
  await timeOf('Delivered')
    .getByText(/^\d+ \w+ \d{4}, /)
    .waitFor()
  const [today, tomorrow] = [dateOf(acceptedAt), dateOf(acceptedAt + DAY_MS)]
  assert.match((await timeOf('Accepted').textContent()) ?? '', new RegExp(`^${today}, \\d\\d:`))
  assert.match((await timeOf('Delivered').textContent()) ?? '', new RegExp(`^${tomorrow}, \\d\\d:`))
  assert.match((await timeOf('Read').textContent()) ?? '', /^\d\d:/)
  const title = (await timeOf('Delivered').getAttribute('title')) ?? ''
  assert.match(title, new RegExp(`^${tomorrow}, \\d\\d:\\d\\d:\\d\\d \\S+$`))
  await end()
})

test('replays an event to its endpoint, under the step that emitted it', browserTest, async () => {
  const endpoint = await startEndpoint()
  const messageId = await herald.send('+48500100301', TEXT)
  const { page, end } = await open(`/${messageId}`)
  const line = step(page, 'Delivered').locator('.tl-webhook')
  await line.locator('.tl-attempt', { hasText: /^200$/ }).waitFor()
  await line.getByRole('link', { name: endpoint.host }).waitFor()
  await line.getByRole('button', { name: `Post again: message.delivered to ${endpoint.host}` }).click()
  await until('the page shows the second attempt', async () => (await line.locator('.tl-attempt').count()) === 2)
  const delivered = endpoint.bodies.filter((body) => body.includes('message.delivered') && body.includes(messageId))
  assert.equal(delivered.length, 2)
  await end()
})

test('copies the ids of the agent and of an event', browserTest, async () => {
  await startEndpoint()
  const messageId = await herald.send('+48500200400', TEXT)
  const { page, end } = await open(`/${messageId}`)
  await page.getByRole('button', { name: `Copy ${herald.agentId}` }).waitFor()
  await step(page, 'Delivered')
    .getByRole('button', { name: /^Copy [\da-f-]{36}$/ })
    .first()
    .waitFor()
  await end()
})

test('shows the message as JSON, and the call of the API', browserTest, async () => {
  const messageId = await herald.send('+48500100401', TEXT)
  const { page, end } = await open(`/${messageId}`)
  await waitForOutcome(page, 'The recipient got it')
  const asJson = page.getByRole('button', { name: 'As JSON' })
  await asJson.click()
  const json = await page.getByRole('region', { name: 'As JSON', exact: true }).textContent()
  assert.equal(JSON.parse(json ?? '').messageId, messageId)
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'As curl' }).click()
  const command = (await page.getByRole('region', { name: 'The same request to the API' }).textContent()) ?? ''
  const url = /'(http[^']+)'$/.exec(command)?.[1] ?? ''
  const response = await fetch(url, { headers: { authorization: herald.authorization } })
  assert.equal(((await response.json()) as { messageId: string }).messageId, messageId, 'the call works')
  await end()
})

test('says that there is no such message', browserTest, async () => {
  const { page, close } = await open('/0198c0de-0000-7000-8000-000000000009')
  await page.getByText('There is no such message in this account.', { exact: true }).waitFor()
  await close()
})

test(
  'shows what was meant while the network does not respond, and says when the simulator no longer has a message',
  browserTest,
  async () => {
    const messageId = await herald.send('+48500100510', TEXT)
    const { page, close } = await open('')
    let isDown = true
    await page.route(/\/received$/, (route) =>
      isDown
        ? route.fulfill({ status: 503, json: { code: 'RCS_UNAVAILABLE', requestId: 'request-1' } })
        : route.fulfill({ json: { messageId, isSimulated: true } }),
    )
    await page.goto(`/console#/${herald.accountId}/messages/${messageId}`)
    await waitForOutcome(page, 'The recipient read it after')
    const region = page.getByRole('region', { name: 'The phone' })
    await region.getByRole('alert').waitFor()
    await region.getByText('What was meant').click()
    await page.getByRole('figure', { name: 'Android phone' }).getByText('Your parcel is on its way.', { exact: true }).waitFor()
    assert.equal(await region.getByRole('alert').count(), 0)
    isDown = false
    await region.getByText('What arrived').click()
    await region.getByRole('button', { name: 'Try again' }).click()
    await region.getByRole('heading', { name: 'Delivered, but the simulator no longer has it' }).waitFor()
    await close()
  },
)

test('polls a waiting message every second, less often after half a minute, and renews no session', browserTest, async () => {
  const messageId = await herald.send('+48500200901', TEXT)
  const message = { ...(await ask(`/messages/${messageId}`)), status: 'ACCEPTED' }
  const { page, close } = await openPage({ base: herald.url, cookie: admin })
  const reads: (string | undefined)[] = []
  await page.route('**/stream?*', (route) => route.abort())
  await page.route(`**/messages/${messageId}/timeline`, (route) => route.fulfill({ json: { items: [] } }))
  await page.route(`**/messages/${messageId}`, async (route) => {
    reads.push(route.request().headers()['x-herald-background'])
    await route.fulfill({ json: message })
  })
  await page.clock.install()
  await page.goto(`/console#/${herald.accountId}/messages/${messageId}`)
  await waitForOutcome(page, 'It waits to be sent')
  await page.clock.pauseAt(Date.now() + 1_000)
  for (let second = 0; second < 25; second += 1) {
    const before = reads.length
    await page.clock.runFor(1_000)
    await until('it is read again', async () => reads.length > before)
  }
  assert.deepEqual([reads[0], reads.at(-1)], [undefined, 'true'])

  await page.clock.runFor(60_000)
  const before = reads.length
  for (let second = 0; second < 20; second += 1) await page.clock.runFor(1_000)
  assert.ok(reads.length - before <= 2, `${reads.length - before} reads`)
  message.status = 'SENDING'
  await until('the change is seen', async () => {
    await page.clock.runFor(10_000)
    return (await page.locator('.outcome', { hasText: 'It is being sent' }).count()) === 1
  })
  await page.keyboard.press('Tab')
  await until('it is read by the person', async () => {
    await page.clock.runFor(1_000)
    return reads.at(-1) === undefined
  })
  await close()
})
