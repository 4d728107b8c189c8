import pg from 'pg'
import { countUsage, foldUsage, messageBytes } from '../accounts/usage.ts'
import { templateReferences } from '../content/references.ts'
import { createBatcher } from '../db/batcher.ts'
import { ensurePartitions } from '../db/partitions.ts'
import { type Executor, lists, type Pool } from '../db/pool.ts'
import { HELD_BY_STANDBY } from '../db/standby.ts'
import { ApiError, type ErrorCode, type Violation } from '../errors.ts'
import { countReached } from '../reports/counters.ts'
import type { MessageRequest } from './schemas.ts'
import { type Fallback, writeFallbacks } from './sms-fallback.ts'
import { PRIORITIES, QUEUE_CHANNEL } from './states.ts'
import { valuesOf } from './submitted-values.ts'
import {
  beyondQuota,
  createRoom,
  type Exceeded,
  IS_NOT_REFUSED,
  lookAtUsage,
  mostAsked,
  REFUSED,
  TELL_LOOKED,
  TELL_REFUSED,
} from './within-quota.ts'

/** A request that is right in itself. Whether what it names is there, and whether it was accepted before, is for the database to say. */
export type Submission = Omit<MessageRequest, 'recipient' | 'smsFallback' | 'smsFallbackAfterExpiry'> & {
  accountId: number
  /** Changes with the account's quotas. */
  accountVersion?: string
  /** As `+` and digits; each gets a message of its own. */
  recipients: string[]
  test: boolean
  fallback?: Fallback | undefined
  /** Test messages go without. */
  idempotency?: { key: string; hash: Buffer }
}

export type Accepted = { messageIds: string[]; replayed: boolean }

/** For each request one, or one for each of its recipients, in their order. */
type Row = {
  n: number
  outcome: 'accepted' | 'replayed' | 'conflict' | 'missing-targets' | 'sms-text' | 'tight' | 'looked' | Exceeded | keyof typeof FAULTS
  /** Of what was accepted, now or before. */
  messageId: string
  /** Templates that buttons send and the account does not have. */
  missingTargets: string[] | null
  /** The quota that is exceeded, what is used of it, and the seconds to midnight; or an account that was looked at, and its usage. */
  exceeded: string[] | null
}
type Verdict = Omit<Row, 'outcome'> & { outcome: Exclude<Row['outcome'], 'tight' | 'looked'>; messageIds: string[] }

const MOST_AT_ONCE = 200
// Processes that deliver fold the usage of accounts every second. Where none runs, accepting would read more changes each time.
const FOLD_AFTER_BATCHES = 500
// Past that, a caller is told to try again, with the same key: whether it was accepted after all, the key will tell.
const PATIENTLY = { query_timeout: 3_000 }
export const DEFAULT_LIFE_HOURS = 48
export const LONGEST_LIFE_DAYS = 15

/** What can be wrong with what a message or campaign names. */
export const NAMED_FAULTS = {
  'not-approved': { code: 'RCS_TEMPLATE_NOT_APPROVED', path: '/message/templateId', reason: 'names a template that is not APPROVED' },
  'template-basic': { code: 'RCS_INVALID_MESSAGE', path: '/basic', reason: 'must be true, as the template has it' },
  'request-basic': { code: 'RCS_INVALID_MESSAGE', path: '/basic', reason: 'must be false or absent, as the template has it' },
  'no-agent': { code: 'RCS_AGENT_NOT_FOUND', path: '/agentId', reason: 'names no active agent of this account' },
  'no-template': { code: 'RCS_TEMPLATE_NOT_FOUND', path: '/message/templateId', reason: 'names no template of this account' },
} as const satisfies Record<string, Violation & { code: ErrorCode }>

/** What is wrong in the light of what the database holds. In the order in which they are answered: every 400 before the first 404. */
const FAULTS = {
  'expires-past': { code: 'RCS_INVALID_REQUEST', path: '/expiresAt', reason: 'must be in the future' },
  'expires-late': { code: 'RCS_INVALID_REQUEST', path: '/expiresAt', reason: `must be at most ${LONGEST_LIFE_DAYS} days ahead` },
  ...NAMED_FAULTS,
} as const satisfies Record<string, Violation & { code: ErrorCode }>

/**
 * Accepts messages. Returns once they are committed, with what was accepted; or throws what the caller is to be told. Requests that come at
 * the same time share a statement and a commit.
 */
export function createAcceptor(pool: Pool): (submission: Submission) => Promise<Accepted> {
  const acceptAll = createAccepting(pool)
  let batches = 0
  const submit = createBatcher(
    async (batch: Submission[]) => {
      batches += 1
      if (batches % FOLD_AFTER_BATCHES === 0) void foldUsage(pool).catch(() => {})
      return await acceptAll(batch)
    },
    { maxItems: MOST_AT_ONCE },
  )
  return async (submission) => {
    const verdict = await submit(submission)
    if ('failure' in verdict) throw verdict.failure
    const { outcome, messageIds, missingTargets, exceeded } = verdict
    if (outcome === 'accepted' || outcome === 'replayed') return { messageIds, replayed: outcome === 'replayed' }
    if (outcome === 'conflict') throw conflict()
    if (outcome === 'sms-text') throw new ApiError('RCS_INVALID_SMS_FALLBACK', { details: submission.fallback?.violations ?? [] })
    if (outcome === 'missing-targets') throw missingTemplates(submission.message.inline, new Set(missingTargets?.map(Number)))
    if (outcome === 'messages-quota' || outcome === 'bytes-quota') throw beyondQuota(outcome, exceeded)
    const { code, path, reason } = FAULTS[outcome]
    throw new ApiError(code, { details: [{ path, reason }] })
  }
}

export type Endpoint = 'messages' | 'campaigns'

/** Whether this very request was accepted under this key. */
export async function wasAccepted(db: Executor, accountId: number, endpoint: Endpoint, key: string, hash: Buffer): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'was-accepted',
    text: `select from idempotency_keys where account_id = $1 and endpoint = $2 and key = $3 and request_hash = $4`,
    values: [accountId, endpoint, key, hash],
  })
  return rowCount === 1
}

export function conflict(): ApiError {
  const reason = 'The Idempotency-Key was used before, with another body.'
  return new ApiError('RCS_IDEMPOTENCY_CONFLICT', { details: [{ path: '', reason }] })
}

export function missingTemplates(inline: unknown, missing: Set<number>): ApiError {
  const details = templateReferences(inline, '/message/inline')
    .filter(({ templateId }) => missing.has(templateId))
    .map(({ path }) => ({ path, reason: 'names no template of this account' }))
  return new ApiError('RCS_TEMPLATE_NOT_FOUND', { details })
}

/** Where the database's clock has gone beyond the partitions that there are, they are made. */
async function withPartitions<T>(pool: Pool, accept: () => Promise<T>): Promise<T> {
  return await accept().catch(async (error: unknown) => {
    if (!isMissingPartition(error)) throw error
    await ensurePartitions(pool)
    return await accept()
  })
}

/** The code of a check that fails, but of no check that has a name. */
export function isMissingPartition(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23514' && error.constraint === undefined
}

/**
 * One statement, whatever the number of requests and their content; a second one for requests of accounts that may be near a quota.
 *
 * A key that is known with the same request answers for itself, before anything that can have changed since. Of equal keys in one batch
 * the first counts. Of equal keys on two nodes the later insert waits for the earlier one to commit, and then gets its row instead of
 * making one: whose message it is shows by the id. Keys are inserted in their order, so that no two nodes wait for each other.
 *
 * Quotas are checked last, and a request that exceeds one does not use its key up. A node runs one batch after the other, so each sees all
 * that the node accepted before: on one node quotas are exact. A node does not see what other nodes accept at the same moment, so each
 * further node can exceed a quota by one batch (200 requests).
 */
function createAccepting(pool: Pool): (batch: Submission[]) => Promise<(Verdict | { failure: unknown })[]> {
  const room = createRoom()
  const ask = (batch: Submission[], statement: Statement) => withPartitions(pool, () => askFor(pool, batch, statement))
  // A batcher of its own: where this statement fails, what the first one has committed must not be run again.
  const checkOne = createBatcher(
    async (tight: Submission[]) => (await ask(tight, { ...ACCEPT_WITHIN_QUOTA, values: valuesOf(tight).values })).verdicts as Verdict[],
    { maxItems: MOST_AT_ONCE },
  )
  const check = (submission: Submission) => checkOne(submission).catch((failure: unknown) => ({ failure }))
  return async (batch) => {
    const { values, contents, fallbacks } = valuesOf(batch)
    if (room.isPlenty(batch)) return (await ask(batch, { ...ACCEPT, values })).verdicts as Verdict[]
    const began = performance.now()
    const looking = { ...ACCEPT_LOOKING, values: [...values, ...mostAsked(batch, contents, fallbacks)] }
    const { rows, verdicts } = await ask(batch, looking)
    const looks = rows.filter(({ outcome }) => outcome === 'looked').map(({ exceeded }) => exceeded)
    room.note(batch, began, looks)
    return await Promise.all(
      verdicts.map((verdict, index) => (verdict.outcome === 'tight' ? check(batch[index] as Submission) : (verdict as Verdict))),
    )
  }
}

type Statement = { name: string; text: string; values: unknown[] }

async function askFor(pool: Pool, batch: Submission[], statement: Statement) {
  const { rows } = await pool.query<Row>({ ...statement, ...PATIENTLY })
  const byRequest = Map.groupBy(rows, ({ n }) => n)
  const verdicts = batch.map((_, index) => {
    const [row, ...others] = byRequest.get(index + 1) as [Row, ...Row[]]
    return { ...row, messageIds: [row, ...others].map(({ messageId }) => messageId) }
  })
  return { rows, verdicts }
}

/** The first thing that a report counts of a message. */
export const ACCEPTED = [{ kind: 'message.accepted', at: 'accepted_at' }] as const

const TYPES = ['int', 'text', 'bytea', 'text', 'bool', 'bool', 'text', 'bigint', 'text', 'timestamptz(3)', 'json', 'text', 'text']
const LISTS = lists(...TYPES)

// Every step goes through its rows once, however many requests there are: what a later one needs is carried along, looked up in a table by
// its index, or asked of a set ("in"). Joining two steps would compare each row with each: 200 requests took 360 ms.
const accepting = (quotas: 'unchecked' | 'looked-at' | 'checked') => `
  with ${quotas === 'looked-at' ? `${lookAtUsage(TYPES.length + 1)}, ` : ''}request as materialized (
    select *
    from unnest(${LISTS})
      with ordinality
      as r (account_id, key, hash, agent_id, basic, test, client_reference_id, template_id, content, expires_at, fallback, recipients, targets, n)
  ), judged as materialized (
    select r.*, t.content_id, used.message_id as used_id, missing.ids as missing_targets, uuid_v7() as new_id,
      ${messageBytes('r.content', 'r.client_reference_id', `(r.fallback -> 'plan')::text`)} as bytes,
      case
        when used.request_hash = r.hash then 'replayed'
        when r.expires_at <= now() then 'expires-past'
        when r.expires_at > now() + interval '${LONGEST_LIFE_DAYS} days' then 'expires-late'
        when json_array_length(r.fallback -> 'violations') > 0 then 'sms-text'
        when t.status <> 'APPROVED' then 'not-approved'
        when c.basic and not r.basic then 'template-basic'
        when not c.basic and r.basic then 'request-basic'
        when a.agent_id is null then 'no-agent'
        when r.template_id is not null and t.id is null then 'no-template'
        when missing.ids is not null then 'missing-targets'
        when used.message_id is not null then 'conflict'
        ${quotas === 'looked-at' ? `when r.account_id in (select account_id from looked where is_tight) then 'tight'` : ''}
      end as outcome
    from request r
    left join idempotency_keys used on used.account_id = r.account_id and used.endpoint = 'messages' and used.key = r.key
    left join agent_assignments a on a.account_id = r.account_id and a.agent_id = r.agent_id and a.active
    left join templates t on t.account_id = r.account_id and t.id = r.template_id
    left join contents c on c.id = t.content_id,
    lateral (
      select array_agg(target) as ids from unnest(r.targets::bigint[]) as target
      where not exists (select from templates x where x.account_id = r.account_id and x.id = target)
    ) as missing
  ), fresh as materialized (
    select *, first_value(n) over same_key as first_n, first_value(hash) over same_key as first_hash, first_value(new_id) over same_key as first_id
    from judged where outcome is null
    window same_key as (partition by account_id, key, case when key is null then n end order by n)
  ), ${quotas === 'checked' ? `${REFUSED}, ` : ''}keyed as materialized (
    insert into idempotency_keys as k (account_id, endpoint, key, request_hash, message_id)
    select account_id, 'messages', key, hash, new_id from fresh
    where n = first_n and key is not null ${quotas === 'checked' ? IS_NOT_REFUSED : ''} order by account_id, key
    on conflict (account_id, endpoint, key) do update set message_id = k.message_id
    returning k.account_id, k.key, k.request_hash, k.message_id
  ), made as materialized (
    select f.*, case when key is null then uuid_v7() else new_id end as id, recipient.number as recipient, recipient.place
    from fresh f, unnest(f.recipients::text[]) with ordinality as recipient (number, place)
    where n = first_n ${quotas === 'checked' ? IS_NOT_REFUSED : ''} and (key is null or new_id in (select message_id from keyed))
  ), used as (${countUsage({ account: 'account_id', from: 'made', messages: 'count(*)', messageBytes: 'sum(bytes)' })}
  ), written as (
    insert into messages (id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content, expires_at)
    select id, account_id, agent_id, recipient, basic, test, client_reference_id, content_id, content::json,
      coalesce(expires_at, now() + interval '${DEFAULT_LIFE_HOURS} hours')
    from made
    returning id, account_id, agent_id, campaign_id, test, accepted_at, expires_at
  ), falling_back as (
    ${writeFallbacks('made')}
  ), queued as (
    insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at)
    select id, account_id, agent_id, 'send', ${PRIORITIES.transactional}, now(), expires_at from written
    returning message_id
  ), expiring as (
    insert into expiries (message_id, expires_at) select id, expires_at from written
  ), ${countReached('written', ACCEPTED)}, woken as materialized (
    select pg_notify('${QUEUE_CHANNEL}', '') from (select from queued limit 1) as any_queued
  ), held as materialized (
    select ${HELD_BY_STANDBY} from (select from judged where outcome = 'replayed' limit 1) as any_replayed
  )
  select n, outcome, used_id as "messageId", missing_targets as "missingTargets", null::bigint[] as exceeded, 1 as place
  from judged where outcome is not null
  union all
  select n, 'accepted', id, null, null, place from made
  union all
${quotas === 'checked' ? TELL_REFUSED : ''}
  ${quotas === 'looked-at' ? TELL_LOOKED : ''}
  -- The same key again: in this batch, or at this moment on another node, whose row it then is.
  select f.n, case when f.hash = other.hash then 'replayed' else 'conflict' end, other.id, null, null, 1
  from fresh f, lateral (
    select f.first_hash as hash, f.first_id as id where f.first_id in (select message_id from keyed)
    union all
    select k.request_hash, k.message_id from keyed k
    where f.first_id not in (select message_id from keyed) and k.account_id = f.account_id and k.key = f.key
  ) as other
  where f.key is not null ${quotas === 'checked' ? 'and f.first_n not in (select n from refused)' : ''} and not (f.n = f.first_n and f.first_id in (select message_id from keyed))
  union all
  select 0, 'woken', null, null, null, (select count(*) from woken) + (select count(*) from held)
  order by n, place`

const ACCEPT = { name: 'accept-messages', text: accepting('unchecked') }
const ACCEPT_LOOKING = { name: 'accept-looking', text: accepting('looked-at') }
const ACCEPT_WITHIN_QUOTA = { name: 'accept-within-quota', text: accepting('checked') }
