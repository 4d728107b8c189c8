import assert from 'node:assert/strict'
import { randomInt, randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { expireDue } from '../../../src/delivery/expiry.ts'
import { failInactive } from '../../../src/delivery/fail.ts'
import { recordResults } from '../../../src/delivery/results.ts'
import { createTestDatabase } from '../../support/database.ts'
import { createAssignedAgent } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { createReceiver, createSender, receipt } from '../support.ts'
import { createBusyPool, createCarrier, record, type SendResult, sent, startWorker } from '../worker.ts'
import { acceptMessages } from './support.ts'
import { acceptSegment, createSmsCarrier, startSmsWorker } from './worker.ts'

// Everything that can end a message or cancel its SMS happens at the same moment. Whatever comes first, there is at most one SMS, and the
// stored state matches what the network saw.

const ROUNDS = Number(process.env.HERALD_RACE_ROUNDS ?? 1_000)
const CONCURRENT = 100
const NODES = 3
/** A round begins within this time: long enough for the SMS of an early failure to be submitted when a late receipt comes. */
const WITHIN_MS = 40
const LONGEST_SUBMIT_MS = 15
const HOUR_MS = 3_600_000

const seed = Number(process.env.HERALD_RACE_SEED ?? randomInt(2 ** 31))

let state = seed
/** From 0 to 1, the same sequence for the same seed. */
function random(): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
  return state / 2 ** 31
}
const chance = (probability: number) => random() < probability
const oneOf = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T

const { url } = await createTestDatabase()
const pool = createBusyPool(url)
const nodes = Array.from({ length: NODES }, () => createBusyPool(url))
const sender = await createSender(pool)
// Each message of a batch has its own agent, which can be deactivated.
const agentIds: string[] = []
for (let n = 0; n < CONCURRENT; n++) agentIds.push(await createAssignedAgent(pool, sender.accountId))

/** Where a message is when the round begins: in the queue, with a network that did not respond, with a worker, or at the network. */
const BEGINNINGS = ['accepted', 'tried', 'sending', 'sent'] as const
const RECEIPTS = ['delivered', 'read', 'expired', 'expiry-failed'] as const
type ReceiptKind = (typeof RECEIPTS)[number]
const REFUSED: SendResult = { is: 'failed', reason: 'NOT_REACHABLE', detail: '404' }
const RESULTS: SendResult[] = [REFUSED, REFUSED, { is: 'retry', afterMs: 0, detail: '503' }, { is: 'sent' }]

type Round = {
  messageId: string
  agentId: string
  phone: string
  beginning: (typeof BEGINNINGS)[number]
  afterExpiry: boolean
  expires: boolean
  deactivates: boolean
  /** The response of the network, or the result that the worker has. */
  result: SendResult
  receipts: ReceiptKind[]
  duringSubmit: ReceiptKind[]
  /** By the database's clock: when the first receipt of a delivery was stored, and when the SMS was claimed. */
  deliveryKnownAt: number
  claimedAt: number
  submits: number
}

const rounds = new Map<string, Round>()
const byPhone = new Map<string, Round>()

async function databaseTime(): Promise<number> {
  const { rows } = await pool.query<{ at: number }>('select extract(epoch from clock_timestamp())::float8 * 1000 as at')
  return rows[0]?.at as number
}

/** Messages with and without an SMS after the expiry, each of its own agent, and what happens to them. */
async function prepare(): Promise<Round[]> {
  await pool.query('update agent_assignments set active = true where not active')
  const accepted = { dueInMs: HOUR_MS, count: CONCURRENT / 2 }
  const withSms = await acceptMessages(pool, sender, { ...accepted, afterExpiry: { delay: 0 } })
  const ids = [...withSms, ...(await acceptMessages(pool, sender, accepted))]
  for (const [table, id] of Object.entries({ messages: 'id', queue: 'message_id' })) {
    const given = 'from unnest($1::uuid[], $2::text[]) as given (id, agent_id)'
    await pool.query(`update ${table} t set agent_id = given.agent_id ${given} where t.${id} = given.id`, [ids, agentIds])
  }
  const { rows } = await pool.query<{ messageId: string; agentId: string; phone: string }>(
    `select id as "messageId", agent_id as "agentId", recipient as phone from messages where id = any ($1) order by id`,
    [ids],
  )
  return rows.map((row) => {
    const round: Round = {
      ...row,
      afterExpiry: withSms.includes(row.messageId),
      beginning: oneOf(BEGINNINGS),
      expires: chance(0.5),
      deactivates: chance(0.3),
      result: oneOf(RESULTS),
      receipts: RECEIPTS.filter(() => chance(0.25)),
      duringSubmit: RECEIPTS.filter(() => chance(0.25)),
      deliveryKnownAt: Number.POSITIVE_INFINITY,
      claimedAt: Number.NaN,
      submits: 0,
    }
    rounds.set(round.messageId, round)
    byPhone.set(round.phone, round)
    return round
  })
}

/** Moves each message to where it begins. `lease`: of the messages that a worker has. */
async function begin(batch: Round[], lease: string): Promise<void> {
  const idsOf = (...beginnings: Round['beginning'][]) =>
    batch.filter(({ beginning }) => beginnings.includes(beginning)).map(({ messageId }) => messageId)
  await pool.query('update queue set attempts = 1, claimed = true where message_id = any ($1)', [idsOf('tried', 'sending', 'sent')])
  const held = `update queue set lease = $2, leased_until = now() + interval '1 minute' where message_id = any ($1)`
  await pool.query(held, [idsOf('sending', 'sent'), lease])
  const atNetwork = idsOf('sent').map((messageId) => ({ messageId, lease, is: 'sent' }) as const)
  await recordResults(pool, atNetwork)
  const expiring = batch.filter(({ expires }) => expires).map(({ messageId }) => messageId)
  const inMs = expiring.map(() => random() * WITHIN_MS)
  for (const [table, id] of Object.entries({ messages: 'id', queue: 'message_id', expiries: 'message_id' })) {
    await pool.query(
      `update ${table} t set expires_at = now() + e.in_ms * interval '1 millisecond'
       from unnest($1::uuid[], $2::float8[]) as e (id, in_ms) where t.${id} = e.id`,
      [expiring, inMs],
    )
  }
}

async function receive(round: Round, kind: ReceiptKind): Promise<void> {
  await createReceiver(oneOf(nodes))([receipt({ ...round, kind })])
  if (kind === 'delivered' || kind === 'read') round.deliveryKnownAt = Math.min(round.deliveryKnownAt, await databaseTime())
}

/** What happens to one message, each at a random moment. */
function trialsOf(round: Round, lease: string): Promise<unknown>[] {
  const { messageId, agentId, beginning, result } = round
  const after = async (work: () => Promise<unknown>) => {
    await sleep(random() * WITHIN_MS)
    await work()
  }
  const works: (() => Promise<unknown>)[] = round.receipts.map((kind) => () => receive(round, kind))
  if (beginning === 'sending') {
    // Recorded twice, as by a worker that lost the response to the first commit.
    works.push(...[0, 1].map(() => () => record(oneOf(nodes), { messageId, lease }, result)))
  }
  if (beginning === 'accepted' || beginning === 'tried') {
    works.push(() => pool.query('update queue set due_at = now() where message_id = $1 and lease is null', [messageId]))
  }
  if (round.deactivates) {
    works.push(async () => {
      await pool.query('update agent_assignments set active = false where agent_id = $1', [agentId])
      await failInactive(oneOf(nodes))
    })
  }
  if (round.expires) works.push(() => expireDue(oneOf(nodes)))
  return works.map(after)
}

/** Ends the grace after an expiry, and the pause before a retry. */
async function hurry(): Promise<void> {
  await pool.query('update sms_queue set due_at = now() where lease is null and due_at > now()')
  await pool.query(`update queue set due_at = now() where lease is null and due_at > now() and due_at < now() + interval '2 minutes'`)
}

type Workers = { wake: () => void }[]

/** Waits until nothing is left to do. */
async function drain(workers: Workers): Promise<void> {
  await until('all has settled', async () => {
    await hurry()
    await Promise.all([expireDue(oneOf(nodes)), failInactive(oneOf(nodes))])
    for (const { wake } of workers) wake()
    const { rows } = await pool.query<{ left: number }>(
      `select (select count(*) from queue where due_at < now() + interval '30 minutes') + (select count(*) from sms_queue)
         + (select count(*) from expiries where expires_at < now() + interval '1 minute') as left`,
    )
    return rows[0]?.left === 0
  })
}

type Ending = { id: string; status: string; sms: string; reason: string | null; late: boolean; steps: string[] }

async function readEndings(batch: Round[]): Promise<Ending[]> {
  const { rows } = await pool.query<Ending>(
    `select m.id, m.status, f.status as sms, f.reason, e.late, e.steps
     from messages m join sms_fallbacks f on f.message_id = m.id, lateral (
       select coalesce(bool_or(kind in ('delivered-late', 'read-late')), false) as late,
         coalesce(array_agg(kind) filter (where kind like 'sms-%' and kind not in ('sms-scheduled', 'sms-checked')), '{}') as steps
       from message_events e where e.message_id = m.id
     ) as e
     where m.id = any ($1)`,
    [batch.map(({ messageId }) => messageId)],
  )
  assert.equal(rows.length, batch.length)
  return rows
}

/** Names how a message ended. Fails if that is not the right end. */
function check({ id, status, sms, reason, late, steps }: Ending): string {
  const round = rounds.get(id) as Round
  const facts = JSON.stringify({ seed, ...round, status, sms, reason, late, steps })
  assert.ok(round.submits <= 1, `two SMS: ${facts}`)
  assert.equal(round.submits, sms === 'SENT' ? 1 : 0, `the network saw something else: ${facts}`)
  if (status !== 'FAILED' && status !== 'EXPIRED') {
    assert.deepEqual([sms, reason], ['WAITING', null], facts)
    return status === 'DELIVERED' || status === 'READ' ? 'delivered in time' : 'nothing happened'
  }
  if (status === 'EXPIRED' && !round.afterExpiry) {
    assert.deepEqual([sms, reason, steps], ['SKIPPED', 'EXPIRED', ['sms-skipped']], facts)
    return 'skipped'
  }
  if (sms === 'NOT_NEEDED') {
    assert.deepEqual([late, reason, steps], [true, 'RCS_DELIVERED', ['sms-not-needed']], facts)
    return 'not needed'
  }
  assert.deepEqual([sms, reason, steps], ['SENT', `RCS_${status}`, ['sms-sent']], facts)
  // A receipt before the claim of the SMS must count; a receipt after it comes too late.
  assert.ok(!(round.deliveryKnownAt < round.claimedAt), `its delivery was known: ${facts}`)
  return late ? `SMS after ${status}, delivered meanwhile` : `SMS after ${status}`
}

function startWorkers(t: TestContext): Workers {
  const rcs = createCarrier({
    concurrency: 100,
    onSend: ({ messageId }) => {
      if (rounds.get(messageId)?.result.is === 'failed') return { is: 'failed', reason: 'NOT_REACHABLE', detail: '404' }
      return sent({ messageId })
    },
    onRevoke: () => oneOf([{ is: 'accepted' }, { is: 'too-late' }]),
  })
  const sms = createSmsCarrier({
    concurrency: 20,
    longestCallMs: 1_000,
    onSubmit: async (segment, id) => {
      const round = byPhone.get(segment.recipient) as Round
      round.submits += 1
      // The lease began at the claim: it lasts for the longest call and a minute.
      const { rows } = await pool.query<{ at: number }>(
        `select extract(epoch from due_at)::float8 * 1000 - 61000 as at from sms_queue where message_id = $1 and copy = 0`,
        [round.messageId],
      )
      round.claimedAt = rows[0]?.at ?? Number.NaN
      await Promise.all([sleep(random() * LONGEST_SUBMIT_MS), ...round.duringSubmit.map((kind) => receive(round, kind))])
      return acceptSegment(segment, id)
    },
  })
  return [...Array.from({ length: 2 }, () => startWorker(t, url, rcs)), ...Array.from({ length: NODES }, () => startSmsWorker(t, url, sms))]
}

test(`exactly one SMS is sent if one is due, whatever failures, expiries, deactivations and receipts coincide, ${ROUNDS} rounds (seed ${seed})`, async (t) => {
  t.after(() => Promise.all([pool, ...nodes].map((node) => node.end())))
  const workers = startWorkers(t)
  const endings = new Map<string, number>()
  for (let done = 0; done < ROUNDS; done += CONCURRENT) {
    const batch = await prepare()
    const lease = randomUUID()
    await begin(batch, lease)
    const trials = batch.flatMap((round) => trialsOf(round, lease))
    const hurrying = (async () => {
      for (const deadline = performance.now() + WITHIN_MS; performance.now() < deadline; ) {
        await hurry()
        for (const { wake } of workers) wake()
        await sleep(2)
      }
    })()
    await Promise.all([...trials, hurrying])
    await drain(workers)
    for (const ending of await readEndings(batch)) {
      const word = check(ending)
      endings.set(word, (endings.get(word) ?? 0) + 1)
    }
  }
  t.diagnostic(JSON.stringify(Object.fromEntries(endings)))
  // A run without one of these ends proves nothing about it.
  const needed = ['delivered in time', 'skipped', 'not needed', 'SMS after FAILED', 'SMS after EXPIRED']
  for (const word of needed) assert.ok(endings.has(word), word)
})
