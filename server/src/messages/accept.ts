import pg from 'pg'
import { templateReferences } from '../content/references.ts'
import { createBatcher } from '../db/batcher.ts'
import { ensurePartitions } from '../db/partitions.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError, type ErrorCode, type Violation } from '../errors.ts'
import { parseTimestamp } from '../time.ts'
import type { MessageRequest } from './schemas.ts'
import { PRIORITIES, QUEUE_CHANNEL } from './states.ts'

/** A request that is right in itself. Whether what it names is there, and whether it was accepted before, is for the database to say. */
export type Submission = Omit<MessageRequest, 'recipient'> & {
  accountId: number
  /** As `+` and digits; each gets a message of its own. */
  recipients: string[]
  test: boolean
  /** Test messages go without. */
  idempotency?: { key: string; hash: Buffer }
}

export type Accepted = { messageIds: string[]; replayed: boolean }

type Verdict = {
  /** The ids of the messages, in the order of the recipients; null where there are none. */
  messageIds: string[] | null
  outcome: 'accepted' | 'replayed' | 'conflict' | 'missing-targets' | keyof typeof FAULTS
  /** Templates that buttons send and the account does not have; the driver leaves a list of bigints as texts. */
  missingTargets: string[] | null
}

const MOST_AT_ONCE = 200
// Past that, a caller is told to try again, with the same key: whether it was accepted after all, the key will tell.
const PATIENTLY = { query_timeout: 3_000 }
export const DEFAULT_LIFE_HOURS = 48
export const LONGEST_LIFE_DAYS = 15

/** What is wrong in the light of what the database holds. In the order in which they are answered: every 400 before the first 404. */
const FAULTS = {
  'expires-past': { code: 'RCS_INVALID_REQUEST', path: '/expiresAt', reason: 'must be in the future' },
  'expires-late': { code: 'RCS_INVALID_REQUEST', path: '/expiresAt', reason: `must be at most ${LONGEST_LIFE_DAYS} days ahead` },
  'not-approved': { code: 'RCS_TEMPLATE_NOT_APPROVED', path: '/message/templateId', reason: 'names a template that is not APPROVED' },
  'template-basic': { code: 'RCS_INVALID_MESSAGE', path: '/basic', reason: 'must be true, as the template has it' },
  'request-basic': { code: 'RCS_INVALID_MESSAGE', path: '/basic', reason: 'must be false or absent, as the template has it' },
  'no-agent': { code: 'RCS_AGENT_NOT_FOUND', path: '/agentId', reason: 'names no active agent of this account' },
  'no-template': { code: 'RCS_TEMPLATE_NOT_FOUND', path: '/message/templateId', reason: 'names no template of this account' },
} as const satisfies Record<string, Violation & { code: ErrorCode }>

/**
 * Accepts messages. Returns once they are committed, with what was accepted; or throws what the caller is to be told. Requests that come at
 * the same time share a statement and a commit.
 */
export function createAcceptor(pool: Pool): (submission: Submission) => Promise<Accepted> {
  const submit = createBatcher((batch: Submission[]) => acceptAll(pool, batch), { maxItems: MOST_AT_ONCE })
  return async (submission) => {
    const { outcome, messageIds, missingTargets } = await submit(submission)
    if (outcome === 'accepted' || outcome === 'replayed') return { messageIds: messageIds as string[], replayed: outcome === 'replayed' }
    if (outcome === 'conflict') throw conflict()
    if (outcome === 'missing-targets') throw missingTemplates(submission, new Set(missingTargets?.map(Number)))
    const { code, path, reason } = FAULTS[outcome]
    throw new ApiError(code, { details: [{ path, reason }] })
  }
}

function conflict(): ApiError {
  const reason = 'The Idempotency-Key was used before, with another body.'
  return new ApiError('RCS_IDEMPOTENCY_CONFLICT', { details: [{ path: '', reason }] })
}

function missingTemplates({ message }: Submission, missing: Set<number>): ApiError {
  const details = templateReferences(message.inline, '/message/inline')
    .filter(({ templateId }) => missing.has(templateId))
    .map(({ path }) => ({ path, reason: 'names no template of this account' }))
  return new ApiError('RCS_TEMPLATE_NOT_FOUND', { details })
}

/** Where the database's clock has gone beyond the partitions that there are, they are made. */
async function acceptAll(pool: Pool, batch: Submission[]): Promise<Verdict[]> {
  return await acceptBatch(pool, batch).catch(async (error: unknown) => {
    if (!isMissingPartition(error)) throw error
    await ensurePartitions(pool)
    return await acceptBatch(pool, batch)
  })
}

/** The code of a check that fails, but of no check that has a name. */
function isMissingPartition(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23514' && error.constraint === undefined
}

/**
 * One statement, whatever the number of requests and their content.
 *
 * A key that is known with the same request answers for itself, before anything that can have changed since. Of equal keys in one batch
 * the first counts. Of equal keys on two nodes the later insert waits for the earlier one to commit, and then gets its row instead of
 * making one: whose message it is shows by the id. Keys are inserted in their order, so that no two nodes wait for each other.
 */
async function acceptBatch(pool: Pool, batch: Submission[]): Promise<Verdict[]> {
  const { rows } = await pool.query<Verdict>({ name: 'accept-messages', text: ACCEPT, values: valuesOf(batch), ...PATIENTLY })
  return rows
}

function valuesOf(batch: Submission[]): unknown[] {
  const targets = batch.flatMap(({ message }, index) =>
    templateReferences(message.inline, '').map(({ templateId }) => [index + 1, templateId]),
  )
  const recipients = batch.flatMap(({ recipients: numbers }, index) => numbers.map((number) => [index + 1, number]))
  return [
    batch.map(({ accountId }) => accountId),
    batch.map(({ idempotency }) => idempotency?.key ?? null),
    batch.map(({ idempotency }) => idempotency?.hash ?? null),
    batch.map(({ agentId }) => agentId),
    batch.map(({ basic }) => basic ?? false),
    batch.map(({ test }) => test),
    batch.map(({ clientReferenceId }) => clientReferenceId ?? null),
    batch.map(({ message }) => message.templateId ?? null),
    batch.map(({ message }) => (message.inline === undefined ? null : JSON.stringify(message.inline))),
    // As a time: PostgreSQL knows no offset from 16 hours on, which ISO 8601 has.
    batch.map(({ expiresAt }) => (expiresAt === undefined ? null : parseTimestamp(expiresAt))),
    recipients.map(([n]) => n),
    recipients.map(([, number]) => number),
    targets.map(([n]) => n),
    targets.map(([, id]) => id),
  ]
}

const ACCEPT = `
  with request as materialized (
    select *
    from unnest($1::int[], $2::text[], $3::bytea[], $4::text[], $5::bool[], $6::bool[], $7::text[], $8::bigint[], $9::text[], $10::timestamptz(3)[])
      with ordinality
      as r (account_id, key, hash, agent_id, basic, test, client_reference_id, template_id, content, expires_at, n)
  ), used as materialized (
    select r.n, k.message_id, k.request_hash = r.hash as is_same
    from request r join idempotency_keys k on k.account_id = r.account_id and k.endpoint = 'messages' and k.key = r.key
  ), missing as (
    select target.n, array_agg(target.id) as ids
    from unnest($13::int[], $14::bigint[]) as target (n, id) join request r on r.n = target.n
    where not exists (select from templates t where t.account_id = r.account_id and t.id = target.id)
    group by target.n
  ), judged as materialized (
    select r.*, t.content_id, missing.ids as missing_targets, used.is_same is not null as is_used,
      case
        when r.expires_at <= now() then 'expires-past'
        when r.expires_at > now() + interval '${LONGEST_LIFE_DAYS} days' then 'expires-late'
        when t.status <> 'APPROVED' then 'not-approved'
        when c.basic and not r.basic then 'template-basic'
        when not c.basic and r.basic then 'request-basic'
        when a.agent_id is null then 'no-agent'
        when r.template_id is not null and t.id is null then 'no-template'
        when missing.ids is not null then 'missing-targets'
      end as fault
    from request r
    left join used on used.n = r.n
    left join agent_assignments a on a.account_id = r.account_id and a.agent_id = r.agent_id and a.active
    left join templates t on t.account_id = r.account_id and t.id = r.template_id
    left join contents c on c.id = t.content_id
    left join missing on missing.n = r.n
    where used.is_same is not true
  ), first as materialized (
    select distinct on (account_id, key) n, account_id, key, hash, uuid_v7() as message_id
    from judged where fault is null and key is not null and not is_used
    order by account_id, key, n
  ), keyed as (
    insert into idempotency_keys as k (account_id, endpoint, key, request_hash, message_id)
    select account_id, 'messages', key, hash, message_id from first order by account_id, key
    on conflict (account_id, endpoint, key) do update set message_id = k.message_id
    returning k.account_id, k.key, k.request_hash, k.message_id
  ), made as materialized (
    select coalesce(keyed.message_id, uuid_v7()) as id, recipient.number as recipient, recipient.place, j.*
    from judged j
    join unnest($11::int[], $12::text[]) with ordinality as recipient (n, number, place) on recipient.n = j.n
    left join first on first.n = j.n
    left join keyed on keyed.message_id = first.message_id
    where j.fault is null and (j.key is null or keyed.message_id is not null)
  ), written as (
    insert into messages (id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content, expires_at)
    select id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content::json,
      coalesce(expires_at, now() + interval '${DEFAULT_LIFE_HOURS} hours')
    from made
    returning id, account_id, agent_id, expires_at
  ), queued as (
    insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at)
    select id, account_id, agent_id, 'send', ${PRIORITIES.transactional}, now(), expires_at from written
    returning message_id
  ), expiring as (
    insert into expiries (message_id, expires_at) select id, expires_at from written
  ), woken as materialized (
    select pg_notify('${QUEUE_CHANNEL}', '') from (select from queued limit 1) as any_queued
  )
  select
    case
      when used.is_same then 'replayed'
      when j.fault is not null then j.fault
      when ids.made is not null then 'accepted'
      when not j.is_used and keyed.request_hash = r.hash then 'replayed'
      else 'conflict'
    end as outcome,
    case when used.is_same then array[used.message_id] else coalesce(ids.made, array[keyed.message_id]) end as "messageIds",
    j.missing_targets as "missingTargets",
    (select count(*) from woken) as woken
  from request r
  left join used on used.n = r.n
  left join judged j on j.n = r.n
  left join keyed on keyed.account_id = r.account_id and keyed.key = r.key
  left join (select n, array_agg(id order by place) as made from made group by n) as ids on ids.n = r.n
  order by r.n`
