import { eventsTable, forEachMonth } from '../../db/partitions.ts'
import { columns, type Executor, lists } from '../../db/pool.ts'
import { type Change, MESSAGE_FACTS, recordChanges } from '../../events/changes.ts'
import { NO_CAMPAIGN } from '../../ids.ts'
import { fallbackMayBecome, PRIORITIES } from '../../messages/states.ts'
import type { SkipReason } from '../failures.ts'

// Decides when the SMS of a message is sent. The transaction that ends a message schedules its fallback, and only if that is WAITING: if a failure,
// an expiry and a refusal coincide, only one of them ends the message and schedules the SMS.

/** How long an SMS may be submitted and delivered after it is due. It is longer than a caller waits for an SMS. */
export const LIFE_HOURS = 48

/**
 * How long the SMS waits for the result of the revocation after an expiry: if the phone gets the message at the last moment, it need not get
 * the SMS too. `accepted`: the network accepted the request, but some networks never report the result, and a receipt may still come.
 * `silent`: the network does not respond, or no longer has the message. Once the network reports that it revoked the message, the SMS waits
 * no longer.
 */
export const REVOCATION_GRACE_SECONDS = { accepted: 5, silent: 30 }

/** For reports only: a skipped SMS emits no event. */
export const SKIPPED: Change = { kind: 'sms.skipped', at: 'now()::timestamptz(3)', where: `status = 'SKIPPED'` }

/** A step that notes the new status of an SMS in the timeline. `moved` names a step with `id`, `account_id`, `status` and `reason`. */
export const noteSms = (moved: string) => `sms_noted as (
    insert into message_events (message_id, account_id, kind, occurred_at, reason)
    select id, account_id, 'sms-' || replace(lower(status), '_', '-'), now(), reason from ${moved}
    on conflict do nothing
  )`

/**
 * Steps that schedule or skip the SMS of messages that the statement has ended. `ended` names a step with MESSAGE_FACTS, `traffic` and
 * `awaits_revocation`: the network may have the message and is asked to revoke it. `decision` assigns the new state of a fallback `f`.
 */
const settle = (fallbacksTable: string, ended: string, decision: string) => `
  sms_settled as (
    update ${fallbacksTable} f set ${decision}
    from ${ended} as m where f.message_id = m.id and ${fallbackMayBecome('SCHEDULED', 'f.status')}
    returning ${MESSAGE_FACTS}, m.traffic, m.awaits_revocation, f.status, f.reason, f.due_at, f.segments
  ), sms_queued as (
    insert into sms_queue (message_id, copy, account_id, recipient, priority, campaign_id, planned_at, awaits_revocation, due_at, expires_at,
      segments)
    select id, 0, account_id, recipient, case traffic when 'PROMOTION' then ${PRIORITIES.campaign} else ${PRIORITIES.transactional} end,
      coalesce(campaign_id, '${NO_CAMPAIGN}'), due_at, awaits_revocation,
      case when awaits_revocation then greatest(due_at, now() + interval '${REVOCATION_GRACE_SECONDS.silent} seconds') else due_at end,
      greatest(due_at, now()) + interval '${LIFE_HOURS} hours', segments
    from sms_settled where status = 'SCHEDULED'
  ), ${noteSms('sms_settled')}`

/** Schedules the SMS of messages that have failed. The step `failed` also has `failed_at`. */
export const scheduleFailed = (fallbacksTable: string, failed: string) =>
  settle(
    fallbacksTable,
    failed,
    `status = 'SCHEDULED', reason = 'RCS_FAILED', due_at = greatest(m.failed_at + f.delay_seconds * interval '1 second', f.not_before)`,
  )

const skip = (reason: SkipReason) => (fallbacksTable: string, failed: string) =>
  `${settle(fallbacksTable, failed, `status = 'SKIPPED', reason = '${reason}'`)}, ${recordChanges('sms_settled', [SKIPPED])}`

/** Skips the SMS of messages that failed because they or their campaign were cancelled. */
export const skipCancelled = skip('CANCELLED')

/** Skips the SMS of messages that failed because their recipient was erased. */
export const skipErased = skip('ERASED')

type Expired = { id: string; wasTried: boolean }

/** Schedules the SMS of messages that expired in this transaction. A message that the network never had needs no revocation. */
export async function settleExpired(tx: Executor, messagesTable: string, fallbacksTable: string, expired: Expired[]): Promise<void> {
  const text = settleOfMonth(messagesTable, fallbacksTable)
  await tx.query({ name: `settle-expired ${fallbacksTable}`, text, values: columns(expired, 'id', 'wasTried') })
}

export const settleOfMonth = (messagesTable: string, fallbacksTable: string) => `
  with expired as materialized (
    select ${MESSAGE_FACTS}, m.traffic, m.expires_at, e.was_tried and revoked.kind is null as awaits_revocation
    from unnest(${lists('uuid', 'bool')}) as e (id, was_tried) join ${messagesTable} m on m.id = e.id
    -- The network may have reported the revocation before this expiry. With "exists", PostgreSQL may read all events into memory.
    left join lateral (
      select kind from ${eventsTable(messagesTable)} v where v.message_id = m.id and v.kind = 'revoked' limit 1
    ) as revoked on true
  ), ${settle(
    fallbacksTable,
    'expired',
    `status = case when f.after_expiry then 'SCHEDULED' else 'SKIPPED' end,
      reason = case when f.after_expiry then 'RCS_EXPIRED' else 'EXPIRED' end,
      due_at = case when f.after_expiry then
        greatest(m.expires_at + f.after_expiry_delay_seconds * interval '1 second', f.after_expiry_not_before) end`,
  )}, ${recordChanges('sms_settled', [SKIPPED])}
  select`

/**
 * Ends the wait of SMS whose message the network has revoked. It runs after the statement that noted the revocation, so the expiry of the
 * message either sees that note, or this statement sees the expiry.
 */
export async function releaseAfterRevocation(db: Executor, messageIds: string[]): Promise<void> {
  await forEachMonth(
    messageIds,
    (id) => id,
    async (messagesTable, ofMonth) => {
      const text = releaseOfMonth(messagesTable)
      return (await db.query({ name: `release-after-revocation ${messagesTable}`, text, values: [ofMonth] })).rows
    },
    () => [],
  )
}

/**
 * Steps that shorten the wait of SMS whose revocation has a result. `settled` names a step with the `message_id` of each. Entries that another
 * transaction has locked stay as they are: at worst they wait for the whole grace.
 */
export const releaseRevoked = (settled: string, graceSeconds: number) => `
  sms_awaiting as materialized (
    select s.message_id from ${settled} as settled, lateral (
      select message_id from sms_queue s
      where s.message_id = settled.message_id and s.copy = 0 and s.awaits_revocation and s.lease is null
      for update skip locked
    ) as s
  ), sms_released as (
    update sms_queue s set due_at = least(s.due_at, greatest(s.planned_at, now() + interval '${graceSeconds} seconds'))
    where s.copy = 0 and s.message_id = any (array(select message_id from sms_awaiting))
  )`

// A receipt from another phone or network does not count: it is not among the events of the message.
export const releaseOfMonth = (messagesTable: string) => `
  with revoked as materialized (
    select ids.message_id from unnest(${lists('uuid')}) as ids (message_id), lateral (
      select from ${eventsTable(messagesTable)} v where v.message_id = ids.message_id and v.kind = 'revoked' limit 1
    ) as v
  ), ${releaseRevoked('revoked', 0)}
  select`
