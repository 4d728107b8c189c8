import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import type { Pool } from '../../src/db/pool.ts'
import { createAcceptor, type Submission } from '../../src/messages/accept.ts'
import type { Reserve } from '../../src/messages/send-at-once.ts'
import { createTestDatabase } from '../support/database.ts'
import { TEXT } from '../support/templates.ts'
import { until } from '../support/until.ts'
import { createSender, queueMessages, type Sender, statusOf } from './support.ts'
import { type CarrierOptions, claimNow, createCarrier, createHold, sent, startWorker } from './worker.ts'

const { url, hotPool: pool } = await createTestDatabase({ unmetered: 'some messages are queued by hand' })

function submissionOf({ accountId, agentId }: Sender, fields: Partial<Submission> = {}): Submission {
  const message = { inline: TEXT } as Submission['message']
  const idempotency = { key: randomUUID(), hash: Buffer.alloc(32) }
  return { accountId, agentId, recipients: ['+48500100200'], test: false, message, idempotency, ...fields }
}

/** A process that accepts and delivers. Announcements reach no worker, so a queued message waits for the next poll or `wake()`. */
async function startProcess(t: TestContext, options: CarrierOptions = {}) {
  const carrier = createCarrier(options)
  const worker = startWorker(t, url, carrier)
  const announced: string[] = []
  const acceptor = createAcceptor(pool, (work) => announced.push(work), worker.reserve)
  const accept = async (submission: Submission) => (await acceptor(submission)).messageIds

  /** A message is queued while the agent is unknown, and during a claim. Retries until a message is sent at once. */
  async function acceptAtOnce(sender: Sender): Promise<string> {
    return await until('a message is sent at once', async () => {
      const before = announced.length
      const [messageId] = await accept(submissionOf(sender))
      if (announced.length === before) return messageId
      worker.wake()
      return undefined
    })
  }

  /** One claim shows the worker that the agent belongs to its carrier and that nothing else is due. */
  async function learnAgent(sender: Sender): Promise<void> {
    await acceptAtOnce(sender)
    await untilNothingWaits()
    announced.length = 0
    carrier.seen.length = 0
  }
  return { carrier, worker, announced, accept, acceptAtOnce, learnAgent }
}

async function untilNothingWaits(): Promise<void> {
  await until('nothing waits', async () => (await pool.query('select from queue')).rowCount === 0)
}

const seenOf = ({ seen }: { seen: { messageId: string }[] }) => seen.map(({ messageId }) => messageId)

test('sends a message once, right after its commit, without an announcement', async (t) => {
  const sender = await createSender(pool)
  const { carrier, acceptAtOnce } = await startProcess(t)
  const messageId = await acceptAtOnce(sender)
  await until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT')
  await untilNothingWaits()
  assert.equal(carrier.seen.filter((seen) => seen.messageId === messageId).length, 1)
})

test('lets another worker claim a message when the lease of its dead process ends', async () => {
  const sender = await createSender(pool)
  const lease = randomUUID()
  const reserve: Reserve = () => ({ lease, leaseMs: 300, send: () => {}, release: () => {} })
  const [messageId] = (await createAcceptor(pool, () => {}, reserve)(submissionOf(sender))).messageIds
  const { rows } = await pool.query(
    'select lease, attempts, claimed, leased_until > accepted_at as "isLeased" from queue join messages on id = message_id',
  )
  assert.deepEqual(rows, [{ lease, attempts: 1, claimed: true, isLeased: true }])
  const entry = await until('the lease has ended', async () => (await claimNow(pool)).entries[0])
  assert.deepEqual([entry.messageId, entry.attempts], [messageId, 2])
  await pool.query('delete from queue')
})

test('frees reserved calls when a request is replayed, rejected or fails', async (t) => {
  const sender = await createSender(pool)
  const { carrier, accept, acceptAtOnce } = await startProcess(t, { concurrency: 4 })
  await acceptAtOnce(sender)
  const replayed = submissionOf(sender)
  const [messageId] = await accept(replayed)
  for (let turn = 0; turn < 10; turn += 1) {
    await accept(replayed)
    await assert.rejects(accept(submissionOf(sender, { message: { templateId: 2 ** 40 } })), { code: 'RCS_TEMPLATE_NOT_FOUND' })
    await assert.rejects(accept(submissionOf(sender, { recipients: ['+48\u0000500'] })), /invalid byte/)
  }
  await acceptAtOnce(sender)
  await untilNothingWaits()
  assert.equal(seenOf(carrier).filter((id) => id === messageId).length, 1, 'a replay sends nothing')
})

test('limits one account to half of the calls, and serves another account beside it', async (t) => {
  const [greedy, other] = [await createSender(pool), await createSender(pool)]
  const { released, release } = createHold(t)
  let isHolding = false
  const { carrier, announced, accept, learnAgent } = await startProcess(t, {
    concurrency: 8,
    longestCallMs: 60_000,
    onSend: async (message) => {
      if (isHolding && message.agentId === greedy.agentId) await released
      return sent(message)
    },
  })
  await learnAgent(greedy)
  await learnAgent(other)
  isHolding = true
  const ids = (await Promise.all(Array.from({ length: 20 }, () => accept(submissionOf(greedy))))).flat()
  await until('half of the calls hang', () => carrier.seen.length === 4)
  assert.deepEqual(announced, ['messages'], 'the others are queued')
  const [mine] = await accept(submissionOf(other))
  await until('the other account is served', async () => (await statusOf(pool, mine as string)) === 'SENT')
  assert.equal(carrier.seen.length, 5)
  release()
  await untilNothingWaits()
  assert.deepEqual([carrier.seen.length, new Set(seenOf(carrier))], [21, new Set([...ids, mine as string])], 'each is sent once')
})

test('queues a new message while the worker may have entries to claim', async (t) => {
  const sender = await createSender(pool)
  const { carrier, worker, announced, accept, learnAgent } = await startProcess(t)
  await learnAgent(sender)
  const waiting = await queueMessages(pool, sender, { count: 3 })
  worker.wake()
  const ids = await accept(submissionOf(sender))
  assert.deepEqual(announced, ['messages'])
  await untilNothingWaits()
  assert.deepEqual(new Set(seenOf(carrier)), new Set([...waiting, ...ids]))
})

test('queues a message of an agent that may belong to another carrier', async (t) => {
  const [known, unknown] = [await createSender(pool), await createSender(pool)]
  const { announced, accept, learnAgent } = await startProcess(t)
  await learnAgent(known)
  await accept(submissionOf(unknown))
  assert.deepEqual(announced, ['messages'])
  await untilNothingWaits()
})

test('queues a message with its own expiry or of a paused agent', async (t) => {
  const sender = await createSender(pool)
  let pausedForMs = 0
  const { announced, accept, learnAgent } = await startProcess(t, { pausedForMs: () => pausedForMs })
  await learnAgent(sender)
  await accept(submissionOf(sender, { expiresAt: new Date(Date.now() + 3_600_000).toISOString() }))
  assert.deepEqual(announced, ['messages'])
  await learnAgent(sender)
  pausedForMs = 1_000
  await accept(submissionOf(sender))
  assert.deepEqual(announced, ['messages'])
  pausedForMs = 0
  await untilNothingWaits()
})

test('queues a message of a carrier with a rate', async (t) => {
  const sender = await createSender(pool)
  const { announced, accept } = await startProcess(t, { messagesPerSecond: 1_000 })
  for (let turn = 0; turn < 2; turn += 1) {
    await accept(submissionOf(sender))
    await untilNothingWaits()
  }
  assert.deepEqual(announced, ['messages', 'messages'])
})

test('queues new messages without a lease when the worker is stopping', async (t) => {
  const sender = await createSender(pool)
  const { worker, announced, accept, learnAgent } = await startProcess(t)
  await learnAgent(sender)
  await worker.stop()
  const [messageId] = await accept(submissionOf(sender))
  const { rows } = await pool.query('select lease, attempts, claimed from queue where message_id = $1', [messageId])
  assert.deepEqual([rows, announced], [[{ lease: null, attempts: 0, claimed: false }], ['messages']])
  await pool.query('delete from queue')
})

test('releases a message that was accepted while the worker stopped', async (t) => {
  const sender = await createSender(pool)
  const { carrier, worker, learnAgent } = await startProcess(t)
  await learnAgent(sender)
  const reservation = worker.reserve(sender.accountId, sender.agentId, 1)
  assert.ok(reservation)
  const reserve: Reserve = () => ({ ...reservation, send: () => {}, release: () => {} })
  const [messageId] = (await createAcceptor(pool, () => {}, reserve)(submissionOf(sender))).messageIds
  const stopped = worker.stop()
  // The stop waits for the reservation by now.
  for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate)
  reservation.send([messageId as string])
  reservation.release()
  await stopped
  const { rows } = await pool.query('select lease, attempts from queue where message_id = $1', [messageId])
  assert.deepEqual([rows, carrier.seen], [[{ lease: null, attempts: 0 }], []])
  await pool.query('delete from queue')
})

test('sends a message of a batch whose later statement fails', async (t) => {
  const sender = await createSender(pool)
  const { carrier, worker, learnAgent } = await startProcess(t)
  await learnAgent(sender)
  let statements = 0
  // The second statement is for the repeated key.
  const failing = {
    query: async (query: never) => {
      if ((query as { name?: string }).name === 'accept-messages') statements += 1
      if (statements === 2) throw new Error('Connection terminated')
      return await pool.query(query)
    },
  } as unknown as Pool
  const accept = createAcceptor(failing, () => {}, worker.reserve)
  const repeated = submissionOf(sender)
  const all = [submissionOf(sender), repeated, { ...repeated }]
  const results = await Promise.allSettled(all.map(accept))
  assert.ok(results.every(({ status }) => status === 'rejected'))
  await until('both committed messages are sent', () => carrier.seen.length === 2)
  await untilNothingWaits()
})
