import { byMonth, fallbacksTable } from '../db/partitions.ts'
import type { Executor } from '../db/pool.ts'
import { failure, MESSAGE_FACTS, recordChanges } from '../events/changes.ts'
import { mayBecome, PRIORITIES } from '../messages/states.ts'
import { FAILURES, type Failure } from './failures.ts'
import { LANES } from './lanes.ts'
import { scheduleFailed } from './sms/schedule.ts'

/** In SQL: no worker is sending the entry now, and it has not expired. Other entries are left to their result. */
export const NOT_UNDER_WAY = 'q.leased_until <= now() and q.expires_at > now()'

/** Makes the steps that decide about the SMS of failed messages. */
type FallBack = (fallbacks: string, failed: string) => string

/** In SQL: turns an entry into one that revokes its message. */
export const toRevoke = (dueAt: string) =>
  `task = 'revoke', priority = ${PRIORITIES.revoke}, due_at = ${dueAt}, attempts = 0, lease = null, leased_until = '-infinity'`

/**
 * Steps that fail messages permanently. `taken` names a step with `message_id`, `reason`, `description` and `awaits_revocation`: a response
 * was lost, so the network may have the message, and it is revoked. The entries of `taken` are locked. `fallBack` makes the steps that
 * decide about the SMS. A message that expires now is left to its expiry. The step `failed` has the messages that failed. `dropped` selects
 * the ids of entries that leave the queue.
 */
export const failMessages = (
  messages: string,
  taken: string,
  fallBack: FallBack,
  dropped = 'select id from failed where not awaits_revocation',
) => `
  failed as (
    update ${messages} m set status = 'FAILED', failed_at = greatest(now(), m.accepted_at), failure_reason = t.reason, failure_description = t.description
    from ${taken} t
    where m.id = t.message_id and ${mayBecome('FAILED', 'm.status')} and m.expires_at > clock_timestamp()
    returning ${MESSAGE_FACTS}, m.traffic, m.sent_at, m.failed_at, t.reason, t.description, t.awaits_revocation
  ), dropped as (
    delete from queue where message_id = any (array(${dropped}))
  ), turned as (
    update queue set ${toRevoke('now()')} where message_id = any (array(select id from failed where awaits_revocation))
  ), ${fallBack(fallbacksTable(messages), 'failed')}, ${recordChanges('failed', [
    { kind: 'message.failed', at: 'failed_at', more: failure('reason', 'description'), reason: 'reason' },
    { kind: 'message.unsent', at: 'failed_at', where: 'sent_at is null' },
  ])}`

/**
 * Fails messages that wait to be sent, and returns how many. `because` joins the queue's entry q with the reason: it is checked again, since
 * the reason may no longer hold.
 */
export async function failWaiting(db: Executor, ids: string[], reason: Failure, because: string, fallBack: FallBack): Promise<number> {
  let failed = 0
  for (const [messages, ofMonth] of byMonth(ids, (id) => id)) {
    const text = failMonth(messages, reason, because, fallBack)
    failed += (await db.query({ name: `fail-waiting ${reason} ${messages}`, text, values: [ofMonth, FAILURES[reason]] })).rowCount ?? 0
  }
  return failed
}

const failMonth = (messages: string, reason: Failure, because: string, fallBack: FallBack) => `
  with taken as materialized (
    select q.message_id, '${reason}' as reason, $2::text as description, q.attempts > 0 as awaits_revocation
    from unnest($1::uuid[]) as ids (message_id), lateral (
      select * from queue q where q.message_id = ids.message_id and q.task = 'send' and ${NOT_UNDER_WAY} for update skip locked
    ) as q
    ${because}
  ), ${failMessages(messages, 'taken', fallBack)}
  select id from failed`

const BATCH_SIZE = 1_000

/**
 * Fails messages whose agent was deactivated after they were accepted. A message that a worker is sending now is left to its result; if it is
 * to be tried again, the next iteration fails it. Returns how many failed, and whether there may be more.
 */
export async function failInactive(db: Executor): Promise<{ failed: number; mayBeMore: boolean }> {
  const { rows } = await db.query<{ messageId: string }>({ name: 'find-inactive', text: FIND, values: [BATCH_SIZE] })
  const ids = rows.map(({ messageId }) => messageId)
  const failed = await failWaiting(db, ids, 'AGENT_INACTIVE', INACTIVE, scheduleFailed)
  return { failed, mayBeMore: failed > 0 && rows.length >= BATCH_SIZE }
}

const FIND = `
  with recursive ${LANES}
  select q.message_id as "messageId"
  from lane l join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id, lateral (
    select message_id from queue q
    where q.account_id = l.account_id and q.agent_id = l.agent_id and q.priority = l.priority and q.campaign_id = l.campaign_id and ${NOT_UNDER_WAY}
    order by due_at limit $1
  ) as q
  where not s.active and l.priority <> ${PRIORITIES.revoke}
  limit $1`

const INACTIVE = 'join agent_assignments s on s.account_id = q.account_id and s.agent_id = q.agent_id and not s.active'
