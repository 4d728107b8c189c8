import { type Executor, lists } from '../db/pool.ts'
import { recordDisabled } from '../events/changes.ts'
import { DISABLED_POSITION } from './endpoints.ts'

/** What came of a try. `afterMs`: when the next one is due; null where there is none, be it that the endpoint took it or that it was the last. */
export type Result = {
  endpointId: number
  accountId: number
  position: number
  /** A result counts for the try it is of, and not for one that a replay or another worker has begun since. */
  generation: string
  /** Before this one. */
  attempts: number
  attemptedAt: Date
  durationMs: number
  isTaken: boolean
  afterMs: number | null
  /** For so long the endpoint asks to be left alone. */
  pauseMs: number
  status: number | undefined
  error: string | undefined
  answer: string
}

export type Disabled = { endpointId: number; accountId: number }

const DISABLED_AFTER_DAYS = 5
// The tries of one event are up to 29 hours apart. What failed longer ago than this says nothing about today.
const FORGOTTEN_AFTER_DAYS = 2
// From the fifth failure in a row on, an endpoint is left alone: for a second, then twice as long with each, up to half a minute.
const PATIENCE = 5
const LONGEST_PAUSE_SECONDS = 30

/**
 * Writes results down: in one statement the attempts, what is done, what is due again or has failed for good, and how the endpoints do. One
 * of which nothing but failures was heard for five days is disabled, and its account told. Returns those.
 *
 * Deliveries and then endpoints are locked in the order of their keys, so that two at once never wait for each other in a circle. One that
 * does well is not touched at all.
 */
export async function recordAttempts(db: Executor, results: Result[]): Promise<Disabled[]> {
  const { rows } = await db.query<Disabled>({
    name: 'record-webhook-attempts',
    text: RECORD,
    values: [
      results.map(({ endpointId }) => endpointId),
      results.map(({ accountId }) => accountId),
      results.map(({ position }) => position),
      results.map(({ generation }) => generation),
      results.map(({ attempts }) => attempts),
      results.map(({ attemptedAt }) => attemptedAt),
      results.map(({ durationMs }) => Math.round(durationMs)),
      results.map(({ isTaken }) => isTaken),
      results.map(({ afterMs }) => afterMs && Math.round(afterMs)),
      results.map(({ pauseMs }) => Math.round(pauseMs)),
      results.map(({ status }) => status ?? null),
      results.map(({ error }) => error ?? null),
      results.map(({ answer }) => (answer === '' ? null : answer)),
    ],
  })
  return rows
}

const RECORD = `
  with result as materialized (
    select * from unnest(${lists('int', 'int', 'bigint', 'xid8', 'int', 'timestamptz', 'int', 'bool', 'bigint', 'int', 'int', 'text', 'text')})
      as r (endpoint_id, account_id, position, generation, attempts, attempted_at, duration_ms, is_taken, after_ms, pause_ms, status, error, answer)
    order by endpoint_id, position
  ), held as materialized (
    select r.* from result r, lateral (
      select from webhook_deliveries d
      where d.endpoint_id = r.endpoint_id and d.position = r.position and d.generation = r.generation and d.attempts = r.attempts
      for update
    ) as d
  ), done as (
    delete from webhook_deliveries d using held h where d.endpoint_id = h.endpoint_id and d.position = h.position and h.is_taken
  ), put_off as (
    update webhook_deliveries d set attempts = h.attempts + 1, due_at = now() + h.after_ms * interval '1 millisecond'
    from held h where d.endpoint_id = h.endpoint_id and d.position = h.position and not h.is_taken
  ), tried as materialized (
    select endpoint_id, bool_or(is_taken) as is_well, count(*) filter (where not is_taken) as failed, min(attempted_at) as since, max(pause_ms) as pause_ms
    from held group by endpoint_id order by endpoint_id
  ), endpoint as materialized (
    select t.*, e.id, e.status as was, e.goes_on, case when e.goes_on then e.failures else 0 end + t.failed as failures,
      e.failing_since, e.failing_since < now() - interval '${DISABLED_AFTER_DAYS} days' as is_long
    from tried t, lateral (
      select id, status, failures, failing_since, not t.is_well and coalesce(last_failed_at > now() - interval '${FORGOTTEN_AFTER_DAYS} days', false) as goes_on
      from webhook_endpoints e
      where e.id = t.endpoint_id and (not t.is_well or e.failing_since is not null)
      for no key update
    ) as e
  ), judged as (
    update webhook_endpoints e set
      failing_since = case when c.is_well then null when c.goes_on then c.failing_since else c.since end,
      last_failed_at = case when c.is_well then null else now() end,
      failures = case when c.is_well then 0 else c.failures end,
      paused_until = case when not c.is_well then now() + greatest(
        c.pause_ms * interval '1 millisecond',
        case when c.failures >= ${PATIENCE} then least(2 ^ least(c.failures - ${PATIENCE}, 10), ${LONGEST_PAUSE_SECONDS}) * interval '1 second' end) end,
      status = case when c.goes_on and c.is_long then 'DISABLED' else e.status end,
      disabled_at = case when c.goes_on and c.is_long then coalesce(e.disabled_at, now()) else e.disabled_at end,
      disabled_because = case when c.goes_on and c.is_long then coalesce(e.disabled_because, 'FAILING') else e.disabled_because end,
      disabled_position = case when c.goes_on and c.is_long and e.status = 'ACTIVE' then ${DISABLED_POSITION} else e.disabled_position end
    from endpoint c where e.id = c.id
    returning e.id, e.account_id, e.url, e.failing_since, e.disabled_at, c.was = 'ACTIVE' and e.status = 'DISABLED' as is_disabled
  ), disabled as (
    select * from judged where is_disabled
  ), ${recordDisabled('disabled')}, noted as (
    -- One that was removed meanwhile has no history any more. What is written a second time is there already.
    insert into webhook_attempts (endpoint_id, account_id, position, attempt, attempted_at, duration_ms, status, error, answer)
    select endpoint_id, account_id, position, attempts + 1, attempted_at, duration_ms, status, error, answer from result
    where endpoint_id in (select id from webhook_endpoints where id = any ($1::int[]))
    on conflict do nothing
  )
  select id as "endpointId", account_id as "accountId" from disabled`
