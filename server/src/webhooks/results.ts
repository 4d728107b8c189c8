import { type Executor, lists } from '../db/pool.ts'
import { recordDisabled } from '../events/changes.ts'
import { DISABLED_POSITION } from './change-endpoint.ts'

/** The result of an attempt. `afterMs`: when the next one is due; null if there is none, since the endpoint accepted it or it was the last. */
export type Result = {
  endpointId: number
  accountId: number
  position: number
  /** The message or campaign that the event is about. */
  subjectId: string | null
  /** A result counts for its own attempt only, and not for one that a replay or another worker has begun since. */
  generation: string
  /** Attempts before this one. */
  attempts: number
  attemptedAt: Date
  durationMs: number
  isAccepted: boolean
  afterMs: number | null
  /** How long the endpoint asks not to be called. */
  pauseMs: number
  status: number | undefined
  error: string | undefined
  response: string
}

type Disabled = { endpointId: number; accountId: number }

const DISABLED_AFTER_DAYS = 5
// The attempts of one event are up to 29 hours apart. An older failure says nothing about today.
const FORGOTTEN_AFTER_DAYS = 2
// From the fifth failure in a row on, an endpoint gets a pause: one second, then twice as long after each failure, up to half a minute.
const FAILURES_BEFORE_PAUSE = 5
const LONGEST_PAUSE_SECONDS = 30

/** The columns that pass results to the statement: name, type and value of each. */
const COLUMNS: [name: string, type: string, value: (result: Result) => unknown][] = [
  ['endpoint_id', 'int', ({ endpointId }) => endpointId],
  ['account_id', 'int', ({ accountId }) => accountId],
  ['position', 'bigint', ({ position }) => position],
  ['subject_id', 'text', ({ subjectId }) => subjectId],
  ['generation', 'xid8', ({ generation }) => generation],
  ['attempts', 'int', ({ attempts }) => attempts],
  ['attempted_at', 'timestamptz', ({ attemptedAt }) => attemptedAt],
  ['duration_ms', 'int', ({ durationMs }) => Math.round(durationMs)],
  ['is_accepted', 'bool', ({ isAccepted }) => isAccepted],
  ['after_ms', 'bigint', ({ afterMs }) => afterMs && Math.round(afterMs)],
  ['pause_ms', 'int', ({ pauseMs }) => Math.round(pauseMs)],
  ['status', 'int', ({ status }) => status ?? null],
  ['error', 'text', ({ error }) => error ?? null],
  ['response', 'text', ({ response }) => (response === '' ? null : response)],
]
const RESULTS = `unnest(${lists(...COLUMNS.map(([, type]) => type))}) as r (${COLUMNS.map(([name]) => name).join(', ')})`

/**
 * Records results in one statement: the attempts, the deliveries that are done, due again or failed permanently, and the state of the endpoints.
 * An endpoint without a success for five days is disabled, and its account gets an event. Returns the disabled endpoints.
 *
 * Deliveries and then endpoints are locked in the order of their keys, so that concurrent statements never deadlock. The row of an endpoint
 * without failures is not touched.
 */
export async function recordAttempts(db: Executor, results: Result[]): Promise<Disabled[]> {
  const values = COLUMNS.map(([, , value]) => results.map(value))
  return (await db.query<Disabled>({ name: 'record-webhook-attempts', text: RECORD, values })).rows
}

const BACK_OFF = `case
        when c.failures >= ${FAILURES_BEFORE_PAUSE}
        then least(2 ^ least(c.failures - ${FAILURES_BEFORE_PAUSE}, 10), ${LONGEST_PAUSE_SECONDS}) * interval '1 second'
      end`

/** Steps that record the state of the endpoints of the step `held`. The step `disabled` has the endpoints that have failed for too long. */
const UPDATE_ENDPOINTS = `
  attempted as materialized (
    select endpoint_id, bool_or(is_accepted) as has_success, count(*) filter (where not is_accepted) as failed, min(attempted_at) as since,
      max(pause_ms) as pause_ms
    from held group by endpoint_id order by endpoint_id
  ), endpoint as materialized (
    select t.endpoint_id, t.has_success, t.pause_ms,
      case when t.has_success then 0 when e.still_failing then e.failures + t.failed else t.failed end as failures,
      case when e.still_failing then e.failing_since when not t.has_success then t.since end as failing_since,
      e.status = 'ACTIVE' and e.still_failing and e.failing_since < now() - interval '${DISABLED_AFTER_DAYS} days' as is_disabled
    from attempted t, lateral (
      select status, failures, failing_since,
        not t.has_success and coalesce(last_failed_at > now() - interval '${FORGOTTEN_AFTER_DAYS} days', false) as still_failing
      from webhook_endpoints e
      where e.id = t.endpoint_id and (not t.has_success or e.failing_since is not null)
      for no key update
    ) as e
  ), updated as (
    update webhook_endpoints e set failures = c.failures, failing_since = c.failing_since,
      last_failed_at = case when not c.has_success then now() end,
      paused_until = case when not c.has_success then now() + greatest(c.pause_ms * interval '1 millisecond', ${BACK_OFF}) end,
      status = case when c.is_disabled then 'DISABLED' else e.status end,
      disabled_at = case when c.is_disabled then now() else e.disabled_at end,
      disabled_because = case when c.is_disabled then 'FAILING' else e.disabled_because end,
      disabled_position = case when c.is_disabled then ${DISABLED_POSITION} else e.disabled_position end
    from endpoint c where e.id = c.endpoint_id
    returning e.id, e.account_id, e.url, e.failing_since, e.disabled_at, c.is_disabled
  ), disabled as (
    select * from updated where is_disabled
  )`

export const RECORD = `
  with result as materialized (
    select * from ${RESULTS} order by endpoint_id, position
  ), held as materialized (
    select r.* from result r, lateral (
      select from webhook_deliveries d
      where d.endpoint_id = r.endpoint_id and d.position = r.position and d.generation = r.generation and d.attempts = r.attempts
      for update
    ) as d
  ), done as (
    delete from webhook_deliveries d using held h where d.endpoint_id = h.endpoint_id and d.position = h.position and h.is_accepted
  ), postponed as (
    update webhook_deliveries d set attempts = h.attempts + 1, attempted_at = h.attempted_at,
      due_at = now() + h.after_ms * interval '1 millisecond'
    from held h where d.endpoint_id = h.endpoint_id and d.position = h.position and not h.is_accepted
  ), ${UPDATE_ENDPOINTS}, ${recordDisabled('disabled')}, history as (
    -- Skips endpoints removed meanwhile. A repeated write of the same attempt changes nothing.
    insert into webhook_attempts (endpoint_id, account_id, position, subject_id, attempt, attempted_at, duration_ms, status, error, response)
    select endpoint_id, account_id, position, subject_id, attempts + 1, attempted_at, duration_ms, status, error, response from result
    where endpoint_id in (select id from webhook_endpoints where id = any ($1::int[]))
    on conflict do nothing
  )
  select id as "endpointId", account_id as "accountId" from disabled`
