import pg from 'pg'
import { confirmedCallers } from '../accounts/authenticate.ts'
import { countUsage, foldUsage } from '../accounts/usage.ts'
import { templateReferences } from '../content/references.ts'
import { createBatcher } from '../db/batcher.ts'
import { ensurePartitions } from '../db/partitions.ts'
import { type Executor, isUnavailable, type Pool } from '../db/pool.ts'
import { HELD_BY_STANDBY } from '../db/standby.ts'
import { ApiError, type ErrorCode, type Violation } from '../errors.ts'
import type { Caller } from '../http/guard.ts'
import type { MessageWindow } from '../windows/recipients.ts'
import type { Announce } from './announce.ts'
import { LATEST_START_DAYS, LONGEST_LIFE_DAYS, type MessageRequest } from './schemas.ts'
import { type Reservation, type Reserve, sendingAtOnce } from './send-at-once.ts'
import type { Fallback } from './sms-fallback.ts'
import { PRIORITIES } from './states.ts'
import { storeMessages } from './store.ts'
import { CALLERS, LEASE_MS, REQUESTED, valuesOf } from './submitted-values.ts'
import { createTemplateMemory, isToRender } from './template-variables.ts'
import { createQuotaKeeper } from './within-quota.ts'

/** A request that the schema has validated. The database checks whether its agent and templates exist, and whether it was accepted before. */
export type Submission = Omit<MessageRequest, 'recipient' | 'smsFallback' | 'smsFallbackAfterExpiry' | 'deliveryWindow'> & {
  accountId: number
  /** Changes whenever the account changes, and so with its quotas. */
  accountVersion?: string
  /** The statement confirms that the caller has not changed since it was looked up. */
  caller?: Caller | undefined
  /** As `+` and digits. Each recipient gets a message of its own. */
  recipients: string[]
  test: boolean
  /** The id of the template's content from which `message.inline` was rendered. */
  renderedFrom?: number
  fallback?: Fallback | undefined
  window?: MessageWindow | undefined
  /** False if a quota of the account is used up. */
  hasRoom?: boolean
  /** The calls reserved for this request, if its messages are to be sent at once. */
  reserved?: Reservation | undefined
  /** Absent for test messages. */
  idempotency?: { key: string; hash: Buffer }
}

export type Accepted = { messageIds: string[]; replayed: boolean }

/** What an entry of the audit log says about accepted messages: no texts. */
export function acceptedEntry({ messageIds }: Accepted, { agentId, recipients, message }: Submitted) {
  const sent = recipients.map((recipient, index) => ({ messageId: messageIds[index], agentId, recipient, templateId: message.templateId }))
  return { subject: messageIds.join(' '), after: sent.length === 1 ? sent[0] : sent }
}

type Submitted = Pick<Submission, 'agentId' | 'recipients' | 'message'>

/** The key or the account of the caller has changed since the caller was looked up, or the key has expired. Nothing was accepted. */
export class UnconfirmedCaller extends Error {}

/**
 * The result of a submission. `no-room`: a quota of the account is exceeded. `to-render`: the template has the content `contentId`, which may
 * have variables, or is not the one that was rendered. The request is rendered with it and submitted again.
 */
export type Outcome =
  | { is: 'accepted' | 'replayed'; messageIds: string[] }
  | { is: 'refused'; error: unknown }
  | { is: 'no-room' }
  | { is: 'to-render'; contentId: number }

const BATCH_SIZE = 200
// Delivery processes fold the usage of accounts every second. If none runs, this process does, or each batch would read more than the last.
const FOLD_AFTER_BATCHES = 500
// After this timeout, the caller has to retry with the same key. The response to the retry says whether the message was accepted.
const TIMEOUT = { query_timeout: 3_000 }

/** Errors of the agent and template that a message or campaign refers to. */
export const REFERENCE_ERRORS = {
  'not-approved': { code: 'RCS_TEMPLATE_NOT_APPROVED', path: '/message/templateId', reason: 'names a template that is not APPROVED' },
  'template-basic': { code: 'RCS_INVALID_MESSAGE', path: '/basic', reason: 'must be true, as in the template' },
  'request-basic': { code: 'RCS_INVALID_MESSAGE', path: '/basic', reason: 'must be false or absent, as in the template' },
  'no-agent': { code: 'RCS_AGENT_NOT_FOUND', path: '/agentId', reason: 'names no active agent of this account' },
  'no-template': { code: 'RCS_TEMPLATE_NOT_FOUND', path: '/message/templateId', reason: 'names no template of this account' },
} as const satisfies Record<string, Violation & { code: ErrorCode }>

/** Errors that only the database can find, in the order in which they are reported: every 400 before the first 404. */
const REQUEST_ERRORS = {
  'scheduled-past': { code: 'RCS_INVALID_REQUEST', path: '/sendAt', reason: 'must not be more than a minute in the past' },
  'scheduled-late': { code: 'RCS_INVALID_REQUEST', path: '/sendAt', reason: `must be at most ${LATEST_START_DAYS} days ahead` },
  'expires-past': { code: 'RCS_INVALID_REQUEST', path: '/expiresAt', reason: 'must be in the future' },
  'expires-late': { code: 'RCS_INVALID_REQUEST', path: '/expiresAt', reason: `must be at most ${LONGEST_LIFE_DAYS} days ahead` },
  ...REFERENCE_ERRORS,
} as const satisfies Record<string, Violation & { code: ErrorCode }>

/**
 * Makes a function that accepts the messages of a request. It returns their ids after the commit, or throws the error for the caller. Concurrent
 * requests share a statement and a commit.
 */
export function createAcceptor(
  pool: Pool,
  announce: Announce,
  reserve: Reserve = () => undefined,
): (submission: Submission) => Promise<Accepted> {
  const acceptWithinQuotas = createQuotaKeeper(pool, (batch) => withPartitions(pool, () => accept(pool, batch)))
  const acceptAll = sendingAtOnce(acceptWithinQuotas, announce, reserve)
  const templates = createTemplateMemory(pool)
  let batches = 0
  const submit = createBatcher(
    async (batch: Submission[]) => {
      batches += 1
      if (batches % FOLD_AFTER_BATCHES === 0) void foldUsage(pool).catch(() => {})
      return await acceptAll(batch)
    },
    { maxItems: BATCH_SIZE },
  )
  return async function acceptSubmission(submission) {
    const outcome = await submit(await templates.withKnown(submission))
    return await resultOf(submission, outcome)
  }

  async function resultOf(submission: Submission, outcome: Outcome): Promise<Accepted> {
    if (outcome.is === 'refused') throw outcome.error
    if (outcome.is === 'to-render')
      return await resultOf(submission, await submit(await templates.withContent(submission, outcome.contentId)))
    if (outcome.is === 'no-room') throw new Error('the outcome no-room was not turned into a quota error')
    return { messageIds: outcome.messageIds, replayed: outcome.is === 'replayed' }
  }
}

export type Endpoint = 'messages' | 'campaigns'

/** Whether the same request was accepted under this key. */
export async function wasAccepted(db: Executor, accountId: number, endpoint: Endpoint, key: string, hash: Buffer): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'was-accepted',
    text: WAS_ACCEPTED,
    values: [accountId, endpoint, key, hash],
  })
  return rowCount === 1
}

export const WAS_ACCEPTED = `select from idempotency_keys where account_id = $1 and endpoint = $2 and key = $3 and request_hash = $4`

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

/** Creates the missing partitions and tries again if the database's clock has passed the last partition. */
async function withPartitions<T>(pool: Pool, accept: () => Promise<T>): Promise<T> {
  return await accept().catch(async (error: unknown) => {
    if (!isMissingPartition(error)) throw error
    await ensurePartitions(pool)
    return await accept()
  })
}

/** PostgreSQL reports a missing partition as a failed check without a name. */
export function isMissingPartition(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23514' && error.constraint === undefined
}

type Row = {
  outcome:
    | 'accepted'
    | 'again'
    | 'unconfirmed'
    | 'replayed'
    | 'conflict'
    | 'missing-targets'
    | 'sms-text'
    | 'no-room'
    | 'to-render'
    | keyof typeof REQUEST_ERRORS
  messageId: string
  /** Of the template. */
  contentId: number | null
  /** Templates that buttons of the message send, but that the account does not have. */
  missingTargets: string[] | null
}

// At the second try, the key of the other request is committed.
const MAX_TRIES = 3

/**
 * Accepts a batch. If another request is using the same key, on this node or another, a second statement runs this request again. If the second
 * statement fails, only its requests fail: the batcher must not repeat what the first statement has committed.
 */
async function accept(db: Executor, batch: Submission[], triesLeft = MAX_TRIES): Promise<Outcome[]> {
  const results = await runStatement(db, batch)
  batch.forEach(({ reserved }, index) => {
    const rows = results[index] as Row[]
    if (rows[0]?.outcome === 'accepted') reserved?.send(rows.map(({ messageId }) => messageId))
  })
  const isAgain = (index: number) => results[index]?.[0]?.outcome === 'again'
  const again = [...batch.keys()].filter(isAgain)
  const submissions = again.map((index) => batch[index] as Submission)
  const later = again.length === 0 ? [] : await acceptAgain(db, submissions, triesLeft - 1)
  return batch.map((submission, index) =>
    isAgain(index) ? (later[again.indexOf(index)] as Outcome) : outcomeOf(submission, results[index] as Row[]),
  )
}

async function acceptAgain(db: Executor, batch: Submission[], triesLeft: number): Promise<Outcome[]> {
  try {
    if (triesLeft === 0) throw new Error(`an idempotency key was still in use after ${MAX_TRIES} tries`)
    return await accept(db, batch, triesLeft)
  } catch (error) {
    if (isUnavailable(error)) throw error
    return batch.map(() => ({ is: 'refused', error }))
  }
}

/** Returns the rows of each submission, one for each of its recipients. */
async function runStatement(db: Executor, batch: Submission[]): Promise<Row[][]> {
  const { rows } = await db.query<Row>({ name: 'accept-messages', text: ACCEPT_MESSAGES, values: valuesOf(batch), ...TIMEOUT })
  let from = 0
  return batch.map(({ recipients }) => {
    from += recipients.length
    return rows.slice(from - recipients.length, from)
  })
}

function outcomeOf(submission: Submission, rows: Row[]): Outcome {
  const [{ outcome, missingTargets, contentId }] = rows as [Row & { outcome: Exclude<Row['outcome'], 'again'> }]
  const refused = (error: Error) => ({ is: 'refused' as const, error })
  switch (outcome) {
    case 'no-room':
      return { is: 'no-room' }
    case 'to-render':
      return { is: outcome, contentId: contentId as number }
    case 'accepted':
    case 'replayed':
      return { is: outcome, messageIds: rows.map(({ messageId }) => messageId) }
    case 'unconfirmed':
      return refused(new UnconfirmedCaller())
    case 'conflict':
      return refused(conflict())
    case 'sms-text':
      return refused(new ApiError('RCS_INVALID_SMS_FALLBACK', { details: submission.fallback?.violations ?? [] }))
    case 'missing-targets':
      return refused(missingTemplates(submission.message.inline, new Set(missingTargets?.map(Number))))
    default: {
      const { code, path, reason } = REQUEST_ERRORS[outcome]
      return refused(new ApiError(code, { details: [{ path, reason }] }))
    }
  }
}

/**
 * One statement for any number of requests of any content. A known key with the same request gets the stored result, before any check of what
 * may have changed since. Each key is inserted once. If another statement is inserting the key, this one waits for it; a second request of this
 * batch with the key is skipped. In both cases the request whose key was not inserted runs again. Keys are inserted in order, so that two
 * nodes never deadlock.
 *
 * Every step reads its rows once: a step's rows carry what later steps need, or later steps look it up in a set ("in"). A join of two steps
 * would compare each row with each: 200 requests took 360 ms.
 */
export const ACCEPT_MESSAGES = `
  with requested as materialized (
    select r.*, ((select lpad(to_hex(round(extract(epoch from now()) * 1000)::bigint), 12, '0')) || r.id_end)::uuid as id,
      t.content_id as template_content, case when r.rendered_from is null then t.content_id end as content_id,
      used.resource_id as used_id, missing.ids as missing_targets,
      case
        when r.caller is not null and r.caller not in (${confirmedCallers(CALLERS)}) then 'unconfirmed'
        when used.request_hash = r.hash then 'replayed'
        when r.scheduled_at < now() - interval '1 minute' then 'scheduled-past'
        when r.scheduled_at > now() + interval '${LATEST_START_DAYS} days' then 'scheduled-late'
        when r.own_expiry <= now() then 'expires-past'
        when r.own_expiry > greatest(r.scheduled_at, now()) + interval '${LONGEST_LIFE_DAYS} days' then 'expires-late'
        when r.has_violations then 'sms-text'
        when t.status <> 'APPROVED' then 'not-approved'
        when c.basic and not r.basic then 'template-basic'
        when not c.basic and r.basic then 'request-basic'
        when ${isToRender('r.rendered_from')} then 'to-render'
        when a.agent_id is null then 'no-agent'
        when r.template_id is not null and t.id is null then 'no-template'
        when missing.ids is not null then 'missing-targets'
        when used.resource_id is not null then 'conflict'
        when not r.has_room then 'no-room'
      end as outcome
    from ${REQUESTED}
    left join idempotency_keys used on used.account_id = r.account_id and used.endpoint = 'messages' and used.key = r.key
    left join agent_assignments a on a.account_id = r.account_id and a.agent_id = r.agent_id and a.active
    left join templates t on t.account_id = r.account_id and t.id = r.template_id
    left join contents c on c.id = t.content_id
    left join lateral (
      select array_agg(target) as ids from unnest(r.targets::bigint[]) as target
      where not exists (select from templates x where x.account_id = r.account_id and x.id = target)
    ) as missing on r.targets is not null
  ), keyed as materialized (
    insert into idempotency_keys (account_id, endpoint, key, request_hash, resource_id)
    select account_id, 'messages', key, hash, id from requested where outcome is null and key is not null order by account_id, key, n
    on conflict do nothing
    returning resource_id
  ), created as materialized (
    select *, now() as accepted_at, 'TRANSACTION' as traffic, null::uuid as triggered_by, null::uuid as campaign_id from requested
    where outcome is null and (key is null or id in (select resource_id from keyed))
  ), ${storeMessages('created', PRIORITIES.transactional, { token: 'lease', ms: LEASE_MS })}, used as (
    ${countUsage({ account: 'account_id', from: 'created', messages: 'count(*)', messageBytes: 'sum(bytes)' })}
  ), held as materialized (
    select ${HELD_BY_STANDBY} from (select from requested where outcome = 'replayed' limit 1) as any_replayed
  )
  select coalesce(outcome, case when id in (select id from created) then 'accepted' else 'again' end) as outcome,
    coalesce(used_id, id) as "messageId", missing_targets as "missingTargets",
    template_content as "contentId", (select count(*) from held) as held
  from requested order by n`
