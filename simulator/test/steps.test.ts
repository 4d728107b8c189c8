import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { waitMsAfter } from '../src/timing.ts'
import { AGENT, startTestSimulator } from './support/simulator.ts'
import { until } from './support/until.ts'
import { startWebhook } from './support/webhook.ts'

const DELAY_MS = 400
const TEXT = { contentMessage: { text: 'Hello' } }

/** A simulator with its webhook, and the types of the events of a message. */
async function start(delayMs: number) {
  const simulator = await startTestSimulator({ delayMs })
  const webhook = await startWebhook()
  await simulator.setWebhook(webhook.url)
  const eventsOf = (messageId: string): string[] => webhook.data().flatMap((data) => (data.messageId === messageId ? data.eventType : []))
  return { ...simulator, eventsOf }
}

describe('a message', { concurrency: true }, async () => {
  const { call, sendMessage, phone, settled, eventsOf } = await start(DELAY_MS)

  test('that is revoked before its delivery is never delivered', async () => {
    // On a busy machine the delivery can come before the DELETE.
    const messageId = await until('it is revoked in time', async () => {
      const id = randomUUID()
      await sendMessage('+48500700110', id, TEXT)
      const { status } = await call('DELETE', `/v1/phones/+48500700110/agentMessages/${id}?agentId=${AGENT}`)
      return status === 200 ? id : undefined
    })
    await settled()
    assert.deepEqual(eventsOf(messageId), [])
    const message = (await phone('+48500700110')).find((each) => each.messageId === messageId)
    assert.deepEqual([message.deliveredAt, message.readAt], [null, null])
  })

  test('that is read by hand before its time is read once', async () => {
    const messageId = randomUUID()
    await sendMessage('+48500700410', messageId, TEXT)
    await until('it is delivered', async () => (await phone('+48500700410'))[0].deliveredAt)
    await call('POST', '/simulator/phones/+48500700410/read', { messageId })
    await settled()
    assert.equal(eventsOf(messageId).length, 2)
    assert.deepEqual(new Set(eventsOf(messageId)), new Set(['DELIVERED', 'READ']))
  })

  test('is delivered after the delay, and read after the same delay again', async () => {
    await sendMessage('+48500700510', randomUUID(), TEXT)
    await until('it is read', async () => (await phone('+48500700510'))[0].readAt)
    const [{ acceptedAt, deliveredAt, readAt }] = await phone('+48500700510')
    assert.ok(Date.parse(deliveredAt) - Date.parse(acceptedAt) >= DELAY_MS)
    assert.ok(Date.parse(readAt) - Date.parse(deliveredAt) >= DELAY_MS)
  })
})

describe('a message that expires before its delivery', async () => {
  // The delivery would come in an hour, however slow the machine is.
  const { sendMessage, phone, settled, eventsOf } = await start(3_600_000)
  const LIFETIME_MS = 200

  for (const [number, kind] of [
    ['+48500700210', 'ttl'],
    ['+48500700310', 'expireTime'],
  ] as const) {
    test(`by its ${kind} expires at that time and is never delivered`, async () => {
      const messageId = randomUUID()
      // On a busy machine a request can arrive after the time that it names, which is rejected.
      const { earliest, latest } = await until('it is accepted', async () => {
        const sentAt = Date.now()
        const expireTime = new Date(sentAt + LIFETIME_MS).toISOString()
        const expiry = kind === 'ttl' ? { ttl: `${LIFETIME_MS / 1000}s` } : { expireTime }
        const { status } = await sendMessage(number, messageId, { ...TEXT, ...expiry })
        return status === 200 ? { earliest: sentAt + LIFETIME_MS, latest: (kind === 'ttl' ? Date.now() : sentAt) + LIFETIME_MS } : undefined
      })
      await settled()
      const [message] = await phone(number)
      const expiresAt = Date.parse(message.expiresAt)
      assert.ok(expiresAt >= earliest && expiresAt <= latest, `${expiresAt} is not within ${earliest} and ${latest}`)
      assert.ok(message.expiredAt >= message.expiresAt)
      assert.equal(message.deliveredAt, null)
      assert.deepEqual(eventsOf(messageId), ['TTL_EXPIRATION_REVOKED'])
    })
  }
})

test('doubles the wait after each failed try, from half a second up to a limit', () => {
  assert.deepEqual(
    [0, 1, 2, 10, 11, 1_000].map((tries) => waitMsAfter(tries, 600_000)),
    [500, 1_000, 2_000, 512_000, 600_000, 600_000],
  )
})
