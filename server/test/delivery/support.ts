import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { CarrierEvent, OnEvents } from '../../src/carriers/carrier.ts'
import type { Pool } from '../../src/db/pool.ts'
import type { Entry } from '../../src/delivery/claim.ts'
import { createEventReceiver } from '../../src/delivery/receipts.ts'
import { MESSAGE_FACTS, recordChanges } from '../../src/events/changes.ts'
import { UUID } from '../../src/ids.ts'
import { STEPS } from '../../src/timeline/steps.ts'
import { erased } from '../support/erased.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { type MessageCaller, newKey } from '../support/messages.ts'
import { createAssignedAgent, createCaller, type TestCaller } from '../support/service.ts'
import { until } from '../support/until.ts'
import { CARRIER, claimNow, record } from './worker.ts'

// What the tests of delivery share: messages as the API leaves them, what is stored about them, and receipts.

/** Settings of a service without rate limits. */
export const NO_LIMITS = {
  HERALD_LIMITS: 'memory',
  HERALD_LIMIT_MESSAGES_PER_SECOND: '100000',
  HERALD_LIMIT_EVENTS_PER_SECOND: '100000',
  HERALD_LIMIT_OTHERS_PER_MINUTE: '100000',
}

export type Sender = TestCaller & { agentId: string }

/** An account with an agent of its own. */
export async function createSender(pool: Pool): Promise<Sender> {
  const caller = await createCaller(pool)
  return { ...caller, agentId: await createAssignedAgent(pool, caller.accountId) }
}

type Queued = { count?: number; priority?: number; recipient?: string; expiresInMs?: number; dueInMs?: number; attempts?: number }

/** Queues messages as the API does, and returns their ids in due order: they are due a millisecond apart, the last one `dueInMs` from now. */
export async function queueMessages(pool: Pool, { accountId, agentId }: Pick<Sender, 'accountId' | 'agentId'>, queued: Queued = {}) {
  const { count = 1, priority = 0, recipient = '+48500100200', expiresInMs = 3_600_000, dueInMs = 0, attempts = 0 } = queued
  const { rows } = await pool.query<{ id: string }>(
    `with made as materialized (
       select uuid_v7() as id, now() + ($7 + n - $1::int) * interval '1 millisecond' as due_at from generate_series(1, $1::int) as n
     ), written as (
       insert into messages as m (id, account_id, agent_id, recipient, basic, test, content, accepted_at, expires_at)
       select id, $2, $3, $5, false, false, '{"type":"MESSAGE","content":"Hi"}', now() - interval '1 day', now() + $6 * interval '1 millisecond' from made
       returning ${MESSAGE_FACTS}, m.accepted_at
     ), ${recordChanges('written', [{ kind: 'message.accepted', at: 'accepted_at' }])}, queued as (
       insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at, attempts, claimed)
       select id, $2, $3, 'send', $4, due_at, now() + $6 * interval '1 millisecond', $8, $8 > 0 from made
     ), expiring as (
       insert into expiries (message_id, expires_at) select id, now() + $6 * interval '1 millisecond' from made
     )
     select id from made order by due_at`,
    [count, accountId, agentId, priority, recipient, expiresInMs, dueInMs, attempts],
  )
  return rows.map(({ id }) => id)
}

/** Queues one message. */
export async function queueMessage(pool: Pool, sender: Pick<Sender, 'accountId' | 'agentId'>, queued: Queued = {}): Promise<string> {
  return (await queueMessages(pool, sender, { ...queued, count: 1 }))[0] as string
}

/** Queues a message, and claims it together with everything else that is due. */
export async function claimMessage(pool: Pool, sender: Sender, queued: Queued = {}): Promise<Entry> {
  const messageId = await queueMessage(pool, sender, queued)
  return (await claimNow(pool)).entries.find((entry) => entry.messageId === messageId) as Entry
}

export async function sentMessage(pool: Pool, sender: Sender): Promise<string> {
  const entry = await claimMessage(pool, sender)
  await record(pool, entry, { is: 'sent' })
  return entry.messageId
}

/** The time that the id of a page begins with. */
export const PAGE_TIME = `to_timestamp(('x' || lpad(replace(left(e.page_id::text, 13), '-', ''), 16, '0'))::bit(64)::bigint / 1000.0)::timestamptz(3)`

/** In SQL: the timeline of a message `m`, from the log and from the steps that are no events. */
export const TIMELINE = `
  select m.id as message_id, m.account_id, replace(e.kind, 'message.', '') as kind, e.occurred_at, ${PAGE_TIME} as recorded_at,
    e.data -> 'failure' ->> 'reason' as reason, null as detail
  from ${LOGGED_EVENTS} as e
  where e.subject_id = m.id::text and e.kind in ('message.sent', 'message.delivered', 'message.read', 'message.failed', 'message.expired')
  union all
  select message_id, account_id, kind, occurred_at, recorded_at, reason, detail from message_events v
  where v.message_id = m.id and v.kind not in ('sent', 'delivered', 'read', 'failed', 'expired')`

/** Everything that is stored about a message. */
export async function readAll(pool: Pool, messageId: string) {
  const { rows } = await pool.query(
    `select to_jsonb(m) as message, (select to_jsonb(q) from queue q where q.message_id = m.id) as queue,
       (select to_jsonb(e) from expiries e where e.message_id = m.id) as expiry,
       (select coalesce(jsonb_agg(to_jsonb(v) order by recorded_at, occurred_at, array_position($2, kind)), '[]') from (${TIMELINE}) as v) as events
     from messages m where m.id = $1`,
    // Two steps of one millisecond stand in the order of the timeline.
    [messageId, Object.keys(STEPS)],
  )
  return rows[0] as { message: any; queue: any; expiry: any; events: any[] }
}

export async function statusOf(pool: Pool, messageId: string): Promise<string> {
  return (await readAll(pool, messageId)).message.status
}

export const kinds = (events: { kind: string }[]): string[] => events.map(({ kind }) => kind)

/** The kinds of its timeline, in the order in which they were recorded. */
export async function kindsOf(pool: Pool, messageId: string): Promise<string[]> {
  return kinds((await readAll(pool, messageId)).events)
}

type Receipt = {
  messageId: string
  kind?: 'delivered' | 'read' | 'expired' | 'expiry-failed'
  phone?: string
  carrier?: string
  agentId?: string
  eventId?: string
}

/** A receipt of the network; `agoMs`: its age by the network's clock. */
export function receipt({ agoMs = 0, ...fields }: Receipt & { agoMs?: number }): CarrierEvent {
  const {
    messageId,
    kind = 'delivered',
    phone = '+48500100200',
    carrier = CARRIER,
    eventId = randomUUID(),
    agentId = AGENT_OF_MESSAGE,
  } = fields
  return { carrier, eventId, kind, phone, messageId, agentId, occurredAt: new Date(Date.now() - agoMs) }
}

const AGENT_OF_MESSAGE = 'the agent of the message'

/** Stores events as the service does. A network knows which agent sent a message, so receipts get the agent's id here. */
export function createReceiver(pool: Pool): OnEvents {
  const receive = createEventReceiver(pool, () => {}, erased)
  return async (events) => {
    const ids = events.flatMap((event) => ('messageId' in event && UUID.test(event.messageId) ? [event.messageId] : []))
    const { rows } = await pool.query<{ id: string; agentId: string }>(
      'select id, agent_id as "agentId" from messages where id = any ($1::uuid[])',
      [ids],
    )
    const agents = new Map(rows.map(({ id, agentId }) => [id, agentId]))
    await receive(
      events.map((event) =>
        'messageId' in event && event.agentId === AGENT_OF_MESSAGE
          ? { ...event, agentId: agents.get(event.messageId.toLowerCase()) ?? 'agent' }
          : event,
      ),
    )
  }
}

/** Sends a message as a careful client does: after 503, which an overloaded machine may cause, it repeats the request under the same key. */
export async function sendUntilAccepted(caller: MessageCaller, fields: Record<string, unknown>): Promise<any> {
  const key = newKey()
  const { status, body } = await until('there is a response', async () => {
    const response = await caller.send(key, caller.request(fields))
    return response.status === 503 ? undefined : response
  })
  assert.equal(status, 202, JSON.stringify(body))
  return body
}
