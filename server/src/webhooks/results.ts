import type { Executor } from '../db/pool.ts'

/** What came of a try. `afterMs`: when the next one is due; null where there is none, be it that the endpoint took it or that it was the last. */
export type Result = {
  endpointId: number
  accountId: number
  position: number
  /** Before this one: a result counts for the try it is of, and not for one that a replay or another worker has begun since. */
  attempts: number
  attemptedAt: Date
  durationMs: number
  isTaken: boolean
  afterMs: number | null
  status: number | undefined
  error: string | undefined
  answer: string
}

export type Disabled = { endpointId: number; accountId: number }

const DISABLED_AFTER_DAYS = 5

/**
 * Writes results down: in one statement the attempts, what is done, what is due again or has failed for good, and how the endpoints do. One
 * of which nothing but failures was heard for five days is disabled, and its account told. Returns those.
 *
 * Endpoints are changed in the order of their ids, and only where it changes anything: one that does well is not touched at all.
 */
export async function recordAttempts(db: Executor, results: Result[]): Promise<Disabled[]> {
  const { rows } = await db.query<Disabled>({
    name: 'record-webhook-attempts',
    text: RECORD,
    values: [
      results.map(({ endpointId }) => endpointId),
      results.map(({ accountId }) => accountId),
      results.map(({ position }) => position),
      results.map(({ attempts }) => attempts),
      results.map(({ attemptedAt }) => attemptedAt),
      results.map(({ durationMs }) => Math.round(durationMs)),
      results.map(({ isTaken }) => isTaken),
      results.map(({ afterMs }) => afterMs && Math.round(afterMs)),
      results.map(({ status }) => status ?? null),
      results.map(({ error }) => error ?? null),
      results.map(({ answer }) => (answer === '' ? null : answer)),
    ],
  })
  return rows
}

const RECORD = `
  with result as materialized (
    select * from unnest($1::int[], $2::int[], $3::bigint[], $4::int[], $5::timestamptz[], $6::int[], $7::bool[], $8::bigint[], $9::int[], $10::text[], $11::text[])
      as r (endpoint_id, account_id, position, attempts, attempted_at, duration_ms, is_taken, after_ms, status, error, answer)
  ), noted as (
    insert into webhook_attempts (endpoint_id, account_id, position, attempt, attempted_at, duration_ms, status, error, answer)
    select endpoint_id, account_id, position, attempts + 1, attempted_at, duration_ms, status, error, answer from result
  ), done as (
    delete from webhook_deliveries d using result r where d.endpoint_id = r.endpoint_id and d.position = r.position and r.is_taken
  ), put_off as (
    update webhook_deliveries d set attempts = r.attempts + 1, due_at = now() + r.after_ms * interval '1 millisecond'
    from result r where d.endpoint_id = r.endpoint_id and d.position = r.position and d.attempts = r.attempts and not r.is_taken
  ), tried as materialized (
    select endpoint_id, bool_or(is_taken) as is_well, min(attempted_at) as since from result group by endpoint_id
  ), changed as materialized (
    select e.id, e.status as was, t.since, t.is_well, not t.is_well and e.failing_since is not null as is_over
    from (select * from tried order by endpoint_id) as t, lateral (
      select id, status, failing_since from webhook_endpoints e
      where e.id = t.endpoint_id and case when t.is_well then e.failing_since is not null
        else e.failing_since is null or e.failing_since < now() - interval '${DISABLED_AFTER_DAYS} days' end
      for no key update
    ) as e
  ), judged as (
    update webhook_endpoints e set
      failing_since = case when c.is_well then null else coalesce(e.failing_since, c.since) end,
      status = case when c.is_over then 'DISABLED' else e.status end,
      disabled_at = case when c.is_over then coalesce(e.disabled_at, now()) else e.disabled_at end,
      disabled_because = case when c.is_over then coalesce(e.disabled_because, 'FAILING') else e.disabled_because end
    from changed c where e.id = c.id
    returning e.id, e.account_id, e.url, e.failing_since, e.disabled_at, c.was = 'ACTIVE' and c.is_over as is_disabled
  ), told as (
    insert into outbox (account_id, kind, occurred_at, data)
    select account_id, 'webhook.disabled', disabled_at, json_build_object('endpointId', id, 'url', url,
      'failingSince', to_char(failing_since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
    from judged where is_disabled
  )
  select id as "endpointId", account_id as "accountId" from judged where is_disabled`
