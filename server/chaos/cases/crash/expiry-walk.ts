import assert from 'node:assert/strict'
import pg from 'pg'
import { MESSAGE_FACTS, recordChanges } from '../../../src/events/changes.ts'
import { makePastMonths } from '../../../test/support/database.ts'
import { createAssignedAgent, createCaller } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'
import { say } from '../../support/progress.ts'
import { type Crash, countRows, DELIVERING, nodeOf, TIMEOUT_MS, whileKilled } from './support.ts'

// Messages without an expiry of their own expire by a walk through their ids, 48 hours later. These are 48 hours old from the beginning, and
// belong to an account of their own. Workers are killed in the midst of a batch.

// The service lets this many expire in one transaction.
const BATCH = 1_000
const OPEN = `account_id = $1 and status in ('ACCEPTED', 'SENT')`

type Size = { messages: number; dueAtOnce: number; lastDueMs: number; kills: number }

/** Writes the messages, with their log and their counters. Those that wait are due at once, so that none is sent; every other was tried. */
async function writeOldMessages({ pool }: Crash, accountId: number, { messages, dueAtOnce, lastDueMs }: Size): Promise<void> {
  await makePastMonths(pool)
  const agentId = await createAssignedAgent(pool, accountId)
  const status = `case when n % 4 = 0 then 'DELIVERED' when n % 4 = 1 or n > ${dueAtOnce} then 'SENT' else 'ACCEPTED' end`
  const born = `now() - interval '48 hours' + case when n <= ${dueAtOnce} then (n - ${dueAtOnce}) * interval '60 seconds' / ${dueAtOnce}
    else (n - ${dueAtOnce}) * interval '${lastDueMs} milliseconds' / ${messages - dueAtOnce} end`
  await pool.query(
    `with born as (
       select n, ${status} as status, date_trunc('milliseconds', ${born}) as at from generate_series(1, ${messages}) as n
     ), written as (
       insert into messages as m (id, account_id, agent_id, recipient, status, basic, test, content, accepted_at, expires_at, traffic, sent_at, delivered_at)
       select (left(uuid_v7_from(at)::text, 24) || lpad(n::text, 12, '0'))::uuid, $1, $2, '+4871' || lpad(n::text, 5, '0') || '01', status, false, false,
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

/** At every moment: the walk has passed no message that is open or not yet due. */
async function assertNothingSkipped({ checkPool }: Crash): Promise<void> {
  const { rows } = await checkPool.query(
    `select m.id, m.status from messages m, expiry_walk w where m.id < w.reached and (m.status in ('ACCEPTED', 'SENT') or m.expires_at > now())`,
  )
  assert.deepEqual(rows, [])
}

/** Locks a message that is about to expire, so that the walk waits in its first batch, or in its second. Returns how to unlock it. */
async function lockOne({ database, random }: Crash, accountId: number, batch: number): Promise<() => Promise<void>> {
  const client = new pg.Client(database.url)
  await client.connect()
  await client.query('begin')
  // By its id: with an offset, PostgreSQL would lock the messages that it skips.
  const offset = Math.floor((batch + random() * 0.3) * BATCH)
  const one = `select id from messages where ${OPEN} and expires_at <= now() order by id offset ${offset} limit 1`
  const { rows } = await client.query<{ id: string }>(one, [accountId])
  const { rowCount } = await client.query('select from messages where id = $1 for update', [rows[0]?.id])
  assert.equal(rowCount, 1, 'no message is left to be locked')
  return async () => {
    await client.query('rollback')
    await client.end()
  }
}

export async function killWalk(crash: Crash): Promise<void> {
  const { pool, checkPool, isFull } = crash
  const messages = isFull ? 20_000 : 4_000
  const size = { messages, dueAtOnce: messages * 0.8, lastDueMs: isFull ? 60_000 : 15_000, kills: isFull ? 12 : 3 }
  const { accountId } = await createCaller(pool)
  const countOpen = () => countRows(crash, `messages where ${OPEN}`, [accountId])
  const waiting = `pg_stat_activity where wait_event_type = 'Lock' and application_name = 'herald-delivery-1' and query like '%status = ''EXPIRED''%'`
  const worker = nodeOf(crash, 'delivery-1')
  await whileKilled(crash, DELIVERING, async () => {
    await writeOldMessages(crash, accountId, size)
    for (let kill = 1; kill <= size.kills; kill++) {
      const unlock = await lockOne(crash, accountId, kill % 2 === 0 ? 1 : 0)
      const open = await countOpen()
      await worker.start()
      await until('the walk waits in a batch', async () => (await countRows(crash, waiting)) > 0, TIMEOUT_MS)
      await worker.kill()
      await assertNothingSkipped(crash)
      assert.equal((open - (await countOpen())) % BATCH, 0, 'a batch expires as a whole')
      await unlock()
      await until('its session has ended', async () => (await countRows(crash, waiting)) === 0, TIMEOUT_MS)
      await assertNothingSkipped(crash)
      say(`killed in a batch: ${open} messages were open, ${await countOpen()} are`)
    }
  })
  const haveExpired = async () => {
    await assertNothingSkipped(crash)
    return (await countOpen()) === 0
  }
  await until('all have expired', haveExpired, TIMEOUT_MS)
  await until('all are revoked', async () => (await countRows(crash, 'queue where account_id = $1', [accountId])) === 0, TIMEOUT_MS)
  const delivered = Math.floor(messages / 4)
  for (const [status, count] of Object.entries({ DELIVERED: delivered, EXPIRED: messages - delivered }))
    assert.equal(await countRows(crash, 'messages where account_id = $1 and status = $2', [accountId, status]), count, status)
  const { rows: early } = await checkPool.query(
    `select p.page_id, e ->> 1 as at from log_pages p, json_array_elements(p.events) as e
     where e ->> 0 = 'message.expired' and p.page_id < uuid_v7_from((e ->> 1)::timestamptz)`,
  )
  assert.deepEqual(early, [], 'a message expired before its time')
}
