import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { activateAgent, changeAgent } from '../../src/agents/agents.ts'
import { createHotPool } from '../../src/db/pool.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { failInactive } from '../../src/delivery/fail.ts'
import { FAILURES } from '../../src/delivery/failures.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
import { type EntryResult, recordResults } from '../../src/delivery/results.ts'
import { createAcceptor, type Submission } from '../../src/messages/accept.ts'
import { requestHash } from '../../src/messages/request-hash.ts'
import { claimMessages } from '../delivery/sms/support.ts'
import { CARRIER, createReceiver, createSender, readAll, receipt, type Sender } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { moveExpiry } from '../support/expiring.ts'
import { RECIPIENT } from '../support/messages.ts'
import { TEXT } from '../support/templates.ts'
import { assertAllTold, readTold, type Told } from '../support/told.ts'
import { assertAsDocumented } from './documented.ts'

// Whichever way a message goes, each step of it is told once, with what a caller needs to know which message it was.

const { url, hotPool: pool } = await createTestDatabase()
const otherNode = createHotPool({ connectionString: url }, () => {})
after(() => otherNode.end())
await ensurePace(pool, CARRIER)
const accept = createAcceptor(pool, () => {})
const take = createReceiver(pool)

async function accepted(sender: Sender, fields: Partial<Submission> = {}): Promise<string> {
  const { accountId, agentId } = sender
  const key = randomUUID()
  const idempotency = fields.test ? {} : { idempotency: { key, hash: requestHash({ key }) } }
  const message = { inline: TEXT as never }
  const { messageIds } = await accept({ accountId, agentId, message, recipients: [RECIPIENT], test: false, ...idempotency, ...fields })
  return messageIds[0] as string
}

async function leaseOf(messageId: string): Promise<string> {
  const entry = (await claimMessages(pool)).find((one) => one.messageId === messageId)
  if (entry === undefined) throw new Error(`${messageId} was not due`)
  return entry.lease
}

/** Takes it up and writes down what came of it. */
async function handOver(messageId: string, verdict: EntryResult = { is: 'sent' }): Promise<void> {
  await recordResults(pool, [{ messageId, lease: await leaseOf(messageId), ...verdict }])
}

const TIMES = new Map([
  ['message.sent', 'sent_at'],
  ['message.delivered', 'delivered_at'],
  ['message.read', 'read_at'],
  ['message.failed', 'failed_at'],
  ['message.expired', 'expires_at'],
])

/** The account was told these, of this message, in this order, and nothing else: with the message's own times, and this data. */
async function assertTold(sender: Sender, messageId: string, kinds: string[], fields: Record<string, unknown> = {}): Promise<void> {
  const { message } = await readAll(pool, messageId)
  const { failure, ...common } = fields
  const data = { messageId, agentId: sender.agentId, recipient: RECIPIENT, test: false, ...common }
  const expected = kinds.map(
    (kind): Told => ({
      kind,
      subjectId: messageId,
      occurredAt: new Date(message[TIMES.get(kind) as string]),
      data: kind === 'message.failed' ? { ...data, failure } : data,
    }),
  )
  assert.deepEqual(await readTold(pool, sender), expected)
}

const SENT = 'message.sent'
const DELIVERED = 'message.delivered'
const READ = 'message.read'
const ALL = [SENT, DELIVERED, READ]

describe('a message that the network took', () => {
  test('is told as sent, once, with the caller’s own reference as it was given', async () => {
    const sender = await createSender(pool)
    const clientReferenceId = 'order "7" \\ zażółć 🎈'
    const messageId = await accepted(sender, { clientReferenceId })
    assert.deepEqual(await readTold(pool, sender), [])
    const lease = await leaseOf(messageId)
    await recordResults(pool, [{ messageId, lease, is: 'sent' }])
    await recordResults(pool, [{ messageId, lease, is: 'sent' }])
    await assertTold(sender, messageId, [SENT], { clientReferenceId })
  })

  test('is told as a test where it is one', async () => {
    const sender = await createSender(pool)
    const messageId = await accepted(sender, { test: true })
    await handOver(messageId)
    await take([receipt({ messageId, kind: 'read' })])
    await assertTold(sender, messageId, ALL, { test: true })
  })

  test('is told as delivered and as read when receipts say so, each once, however often they come', async () => {
    const sender = await createSender(pool)
    const messageId = await accepted(sender)
    await handOver(messageId)
    const delivered = receipt({ messageId })
    await take([delivered])
    await assertTold(sender, messageId, [SENT, DELIVERED])
    await take([delivered, receipt({ messageId })])
    await assertTold(sender, messageId, [SENT, DELIVERED])
    const read = receipt({ messageId, kind: 'read' })
    await take([read])
    await take([read, receipt({ messageId, kind: 'read' }), receipt({ messageId })])
    await assertTold(sender, messageId, ALL)
  })

  test('is told as delivered and then as read when it is said to be read first, or both at once', async () => {
    for (const kinds of [['read'], ['read', 'delivered'], ['delivered', 'read']] as const) {
      const sender = await createSender(pool)
      const messageId = await accepted(sender)
      await handOver(messageId)
      await take(kinds.map((kind) => receipt({ messageId, kind })))
      await take([receipt({ messageId })])
      await assertTold(sender, messageId, ALL)
    }
  })

  test('is told as sent by a receipt that is quicker than the answer, and not once more by the answer', async () => {
    for (const kind of ['delivered', 'read'] as const) {
      const sender = await createSender(pool)
      const messageId = await accepted(sender)
      const lease = await leaseOf(messageId)
      await take([receipt({ messageId, kind })])
      await recordResults(pool, [{ messageId, lease, is: 'sent' }])
      await assertTold(sender, messageId, kind === 'read' ? ALL : [SENT, DELIVERED])
    }
  })

  test('is told once, in order, though the answer and receipts come at the same moment to two nodes', async () => {
    const sender = await createSender(pool)
    const ids = await Promise.all(Array.from({ length: 20 }, () => accepted(sender)))
    const leases = new Map((await claimMessages(pool)).map(({ messageId, lease }) => [messageId, lease]))
    const results = ids.map((messageId) => ({ messageId, lease: leases.get(messageId) as string, is: 'sent' as const }))
    const receipts = ids.flatMap((messageId) => [receipt({ messageId }), receipt({ messageId, kind: 'read' })])
    const takers = [pool, otherNode].map((node) => createReceiver(node))
    await Promise.all([recordResults(pool, results), ...takers.map((taker) => taker(receipts)), takers[0]?.(receipts.toReversed())])
    const told = await readTold(pool, sender)
    for (const messageId of ids) {
      const kinds = told.filter(({ subjectId }) => subjectId === messageId).map(({ kind }) => kind)
      assert.deepEqual(kinds, ALL)
    }
    assert.equal(told.length, 60)
  })

  test('is not told as anything by a receipt of another phone or network, nor by the word on a revocation', async () => {
    const sender = await createSender(pool)
    const messageId = await accepted(sender)
    await handOver(messageId)
    await take([
      receipt({ messageId, phone: '+48500100999' }),
      receipt({ messageId, carrier: 'elsewhere', kind: 'read' }),
      receipt({ messageId, kind: 'expired' }),
      receipt({ messageId, kind: 'expiry-failed' }),
      receipt({ messageId: randomUUID(), kind: 'read' }),
    ])
    await assertTold(sender, messageId, [SENT])
  })
})

describe('a message that the network did not take', () => {
  const detail = '404 NOT_FOUND It said "no".'
  const failure = { reason: 'NOT_REACHABLE', description: `${FAILURES.NOT_REACHABLE} The network said: ${detail}` }

  test('is told as failed, with why, as callers read it; what receipts say later is not told', async () => {
    const sender = await createSender(pool)
    const messageId = await accepted(sender, { clientReferenceId: 'order-1' })
    await handOver(messageId, { is: 'failed', reason: 'NOT_REACHABLE', detail })
    await take([receipt({ messageId }), receipt({ messageId, kind: 'read' })])
    await assertTold(sender, messageId, ['message.failed'], { clientReferenceId: 'order-1', failure })
  })

  test('is told in our words alone where the network had none', async () => {
    const sender = await createSender(pool)
    const messageId = await accepted(sender, { test: true })
    await handOver(messageId, { is: 'failed', reason: 'REJECTED', detail: '' })
    await assertTold(sender, messageId, ['message.failed'], { test: true, failure: { reason: 'REJECTED', description: FAILURES.REJECTED } })
  })

  test('and is tried again or given back is told as nothing', async () => {
    const sender = await createSender(pool)
    const messageId = await accepted(sender)
    await handOver(messageId, { is: 'not-tried', afterMs: 0 })
    await handOver(messageId, { is: 'retry', afterMs: 0, detail: '503' })
    assert.deepEqual(await readTold(pool, sender), [])
    await handOver(messageId)
    await assertTold(sender, messageId, [SENT])
  })

  test('is told as failed when its agent is deactivated, once by two workers, whether it was tried or not', async () => {
    const sender = await createSender(pool)
    const ids = [await accepted(sender), await accepted(sender)] as const
    await handOver(ids[0], { is: 'retry', afterMs: 0, detail: '503' })
    await pool.query(`update queue set lease = null, leased_until = '-infinity' where message_id = $1`, [ids[1]])
    await changeAgent(pool, sender.accountId, sender.agentId, { active: false })
    await Promise.all([failInactive(pool), failInactive(otherNode)])
    await failInactive(pool)
    await take(ids.map((messageId) => receipt({ messageId })))
    await activateAgent(pool, sender.agentId, sender.accountId)
    const told = await readTold(pool, sender)
    assert.deepEqual(new Set(told.map(({ subjectId }) => subjectId)), new Set(ids))
    assert.equal(told.length, 2)
    for (const { kind, data } of told) {
      const agentId = sender.agentId
      const failed = { reason: 'AGENT_INACTIVE', description: FAILURES.AGENT_INACTIVE }
      assert.deepEqual(
        [kind, data],
        ['message.failed', { messageId: data.messageId, agentId, recipient: RECIPIENT, test: false, failure: failed }],
      )
    }
  })
})

describe('a message that runs out', () => {
  const EXPIRED = 'message.expired'
  const BEFORE = new Map<string, { prepare: (messageId: string) => Promise<unknown>; told: string[] }>([
    ['that was never tried', { prepare: async () => {}, told: [] }],
    ['that was tried', { prepare: (messageId) => handOver(messageId, { is: 'retry', afterMs: 0, detail: '503' }), told: [] }],
    ['whose call is under way', { prepare: leaseOf, told: [] }],
    ['that the network has', { prepare: handOver, told: [SENT] }],
  ])

  for (const [which, { prepare, told }] of BEFORE) {
    test(`and ${which} is told as expired, at its time, once by two workers; what comes later is not told`, async () => {
      const sender = await createSender(pool)
      const messageId = await accepted(sender, { clientReferenceId: 'order-1' })
      await prepare(messageId)
      await moveExpiry(pool, [messageId])
      await Promise.all([expireDue(pool), expireDue(otherNode)])
      await expireDue(pool)
      await take([receipt({ messageId }), receipt({ messageId, kind: 'read' }), receipt({ messageId, kind: 'expired' })])
      await assertTold(sender, messageId, [...told, EXPIRED], { clientReferenceId: 'order-1' })
    })
  }

  test('while it is handed over is not told as sent, nor as delivered, by what comes before the mark', async () => {
    const sender = await createSender(pool)
    const messageId = await accepted(sender)
    const lease = await leaseOf(messageId)
    await moveExpiry(pool, [messageId])
    await recordResults(pool, [{ messageId, lease, is: 'sent' }])
    await take([receipt({ messageId })])
    assert.deepEqual(await readTold(pool, sender), [])
    await expireDue(pool)
    await assertTold(sender, messageId, [EXPIRED])
  })

  test('after it was delivered is told as read all the same, and not as expired', async () => {
    const sender = await createSender(pool)
    const messageId = await accepted(sender)
    await handOver(messageId)
    await take([receipt({ messageId })])
    await moveExpiry(pool, [messageId])
    await expireDue(pool)
    await take([receipt({ messageId, kind: 'read' })])
    await assertTold(sender, messageId, ALL)
  })
})

test('each account is told of its own messages only, though one statement moves those of many', async () => {
  const senders = [await createSender(pool), await createSender(pool), await createSender(pool)]
  const ids = await Promise.all(senders.map((sender) => accepted(sender)))
  const leases = new Map((await claimMessages(pool)).map(({ messageId, lease }) => [messageId, lease]))
  const [verdicts, failure] = [['sent', 'failed', 'sent'] as const, { reason: 'REJECTED', detail: '' } as const]
  const results = ids.map((messageId, index) => ({
    messageId,
    lease: leases.get(messageId) as string,
    ...(verdicts[index] === 'failed' ? { is: 'failed' as const, ...failure } : { is: 'sent' as const }),
  }))
  await recordResults(pool, results)
  for (const [index, sender] of senders.entries()) {
    const told = (await readTold(pool, sender)).map(({ kind, subjectId }) => [kind, subjectId])
    assert.deepEqual(told, [[`message.${verdicts[index]}`, ids[index]]])
  }
})

test('all that these messages went through was told, as it is documented', async () => {
  assert.ok((await assertAllTold(pool)) > 90)
  await assertAsDocumented(pool)
})
