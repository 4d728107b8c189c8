import type { CarrierEvent, OnEvents } from '../carriers/carrier.ts'
import { createBatcher } from '../db/batcher.ts'
import type { Executor, Pool } from '../db/pool.ts'
import { mayBecome } from '../messages/states.ts'

const MOST_AT_ONCE = 500
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Takes in what carriers report. Returns once it is committed, so that a carrier is told only then that its event has arrived. */
export function createEventTaker(pool: Pool): OnEvents {
  const take = createBatcher(
    async (events: CarrierEvent[]) => {
      await takeEvents(pool, events)
      return events.map(() => undefined)
    },
    { maxItems: MOST_AT_ONCE },
  )
  return async (events) => {
    await Promise.all(events.map(take))
  }
}

/**
 * Moves messages by their receipts, in one statement, and keeps what is about none: those that come from another carrier than the message
 * went to or from another phone, those of messages that are not here, and all that people write and tap. Kept events have a key, so that
 * one that is repeated is kept once.
 *
 * Receipts come first, twice, late and out of order. Messages only move forward, and of equal moves the first counts. One that comes
 * after the message has failed or run out changes nothing, and stands in its timeline. Where a phone has a message whose sending is
 * still under way, the sending is over: its queue entry goes, and with it the right to write its result.
 *
 * The carrier's clock may be off, so its times are fitted between what was known before and now: a message is never delivered before it
 * was sent.
 */
async function takeEvents(db: Executor, events: CarrierEvent[]): Promise<void> {
  await db.query({
    name: 'take-carrier-events',
    text: TAKE,
    values: [
      events.map(({ carrier }) => carrier),
      events.map(({ eventId }) => eventId),
      events.map(({ kind }) => kind),
      events.map(({ phone }) => phone),
      events.map(({ occurredAt }) => occurredAt),
      events.map((event) => JSON.stringify(event)),
      events.map(messageOf),
    ],
  })
}

/** Of a tap, the message is what it is about, but not what it changes: it is kept for those who answer it. */
function messageOf(event: CarrierEvent): string | null {
  const isReceipt = event.kind === 'delivered' || event.kind === 'read' || event.kind === 'expired' || event.kind === 'expiry-failed'
  return isReceipt && UUID.test(event.messageId) ? event.messageId : null
}

const TAKE = `
  with event as materialized (
    select *
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz(3)[], $6::text[], $7::uuid[])
      as e (carrier, event_id, kind, phone, occurred_at, event, message_id)
  ), receipt as materialized (
    select message_id, carrier, phone,
      min(occurred_at) filter (where kind = 'delivered') as delivered_at, min(occurred_at) filter (where kind = 'read') as read_at
    from event where message_id is not null
    group by message_id, carrier, phone
  ), queued as materialized (
    select q.message_id from queue q join receipt using (message_id) order by q.message_id for update of q
  ), known as materialized (
    select m.id, m.account_id, m.status, m.sent_at is not null as was_sent, r.carrier, r.phone, r.delivered_at, r.read_at, at.sent, at.delivered,
      greatest(at.delivered, least(r.read_at, now())) as read
    from receipt r
    join messages m on m.id = r.message_id and m.recipient = r.phone
    join agents a on a.agent_id = m.agent_id and a.carrier = r.carrier,
    lateral (select least(coalesce(r.delivered_at, r.read_at), now()) as first) as reported,
    lateral (select coalesce(m.sent_at, greatest(reported.first, m.accepted_at)) as sent) as sending,
    lateral (select sending.sent, coalesce(m.delivered_at, greatest(reported.first, sending.sent)) as delivered) as at
    where (select count(*) from queued) >= 0 -- Its locks come first.
    order by m.id for no key update of m
  ), moved as (
    update messages m set
      status = case when k.read_at is null then 'DELIVERED' else 'READ' end,
      sent_at = k.sent,
      delivered_at = k.delivered,
      read_at = case when k.read_at is not null then k.read end
    from known k
    where m.id = k.id and (m.status = 'DELIVERED' or m.expires_at > clock_timestamp()) and (
      k.read_at is not null and ${mayBecome('READ', 'm.status')}
      or k.delivered_at is not null and k.read_at is null and ${mayBecome('DELIVERED', 'm.status')})
    returning m.id
  ), unqueued as (
    delete from queue q using moved where q.message_id = moved.id
  ), settled as (
    delete from expiries e using moved where e.message_id = moved.id
  ), noted as (
    insert into message_events (message_id, account_id, kind, occurred_at)
    select k.id, k.account_id, step.kind, step.at
    from known k left join moved on moved.id = k.id, lateral (
      select 'sent' as kind, k.sent as at where moved.id is not null and not k.was_sent
      union all select 'delivered', k.delivered where moved.id is not null and ${mayBecome('DELIVERED', 'k.status')}
      union all select 'read', k.read where moved.id is not null and k.read_at is not null
      union all select 'delivered-late', k.delivered_at where moved.id is null and k.status not in ('DELIVERED', 'READ')
      union all select 'read-late', k.read_at where moved.id is null and k.status not in ('DELIVERED', 'READ')
    ) as step
    where step.at is not null
    union all
    select k.id, k.account_id, case event.kind when 'expired' then 'revoked' else 'revoke-failed' end, event.occurred_at
    from event join known k on k.id = event.message_id and k.carrier = event.carrier and k.phone = event.phone
    where event.kind in ('expired', 'expiry-failed')
    on conflict do nothing
  )
  insert into carrier_events (carrier, event_id, kind, phone, occurred_at, event)
  select carrier, event_id, kind, phone, occurred_at, event::json from event
  where not exists (select from known k where k.id = event.message_id and k.carrier = event.carrier and k.phone = event.phone)
  on conflict do nothing`
