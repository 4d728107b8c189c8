import type { CarrierEvent } from '../../carriers/carrier.ts'
import { fallbacksTable, forEachMonth, queryInSavepoint } from '../../db/partitions.ts'
import { columns, type Executor, listed, lists, type Pool, transaction } from '../../db/pool.ts'
import { HELD_BY_STANDBY } from '../../db/standby.ts'
import { ALL_ACCOUNTS, ANY_ERASED, type ErasedPeople, isErasedNumber } from '../../erasure/erased.ts'
import { type Change, MESSAGE_FACTS, recordChanges, SEGMENTS, smsFailure } from '../../events/changes.ts'
import { fallbackMayBecome } from '../../messages/states.ts'
import { NETWORK_SAID, SMS_FAILURES } from '../failures.ts'

export type SmsReceipt = Extract<CarrierEvent, { kind: 'sms-delivered' | 'sms-failed' | 'sms-underway' }>

// The key of an advisory lock, unique in this database: "hrls" in ASCII.
const RECEIPTS_LOCK = 0x68726c73

/**
 * Locks the matching of receipts for this transaction. One transaction writes a receipt, another one the response to its submit. Each looks for
 * the rows of the other, but cannot see them before their commit. With the lock, the second finds the rows of the first. A batch of 500 takes
 * about 20 ms, and there are few batches.
 */
export async function lockReceipts(tx: Executor): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [RECEIPTS_LOCK])
}

/** Stores final receipts and applies them: now, or once the network has responded to the submit of the SMS. Ignores receipts of progress. */
export async function receiveSmsReceipts(pool: Pool, receipts: SmsReceipt[], erased: ErasedPeople): Promise<void> {
  const final = receipts.filter(({ kind, phone }) => kind !== 'sms-underway' && phone !== '')
  if (final.length === 0) return
  await transaction(pool, async (tx) => {
    await lockReceipts(tx)
    const { hasErased } = await storeReceipts(tx, final)
    const eventIds = final.map(({ eventId }) => eventId)
    await applyReceipts(tx, eventIds, [])
    if (hasErased) await tx.query(FORGET_ERASED, [eventIds, final.map(({ phone }) => erased.hashOf(phone))])
  })
}

/** Stores one row for each way to read the carrier's message id, decimal or hexadecimal. The reading that matches an SMS counts. */
async function storeReceipts(tx: Executor, receipts: SmsReceipt[]): Promise<{ hasErased: boolean }> {
  const readings = receipts.flatMap((receipt) => {
    const state = receipt.kind === 'sms-delivered' ? 'delivered' : 'failed'
    return receipt.carrierMessageIds.map((carrierMessageId, reading) => ({ ...receipt, state, carrierMessageId, reading }))
  })
  const values = columns(readings, 'carrier', 'carrierMessageId', 'phone', 'eventId', 'reading', 'state', 'detail', 'occurredAt')
  const { rows } = await tx.query<{ hasErased: boolean }>({ name: 'store-sms-receipts', text: STORE_RECEIPTS, values })
  return rows[0] as { hasErased: boolean }
}

export const STORE_RECEIPTS = `
  with stored as (
    insert into sms_receipts (carrier, carrier_message_id, recipient, event_id, reading, state, detail, occurred_at)
    select * from unnest(${lists('text', 'text', 'text', 'text', 'smallint', 'text', 'text', 'timestamptz')})
    on conflict do nothing
  )
  select ${HELD_BY_STANDBY}, ${ANY_ERASED} as "hasErased"`

// Deletes receipts that match no SMS, if the person was erased in all accounts. Retention would keep the number for an hour.
const FORGET_ERASED = `
  delete from sms_receipts r using unnest($1::text[], $2::bytea[]) as e (event_id, hash)
  join erased_people x on x.hash = e.hash and x.account_id = ${ALL_ACCOUNTS}
  where r.event_id = e.event_id`

/** Applies these receipts, and the receipts of these messages that came before the response to their submit. */
export async function applyReceipts(tx: Executor, eventIds: string[], messageIds: string[]): Promise<void> {
  const { rows } = await tx.query<{ messageId: string }>({ name: 'apply-sms-receipts', text: APPLY, values: [eventIds, messageIds] })
  const moved = new Set([...rows.map(({ messageId }) => messageId), ...messageIds])
  await forEachMonth(
    [...moved],
    (id) => id,
    async (messagesTable, ids) => {
      await queryInSavepoint(tx, { name: `settle-sms ${messagesTable}`, text: settleSms(messagesTable), values: [ids] })
      return []
    },
    () => [],
  )
}

// A network reuses ids after a while, so a receipt from long before a submit belongs to another SMS.
const EARLY_SECONDS = 120
// The number of an erased person is no longer known, so the message id of the carrier decides.
const IS_SAME_PHONE = `(s.recipient = r.recipient or ${isErasedNumber('s.recipient')})`

/** "offset 0" fixes the join order, and the index of each step. In a new database, PostgreSQL would read all segments for each receipt. */
export const APPLY = `
  with candidate as materialized (
    select r.*, s.message_id, s.copy, s.segment, s.submitted_at
    from unnest(${listed('$1::text[]')}) as ids (event_id), lateral (
      select * from sms_receipts r where r.event_id = ids.event_id offset 0
    ) as r, lateral (
      select * from sms_segments s where s.carrier_message_id = r.carrier_message_id and s.state = 'sent' offset 0
    ) as s
    where s.carrier = r.carrier and ${IS_SAME_PHONE}
    union all
    select r.*, s.message_id, s.copy, s.segment, s.submitted_at
    from unnest(${listed('$2::uuid[]')}) as ids (message_id), lateral (
      select * from sms_segments s where s.message_id = ids.message_id offset 0
    ) as s, lateral (
      select * from sms_receipts r where r.carrier_message_id = s.carrier_message_id offset 0
    ) as r
    where r.carrier = s.carrier and ${IS_SAME_PHONE} and s.state = 'sent'
      and r.received_at > now() - interval '${EARLY_SECONDS} seconds'
  ), reading as materialized (
    select distinct on (carrier, event_id) * from candidate order by carrier, event_id, reading, submitted_at desc
  ), receipt as materialized (
    -- Of several receipts for a segment, the first counts.
    select distinct on (message_id, copy, segment) * from reading order by message_id, copy, segment, received_at, event_id
  ), applied as (
    update sms_segments s set state = r.state, detail = r.detail, occurred_at = least(r.occurred_at, now())
    from receipt r where s.message_id = r.message_id and s.copy = r.copy and s.segment = r.segment
    returning s.message_id
  ), matched as (
    delete from sms_receipts d using reading r where d.carrier = r.carrier and d.event_id = r.event_id
  )
  select distinct message_id as "messageId" from applied`

const DESCRIPTION = `'${SMS_FAILURES.UNDELIVERABLE}' || coalesce('${NETWORK_SAID}' || nullif(detail, ''), '')`
const ENDS: Change[] = [
  { kind: 'sms.delivered', at: 'delivered_at', more: SEGMENTS, reason: 'reason' },
  { kind: 'sms.failed', at: 'failed_at', more: smsFailure('reason', DESCRIPTION), reason: 'reason' },
]

/** An SMS is delivered when all its segments are, and has failed when one has. Segments of an SMS that has ended, and of copies, are deleted. */
export const settleSms = (messagesTable: string) => `
  with total as materialized (
    select s.message_id, count(*) filter (where s.state = 'delivered') as delivered, count(*) filter (where s.state = 'failed') as failed,
      max(s.occurred_at) as at, min(s.detail) filter (where s.state = 'failed') as detail
    from unnest(${listed('$1::uuid[]')}) as ids (message_id), lateral (
      select * from sms_segments s where s.message_id = ids.message_id and s.copy = 0 offset 0
    ) as s
    group by s.message_id
  ), moved as (
    update ${fallbacksTable(messagesTable)} f set
      status = case when t.failed > 0 then 'FAILED' else 'DELIVERED' end,
      reason = case when t.failed > 0 then 'UNDELIVERABLE' else f.reason end,
      delivered_at = case when t.failed = 0 then greatest(t.at, f.sent_at) end,
      failed_at = case when t.failed > 0 then greatest(t.at, f.sent_at) end,
      detail = t.detail
    from total t join ${messagesTable} m on m.id = t.message_id
    where f.message_id = t.message_id and ${fallbackMayBecome('DELIVERED', 'f.status')} and (t.failed > 0 or t.delivered = f.segments)
    returning ${MESSAGE_FACTS}, f.reason, f.delivered_at, f.failed_at, f.detail, f.segments
  ), ${recordChanges('moved', ENDS)}, deleted as (
    delete from sms_segments s using moved m where s.message_id = m.id and s.copy = 0
  ), deleted_copies as (
    delete from sms_segments s using unnest($1::uuid[]) as ids (message_id)
    where s.message_id = ids.message_id and s.copy > 0 and s.state <> 'sent'
  )
  select`
