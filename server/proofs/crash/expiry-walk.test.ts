import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { MESSAGE_FACTS, recordChanges } from '../../src/events/changes.ts'
import { assertAllCounted } from '../../test/support/counted.ts'
import { createTestDatabase, makePastMonths } from '../../test/support/database.ts'
import { assertAllEmitted } from '../../test/support/emitted.ts'
import { createAssignedAgent, createCaller } from '../../test/support/service.ts'
import { startSimulator } from '../../test/support/simulator.ts'
import { until } from '../../test/support/until.ts'
import { createRandom, isFull, kill, type Node, readLedger, say, settingsFor, startNode } from './support.ts'

// Messages without an expiry of their own expire by a walk through their ids, 48 hours later. Here they are 48 hours old from the beginning.

const MESSAGES = isFull ? 20_000 : 4_000
// So many are due at once, more than one batch; the others become due while workers are killed.
const DUE_AT_ONCE = MESSAGES * 0.8
const LAST_DUE_MS = isFull ? 60_000 : 15_000
const ROUNDS = isFull ? 12 : 3
// Of the service: so many expire in one transaction.
const BATCH = 1_000
const TIMEOUT_MS = 120_000

const random = createRandom()
const { url, pool } = await createTestDatabase({ unmetered: 'messages are written by hand, two days old' })
await makePastMonths(pool)
const simulator = await startSimulator()
const env = { ...(await settingsFor(simulator)), HERALD_DATABASE_URL: url }
const { accountId } = await createCaller(pool)
const agentId = await createAssignedAgent(pool, accountId)

/** What becomes of a message by its number. Those that wait are due at once, so that none of them is sent. */
const STATE = `case when n % 4 = 0 then 'DELIVERED' when n % 4 = 1 or n > ${DUE_AT_ONCE} then 'SENT' else 'ACCEPTED' end`
/** When it was accepted, less 48 hours: from a minute ago until the last one is due. */
const BORN = `now() - interval '48 hours' + case when n <= ${DUE_AT_ONCE} then (n - ${DUE_AT_ONCE}) * interval '60 seconds' / ${DUE_AT_ONCE}
  else (n - ${DUE_AT_ONCE}) * interval '${LAST_DUE_MS} milliseconds' / ${MESSAGES - DUE_AT_ONCE} end`

/** Writes the messages, with their log and their counters. Of those that wait to be sent, every other one was tried. */
async function writeOldMessages(): Promise<void> {
  await pool.query(
    `with born as (
       select n, ${STATE} as status, date_trunc('milliseconds', ${BORN}) as at from generate_series(1, ${MESSAGES}) as n
     ), written as (
       insert into messages as m (id, account_id, agent_id, recipient, status, basic, test, content, accepted_at, expires_at, traffic, sent_at, delivered_at)
       select (left(uuid_v7_from(at)::text, 24) || lpad(n::text, 12, '0'))::uuid, $1, $2, '+48' || 500000000 + n, status, false, false,
         '{"type":"MESSAGE","content":"Old"}', at, at + interval '48 hours', 'TRANSACTION',
         case when status <> 'ACCEPTED' then at end, case when status = 'DELIVERED' then at end
       from born
       returning ${MESSAGE_FACTS}, m.status, m.accepted_at, m.expires_at, m.sent_at, m.delivered_at
     ), queued as (
       insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at, attempts)
       select id, account_id, agent_id, 'send', 0, accepted_at, expires_at, right(id::text, 1)::int / 2 % 2 from written where status = 'ACCEPTED'
     ), ${recordChanges('written', [
       { kind: 'message.accepted', at: 'accepted_at' },
       { kind: 'message.sent', at: 'sent_at' },
       { kind: 'message.delivered', at: 'delivered_at' },
     ])}
     select`,
    [accountId, agentId],
  )
  await pool.query(`update expiry_walk set reached = uuid_v7_from(now() - interval '48 hours 2 minutes')`)
}

const OPEN = `status in ('ACCEPTED', 'SENT')`

/** At every moment: what the walk has passed is not open, and it has not passed what lives. */
async function assertNothingPassed(): Promise<void> {
  const { rows } = await pool.query(
    `select m.id, m.status from messages m, expiry_walk w where m.id < w.reached and (${OPEN} or m.expires_at > now())`,
  )
  assert.deepEqual(rows, [])
}

async function countOpen(): Promise<number> {
  return (await pool.query(`select from messages where ${OPEN}`)).rowCount ?? 0
}

/** Holds a message that is about to expire, so that a walk stops in the midst of its first batch, or of its second. Returns how to let it go. */
async function holdOne(batch: 0 | 1): Promise<() => Promise<void>> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('begin')
  // By its id: with an offset, PostgreSQL would lock what it skips, too.
  const one = `select id from messages where ${OPEN} and expires_at <= now() order by id offset ${Math.floor((batch + random() * 0.3) * BATCH)} limit 1`
  const { rows } = await client.query<{ id: string }>(one)
  const { rowCount } = await client.query('select from messages where id = $1 for update', [rows[0]?.id])
  assert.equal(rowCount, 1, 'one is left to be held')
  return async () => {
    await client.query('rollback')
    await client.end()
  }
}

async function isHeld({ databaseUrl }: Node): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from pg_stat_activity where wait_event_type = 'Lock' and application_name = $1 and query like '%status = ''EXPIRED''%'`,
    [new URL(databaseUrl).searchParams.get('application_name')],
  )
  return (rowCount ?? 0) > 0
}

test(`kill -9 of workers in the midst of a walk over ${MESSAGES} messages that are 48 hours old: each expires once, and none is left behind`, async () => {
  await writeOldMessages()
  for (let round = 1; round <= ROUNDS; round++) {
    const letGo = await holdOne(round % 2 === 0 ? 1 : 0)
    const open = await countOpen()
    const worker = await startNode(env, 'delivery')
    await until('the walk is in the midst of a batch', () => isHeld(worker), TIMEOUT_MS)
    worker.child.kill('SIGKILL')
    await worker.ended
    await assertNothingPassed()
    assert.equal((open - (await countOpen())) % BATCH, 0, 'a batch is marked as a whole')
    await letGo()
    await kill(worker)
    await assertNothingPassed()
    say(`killed in the midst of a batch: ${open} were open, ${await countOpen()} are`)
  }
  const workers = await Promise.all([startNode(env, 'delivery'), startNode(env, 'delivery')])
  await until(
    'all have expired',
    async () => {
      await assertNothingPassed()
      return (await countOpen()) === 0
    },
    TIMEOUT_MS,
  )
  await until('all are revoked', async () => (await pool.query('select from queue')).rowCount === 0, TIMEOUT_MS)
  for (const worker of workers) await kill(worker)
  await assertOutcomes()
})

async function assertOutcomes(): Promise<void> {
  const { rows } = await pool.query<{ status: string; count: number }>('select status, count(*) from messages group by 1 order by 1')
  const delivered = Math.floor(MESSAGES / 4)
  assert.deepEqual(rows, [
    { status: 'DELIVERED', count: delivered },
    { status: 'EXPIRED', count: MESSAGES - delivered },
  ])
  const { rows: early } = await pool.query(
    `select p.page_id, e ->> 1 as at from log_pages p, json_array_elements(p.events) as e
     where e ->> 0 = 'message.expired' and p.page_id < uuid_v7_from((e ->> 1)::timestamptz)`,
  )
  assert.deepEqual(early, [], 'one expired before its time')
  // Each event once, with the time of its expiry, and each count.
  assert.ok((await assertAllEmitted(pool)) >= MESSAGES)
  assert.ok((await assertAllCounted(pool)) > 0)
  const ledger = await readLedger(simulator)
  assert.deepEqual(
    [...ledger].filter(([, { accepted = 0 }]) => accepted > 0),
    [],
    'one was sent',
  )
  say(`${MESSAGES - delivered} expired once each, at or after their time; ${delivered} that had arrived are as they were`)
}
