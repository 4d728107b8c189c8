import type { Unfit } from '../campaigns/member-content.ts'
import { fallbacksTable, forEachMonth } from '../db/partitions.ts'
import { columns, type Executor, lists } from '../db/pool.ts'
import { endedUnsent, failure, MESSAGE_FACTS, recordChanges } from '../events/changes.ts'
import { mayBecome, PRIORITIES } from '../messages/states.ts'
import { FAILURES, type Failure } from './failures.ts'
import { LANES } from './lanes.ts'
import { scheduleFailed } from './sms/schedule.ts'

/** In SQL: no worker has leased the entry, and it has not expired. The worker handles a leased entry, the expiry loop an expired one. */
export const IS_WAITING = 'q.leased_until <= now() and q.expires_at > now()'

/** Makes the SQL steps that schedule or skip the SMS of failed messages. */
export type FallBack = (fallbacksTable: string, failed: string) => string

/** In SQL: the assignments that turn a queue entry into one that revokes its message, at any time of day. */
export const toRevoke = (dueAt: string) =>
  `task = 'revoke', priority = ${PRIORITIES.revoke}, due_at = ${dueAt}, attempts = 0, lease = null, leased_until = '-infinity',
    delivery_window = null`

/**
 * Steps that fail messages permanently. `failing` names a step that has locked the queue entries, with `message_id`, `reason`, `description`,
 * `was_claimed` and `awaits_revocation`: an earlier attempt may have sent the message, so the network is asked to revoke it. `fallBack` makes
 * the steps that schedule or skip the SMS. `dropped` selects the ids of the entries that leave the queue. The step `failed` has the messages
 * that failed. The expiry loop handles a message that has expired by now.
 */
export const failMessages = (
  messagesTable: string,
  failing: string,
  fallBack: FallBack,
  dropped = 'select id from failed where not awaits_revocation',
) => `
  failed as (
    update ${messagesTable} m set status = 'FAILED', failed_at = greatest(now(), m.accepted_at), failure_reason = f.reason,
      failure_description = f.description
    from ${failing} f
    where m.id = f.message_id and ${mayBecome('FAILED', 'm.status')} and m.expires_at > clock_timestamp()
    returning ${MESSAGE_FACTS}, m.traffic, m.sent_at, m.failed_at, f.reason, f.description, f.awaits_revocation, f.was_claimed
  ), dropped as (
    delete from queue where message_id = any (array(${dropped}))
  ), turned as (
    update queue set ${toRevoke('now()')} where message_id = any (array(select id from failed where awaits_revocation))
  ), ${fallBack(fallbacksTable(messagesTable), 'failed')}, ${recordChanges('failed', [
    { kind: 'message.failed', at: 'failed_at', more: failure('reason', 'description'), reason: 'reason' },
    ...endedUnsent('failed_at'),
  ])}`

/**
 * Fails messages that wait to be sent, and returns how many. `because` joins the queue entry `q` with the row that is the reason, and so checks
 * again whether the reason still holds. It skips an entry that another statement has locked.
 */
export async function failWaiting(db: Executor, ids: string[], reason: Failure, because: string, fallBack: FallBack): Promise<number> {
  const failed = await forEachMonth(
    ids,
    (id) => id,
    async (messagesTable, ofMonth) => {
      const text = failMonth(messagesTable, reason, fallBack, { because })
      return (await db.query({ name: `fail-waiting ${reason} ${messagesTable}`, text, values: [ofMonth, FAILURES[reason]] })).rows
    },
  )
  return failed.length
}

type UnfitMessage = Unfit & { messageId: string }

/** Fails messages of unfit members in the transaction that creates them, so no worker ever sees them. They have no SMS. */
export async function failUnfit(tx: Executor, messages: UnfitMessage[]): Promise<void> {
  await forEachMonth(
    messages,
    ({ messageId }) => messageId,
    async (messagesTable, ofMonth) => {
      const described = ofMonth.map(({ details, ...message }) => ({ ...message, description: `${FAILURES[message.reason]} ${details}` }))
      const values = columns(described, 'messageId', 'reason', 'description')
      return (await tx.query({ name: `fail-unfit ${messagesTable}`, text: failUnfitOfMonth(messagesTable), values })).rows
    },
  )
}

export const failUnfitOfMonth = (messagesTable: string) => `
  with failing as materialized (
    select q.message_id, u.reason, u.description, false as awaits_revocation, false as was_claimed
    from unnest(${lists('uuid', 'text', 'text')}) as u (message_id, reason, description), lateral (
      select message_id from queue q where q.message_id = u.message_id for update
    ) as q
  ), ${failMessages(messagesTable, 'failing', scheduleFailed)}
  select id from failed`

type Selection = { because?: string; which?: string; lock?: string }

/** `because`: see failWaiting. `which`: a condition for a queue entry `q`. */
export const failMonth = (
  messagesTable: string,
  reason: Failure,
  fallBack: FallBack,
  { because = '', which = 'true', lock = 'for update skip locked' }: Selection,
) => `
  with failing as materialized (
    select q.message_id, '${reason}' as reason, $2::text as description, q.attempts > 0 as awaits_revocation, q.claimed as was_claimed
    from unnest($1::uuid[]) as ids (message_id), lateral (
      select * from queue q where q.message_id = ids.message_id and q.task = 'send' and ${IS_WAITING} and ${which} ${lock}
    ) as q
    ${because}
  ), ${failMessages(messagesTable, 'failing', fallBack)}
  select id from failed`

const BATCH_SIZE = 1_000

/**
 * Fails messages whose agent was deactivated after they were accepted. A message that a worker is sending now is skipped; if its result is a
 * retry, the next iteration fails it. Returns how many failed, and whether there may be more.
 */
export async function failInactive(db: Executor): Promise<{ failed: number; mayBeMore: boolean }> {
  const { rows } = await db.query<{ messageId: string }>({ name: 'find-inactive', text: FIND_INACTIVE, values: [BATCH_SIZE] })
  const ids = rows.map(({ messageId }) => messageId)
  const failed = await failWaiting(db, ids, 'AGENT_INACTIVE', INACTIVE, scheduleFailed)
  return { failed, mayBeMore: failed > 0 && rows.length >= BATCH_SIZE }
}

export const FIND_INACTIVE = `
  with recursive ${LANES}
  select q.message_id as "messageId"
  from lane l join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id, lateral (
    select message_id from queue q
    where q.account_id = l.account_id and q.agent_id = l.agent_id and q.priority = l.priority and q.campaign_id = l.campaign_id and ${IS_WAITING}
    order by due_at limit $1
  ) as q
  where not s.active and l.priority <> ${PRIORITIES.revoke}
  limit $1`

export const INACTIVE = 'join agent_assignments s on s.account_id = q.account_id and s.agent_id = q.agent_id and not s.active'
