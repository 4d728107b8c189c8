import { byMonth, fallbacksTable, isMissingMonth } from '../db/partitions.ts'
import { lists, type Pool, transaction } from '../db/pool.ts'
import { MESSAGE_FACTS, tellOfMessages } from '../events/outbox.ts'
import { mayBecome, PRIORITIES } from '../messages/states.ts'
import { countReached, LISTED } from '../reports/counters.ts'
import { countMoves } from './campaigns/counts.ts'
import { settleExpired } from './sms/schedule.ts'

const MOST_AT_ONCE = 1_000
// Any number that nothing else in this database locks: "hrle" in ASCII.
const EXPIRY_LOCK = 0x68726c65

/**
 * Marks what has run out, by the database's clock, and has it taken back at the network where the network may have it. Returns how many were
 * marked, and whether there may be more.
 */
export async function expireDue(pool: Pool): Promise<{ expired: number; mayBeMore: boolean }> {
  const { rows } = await pool.query<{ messageId: string }>({
    name: 'find-expired',
    text: 'select message_id as "messageId" from expiries where expires_at <= now() order by expires_at limit $1',
    values: [MOST_AT_ONCE],
  })
  let expired = 0
  for (const [messages, ofMonth] of byMonth(rows, ({ messageId }) => messageId)) {
    const ids = ofMonth.map(({ messageId }) => messageId)
    expired += await expireMonth(pool, messages, ids).catch(async (error: unknown) => {
      if (!isMissingMonth(error, messages)) throw error
      // The month has been dropped, with all its messages: nothing is left to do about them.
      await pool.query('delete from expiries where message_id = any ($1::uuid[])', [ids])
      return 0
    })
  }
  // None, though some were found: another worker has them.
  return { expired, mayBeMore: expired > 0 && rows.length === MOST_AT_ONCE }
}

/**
 * The queue's entries are locked first, and then, by a statement that sees what was committed meanwhile, the messages. One worker at a time:
 * another would find the same ones.
 */
async function expireMonth(pool: Pool, messages: string, ids: string[]): Promise<number> {
  return await transaction(pool, async (tx) => {
    const { rows: turn } = await tx.query<{ mine: boolean }>(`select pg_try_advisory_xact_lock(${EXPIRY_LOCK}) as mine`)
    if (!turn[0]?.mine) return 0
    const { rows } = await tx.query<{ messageId: string; attempts: number }>({
      name: 'lock-queue',
      text: `select message_id as "messageId", attempts from queue where message_id = any ($1::uuid[]) order by message_id for update`,
      values: [ids],
    })
    const attempts = new Map(rows.map((row) => [row.messageId, row.attempts]))
    const values = [ids, ids.map((id) => attempts.get(id) ?? null)]
    const { rows: expired } = await tx.query<Expired>({ name: `expire ${messages}`, text: expire(messages), values })
    const fallingBack = expired.filter(({ fallsBack }) => fallsBack)
    if (fallingBack.length > 0) await settleExpired(tx, messages, fallbacksTable(messages), fallingBack)
    return expired.length
  })
}

type Expired = { id: string; wasTried: boolean; fallsBack: boolean }

const TOLD = [{ kind: 'message.expired', at: 'expires_at' }] as const

/**
 * A message that was never tried is just not sent. One whose call is under way is taken back when the call has surely ended, and its
 * result no longer counts. One without an entry is at the network. A receipt that came in time has taken its message out of `expiries`
 * in its own transaction; one that comes at this moment waits for the message's lock, and finds it expired.
 */
const expire = (messages: string) => `
  with locked as materialized (
    select m.id, m.status, m.expires_at, due.attempts
    from unnest(${lists('uuid', 'int')}) as due (message_id, attempts) join ${messages} m on m.id = due.message_id
    order by m.id for no key update of m
  ), expired as (
    -- Judged by what was read under the lock. By the message's own columns PostgreSQL, which had last counted when nothing had run out, expected
    -- none, and went through all messages instead: 1.8 s for 1,000 of 8,000.
    update ${messages} m set status = 'EXPIRED'
    from locked l where m.id = l.id and ${mayBecome('EXPIRED', 'l.status')} and l.expires_at <= now()
    returning ${MESSAGE_FACTS}, m.expires_at, l.attempts, l.status as was, 'EXPIRED' as became
  ), dropped as (
    delete from queue where message_id = any (array(select id from expired where attempts = 0))
  ), turned as (
    update queue q set
      task = 'revoke',
      priority = ${PRIORITIES.revoke},
      -- A lease that runs is a call under way.
      due_at = case when q.lease is null then now() else greatest(q.due_at, now()) end,
      attempts = 0,
      lease = null
    where q.message_id = any (array(select id from expired where attempts > 0))
  ), revoking as (
    insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at)
    select id, account_id, agent_id, 'revoke', ${PRIORITIES.revoke}, now(), expires_at from expired where attempts is null
  ), ${countMoves('expired')}, ${tellOfMessages('expired', TOLD)}, ${countReached('expired', TOLD)}, settled as (
    delete from expiries where message_id = any ($1::uuid[])
  ), noted as (
    insert into message_events (message_id, account_id, kind, occurred_at, campaign_id, recipient)
    select id, account_id, 'expired', expires_at, ${LISTED} from expired
    on conflict do nothing
  )
  select expired.id, coalesce(expired.attempts, 1) > 0 as "wasTried", f.message_id is not null as "fallsBack"
  from expired left join ${fallbacksTable(messages)} f on f.message_id = expired.id`
