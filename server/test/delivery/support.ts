import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import { Registry } from 'prom-client'
import type { CarrierEvent, OnEvents, RcsCarrier, RcsMessage, RevokeResult, SendResult } from '../../src/carriers/carrier.ts'
import { createHotPool, type Executor, type Pool, transaction } from '../../src/db/pool.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { createEventTaker } from '../../src/delivery/receipts.ts'
import { createDispatcher, type RcsDispatcher } from '../../src/delivery/send.ts'
import { MESSAGE_FACTS, recordChanges } from '../../src/events/changes.ts'
import { createLogger } from '../../src/http/log.ts'
import { UUID } from '../../src/ids.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { createAssignedAgent, createCaller, type TestCaller } from '../support/service.ts'
import { until } from '../support/until.ts'

// What tests of the delivery engine share: messages as accepting leaves them, and a network that does what a test wants.

export const CARRIER = 'simulator'
export const logger = createLogger('silent')

/** As settings of a service: tests send more than a caller may. */
export const NO_LIMITS = { HERALD_LIMITS: 'memory', HERALD_LIMIT_MESSAGES_PER_SECOND: '100000', HERALD_LIMIT_OTHERS_PER_MINUTE: '100000' }

export type Sender = TestCaller & { agentId: string }

/** An account with an agent of its own. */
export async function createSender(pool: Pool): Promise<Sender> {
  const caller = await createCaller(pool)
  return { ...caller, agentId: await createAssignedAgent(pool, caller.accountId) }
}

type Queued = { count?: number; priority?: number; recipient?: string; expiresInMs?: number; dueInMs?: number; attempts?: number }

/** Messages as they are once accepted, and their ids in the order they are due: a millisecond apart, up to `dueInMs` from now. */
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

/** As `queueMessages`, one of them. */
export async function queueMessage(pool: Pool, sender: Pick<Sender, 'accountId' | 'agentId'>, queued: Queued = {}): Promise<string> {
  return (await queueMessages(pool, sender, { ...queued, count: 1 }))[0] as string
}

export type Seen = { task: 'send' | 'revoke'; messageId: string; agentId: string; at: number }

export type TestCarrier = RcsCarrier & {
  /** All that was asked of it, in order. `at`: by performance.now(). */
  seen: Seen[]
}

export type CarrierOptions = Partial<Omit<RcsCarrier, 'send' | 'revoke'>> & {
  onSend?: (message: RcsMessage) => Promise<SendResult> | SendResult
  onRevoke?: (message: { messageId: string }) => Promise<RevokeResult> | RevokeResult
}

export function sent({ messageId }: { messageId: string }): SendResult {
  return { is: 'sent', carrierMessageId: messageId }
}

/** The outside world: takes whatever it is given, unless a test has it do otherwise. */
export function createCarrier({ onSend = sent, onRevoke = () => ({ is: 'accepted' }), ...options }: CarrierOptions = {}): TestCarrier {
  const seen: Seen[] = []
  function note(task: Seen['task'], { messageId, agentId }: { messageId: string; agentId: string }): void {
    seen.push({ task, messageId, agentId, at: performance.now() })
  }
  return {
    name: CARRIER,
    longestCallMs: 1_000,
    concurrency: 10,
    messagesPerSecond: undefined,
    messagesPerSecondPerAgent: undefined,
    pausedForMs: () => 0,
    connect: async () => {},
    reach: async () => [],
    close: async () => {},
    ...options,
    seen,
    send: async (message) => {
      note('send', message)
      return await onSend(message)
    },
    revoke: async (message) => {
      note('revoke', message)
      return await onRevoke(message)
    },
  }
}

/** A worker as a process has one, with connections of its own; stopped when the test ends. */
export function startWorker(t: TestContext, databaseUrl: string, carrier: RcsCarrier): RcsDispatcher & { pool: Pool; registry: Registry } {
  const pool = createHotPool({ connectionString: databaseUrl }, () => {})
  const registry = new Registry()
  const dispatcher = createDispatcher({ pool, carrier, logger, metrics: createDeliveryMetrics(registry) })
  let stopped: Promise<void> | undefined
  function stop(): Promise<void> {
    stopped ??= dispatcher.stop()
    return stopped
  }
  t.after(async () => {
    await stop()
    await pool.end()
  })
  return { ...dispatcher, stop, pool, registry }
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

/** All that is stored about a message, but for the time at which it was written down. */
export async function readAll(pool: Pool, messageId: string) {
  const { rows } = await pool.query(
    `select to_jsonb(m) as message, (select to_jsonb(q) from queue q where q.message_id = m.id) as queue,
       (select to_jsonb(e) from expiries e where e.message_id = m.id) as expiry,
       (select coalesce(jsonb_agg(to_jsonb(v) order by recorded_at, occurred_at, kind), '[]') from (${TIMELINE}) as v) as events
     from messages m where m.id = $1`,
    [messageId],
  )
  return rows[0] as { message: any; queue: any; expiry: any; events: any[] }
}

export async function statusOf(pool: Pool, messageId: string): Promise<string> {
  return (await readAll(pool, messageId)).message.status
}

/** The kinds of its timeline, in the order they were written down. */
export async function kindsOf(pool: Pool, messageId: string): Promise<string[]> {
  return (await readAll(pool, messageId)).events.map(({ kind }) => kind)
}

type Receipt = {
  messageId: string
  kind?: 'delivered' | 'read' | 'expired' | 'expiry-failed'
  phone?: string
  carrier?: string
  agentId?: string
  eventId?: string
}

/** What the network tells about a message; `agoMs` by its clock. */
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

/** Takes events as the service does. A network knows which agent sent a message, so its receipts get the agent's id here. */
export function createReceiver(pool: Pool): OnEvents {
  const take = createEventTaker(pool, () => {})
  return async (events) => {
    const ids = events.flatMap((event) => ('messageId' in event && UUID.test(event.messageId) ? [event.messageId] : []))
    const { rows } = await pool.query<{ id: string; agentId: string }>(
      'select id, agent_id as "agentId" from messages where id = any ($1::uuid[])',
      [ids],
    )
    const agents = new Map(rows.map(({ id, agentId }) => [id, agentId]))
    await take(
      events.map((event) =>
        'messageId' in event && event.agentId === AGENT_OF_MESSAGE
          ? { ...event, agentId: agents.get(event.messageId.toLowerCase()) ?? 'agent' }
          : event,
      ),
    )
  }
}

/** Starts `work` while another transaction has done `change` and not committed it yet; commits that once `work` waits for it. */
export async function whileOthersCommit<T>(pool: Pool, change: (tx: Executor) => Promise<unknown>, work: () => Promise<T>): Promise<T> {
  let working: Promise<T> | undefined
  await transaction(pool, async (tx) => {
    await change(tx)
    working = work()
    await until('it waits', async () => {
      const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      return (await pool.query(waiting)).rowCount
    })
  })
  return await (working as Promise<T>)
}
