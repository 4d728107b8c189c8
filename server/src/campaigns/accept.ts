import pg from 'pg'
import { quotaExceeded, usageOf } from '../accounts/quotas.ts'
import { countUsage, ROW_BYTES } from '../accounts/usage.ts'
import { templateReferences } from '../content/references.ts'
import { mayHaveVariables } from '../content/variables.ts'
import type { Executor } from '../db/pool.ts'
import { HELD_BY_STANDBY } from '../db/standby.ts'
import { ApiError, type ErrorCode, type Violation } from '../errors.ts'
import { conflict, missingTemplates, REFERENCE_ERRORS } from '../messages/accept.ts'
import { storedRouting } from '../messages/routing.ts'
import { LONGEST_LIFE_DAYS } from '../messages/schemas.ts'
import type { Fallback } from '../messages/sms-fallback.ts'
import { HAS_VARIABLES, isToRender, readTemplateContent, requireFitting } from '../messages/template-variables.ts'
import { parseTimestamp } from '../time.ts'
import { textOf } from '../windows/window.ts'
import type { CampaignRequest } from './schemas.ts'

/** A request that passed validation. */
export type CampaignSubmission = Omit<CampaignRequest, 'smsFallback' | 'smsFallbackAfterExpiry'> & {
  accountId: number
  /** The id of the template's content that was checked with the variables. */
  checkedContent?: number
  fallback: Fallback | undefined
  idempotency: { key: string; hash: Buffer }
}

type Row = {
  outcome:
    | 'accepted'
    | 'replayed'
    | 'conflict'
    | 'missing-targets'
    | 'missing-groups'
    | 'sms-text'
    | 'bytes-quota'
    | 'to-check'
    | keyof typeof REQUEST_ERRORS
  campaignId: string
  /** Of the template. */
  contentId: number | null
  missingTargets: string[] | null
  missingGroups: number[] | null
  /** Stored bytes: the quota, the usage, and what the campaign needs. */
  exceeded: string[] | null
}

/** Errors that only the database can find, by its clock or its rows, in the order in which they are reported: every 400 before the first 404. */
const REQUEST_ERRORS = {
  'scheduled-past': { code: 'RCS_INVALID_REQUEST', path: '/scheduledAt', reason: 'must not be more than a minute in the past' },
  'scheduled-late': { code: 'RCS_INVALID_REQUEST', path: '/scheduledAt', reason: 'must be at most a year ahead' },
  'expires-past': { code: 'RCS_INVALID_REQUEST', path: '/expiresAt', reason: 'must be in the future' },
  'expires-late': { code: 'RCS_INVALID_REQUEST', path: '/expiresAt', reason: `must be at most ${LONGEST_LIFE_DAYS} days after the start` },
  'sms-early': {
    code: 'RCS_INVALID_SMS_FALLBACK',
    path: '/smsFallback/planParams/sendTime',
    reason: 'must be later than scheduledAt, or than now if scheduledAt is absent',
  },
  ...REFERENCE_ERRORS,
} as const satisfies Record<string, Violation & { code: ErrorCode }>

/**
 * Accepts a campaign. Resolves after the commit, or throws the error for the caller. If a template that a button sends is deleted while the
 * statement runs, nothing is accepted, and the statement runs again. It then reports the missing template, or no longer needs it, because the
 * campaign's own template was replaced.
 */
export async function acceptCampaign(db: Executor, submission: CampaignSubmission): Promise<{ campaignId: string; replayed: boolean }> {
  const accepted = await db.query<Row>({ name: 'accept-campaign', text: ACCEPT, values: valuesOf(submission) }).catch((error) => {
    if (!isTargetDeleted(error)) throw error
  })
  if (accepted === undefined) return await acceptCampaign(db, submission)
  const { outcome, campaignId, missingTargets, missingGroups, exceeded, contentId } = accepted.rows[0] as Row
  if (outcome === 'to-check') {
    const template = await readTemplateContent(db, submission.accountId, contentId as number)
    requireFitting(template, submission.variables ?? {})
    return await acceptCampaign(db, { ...submission, checkedContent: template.id })
  }
  if (outcome === 'accepted' || outcome === 'replayed') return { campaignId, replayed: outcome === 'replayed' }
  if (outcome === 'conflict') throw conflict()
  if (outcome === 'sms-text') throw new ApiError('RCS_INVALID_SMS_FALLBACK', { details: submission.fallback?.violations ?? [] })
  if (outcome === 'missing-targets') throw missingTemplates(submission.message.inline, new Set(missingTargets?.map(Number)))
  if (outcome === 'missing-groups') throw noSuchGroups(submission, new Set(missingGroups))
  if (outcome === 'bytes-quota') throw beyondQuota((exceeded ?? []).map(Number))
  const { code, path, reason } = REQUEST_ERRORS[outcome]
  throw new ApiError(code, { details: [{ path, reason }] })
}

function isTargetDeleted(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.constraint === 'campaign_references_target'
}

function beyondQuota([quota = 0, used = 0, needed = 0]: number[]): ApiError {
  return quotaExceeded('storedBytes', quota, used, { needed })
}

function noSuchGroups({ segmentIds }: CampaignSubmission, missing: Set<number>): ApiError {
  const details = segmentIds.flatMap((group, index) =>
    missing.has(group) ? [{ path: `/segmentIds/${index}`, reason: 'names no group of this account' }] : [],
  )
  return new ApiError('RCS_SEGMENT_NOT_FOUND', { details })
}

function valuesOf(submission: CampaignSubmission): unknown[] {
  const {
    accountId,
    idempotency,
    agentId,
    name,
    clientReferenceId,
    basic = false,
    message,
    segmentIds,
    scheduledAt,
    expiresAt,
    fallback,
    checkedContent,
    variables,
    deliveryWindow,
  } = submission
  return [
    accountId,
    idempotency.key,
    idempotency.hash,
    agentId,
    name,
    clientReferenceId ?? null,
    basic,
    message.templateId ?? null,
    message.inline === undefined ? null : JSON.stringify(message.inline),
    segmentIds,
    scheduledAt === undefined ? null : parseTimestamp(scheduledAt),
    expiresAt === undefined ? null : parseTimestamp(expiresAt),
    fallback === undefined ? null : JSON.stringify(fallback),
    templateReferences(message.inline, '').map(({ templateId }) => templateId),
    checkedContent ?? null,
    JSON.stringify(variables ?? {}),
    mayHaveVariables([message.inline, fallback?.plan.content]),
    storedRouting(submission),
    deliveryWindow === undefined ? null : textOf(deliveryWindow),
  ]
}

// The bytes of the campaign itself. A campaign's messages count towards the stored bytes, but not towards the messages of a day.
const BYTES = `${ROW_BYTES} + coalesce(octet_length($9::text), 0) + coalesce(octet_length($13::json::text), 0)
        + coalesce(octet_length(variables::text), 0)`
// What the campaign's messages will store at least. With variables, each message has a content and an SMS of its own, and their sizes are estimated
// without values. Acceptance reserves it, since no message is refused later. The fan-out releases it.
const RESERVED_BYTES = `
    select (${ROW_BYTES} + case when variables is null then 0 else content_bytes + coalesce(octet_length($13::json ->> 'plan'), 0) end)
      * coalesce(sum(members), 0)::bigint as reserved_bytes
    from groups where account_id = $1 and number = any($10::int[])`

/** `variables` is null if neither the content nor the SMS has variables. */
const STORED_CONTENT = `
    select coalesce(octet_length($9::text), octet_length(c.message::text), 0) as content_bytes,
      case when $17::bool or ${HAS_VARIABLES} then $16::text::json end as variables
    from (select) as one left join templates t on t.account_id = $1 and t.id = $8 left join contents c on c.id = t.content_id`

/** SQL for the first error of request `r`, if there is one. */
const OUTCOME = `case
        when used.request_hash = $3 then 'replayed'
        when r.scheduled_at < now() - interval '1 minute' then 'scheduled-past'
        when r.scheduled_at > now() + interval '1 year' then 'scheduled-late'
        when r.expires_at <= now() then 'expires-past'
        when r.expires_at > greatest(r.scheduled_at, now()) + interval '${LONGEST_LIFE_DAYS} days' then 'expires-late'
        when (r.fallback ->> 'notBefore')::timestamptz <= r.scheduled_at then 'sms-early'
        when json_array_length(r.fallback -> 'violations') > 0 then 'sms-text'
        when t.status <> 'APPROVED' then 'not-approved'
        when c.basic and not $7::bool then 'template-basic'
        when not c.basic and $7::bool then 'request-basic'
        when $16::text <> '{}' and ${isToRender('$15::bigint')} then 'to-check'
        when a.agent_id is null then 'no-agent'
        when $8::bigint is not null and t.id is null then 'no-template'
        when missing.targets is not null then 'missing-targets'
        when missing.groups is not null then 'missing-groups'
        when used.resource_id is not null then 'conflict'
        when own.usage[4] + r.bytes > own.usage[3] then 'bytes-quota'
      end`

/**
 * Accepts a campaign in one statement, as for messages. If it answers `to-check`, the content of the template is read and checked with the
 * variables, and the statement runs again. A known idempotency key gets the stored result before any check of data that may have changed since. Of two concurrent
 * requests with the same key, the second waits for the commit of the first and then gets its row. Acceptance fixes the content: a template's
 * content row is never changed, only replaced, and inline content gets a row of its own. Acceptance also fixes the account's default window.
 */
const ACCEPT = `
  with request as materialized (
    select coalesce($11::timestamptz(3), now())::timestamptz(3) as scheduled_at, $12::timestamptz(3) as expires_at, $13::json as fallback,
      uuid_v7() as new_id, variables, reserved_bytes, ${BYTES} + reserved_bytes as bytes
    from (${STORED_CONTENT}) as stored, lateral (${RESERVED_BYTES}) as reserved
  ), checked as materialized (
    select r.*, t.content_id, used.resource_id as used_id, missing.*, own.usage[3:4] || r.bytes as exceeded, ${OUTCOME} as outcome
    from request r cross join lateral (${usageOf('$1')}) as own cross join lateral (
      select (
        select array_agg(id) from unnest($14::bigint[]) as target (id)
        where not exists (select from templates x where x.account_id = $1 and x.id = target.id)
      ) as targets, (
        select array_agg(number) from unnest($10::int[]) as wanted (number)
        where not exists (select from groups g where g.account_id = $1 and g.number = wanted.number)
      ) as groups
    ) as missing
    left join idempotency_keys used on used.account_id = $1 and used.endpoint = 'campaigns' and used.key = $2
    left join agent_assignments a on a.account_id = $1 and a.agent_id = $4 and a.active
    left join templates t on t.account_id = $1 and t.id = $8
    left join contents c on c.id = t.content_id
  ), keyed as (
    insert into idempotency_keys as k (account_id, endpoint, key, request_hash, resource_id)
    select $1, 'campaigns', $2, $3, new_id from checked where outcome is null
    on conflict (account_id, endpoint, key) do update set resource_id = k.resource_id
    returning k.request_hash, k.resource_id
  ), mine as materialized (
    select * from checked where new_id in (select resource_id from keyed)
  ), content as (
    insert into contents (account_id, basic, message) select $1, $7, $9::text::json from mine where content_id is null
    returning id
  ), created as (
    insert into campaigns (id, account_id, agent_id, name, client_reference_id, group_numbers, basic, content_id, fallback, variables,
      scheduled_at, expires_at, reserved_bytes, routing, delivery_window)
    select new_id, $1, $4, $5, $6, $10, $7, coalesce(content_id, (select id from content)), fallback, variables, scheduled_at, expires_at,
      reserved_bytes, $18, coalesce($19::text, (select campaign_window from accounts where id = $1))
    from mine
  ), referred as (
    insert into campaign_references (account_id, campaign_id, target_id)
    select $1, new_id, target from mine, lateral (
      select unnest($14::bigint[]) union select target_id from template_references where template_id = $8
    ) as each (target)
  ), counted as (${countUsage({ account: '$1::int', from: 'mine', contentBytes: 'sum(bytes)' })}
  )
  select coalesce(outcome, case when resource_id = new_id then 'accepted' when request_hash = $3 then 'replayed' else 'conflict' end) as outcome,
    coalesce(used_id, resource_id) as "campaignId", targets as "missingTargets", groups as "missingGroups", exceeded,
    checked.content_id as "contentId",
    case outcome when 'replayed' then ${HELD_BY_STANDBY} end as held
  from checked left join keyed on true`
