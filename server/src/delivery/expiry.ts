import { fallbacksTable, forEachMonth } from '../db/partitions.ts'
import { type Executor, lists, type Pool, transaction } from '../db/pool.ts'
import { endedUnsent, MESSAGE_FACTS, recordChanges } from '../events/changes.ts'
import { mayBecome, PRIORITIES } from '../messages/states.ts'
import { DEFAULT_LIFE_HOURS } from '../messages/store.ts'
import { toRevoke } from './fail.ts'
import { settleExpired } from './sms/schedule.ts'

const BATCH_SIZE = 1_000
// How many messages the walk reads in one statement. Nearly all of them were delivered, and reading one takes about 2 µs.
const WALK_BATCH_SIZE = 10_000
// The key of an advisory lock, unique in this database: "hrle" in ASCII.
const EXPIRY_LOCK = 0x68726c65

/**
 * Marks messages that have expired by the database's clock, and queues the revocation of messages that the network may have. Messages with an
 * expiry of their own are in `expiries`; all other messages have the same lifetime, and expire in the order of their ids. An advisory lock lets one
 * process do this at a time, since two would find the same messages. Returns how many were marked, and whether there may be more.
 */
export async function expireDue(pool: Pool): Promise<Expired> {
  // This runs twice a second and rarely finds work, so one statement checks for work before the transaction begins.
  const { rows: found } = await pool.query<{ isDue: boolean }>({ name: 'find-expired', text: FIND_EXPIRED })
  if (!found[0]?.isDue) return { expired: 0, mayBeMore: false }
  return await transaction(pool, async (tx) => {
    const { rows } = await tx.query<{ mine: boolean }>({
      name: 'hold-expiry',
      text: `select pg_try_advisory_xact_lock(${EXPIRY_LOCK}) as mine`,
    })
    if (!rows[0]?.mine) return { expired: 0, mayBeMore: false }
    const [own, others] = [await expireOwn(tx), await walk(tx)]
    return { expired: own.expired + others.expired, mayBeMore: own.mayBeMore || others.mayBeMore }
  })
}

type Expired = { expired: number; mayBeMore: boolean }
type Found = { messageId: string; isOpen: boolean }

/** Expires messages with an expiry of their own. A delivered message keeps its row until then: a look-up with every receipt would cost more. */
async function expireOwn(tx: Executor): Promise<Expired> {
  const { rows } = await tx.query<Found>({
    name: 'delete-expiries',
    text: DELETE_EXPIRIES,
    values: [BATCH_SIZE],
  })
  return { expired: await expire(tx, openOf(rows)), mayBeMore: rows.length === BATCH_SIZE }
}

export const DELETE_EXPIRIES = `
  with due as materialized (
    delete from expiries where message_id = any (array(
      select message_id from expiries where expires_at <= now() order by expires_at limit $1))
    returning message_id
  )
  select due.message_id as "messageId", coalesce(${mayBecome('EXPIRED', 'm.status')}, false) as "isOpen"
  from due left join messages m on m.id = due.message_id`

const openOf = (rows: Found[]) => rows.filter(({ isOpen }) => isOpen).map(({ messageId }) => messageId)

const idsUntil = (seconds: number) => `uuid_v7_from(now() - interval '${DEFAULT_LIFE_HOURS} hours ${seconds} seconds')`
// One second of slack, since a message may be accepted a little after the time in its id.
const WALKED_UNTIL = idsUntil(1)

/**
 * Work is due if a row of `expiries` has expired, or if the walk has messages to read, has not moved for 30 s, or is ahead of a clock that was
 * set back.
 */
export const FIND_EXPIRED = `
  select exists (select from expiries where expires_at <= now()) or reached not between ${idsUntil(30)} and ${WALKED_UNTIL}
    or exists (select from messages where id >= reached and id < ${WALKED_UNTIL}) as "isDue" from expiry_walk`

/**
 * Continues the walk through the ids of messages that are older than the default lifetime. Its position moves in the transaction that marks the
 * messages, so a crash loses neither. After the clock was set back, it walks the same ids again.
 */
async function walk(tx: Executor): Promise<Expired> {
  const { rows } = await tx.query<Found>({
    name: 'walk-expired',
    text: WALK_EXPIRED,
    values: [WALK_BATCH_SIZE],
  })
  const open = openOf(rows)
  const batch = open.slice(0, BATCH_SIZE)
  const isCut = open.length > batch.length
  const mayBeMore = isCut || rows.length === WALK_BATCH_SIZE
  const expired = await expire(tx, batch)
  const reached = isCut ? batch.at(-1) : rows.at(-1)?.messageId
  await tx.query({
    name: 'move-expiry-walk',
    text: `update expiry_walk set reached = coalesce($1::uuid, ${WALKED_UNTIL})`,
    values: [mayBeMore ? reached : null],
  })
  return { expired, mayBeMore }
}

export const WALK_EXPIRED = `
  select id as "messageId", expires_at <= now() and ${mayBecome('EXPIRED', 'status')} as "isOpen"
  from messages where id >= (select reached from expiry_walk) and id < ${WALKED_UNTIL} order by id limit $1`

/** Marks messages as expired, and schedules or skips their SMS. Returns how many were marked. */
async function expire(tx: Executor, ids: string[]): Promise<number> {
  const marked = await forEachMonth(
    ids,
    (id) => id,
    async (messagesTable, ofMonth) => {
      const { rows } = await tx.query<Marked>({ name: `expire ${messagesTable}`, text: markExpired(messagesTable), values: [ofMonth] })
      const fallingBack = rows.filter(({ fallsBack }) => fallsBack)
      if (fallingBack.length > 0) await settleExpired(tx, messagesTable, fallbacksTable(messagesTable), fallingBack)
      return rows
    },
  )
  return marked.length
}

type Marked = { id: string; wasTried: boolean; fallsBack: boolean }

/**
 * Locks queue entries first, then messages, like every statement that needs both. A message that was never tried only leaves the queue. A
 * message whose call is running is revoked when its lease ends, since the call has ended by then; the result of the call no longer counts. If a
 * message has no entry, the network has it. A receipt that arrives now waits for the lock on the message, and finds it expired.
 */
export const markExpired = (messagesTable: string) => `
  with due as materialized (
    select ids.message_id, q.attempts, coalesce(q.claimed, true) as was_claimed
    from (select unnest(${lists('uuid')}) as message_id order by 1) as ids left join lateral (
      select attempts, claimed from queue q where q.message_id = ids.message_id for update
    ) as q on true
  ), locked as materialized (
    select m.id, m.status, m.expires_at, due.attempts, due.was_claimed from due join ${messagesTable} m on m.id = due.message_id
    order by m.id for no key update of m
  ), expired as (
    -- The condition uses the columns read under the lock. With the message's own columns, PostgreSQL expected no row, since the table was last
    -- analyzed when nothing had expired, and scanned all messages: 1.8 s for 1,000 of 8,000.
    update ${messagesTable} m set status = 'EXPIRED'
    from locked l where m.id = l.id and ${mayBecome('EXPIRED', 'l.status')} and l.expires_at <= now()
    returning ${MESSAGE_FACTS}, m.expires_at, m.sent_at, l.attempts, l.was_claimed
  ), dropped as (
    delete from queue where message_id = any (array(select id from expired where attempts = 0))
  ), turned as (
    -- A lease that has not ended is a running call.
    update queue q set ${toRevoke('greatest(q.leased_until, now())')}
    where q.message_id = any (array(select id from expired where attempts > 0))
  ), revoking as (
    insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at)
    select id, account_id, agent_id, 'revoke', ${PRIORITIES.revoke}, now(), expires_at from expired where attempts is null
  ), ${recordChanges('expired', [{ kind: 'message.expired', at: 'expires_at' }, ...endedUnsent('expires_at')])}
  select expired.id, coalesce(expired.attempts, 1) > 0 as "wasTried", f.message_id is not null as "fallsBack"
  from expired left join ${fallbacksTable(messagesTable)} f on f.message_id = expired.id`
