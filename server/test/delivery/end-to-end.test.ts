import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertAllEmitted } from '../support/emitted.ts'
import { moveExpiry } from '../support/expiring.ts'
import { until } from '../support/until.ts'
import { readOnce, startSimulated } from './simulated.ts'
import { kindsOf, sendUntilAccepted } from './support.ts'

// From the request to the final state, by HTTP on both sides: the last two digits of a number decide what a caller reads.

const { pool, simulator, service, newCaller, received } = await startSimulated()
const caller = await newCaller()

const CONTENT = { type: 'MESSAGE', content: 'Shall we come?', buttons: [{ id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'yes' }] }
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Herald's words, and then the network's. */
const NOT_REACHABLE = {
  reason: 'NOT_REACHABLE',
  description:
    'The number can’t be reached by RCS: it has no RCS, RCS is switched off, or the agent is not launched on its network. ' +
    'The network said: 404 NOT_FOUND The phone number is not reachable by RCS, or the agent is not launched on its network.',
}
const REJECTED = {
  reason: 'REJECTED',
  description: 'The network refused the message. The network said: 400 FAILED_PRECONDITION The network refused the message.',
}

/** By ending: the status that a message reaches, and why it fails. */
const ENDS: Record<string, readonly [status: keyof typeof TIMES, failure?: object]> = {
  '00': ['READ'],
  '01': ['DELIVERED'],
  '02': ['FAILED', NOT_REACHABLE],
  '03': ['FAILED', REJECTED],
  '04': ['SENT'],
  '05': ['READ'],
  '06': ['READ'],
  '07': ['READ'],
  '08': ['FAILED', NOT_REACHABLE],
  '09': ['DELIVERED'],
}
const TIMES = {
  SENT: ['sentAt'],
  DELIVERED: ['sentAt', 'deliveredAt'],
  READ: ['sentAt', 'deliveredAt', 'readAt'],
  FAILED: ['failedAt'],
  EXPIRED: ['sentAt', 'expiredAt'],
}

/** Waits for a status, and fails unless the caller reads exactly this, with times in order. */
async function assertReaches(messageId: string, status: keyof typeof TIMES, expected: Record<string, unknown>): Promise<any> {
  const body = await readOnce(caller, messageId, `is ${status}`, (message) => message.status === status)
  const times = Object.fromEntries(TIMES[status].map((name) => [name, body[name]]))
  const { acceptedAt, expiresAt } = body
  const common = { messageId, agentId: caller.agentId, status, basic: false, test: false, acceptedAt, expiresAt }
  assert.deepEqual(body, { ...common, ...times, ...expected })
  const inOrder = [acceptedAt, ...Object.values(times)] as string[]
  for (const time of inOrder) assert.match(time, TIME)
  assert.equal(inOrder.join(), [...inOrder].sort().join())
  return body
}

describe('a message to a number that ends in', { concurrency: 10 }, () => {
  for (const [ending, [status, failure]] of Object.entries(ENDS)) {
    test(`${ending} becomes ${status}`, async () => {
      const fields = { recipient: `+485001001${ending}`, clientReferenceId: `order-${ending}` }
      const { messageId } = await sendUntilAccepted(caller, { ...fields, message: { inline: CONTENT } })
      const body = await assertReaches(messageId, status, { ...fields, ...(failure && { failure }) })
      assert.equal(Date.parse(body.expiresAt) - Date.parse(body.acceptedAt), 48 * 3_600_000)
      assert.equal((await received(fields.recipient)).length, status === 'FAILED' ? 0 : 1)
      if (ending === '05') assert.deepEqual((await kindsOf(pool, messageId)).slice(0, 2), ['attempt-failed', 'attempt-failed'])
    })
  }

  test('04 becomes EXPIRED at its expiry', async () => {
    const recipient = '+48500200104'
    const { messageId } = await sendUntilAccepted(caller, { recipient })
    await assertReaches(messageId, 'SENT', { recipient })
    const { rows } = await pool.query<{ at: string }>('select clock_timestamp()::timestamptz(3)::text as at')
    await moveExpiry(pool, [messageId], `'${rows[0]?.at}'`)
    const expiredAt = new Date(rows[0]?.at as string).toISOString()
    await assertReaches(messageId, 'EXPIRED', { recipient, expiresAt: expiredAt, expiredAt })
  })
})

test('replies and taps are stored once, marked as processed, and keep only their ids', async () => {
  const stored = await until('all have come and are processed', async () => {
    const { rows } = await pool.query<{ reply: string; isProcessed: boolean }>(
      `select kind || phone || event as reply, process_after is null as "isProcessed" from carrier_events order by kind`,
    )
    return rows.length >= 3 && rows.every(({ isProcessed }) => isProcessed) ? rows : undefined
  })
  assert.deepEqual(stored.map(({ reply }) => reply).join(), 'tapped{},wrote{},wrote{}')
  const { rows } = await pool.query(
    `select string_agg(right(recipient, 2) || ' ' || kind, ',' order by recipient) as actions from recipient_actions`,
  )
  assert.equal(rows[0].actions, '06 wrote,07 tapped,09 opted-out')
})

test('test messages are sent like others, and marked as tests', async () => {
  const recipients = ['00', '01', '02', '03', '05'].map((ending) => `+485003001${ending}`)
  const { status, body } = await caller.sendTest({ agentId: caller.agentId, recipients, message: { inline: CONTENT } })
  assert.equal(status, 202)
  for (const [index, recipient] of recipients.entries()) {
    const [reached, failure] = ENDS[recipient.slice(-2)] as (typeof ENDS)[string]
    await assertReaches(body.items[index].messageId, reached, { recipient, test: true, ...(failure && { failure }) })
  }
})

test('the queue is empty, and the network has every message once', async () => {
  await until('the queue is empty', async () => (await pool.query('select from queue')).rowCount === 0)
  const { entries } = await simulator.ask('ledger?limit=1000')
  const accepted = entries.filter(({ kind }: any) => kind === 'accepted').map(({ messageId }: any) => messageId)
  assert.deepEqual([accepted.length, new Set(accepted).size], [7 + 1 + 3, 7 + 1 + 3])
  assert.ok((await assertAllEmitted(pool)) > 30, 'an event was emitted for each step')
  assert.doesNotMatch(service.log(), /"level":"error"/)
})
