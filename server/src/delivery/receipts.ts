import type { CarrierEvent, OnEvents } from '../carriers/carrier.ts'
import { createBatcher } from '../db/batcher.ts'
import { byMonth, isMissingMonth } from '../db/partitions.ts'
import { type Executor, lists, type Pool } from '../db/pool.ts'
import { HELD_BY_STANDBY } from '../db/standby.ts'
import { MESSAGE_FACTS, tellOfMessages } from '../events/outbox.ts'
import { UUID } from '../messages/messages.ts'
import { mayBecome, QUEUE_CHANNEL, REPLIES_WAIT } from '../messages/states.ts'
import { countReached, LISTED } from '../reports/counters.ts'
import { countMoves } from './campaigns/counts.ts'
import { REPLY_KINDS } from './replies.ts'
import { type SmsReceipt, takeSmsReceipts } from './sms/receipts.ts'
import { releaseTold } from './sms/schedule.ts'

const MOST_AT_ONCE = 500

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

/** Receipts move their messages; the rest is kept. Each month has its statement, and most batches are of one. */
async function takeEvents(pool: Pool, events: CarrierEvent[]): Promise<void> {
  const receipts = events.filter(isReceipt)
  for (const [messages, ofMonth] of byMonth(receipts, ({ messageId }) => messageId)) await takeReceipts(pool, messages, ofMonth)
  const ofSms = events.filter(isSmsReceipt)
  if (ofSms.length > 0) await takeSmsReceipts(pool, ofSms)
  const others = events.filter((event) => !isReceipt(event) && !isSmsReceipt(event))
  if (others.length > 0) await keepEvents(pool, others)
}

type Receipt = Extract<CarrierEvent, { kind: 'delivered' | 'read' | 'expired' | 'expiry-failed' }>
const RECEIPTS: readonly string[] = ['delivered', 'read', 'expired', 'expiry-failed'] satisfies Receipt['kind'][]

/** A tap is about a message too, but it is kept, for those who answer it. */
function isReceipt(event: CarrierEvent): event is Receipt {
  return RECEIPTS.includes(event.kind) && UUID.test((event as Receipt).messageId)
}

function isSmsReceipt(event: CarrierEvent): event is SmsReceipt {
  return event.kind === 'sms-delivered' || event.kind === 'sms-failed' || event.kind === 'sms-underway'
}

/**
 * Moves messages by their receipts, and keeps the receipts that match none: of another carrier, agent or phone than the message's, or of a
 * message that is not here.
 *
 * Receipts come first, twice, late and out of order. Messages only move forward, and of equal moves the first counts. One that comes
 * after the message has failed or run out changes nothing, and stands in its timeline. Where a phone has a message whose sending is
 * still under way, the sending is over: its queue entry goes, and with it the right to write its result.
 *
 * The carrier's clock may be off, so its times are fitted between what was known before and now: a message is never delivered before it
 * was sent.
 */
async function takeReceipts(db: Executor, messages: string, receipts: Receipt[]): Promise<void> {
  try {
    const values = [...columnsOf(receipts), receipts.map(({ messageId }) => messageId), receipts.map(({ agentId }) => agentId)]
    await db.query({ name: `take-receipts ${messages}`, text: take(messages), values })
    const revoked = receipts.filter(({ kind }) => kind === 'expired')
    const told = revoked.map(({ messageId }) => messageId)
    if (told.length > 0) await releaseTold(db, told)
  } catch (error) {
    if (!isMissingMonth(error, messages)) throw error
    await keepEvents(db, receipts)
  }
}

/** One that is kept already, or comes twice in the same batch, is left as it is: the first report counts. What people did is taken up from here. */
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
        returning take_up_at
      )
      select ${HELD_BY_STANDBY}, (
        select pg_notify('${QUEUE_CHANNEL}', '${REPLIES_WAIT}') from (select from kept where take_up_at is not null limit 1) as any_to_take_up
      )`,
    values: [...columnsOf(events), REPLY_KINDS],
  })
}

function columnsOf(events: CarrierEvent[]): unknown[][] {
  return [
    events.map(({ carrier }) => carrier),
    events.map(({ eventId }) => eventId),
    events.map(({ kind }) => kind),
    events.map(({ phone }) => phone),
    events.map(({ occurredAt }) => occurredAt),
    events.map((event) => JSON.stringify(event)),
  ]
}

/** Networks may write an agent's id with the domain that an operator may have left out, and the other way round. */
const bareAgentId = (column: string) => `split_part(${column}, '@rbm.goog', 1)`

const TOLD = [
  { kind: 'message.sent', at: 'sent_at', where: 'not was_sent' },
  { kind: 'message.delivered', at: 'delivered_at', where: mayBecome('DELIVERED', 'was') },
  { kind: 'message.read', at: 'read_at' },
] as const

// What a later step needs of an earlier one is carried along in its rows, or looked up as a set ("not in"): joining two of them would
// compare each row with each, 250,000 times for 500 receipts.
const take = (messages: string) => `
  with event as materialized (
    select *
    from unnest(${lists('text', 'text', 'text', 'text', 'timestamptz(3)', 'text', 'uuid', 'text')})
      as e (carrier, event_id, kind, phone, occurred_at, event, message_id, agent_id)
  ), receipt as materialized (
    select message_id, carrier, phone, agent_id,
      min(occurred_at) filter (where kind = 'delivered') as delivered_at, min(occurred_at) filter (where kind = 'read') as read_at,
      min(occurred_at) filter (where kind = 'expired') as revoked_at, min(occurred_at) filter (where kind = 'expiry-failed') as revoke_failed_at
    from event
    group by message_id, carrier, phone, agent_id
  ), queued as materialized (
    select q.message_id from (select distinct message_id from receipt order by message_id) as r, lateral (
      select message_id from queue q where q.message_id = r.message_id for update
    ) as q
  ), ready as materialized (
    -- A step of its own, so that those locks come first; and a statement that locks must not ask a step again when it has waited.
    select receipt.* from receipt, (select count(*) from queued) as locks
  ), known as materialized (
    select m.id, m.account_id, m.status, m.expires_at, m.sent_at is not null as was_sent, r.*, at.sent, at.delivered,
      greatest(at.delivered, least(r.read_at, now())) as read
    from ready r
    join ${messages} m on m.id = r.message_id and m.recipient = r.phone and ${bareAgentId('m.agent_id')} = r.agent_id
    join agents a on a.agent_id = m.agent_id and a.carrier = r.carrier,
    lateral (select least(coalesce(r.delivered_at, r.read_at), now()) as first) as reported,
    lateral (select coalesce(m.sent_at, greatest(reported.first, m.accepted_at)) as sent) as sending,
    lateral (select sending.sent, coalesce(m.delivered_at, greatest(reported.first, sending.sent)) as delivered) as at
    order by m.id for no key update of m
  ), moved as (
    -- Judged by what was read under the lock.
    update ${messages} m set
      status = case when k.read_at is null then 'DELIVERED' else 'READ' end,
      sent_at = k.sent,
      delivered_at = k.delivered,
      read_at = case when k.read_at is not null then k.read end
    from known k
    where m.id = k.id and (k.status = 'DELIVERED' or k.expires_at > clock_timestamp()) and (
      k.read_at is not null and ${mayBecome('READ', 'k.status')}
      or k.delivered_at is not null and k.read_at is null and ${mayBecome('DELIVERED', 'k.status')})
    returning ${MESSAGE_FACTS}, k.status as was, m.status as became, k.was_sent, m.sent_at, m.delivered_at, m.read_at
  ), unqueued as (
    delete from queue where message_id = any (array(select id from moved))
  ), settled as (
    delete from expiries where message_id = any (array(select id from moved))
  ), ${countMoves('moved')}, ${tellOfMessages('moved', TOLD)}, ${countReached('moved', TOLD)}, noted as (
    insert into message_events (message_id, account_id, kind, occurred_at, campaign_id, recipient)
    select id, account_id, 'sent', sent_at, ${LISTED} from moved where not was_sent
    union all select id, account_id, 'delivered', delivered_at, ${LISTED} from moved where ${mayBecome('DELIVERED', 'was')}
    union all select id, account_id, 'read', read_at, ${LISTED} from moved where read_at is not null
    union all
    select id, account_id, step.kind, step.at, null, null
    from known k, lateral (
      values ('delivered-late', k.delivered_at), ('read-late', k.read_at)
    ) as step (kind, at)
    where step.at is not null and k.status not in ('DELIVERED', 'READ') and k.id not in (select id from moved)
    union all select id, account_id, 'revoked', revoked_at, null, null from known where revoked_at is not null
    union all select id, account_id, 'revoke-failed', revoke_failed_at, null, null from known where revoke_failed_at is not null
    on conflict do nothing
  )
  insert into carrier_events (carrier, event_id, kind, phone, occurred_at, event)
  select carrier, event_id, kind, phone, occurred_at, event::json from event
  where (message_id, carrier, phone, agent_id) not in (select message_id, carrier, phone, agent_id from known)
  order by carrier, event_id
  on conflict do nothing`
