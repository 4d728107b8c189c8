import { columns, type Executor, lists } from '../../db/pool.ts'
import { type Change, MESSAGE_FACTS, recordChanges } from '../../events/changes.ts'
import { fallbackMayBecome, NO_CAMPAIGN, PRIORITIES } from '../../messages/states.ts'

// When an SMS is sent instead of a message. The transaction that ends a message schedules its fallback, and only from WAITING: if a failure, an
// expiry and a refusal coincide, only one of them ends the message and schedules the SMS.

/** The network has a longer time to deliver an SMS than a caller waits for one. */
export const LIFE_HOURS = 48

/**
 * After an expiry, how long the SMS waits for the result of the revocation: a phone that gets the message at the last moment need not get the
 * SMS too. `taken`: the network accepted the request, but some networks never report the result; a receipt may still come. `silent`: it
 * does not respond, or no longer has the message. Once it reports that it revoked the message, the SMS waits no longer.
 */
export const REVOCATION_GRACE_SECONDS = { taken: 5, silent: 30 }

/** For reports only: it is not an event. */
export const SKIPPED: Change = { kind: 'sms.skipped', at: 'now()::timestamptz(3)', where: `status = 'SKIPPED'` }

/** A step that notes the new status of an SMS in the timeline. `moved` names a step with `id`, `account_id`, `status` and `reason`. */
export const noteSms = (moved: string) => `sms_noted as (
    insert into message_events (message_id, account_id, kind, occurred_at, reason)
    select id, account_id, 'sms-' || replace(lower(status), '_', '-'), now(), reason from ${moved}
    on conflict do nothing
  )`

/**
 * Steps of a statement that has ended messages: they decide about the SMS. `ended` names a step with MESSAGE_FACTS, `traffic` and
 * `awaits_revocation`: the network may have the message and is asked to revoke it. `decided` is the new state of a fallback `f`.
 */
const settle = (fallbacks: string, ended: string, decided: string) => `
  sms_settled as (
    update ${fallbacks} f set ${decided}
    from ${ended} as m where f.message_id = m.id and ${fallbackMayBecome('SCHEDULED', 'f.status')}
    returning ${MESSAGE_FACTS}, m.traffic, m.awaits_revocation, f.status, f.reason, f.due_at, f.segments
  ), sms_queued as (
    insert into sms_queue (message_id, copy, account_id, recipient, priority, campaign_id, planned_at, awaits_revocation, due_at, expires_at, segments)
    select id, 0, account_id, recipient, case traffic when 'PROMOTION' then ${PRIORITIES.campaign} else ${PRIORITIES.transactional} end,
      coalesce(campaign_id, '${NO_CAMPAIGN}'), due_at, awaits_revocation,
      case when awaits_revocation then greatest(due_at, now() + interval '${REVOCATION_GRACE_SECONDS.silent} seconds') else due_at end,
      greatest(due_at, now()) + interval '${LIFE_HOURS} hours', segments
    from sms_settled where status = 'SCHEDULED'
  ), ${noteSms('sms_settled')}`

/** Schedules the SMS of messages that have failed. `failed` has `failed_at`, too. */
export const scheduleFailed = (fallbacks: string, failed: string) =>
  settle(
    fallbacks,
    failed,
    `status = 'SCHEDULED', reason = 'RCS_FAILED', due_at = greatest(m.failed_at + f.delay_seconds * interval '1 second', f.not_before)`,
  )

/** Skips the SMS of messages that failed because their campaign was cancelled. */
export const skipCancelled = (fallbacks: string, failed: string) =>
  `${settle(fallbacks, failed, `status = 'SKIPPED', reason = 'CANCELLED'`)}, ${recordChanges('sms_settled', [SKIPPED])}`

type Expired = { id: string; wasTried: boolean }

/** Schedules the SMS of messages that expired in this transaction. A message that the network never had needs no revocation. */
export async function settleExpired(tx: Executor, messages: string, fallbacks: string, expired: Expired[]): Promise<void> {
  const text = settleOfMonth(messages, fallbacks)
  await tx.query({ name: `settle-expired ${fallbacks}`, text, values: columns(expired, 'id', 'wasTried') })
}

const settleOfMonth = (messages: string, fallbacks: string) => `
  with expired as materialized (
    select ${MESSAGE_FACTS}, m.traffic, m.expires_at, e.was_tried and told.kind is null as awaits_revocation
    from unnest(${lists('uuid', 'bool')}) as e (id, was_tried) join ${messages} m on m.id = e.id
    -- The network's word may have come before the mark. Not "exists", for which all events may be read into memory.
    left join lateral (select kind from message_events v where v.message_id = m.id and v.kind = 'revoked' limit 1) as told on true
  ), ${settle(
    fallbacks,
    'expired',
    `status = case when f.after_expiry then 'SCHEDULED' else 'SKIPPED' end,
      reason = case when f.after_expiry then 'RCS_EXPIRED' else 'EXPIRED' end,
      due_at = case when f.after_expiry then
        greatest(m.expires_at + f.after_expiry_delay_seconds * interval '1 second', f.after_expiry_not_before) end`,
  )}, ${recordChanges('sms_settled', [SKIPPED])}
  select`

/**
 * Ends the wait of SMS whose message the network has revoked. It runs after the statement that noted the revocation: the expiry of the message
 * either sees that note, or this statement sees the expiry.
 */
export async function releaseTold(db: Executor, messageIds: string[]): Promise<void> {
  // A receipt of another phone or network is not among a message's events, and does not count.
  const text = `
    with told as materialized (
      select v.message_id from unnest($1::uuid[]) as ids (message_id) join message_events v using (message_id) where v.kind = 'revoked'
    ), ${releaseRevoked('told', 0)}
    select`
  await db.query({ name: 'release-told', text, values: [messageIds] })
}

/**
 * Steps of a statement that has the results of revocations: the SMS that wait for them skip the rest of the grace. `told` names a step with
 * `message_id`. Entries that another transaction has locked stay as they are: at worst they wait for the whole grace.
 */
export const releaseRevoked = (told: string, graceSeconds: number) => `
  sms_awaiting as materialized (
    select s.message_id from ${told} as told, lateral (
      select message_id from sms_queue s
      where s.message_id = told.message_id and s.copy = 0 and s.awaits_revocation and s.lease is null
      for update skip locked
    ) as s
  ), sms_released as (
    update sms_queue s set due_at = least(s.due_at, greatest(s.planned_at, now() + interval '${graceSeconds} seconds'))
    where s.copy = 0 and s.message_id = any (array(select message_id from sms_awaiting))
  )`
