import type { CarrierEvent, OnEvents } from '../carriers/carrier.ts'
import { createBatcher } from '../db/batcher.ts'
import { eventsTable, forEachMonth } from '../db/partitions.ts'
import { columns, type Executor, listed, lists, type Pool } from '../db/pool.ts'
import { HELD_BY_STANDBY } from '../db/standby.ts'
import { ALL_ACCOUNTS, type ErasedPeople, isErasedNumber } from '../erasure/erased.ts'
import { MESSAGE_FACTS, recordChanges } from '../events/changes.ts'
import { UUID } from '../ids.ts'
import type { Announce } from '../messages/announce.ts'
import { mayBecome } from '../messages/states.ts'
import { learn } from './capabilities.ts'
import { REPLY_KINDS } from './replies.ts'
import { receiveSmsReceipts, type SmsReceipt } from './sms/receipts.ts'
import { releaseAfterRevocation } from './sms/schedule.ts'

const BATCH_SIZE = 500
// How long a receipt waits for other receipts: a statement for one costs nearly as much as a statement for several, and no caller waits.
const GATHER_MS = 20

/** Stores the events of carriers. It returns after the commit, so a carrier gets its response only once its event is stored. */
export function createEventReceiver(pool: Pool, announce: Announce, erased: ErasedPeople): OnEvents {
  const receive = createBatcher(
    async (events: CarrierEvent[]) => {
      await receiveEvents(pool, events, announce, erased)
      return events.map(() => undefined)
    },
    { maxItems: BATCH_SIZE, gatherMs: GATHER_MS },
  )
  return async (events) => {
    await Promise.all(events.map(receive))
  }
}

/** Applies receipts to their messages, and stores other events. Each month takes its own statement, but most batches are of one month. */
async function receiveEvents(pool: Pool, events: CarrierEvent[], announce: Announce, erased: ErasedPeople): Promise<void> {
  const unmatched = await forEachMonth(
    events.filter(isReceipt),
    ({ messageId }) => messageId,
    (messagesTable, receipts) => receiveMonth(pool, messagesTable, receipts),
    (receipts) => receipts,
  )
  const kept = [...events.filter((event) => !isReceipt(event) && !isSmsReceipt(event)), ...unmatched]
  await receiveSmsReceipts(pool, events.filter(isSmsReceipt), erased)
  if (kept.length > 0) await storeEvents(pool, kept, erased)
  if (kept.some(({ kind }) => REPLIES.includes(kind))) announce('replies')
}

type Receipt = Extract<CarrierEvent, { kind: 'delivered' | 'read' | 'expired' | 'expiry-failed' }>
const REPLIES: readonly string[] = REPLY_KINDS

/** The kind of the timeline event for a receipt that changed no status. */
const NOTED_AS: Record<Receipt['kind'], string> = {
  delivered: 'delivered-late',
  read: 'read-late',
  expired: 'revoked',
  'expiry-failed': 'revoke-failed',
}

/** A tap is about a message too, but it is stored as a reply and processed later. */
function isReceipt(event: CarrierEvent): event is Receipt {
  return event.kind in NOTED_AS && UUID.test((event as Receipt).messageId)
}

function isSmsReceipt(event: CarrierEvent): event is SmsReceipt {
  return event.kind.startsWith('sms-')
}

/** Returns the receipts that match no message: the message is unknown, or it has another carrier, agent or phone. */
async function receiveMonth(db: Executor, messagesTable: string, receipts: Receipt[]): Promise<Receipt[]> {
  const isOfPhone = ({ kind }: Receipt) => kind === 'delivered' || kind === 'read'
  const { unmatched, late } = await applyReceipts(db, messagesTable, receipts.filter(isOfPhone))
  const revocations = receipts.filter((receipt) => !isOfPhone(receipt))
  return [...unmatched, ...(await noteReceipts(db, messagesTable, [...late, ...revocations]))]
}

/** Merges the receipts of a batch for each message and phone. Of receipts of the same kind, the earliest time counts. */
function merge(receipts: Receipt[]) {
  const groups = Map.groupBy(receipts, ({ messageId, carrier, phone, agentId }) => [messageId, carrier, phone, agentId].join('\n'))
  return [...groups.values()].map((group) => ({
    ...(group[0] as Receipt),
    receipts: group,
    deliveredAt: earliest(group, 'delivered'),
    readAt: earliest(group, 'read'),
  }))
}

function earliest(receipts: Receipt[], kind: Receipt['kind']): Date | undefined {
  const times = receipts.filter((receipt) => receipt.kind === kind).map(({ occurredAt }) => occurredAt)
  return times.sort((a, b) => a.getTime() - b.getTime())[0]
}

/** A receipt that changed no status, and why. `late`: its message has failed or expired. */
type Unmoved = { place: number; why: 'unmatched' | 'late' }

/**
 * Moves messages by the receipts of phones. Receipts may come before the response to the send, twice, late or out of order. Messages only move
 * forward, and of equal receipts the first counts. A receipt for a message that has failed or expired is only noted in the timeline. If the phone
 * already has a message that is still being sent, this deletes its queue entry, and the result of the send no longer counts.
 *
 * The carrier's clock may be off, so its times are limited to the range from the last known time to now: no message is delivered before it was
 * sent.
 */
async function applyReceipts(db: Executor, messagesTable: string, receipts: Receipt[]): Promise<Record<Unmoved['why'], Receipt[]>> {
  if (receipts.length === 0) return { unmatched: [], late: [] }
  const merged = merge(receipts)
  const { rows } = await db.query<Unmoved>({
    name: `apply-receipts ${messagesTable}`,
    text: applyMonthReceipts(messagesTable),
    values: columns(merged, 'messageId', 'carrier', 'phone', 'agentId', 'deliveredAt', 'readAt'),
  })
  const unmoved = (why: Unmoved['why']) => rows.filter((row) => row.why === why).flatMap(({ place }) => merged[place - 1]?.receipts ?? [])
  return { unmatched: unmoved('unmatched'), late: unmoved('late') }
}

/**
 * In SQL: joins the message `m` of a receipt `r`. Both the network and Herald may write an agent's id with or without its domain. If the
 * recipient has been erased, the ids of the message and its agent are enough.
 */
const matched = (messagesTable: string) => `
    join ${messagesTable} m on m.id = r.message_id and (m.recipient = r.phone or ${isErasedNumber('m.recipient')})
      and split_part(m.agent_id, '@rbm.goog', 1) = r.agent_id
    join agents a on a.agent_id = m.agent_id and a.carrier = r.carrier`

// A step's rows carry what later steps need, or later steps look it up in a set ("not in"). A join of two steps would compare each row with
// each: 250,000 comparisons for 500 receipts.
export const applyMonthReceipts = (messagesTable: string) => `
  with queued as materialized (
    select q.message_id from queue q where q.message_id = any (${listed('$1::uuid[]')}::uuid[]) order by q.message_id for update
  ), receipt as materialized (
    -- A step of its own: the locks on the queue come first, and the step that locks messages does not read "queued" again after a wait.
    select r.* from unnest(${lists('uuid', 'text', 'text', 'text', 'timestamptz(3)', 'timestamptz(3)')})
      with ordinality as r (message_id, carrier, phone, agent_id, delivered_at, read_at, place), (select count(*) from queued) as locks
  ), known as materialized (
    select r.place, m.id, m.recipient, m.agent_id, m.status, m.expires_at, m.sent_at is null as is_unsent,
      r.read_at is not null as is_read, at.sent, at.delivered,
      greatest(at.delivered, least(r.read_at, now())) as read
    from receipt r ${matched(messagesTable)},
    lateral (select least(coalesce(r.delivered_at, r.read_at), now()) as first) as reported,
    lateral (select coalesce(m.sent_at, greatest(reported.first, m.accepted_at)) as sent) as sending,
    lateral (select sending.sent, coalesce(m.delivered_at, greatest(reported.first, sending.sent)) as delivered) as at
    order by m.id for no key update of m
  ), moved as (
    -- The condition uses the columns read under the lock.
    update ${messagesTable} m set status = case when k.is_read then 'READ' else 'DELIVERED' end, sent_at = k.sent, delivered_at = k.delivered,
      read_at = case when k.is_read then k.read end
    from known k
    where m.id = k.id and (k.status = 'DELIVERED' or k.expires_at > clock_timestamp())
      and (k.is_read and ${mayBecome('READ', 'k.status')} or not k.is_read and ${mayBecome('DELIVERED', 'k.status')})
    returning ${MESSAGE_FACTS}, k.status as was, k.is_unsent, m.sent_at, m.delivered_at, m.read_at
  ), unqueued as (
    delete from queue where message_id = any (array(select message_id from queued where message_id in (select id from moved)))
  ), ${recordChanges('moved', [
    { kind: 'message.sent', at: 'sent_at', where: 'is_unsent' },
    { kind: 'message.delivered', at: 'delivered_at', where: mayBecome('DELIVERED', 'was') },
    { kind: 'message.read', at: 'read_at' },
  ])}, ${learn(true, 'known', 'read')}
  select place::int, 'unmatched' as why from receipt where place not in (select place from known)
  union all
  select place::int, 'late' from known where status not in ('DELIVERED', 'READ') and id not in (select id from moved)`

/**
 * Notes receipts in the timelines of their messages, and returns the receipts that match no message. A repeated receipt has the same time, so
 * it is the same row. An SMS that waits for the revocation of its message then waits no longer.
 */
async function noteReceipts(db: Executor, messagesTable: string, receipts: Receipt[]): Promise<Receipt[]> {
  if (receipts.length === 0) return []
  const { rows } = await db.query<{ place: number }>({
    name: `note-receipts ${messagesTable}`,
    text: noteMonthReceipts(messagesTable),
    values: [...columns(receipts, 'messageId', 'carrier', 'phone', 'agentId', 'occurredAt'), receipts.map(({ kind }) => NOTED_AS[kind])],
  })
  const revoked = receipts.filter(({ kind }) => kind === 'expired').map(({ messageId }) => messageId)
  if (revoked.length > 0) await releaseAfterRevocation(db, revoked)
  const matching = new Set(rows.map(({ place }) => place - 1))
  return receipts.filter((_, index) => !matching.has(index))
}

export const noteMonthReceipts = (messagesTable: string) => `
  with known as materialized (
    -- Locks the messages: the expiry of a message either sees this note, or the next statement sees the expiry.
    select r.place, m.id, m.account_id, r.kind, r.occurred_at from unnest(${lists('uuid', 'text', 'text', 'text', 'timestamptz(3)', 'text')})
      with ordinality as r (message_id, carrier, phone, agent_id, occurred_at, kind, place) ${matched(messagesTable)}
    order by m.id for no key update of m
  ), noted as (
    insert into ${eventsTable(messagesTable)} (message_id, account_id, kind, occurred_at) select id, account_id, kind, occurred_at from known
    on conflict do nothing
  )
  select place::int from known`

/**
 * Stores events. An event that is already stored, or is twice in a batch, changes nothing. The reply loop processes replies from this table, and
 * drops replies to an account in which the person was erased. Not stored: any event of a person who was erased in all accounts, and a receipt
 * that matches no message from a person who was erased in any account.
 */
async function storeEvents(db: Executor, events: CarrierEvent[], erased: ErasedPeople): Promise<void> {
  await db.query({
    name: 'store-carrier-events',
    text: STORE_EVENTS,
    values: [
      ...columns(events, 'carrier', 'eventId', 'kind', 'phone', 'occurredAt'),
      events.map((event) => JSON.stringify(event)),
      events.map(({ phone }) => erased.hashOf(phone)),
      REPLY_KINDS,
    ],
  })
}

export const STORE_EVENTS = `
  with stored as (
    insert into carrier_events (carrier, event_id, kind, phone, occurred_at, event, process_after)
    select carrier, event_id, kind, phone, occurred_at, event::json, case when kind = any ($8::text[]) then now() end
    from unnest(${lists('text', 'text', 'text', 'text', 'timestamptz(3)', 'text', 'bytea')})
      as e (carrier, event_id, kind, phone, occurred_at, event, hash)
    where not exists (
      select from erased_people x where x.hash = e.hash and (x.account_id = ${ALL_ACCOUNTS} or e.kind <> all ($8::text[]))
    )
    order by carrier, event_id
    on conflict do nothing
  )
  select ${HELD_BY_STANDBY}`
