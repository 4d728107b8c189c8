import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'
import { assertAllEmitted } from '../support/emitted.ts'
import { callerAt, newKey } from '../support/messages.ts'
import { startTestService } from '../support/service.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'
import { createSender, kindsOf, NO_LIMITS } from './support.ts'

// From the request to the final state, by HTTP on both sides: what a number's last two digits promise is what a caller reads.

const { url, hotPool: pool } = await createTestDatabase()
const simulator = await startSimulator()
const service = await startTestService({ HERALD_DATABASE_URL: url, ...NO_LIMITS }, { findCarriers: async () => simulator.settings })
await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
const sender = await createSender(pool)
const caller = callerAt(service.url, sender)

const CONTENT = { type: 'MESSAGE', content: 'Shall we come?', buttons: [{ id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'yes' }] }
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const HOURS_48_MS = 48 * 3_600_000

/** By ending: the state that a message reaches. */
const STATES = {
  '00': 'READ',
  '01': 'DELIVERED',
  '02': 'FAILED',
  '03': 'FAILED',
  '04': 'SENT',
  '05': 'READ',
  '06': 'READ',
  '07': 'READ',
  '08': 'FAILED',
  '09': 'DELIVERED',
} as const
const TIMES = {
  SENT: ['sentAt'],
  DELIVERED: ['sentAt', 'deliveredAt'],
  READ: ['sentAt', 'deliveredAt', 'readAt'],
  FAILED: ['failedAt'],
  EXPIRED: ['sentAt', 'expiredAt'],
}

/** What a caller reads once the message has this state. */
async function reached(messageId: string, status: string): Promise<any> {
  return await until(`${messageId} is ${status}`, async () => {
    const { body } = await caller.read(messageId)
    return body.status === status ? body : undefined
  })
}

/** Nothing but what is expected, and times that are times, in their order. */
function check(body: any, status: keyof typeof TIMES, expected: Record<string, unknown>): void {
  const times = Object.fromEntries(TIMES[status].map((name) => [name, body[name]]))
  const { acceptedAt, expiresAt } = body
  const common = { agentId: sender.agentId, status, basic: false, test: false, acceptedAt, expiresAt }
  assert.deepEqual(body, { ...common, ...times, ...expected })
  const inOrder = [acceptedAt, ...Object.values(times)]
  for (const [index, time] of inOrder.entries()) {
    assert.match(time, TIME)
    if (index > 0) assert.ok(time >= inOrder[index - 1], `${inOrder}`)
  }
}

/** In our words, and then in the network's. */
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
const FAILURES = new Map(Object.entries({ '02': NOT_REACHABLE, '03': REJECTED, '08': NOT_REACHABLE }))

function failureOf(ending: string): { failure?: { reason: string; description: string } } {
  const failure = FAILURES.get(ending)
  return failure === undefined ? {} : { failure }
}

describe('a message to a number that ends in', { concurrency: 10 }, () => {
  for (const [ending, status] of Object.entries(STATES)) {
    test(`${ending} is ${status}`, async () => {
      const recipient = `+485001001${ending}`
      const request = caller.request({ recipient, message: { inline: CONTENT }, clientReferenceId: `order-${ending}` })
      const { status: answered, body: answer } = await caller.send(newKey(), request)
      assert.equal(answered, 202)
      const { messageId } = answer
      const body = await reached(messageId, status)
      check(body, status, { messageId, recipient, clientReferenceId: `order-${ending}`, ...failureOf(ending) })
      assert.equal(Date.parse(body.expiresAt) - Date.parse(body.acceptedAt), HOURS_48_MS)
      const { messages } = await simulator.ask(`phones/${recipient}`)
      assert.equal(messages.length, status === 'FAILED' ? 0 : 1)
      if (ending === '05') assert.deepEqual((await kindsOf(pool, messageId)).slice(0, 2), ['attempt-failed', 'attempt-failed'])
    })
  }

  test('04 is EXPIRED at its time', async () => {
    const recipient = '+48500200104'
    const expiresAt = new Date(Date.now() + 1_500).toISOString()
    const messageId = await caller.accepted({ recipient, expiresAt })
    await reached(messageId, 'SENT')
    const body = await reached(messageId, 'EXPIRED')
    assert.ok(Date.now() >= Date.parse(expiresAt) && Date.now() < Date.parse(expiresAt) + 2_500)
    check(body, 'EXPIRED', { messageId, recipient, expiresAt, expiredAt: expiresAt })
  })
})

test('what people write and tap is taken up, once, and kept so that its repetition counts nothing', async () => {
  const kept = await until('all of it has come, and is taken up', async () => {
    const { rows } = await pool.query<{ phone: string; kind: string; taken: boolean }>(
      'select phone, kind, process_after is null as taken from carrier_events order by phone',
    )
    return rows.length >= 3 && rows.every(({ taken }) => taken) ? rows : undefined
  })
  assert.deepEqual(
    kept.map(({ phone, kind }) => [phone.slice(-2), kind]),
    [
      ['06', 'wrote'],
      ['07', 'tapped'],
      ['09', 'wrote'],
    ],
  )
  const { rows } = await pool.query('select recipient, kind from recipient_actions order by recipient')
  assert.deepEqual(
    rows.map(({ recipient, kind }) => [recipient.slice(-2), kind]),
    [
      ['06', 'wrote'],
      ['07', 'tapped'],
      ['09', 'opted-out'],
    ],
  )
})

test('test messages go the same way, and say that they are', async () => {
  const recipients = ['00', '01', '02', '03', '05'].map((ending) => `+485003001${ending}`)
  const { agentId } = sender
  const { status, body } = await caller.sendTest({ agentId, recipients, message: { inline: CONTENT } })
  assert.equal(status, 202)
  for (const [index, recipient] of recipients.entries()) {
    const { messageId } = body.items[index]
    const ending = recipient.slice(-2) as keyof typeof STATES
    check(await reached(messageId, STATES[ending]), STATES[ending], { messageId, recipient, test: true, ...failureOf(ending) })
  }
})

test('nothing is left to do, and every message is at the network once', async () => {
  await until('the queue is empty', async () => (await pool.query('select from queue')).rowCount === 0)
  const { entries } = await simulator.ask('ledger?limit=1000')
  const accepted = entries.filter(({ kind }: any) => kind === 'accepted').map(({ messageId }: any) => messageId)
  assert.equal(new Set(accepted).size, accepted.length)
  assert.equal(accepted.length, 7 + 1 + 3)
  assert.ok((await assertAllEmitted(pool)) > 30, 'and all that happened was told')
  assert.doesNotMatch(service.log(), /"level":"error"/)
})
