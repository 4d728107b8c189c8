import { byMonth, fallbacksTable } from '../db/partitions.ts'
import { type Executor, lists, type Pool, transaction } from '../db/pool.ts'
import { MESSAGE_FACTS, recordChanges } from '../events/changes.ts'
import { mayBecome, PRIORITIES } from '../messages/states.ts'
import { DEFAULT_LIFE_HOURS } from '../messages/store.ts'
import { toRevoke } from './fail.ts'
import { settleExpired } from './sms/schedule.ts'

const BATCH_SIZE = 1_000
// Nearly all messages that this walk reads have arrived: reading one takes some 2 µs.
const WALKED_AT_ONCE = 10_000
// Any number that nothing else in this database locks: "hrle" in ASCII.
const EXPIRY_LOCK = 0x68726c65

/**
 * Marks messages that have expired by the database's clock, and has them revoked if the network may have them. Messages with an expiry of
 * their own are in `expiries`; all others have the same lifetime, and expire in the order of their ids. One process at a time does this,
 * since two would find the same messages. Returns how many were marked, and whether there may be more.
 */
export async function expireDue(pool: Pool): Promise<Expired> {
  // Runs twice a second and rarely finds work, so check with one statement before starting a transaction.
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

/** The row of a message that arrives stays until it is due: that costs less than looking for it with every receipt. */
async function expireOwn(tx: Executor): Promise<Expired> {
  const { rows } = await tx.query<Found>({
    name: 'take-expired',
    text: `with due as materialized (
             delete from expiries where message_id = any (array(select message_id from expiries where expires_at <= now() order by expires_at limit $1))
             returning message_id
           )
           select due.message_id as "messageId", coalesce(${mayBecome('EXPIRED', 'm.status')}, false) as "isOpen"
           from due left join messages m on m.id = due.message_id`,
    values: [BATCH_SIZE],
  })
  return { expired: await expire(tx, openOf(rows)), mayBeMore: rows.length === BATCH_SIZE }
}

const openOf = (rows: Found[]) => rows.filter(({ isOpen }) => isOpen).map(({ messageId }) => messageId)

const idsUntil = (seconds: number) => `uuid_v7_from(now() - interval '${DEFAULT_LIFE_HOURS} hours ${seconds} seconds')`
// One second of slack, since a message may be accepted a little later than the time in its id.
const WALKED_UNTIL = idsUntil(1)

/** An expiry has passed, the walk has messages to read, has not moved for half a minute, or is ahead of a clock that was set back. */
const FIND_EXPIRED = `
  select exists (select from expiries where expires_at <= now()) or reached not between ${idsUntil(30)} and ${WALKED_UNTIL}
    or exists (select from messages where id >= reached and id < ${WALKED_UNTIL}) as "isDue" from expiry_walk`

/**
 * Walks on through the ids of messages that are older than the default lifetime. The position of the walk moves in the transaction that
 * marks the messages. After the clock was set back, it walks the same ids again.
 */
async function walk(tx: Executor): Promise<Expired> {
  const { rows } = await tx.query<Found>({
    name: 'walk-expired',
    text: `select id as "messageId", expires_at <= now() and ${mayBecome('EXPIRED', 'status')} as "isOpen"
           from messages where id >= (select reached from expiry_walk) and id < ${WALKED_UNTIL} order by id limit $1`,
    values: [WALKED_AT_ONCE],
  })
  const open = openOf(rows)
  const batch = open.slice(0, BATCH_SIZE)
  const isCut = open.length > batch.length
  const mayBeMore = isCut || rows.length === WALKED_AT_ONCE
  const expired = await expire(tx, batch)
  const reached = isCut ? batch.at(-1) : rows.at(-1)?.messageId
  await tx.query({
    name: 'move-expiry-walk',
    text: `update expiry_walk set reached = coalesce($1::uuid, ${WALKED_UNTIL})`,
    values: [mayBeMore ? reached : null],
  })
  return { expired, mayBeMore }
}

/** Returns how many were marked. */
async function expire(tx: Executor, ids: string[]): Promise<number> {
  let count = 0
  for (const [messages, ofMonth] of byMonth(ids, (id) => id)) {
    const { rows } = await tx.query<Marked>({ name: `expire ${messages}`, text: mark(messages), values: [ofMonth] })
    const fallingBack = rows.filter(({ fallsBack }) => fallsBack)
    if (fallingBack.length > 0) await settleExpired(tx, messages, fallbacksTable(messages), fallingBack)
    count += rows.length
  }
  return count
}

type Marked = { id: string; wasTried: boolean; fallsBack: boolean }

/**
 * Locks entries first, then messages, as every statement does that needs both. A message that was never tried is just not sent. A message
 * whose call is under way is revoked after the call must have ended, and the result of the call no longer counts. A message without an
 * entry is at the network. A receipt that comes now waits for the lock on the message, and finds it expired.
 */
const mark = (messages: string) => `
  with due as materialized (
    select ids.message_id, q.attempts from (select unnest(${lists('uuid')}) as message_id order by 1) as ids left join lateral (
      select attempts from queue q where q.message_id = ids.message_id for update
    ) as q on true
  ), locked as materialized (
    select m.id, m.status, m.expires_at, due.attempts from due join ${messages} m on m.id = due.message_id
    order by m.id for no key update of m
  ), expired as (
    -- Checked by what was read under the lock. By the message's own columns PostgreSQL, which had last counted when nothing had expired,
    -- expected none, and went through all messages instead: 1.8 s for 1,000 of 8,000.
    update ${messages} m set status = 'EXPIRED'
    from locked l where m.id = l.id and ${mayBecome('EXPIRED', 'l.status')} and l.expires_at <= now()
    returning ${MESSAGE_FACTS}, m.expires_at, m.sent_at, l.attempts
  ), dropped as (
    delete from queue where message_id = any (array(select id from expired where attempts = 0))
  ), turned as (
    -- A lease that runs is a call under way.
    update queue q set ${toRevoke('greatest(q.leased_until, now())')}
    where q.message_id = any (array(select id from expired where attempts > 0))
  ), revoking as (
    insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at)
    select id, account_id, agent_id, 'revoke', ${PRIORITIES.revoke}, now(), expires_at from expired where attempts is null
  ), ${recordChanges('expired', [
    { kind: 'message.expired', at: 'expires_at' },
    { kind: 'message.unsent', at: 'expires_at', where: 'sent_at is null' },
  ])}
  select expired.id, coalesce(expired.attempts, 1) > 0 as "wasTried", f.message_id is not null as "fallsBack"
  from expired left join ${fallbacksTable(messages)} f on f.message_id = expired.id`
