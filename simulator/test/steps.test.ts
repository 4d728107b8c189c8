import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { waitMsAfter } from '../src/timing.ts'
import { AGENT, startTestSimulator } from './support/simulator.ts'
import { until } from './support/until.ts'
import { startWebhook } from './support/webhook.ts'

const DELAY_MS = 400
const { call, sendMessage, phone, setWebhook } = await startTestSimulator({ delayMs: DELAY_MS })
const webhook = await startWebhook()
await setWebhook(webhook.url)

async function untilNothingIsOwed(): Promise<void> {
  await until('nothing is owed', async () => {
    const { owed } = (await call('GET', '/simulator/counts')).body
    return owed.steps + owed.webhooks === 0
  })
}

const eventsOf = (messageId: string): string[] =>
  webhook
    .data()
    .filter((data) => data.messageId === messageId)
    .map(({ eventType }) => eventType)

describe('the steps of a message', { concurrency: true }, () => {
  test('one that is revoked before its delivery is never delivered', async () => {
    const messageId = randomUUID()
    await sendMessage('+48500700110', messageId, { contentMessage: { text: 'Hello' } })
    const revoked = await call('DELETE', `/v1/phones/+48500700110/agentMessages/${messageId}?agentId=${AGENT}`)
    assert.equal(revoked.status, 200)
    await untilNothingIsOwed()
    assert.deepEqual(eventsOf(messageId), [])
    const [message] = await phone('+48500700110')
    assert.deepEqual([message.deliveredAt, message.readAt], [null, null])
  })

  for (const [number, kind] of [
    ['+48500700210', 'ttl'],
    ['+48500700310', 'expireTime'],
  ] as const) {
    test(`one whose ${kind} ends before its delivery expires, at its time, and is never delivered`, async () => {
      const messageId = randomUUID()
      let expireTime = ''
      // On a busy machine a request can arrive after the time that it names, which is refused.
      await until('it is accepted', async () => {
        expireTime = new Date(Date.now() + DELAY_MS / 2).toISOString()
        const expiry = kind === 'ttl' ? { ttl: `${DELAY_MS / 2000}s` } : { expireTime }
        return (await sendMessage(number, messageId, { contentMessage: { text: 'Hello' }, ...expiry })).status === 200
      })
      await until('it expires', async () => (await phone(number))[0].expiredAt)
      const [message] = await phone(number)
      assert.equal(message.deliveredAt, null)
      assert.ok(message.expiredAt >= message.expiresAt)
      if (kind === 'ttl') assert.ok(Math.abs(Date.parse(message.expiresAt) - Date.parse(message.acceptedAt) - DELAY_MS / 2) <= 50)
      else assert.equal(message.expiresAt, expireTime)
      await until('it is told', () => eventsOf(messageId).length > 0)
      await untilNothingIsOwed()
      assert.deepEqual(eventsOf(messageId), ['TTL_EXPIRATION_REVOKED'])
    })
  }

  test('one that is read by hand before its own time is read once', async () => {
    const messageId = randomUUID()
    await sendMessage('+48500700410', messageId, { contentMessage: { text: 'Hello' } })
    await until('it is delivered', async () => (await phone('+48500700410'))[0].deliveredAt)
    await call('POST', '/simulator/phones/+48500700410/read', { messageId })
    await untilNothingIsOwed()
    assert.deepEqual(new Set(eventsOf(messageId)), new Set(['DELIVERED', 'READ']))
    assert.equal(eventsOf(messageId).length, 2)
  })

  test('they are as far apart as the delay says', async () => {
    const messageId = randomUUID()
    await sendMessage('+48500700510', messageId, { contentMessage: { text: 'Hello' } })
    await until('it is read', async () => (await phone('+48500700510'))[0].readAt)
    const [{ acceptedAt, deliveredAt, readAt }] = await phone('+48500700510')
    assert.ok(Date.parse(deliveredAt) - Date.parse(acceptedAt) >= DELAY_MS)
    assert.ok(Date.parse(readAt) - Date.parse(deliveredAt) >= DELAY_MS)
  })
})

test('what was tried in vain waits half a second, then twice as long each time, up to a limit', () => {
  assert.deepEqual(
    [0, 1, 2, 10, 11, 1_000].map((tries) => waitMsAfter(tries, 600_000)),
    [500, 1_000, 2_000, 512_000, 600_000, 600_000],
  )
})
