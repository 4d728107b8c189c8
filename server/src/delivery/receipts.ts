import type { CarrierEvent, OnEvents } from '../carriers/carrier.ts'
import { createBatcher } from '../db/batcher.ts'
import { byMonth, eventsTable, ifMonthIsMissing } from '../db/partitions.ts'
import { columns, type Executor, listed, lists, type Pool } from '../db/pool.ts'
import { HELD_BY_STANDBY } from '../db/standby.ts'
import { MESSAGE_FACTS, recordChanges } from '../events/changes.ts'
import type { Announce } from '../messages/announce.ts'
import { UUID } from '../messages/messages.ts'
import { mayBecome } from '../messages/states.ts'
import { REPLY_KINDS } from './replies.ts'
import { type SmsReceipt, takeSmsReceipts } from './sms/receipts.ts'
import { releaseTold } from './sms/schedule.ts'

const BATCH_SIZE = 500
// How long a receipt waits for others: a statement for one costs nearly as much as one for several, and only the network waits for it.
const GATHER_MS = 20

/** Stores the events of carriers. Returns after the commit, so that a carrier gets its response only when its event is stored. */
export function createEventTaker(pool: Pool, announce: Announce): OnEvents {
  const take = createBatcher(
    async (events: CarrierEvent[]) => {
      await takeEvents(pool, events, announce)
      return events.map(() => undefined)
    },
    { maxItems: BATCH_SIZE, gatherMs: GATHER_MS },
  )
  return async (events) => {
    await Promise.all(events.map(take))
  }
}

/** Receipts move their messages; other events are stored. Each month has its own statement, and most batches are of one month. */
async function takeEvents(pool: Pool, events: CarrierEvent[], announce: Announce): Promise<void> {
  const kept: CarrierEvent[] = events.filter((event) => !isReceipt(event) && !isSmsReceipt(event))
  for (const [messages, receipts] of byMonth(events.filter(isReceipt), ({ messageId }) => messageId)) {
    kept.push(...(await takeMonth(pool, messages, receipts).catch(ifMonthIsMissing(messages, () => receipts))))
  }
  await takeSmsReceipts(pool, events.filter(isSmsReceipt))
  if (kept.length > 0) await keepEvents(pool, kept)
  if (kept.some(({ kind }) => REPLIES.includes(kind))) announce('replies')
}

type Receipt = Extract<CarrierEvent, { kind: 'delivered' | 'read' | 'expired' | 'expiry-failed' }>
const REPLIES: readonly string[] = REPLY_KINDS

/** The name in a timeline for a receipt that moved nothing. */
const NOTED: Record<Receipt['kind'], string> = {
  delivered: 'delivered-late',
  read: 'read-late',
  expired: 'revoked',
  'expiry-failed': 'revoke-failed',
}

/** A tap is about a message too, but it is stored as a reply, to be processed later. */
function isReceipt(event: CarrierEvent): event is Receipt {
  return event.kind in NOTED && UUID.test((event as Receipt).messageId)
}

function isSmsReceipt(event: CarrierEvent): event is SmsReceipt {
  return event.kind.startsWith('sms-')
}

/** Returns the receipts that match no message: the carrier, agent or phone is not the message's, or the message is unknown. */
async function takeMonth(db: Executor, messages: string, receipts: Receipt[]): Promise<Receipt[]> {
  const isOfPhone = ({ kind }: Receipt) => kind === 'delivered' || kind === 'read'
  const { unmatched, late } = await takeReceipts(db, messages, receipts.filter(isOfPhone))
  const revocations = receipts.filter((receipt) => !isOfPhone(receipt))
  return [...unmatched, ...(await noteReceipts(db, messages, [...late, ...revocations]))]
}

/** The receipts of one message from one phone. A batch can have several; of equal ones the first time counts. */
function merge(receipts: Receipt[]) {
  const groups = Map.groupBy(receipts, ({ messageId, carrier, phone, agentId }) => [messageId, carrier, phone, agentId].join('\n'))
  const merged = [...groups.values()].map((group) => ({
    ...(group[0] as Receipt),
    receipts: group,
    deliveredAt: earliest(group, 'delivered'),
    readAt: earliest(group, 'read'),
  }))
  // In the order of the ids, in which every statement locks entries and messages.
  return merged.sort((a, b) => (a.messageId < b.messageId ? -1 : 1))
}

function earliest(receipts: Receipt[], kind: Receipt['kind']): Date | undefined {
  const times = receipts.filter((receipt) => receipt.kind === kind).map(({ occurredAt }) => occurredAt)
  return times.sort((a, b) => a.getTime() - b.getTime())[0]
}

/** Why a receipt moved nothing. `late`: its message has failed or expired. */
type Unmoved = { place: number; why: 'unmatched' | 'late' }

/**
 * Moves messages by the receipts of phones. Receipts can precede the response to the send, repeat, and come late or out of order. Messages
 * only move forward, and of equal moves the first counts. A receipt after the message failed or expired is only noted in the timeline. If
 * a phone has a message that is still being sent, its queue entry is deleted, and the result of the send no longer counts.
 *
 * The carrier's clock may be off, so its times are moved between the last known time and now: a message is never delivered before it was
 * sent.
 */
async function takeReceipts(db: Executor, messages: string, receipts: Receipt[]): Promise<Record<Unmoved['why'], Receipt[]>> {
  if (receipts.length === 0) return { unmatched: [], late: [] }
  const merged = merge(receipts)
  const { rows } = await db.query<Unmoved>({
    name: `take-receipts ${messages}`,
    text: take(messages),
    values: columns(merged, 'messageId', 'carrier', 'phone', 'agentId', 'deliveredAt', 'readAt'),
  })
  const unmoved = (why: Unmoved['why']) => rows.filter((row) => row.why === why).flatMap(({ place }) => merged[place - 1]?.receipts ?? [])
  return { unmatched: unmoved('unmatched'), late: unmoved('late') }
}

/** In SQL: the message `m` of a receipt `r`. The network's form of an agent's id may have a domain that ours lacks, or the reverse. */
const matched = (messages: string) => `
    join ${messages} m on m.id = r.message_id and m.recipient = r.phone and split_part(m.agent_id, '@rbm.goog', 1) = r.agent_id
    join agents a on a.agent_id = m.agent_id and a.carrier = r.carrier`

// A step carries what later steps need in its rows, or later steps look it up as a set ("not in"). A join of two steps would compare each row
// with each, 250,000 times for 500 receipts.
const take = (messages: string) => `
  with queued as materialized (
    select q.message_id from queue q where q.message_id = any (${listed('$1::uuid[]')}::uuid[]) order by q.message_id for update
  ), receipt as materialized (
    -- A step of its own, so that those locks come first; and a statement that locks must not ask a step again when it has waited.
    select r.* from unnest(${lists('uuid', 'text', 'text', 'text', 'timestamptz(3)', 'timestamptz(3)')})
      with ordinality as r (message_id, carrier, phone, agent_id, delivered_at, read_at, place), (select count(*) from queued) as locks
  ), known as materialized (
    select r.place, m.id, m.status, m.expires_at, m.sent_at is null as is_unsent, r.read_at is not null as is_read, at.sent, at.delivered,
      greatest(at.delivered, least(r.read_at, now())) as read
    from receipt r ${matched(messages)},
    lateral (select least(coalesce(r.delivered_at, r.read_at), now()) as first) as reported,
    lateral (select coalesce(m.sent_at, greatest(reported.first, m.accepted_at)) as sent) as sending,
    lateral (select sending.sent, coalesce(m.delivered_at, greatest(reported.first, sending.sent)) as delivered) as at
    order by m.id for no key update of m
  ), moved as (
    -- Checked by what was read under the lock.
    update ${messages} m set status = case when k.is_read then 'READ' else 'DELIVERED' end, sent_at = k.sent, delivered_at = k.delivered,
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
  ])}
  select place::int, 'unmatched' as why from receipt where place not in (select place from known)
  union all
  select place::int, 'late' from known where status not in ('DELIVERED', 'READ') and id not in (select id from moved)`

/**
 * Writes receipts into the timelines of their messages, and returns those that match no message. A repeated receipt has the same time, and
 * so is the same row. SMS that wait for the revocation of their message wait no longer.
 */
async function noteReceipts(db: Executor, messages: string, receipts: Receipt[]): Promise<Receipt[]> {
  if (receipts.length === 0) return []
  const { rows } = await db.query<{ place: number }>({
    name: `note-receipts ${messages}`,
    text: `
      with known as materialized (
        -- Locked, so that an expiry either sees the note or is seen by the statement after this one.
        select r.place, m.id, m.account_id, r.kind, r.occurred_at from unnest(${lists('uuid', 'text', 'text', 'text', 'timestamptz(3)', 'text')})
          with ordinality as r (message_id, carrier, phone, agent_id, occurred_at, kind, place) ${matched(messages)}
        order by m.id for no key update of m
      ), noted as (
        insert into ${eventsTable(messages)} (message_id, account_id, kind, occurred_at) select id, account_id, kind, occurred_at from known
        on conflict do nothing
      )
      select place::int from known`,
    values: [...columns(receipts, 'messageId', 'carrier', 'phone', 'agentId', 'occurredAt'), receipts.map(({ kind }) => NOTED[kind])],
  })
  const revoked = receipts.filter(({ kind }) => kind === 'expired').map(({ messageId }) => messageId)
  if (revoked.length > 0) await releaseTold(db, revoked)
  const matching = new Set(rows.map(({ place }) => place - 1))
  return receipts.filter((_, index) => !matching.has(index))
}

/** A report that is already stored, or comes twice in a batch, changes nothing: the first counts. Replies are processed from this table. */
async function keepEvents(db: Executor, events: CarrierEvent[]): Promise<void> {
  await db.query({
    name: 'keep-carrier-events',
    text: `
      with kept as (
        insert into carrier_events (carrier, event_id, kind, phone, occurred_at, event, take_up_at)
        select carrier, event_id, kind, phone, occurred_at, event::json, case when kind = any ($7::text[]) then now() end
        from unnest(${lists('text', 'text', 'text', 'text', 'timestamptz(3)', 'text')})
          as e (carrier, event_id, kind, phone, occurred_at, event)
        order by carrier, event_id
        on conflict do nothing
      )
      select ${HELD_BY_STANDBY}`,
    values: [
      ...columns(events, 'carrier', 'eventId', 'kind', 'phone', 'occurredAt'),
      events.map((event) => JSON.stringify(event)),
      REPLY_KINDS,
    ],
  })
}
