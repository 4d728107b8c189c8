import type { Executor } from '../db/pool.ts'
import { isErasedNumber } from '../erasure/erased.ts'
import { OperatorError } from '../errors.ts'
import { NO_CAMPAIGN } from '../ids.ts'
import { refused } from '../refusal.ts'
import { findCampaign } from './campaigns.ts'
import type { Campaign } from './schemas.ts'

/** `includeCancelled`: also include recipients whose message was withdrawn when the campaign was cancelled. */
type RetryChoice = { includeCancelled?: boolean }

/**
 * CTEs that select the recipients of a retry, for the fan-out and for the count that an operator confirms. They read from a CTE `campaign`
 * (`retry_of`, `fan_out_cursor`, `retry_includes_cancelled`); `$2` is the chunk size. A chunk reads ten times as many messages of the first
 * campaign, failed or not. It skips recipients whose message was delivered after it had failed, and recipients who have been erased since.
 */
export const RETRIED_MEMBERS = `
  looked_at as materialized (
    select m.id, m.recipient, m.status, m.failure_reason, m.delivery_window
    from campaign c, lateral (
      select id, recipient, status, failure_reason, delivery_window from messages m
      where m.campaign_id = c.retry_of and m.id > (case c.fan_out_cursor when '' then '${NO_CAMPAIGN}' else c.fan_out_cursor end)::uuid
      order by m.id limit 10 * $2::int
    ) as m
  ), unreached as materialized (
    select l.id, l.recipient as phone, l.delivery_window, l.failure_reason as reason, l.failure_reason = 'CAMPAIGN_CANCELLED' as is_withdrawn
    from looked_at l left join lateral (
      select kind from message_events e where e.message_id = l.id and e.kind in ('delivered-late', 'read-late') limit 1
    ) as arrived on true
    where l.status = 'FAILED' and arrived.kind is null and not ${isErasedNumber('l.recipient')}
  ), member as materialized (
    select u.id, u.phone, u.delivery_window, u.reason from unreached u, campaign c where c.retry_includes_cancelled or not u.is_withdrawn
  ), progress as materialized (
    select max(id::text) as position, count(*) < 10 * $2::int as is_last, (select count(*)::int from member) as created from looked_at
  )`

const COUNT = `
  with campaign as materialized (
    select $1::uuid as retry_of, $3::text as fan_out_cursor, $4::boolean as retry_includes_cancelled
  ), ${RETRIED_MEMBERS}
  select position, is_last as "isLast", (select count(*)::int from unreached where is_withdrawn) as withdrawn, (
    select coalesce(json_object_agg(reason, count), '{}') from (select reason, count(*) from member group by 1) as by_reason
  ) as reasons from progress`

// 10,000 messages per statement. If all of them failed, it took 0.3 s on a busy machine; a statement is cancelled after 3.5 s.
const COUNT_CHUNK = 1_000

// Ten statements or more, one after the other. A larger count is shown as "at least".
const COUNT_WITHIN_MS = 3_000

/**
 * `reasons`: why the messages failed, and how many for each reason. `withdrawn`: how many of the failed messages were withdrawn by a
 * cancellation, whether or not `messages` includes them. `isMore`: counting stopped before the last message of the first campaign.
 */
export type RetryCount = { messages: number; reasons: Record<string, number>; withdrawn: number; isMore: boolean }

type CountOptions = { fanOutCursor?: string; withinMs?: number | undefined }

type Counted = { position: string; isLast: boolean; reasons: Record<string, number>; withdrawn: number }

/**
 * Counts the messages that a retry would have if it were created now, after the message `fanOutCursor` of the first campaign. Stops after three
 * seconds, however large the campaign is.
 */
export async function countRetried(
  db: Executor,
  retryOf: string,
  choice: RetryChoice,
  { fanOutCursor = '', withinMs = COUNT_WITHIN_MS }: CountOptions = {},
): Promise<RetryCount> {
  const total: RetryCount = { messages: 0, reasons: {}, withdrawn: 0, isMore: false }
  const deadline = performance.now() + withinMs
  for (let after = fanOutCursor; ; ) {
    const values = [retryOf, COUNT_CHUNK, after, choice.includeCancelled === true]
    const { rows } = await db.query<Counted>(COUNT, values)
    const { position, isLast, reasons, withdrawn } = rows[0] as Counted
    for (const [reason, count] of Object.entries(reasons)) {
      total.messages += count
      total.reasons[reason] = (total.reasons[reason] ?? 0) + count
    }
    total.withdrawn += withdrawn
    if (isLast) return total
    if (performance.now() >= deadline) return { ...total, isMore: true }
    after = position
  }
}

/** Counts what `retryCampaign` would send now. Throws if it would refuse, or if no message is left to send. Changes nothing. */
export async function planRetry(db: Executor, id: string, choice: RetryChoice): Promise<RetryCount & { campaign: Campaign }> {
  const campaign = await requireRetryable(db, id)
  const count = await countRetried(db, campaign.campaignId, choice)
  if (count.messages > 0 || count.isMore) return { campaign, ...count }
  if (count.withdrawn > 0) {
    const withdrawn = `${count.withdrawn} ${count.withdrawn === 1 ? 'message' : 'messages'} withdrawn when it was cancelled`
    throw refused(`The campaign ${id} has no failures except ${withdrawn}`, {
      command: '; --include-cancelled sends them',
      caller: '; includeCancelled sends them',
    })
  }
  throw new OperatorError(`The campaign ${id} has no failed message to send again.`)
}

/**
 * Creates a campaign with the same content for the recipients whose message failed. It starts now, and has the same lifetime as the first
 * one. The unique index on `retry_of` lets only one of two concurrent calls create it.
 */
export async function retryCampaign(db: Executor, id: string, { includeCancelled = false }: RetryChoice = {}): Promise<Campaign> {
  const { campaignId } = await requireRetryable(db, id)
  const { rows } = await db.query<{ id: string }>(RETRY, [campaignId, includeCancelled])
  if (rows[0] === undefined) throw new OperatorError(`The campaign ${id} was just retried by another command.`)
  return await findCampaign(db, rows[0].id)
}

/** A template that a button sends may be deleted by now; `for key share` waits for a deletion that is not committed yet. */
const RETRY = `
  with made as (
    insert into campaigns (id, account_id, agent_id, name, client_reference_id, group_numbers, retry_of, retry_includes_cancelled, basic,
      content_id, fallback, variables, routing, scheduled_at, expires_at, delivery_window)
    select uuid_v7(), account_id, agent_id, name, client_reference_id, '{}', id, $2, basic, content_id, fallback, variables, routing, now(),
      now() + (expires_at - scheduled_at), delivery_window
    from campaigns where id = $1 and (status = 'COMPLETED' or withdrawn_at is not null)
    on conflict (retry_of) do nothing
    returning id, account_id, content_id
  ), button as materialized (
    select distinct (target #>> '{}')::bigint as template_id
    from made join contents c on c.id = made.content_id,
      jsonb_path_query(c.message::jsonb, '$.**.buttons[*] ? (@.type == "trigger_template").templateId') as target
  ), target as materialized (
    select t.id, t.account_id from button b join templates t on t.id = b.template_id for key share of t
  ), referred as (
    insert into campaign_references (account_id, campaign_id, target_id)
    select made.account_id, made.id, target.id from made join target using (account_id)
  )
  select id from made`

/** Requires a campaign whose failed messages are final: it is COMPLETED, or CANCELLED with all its waiting messages withdrawn. */
async function requireRetryable(db: Executor, id: string): Promise<Campaign> {
  const campaign = await findCampaign(db, id)
  if (campaign.status !== 'COMPLETED' && campaign.status !== 'CANCELLED') {
    throw new OperatorError(`The campaign ${id} is ${campaign.status}; retry it once it is COMPLETED or CANCELLED.`)
  }
  const { rows } = await db.query<{ isWithdrawing: boolean; retriedBy: string | null }>(
    `select c.status = 'CANCELLED' and c.withdrawn_at is null as "isWithdrawing",
       (select r.id from campaigns r where r.retry_of = c.id) as "retriedBy"
     from campaigns c where c.id = $1`,
    [campaign.campaignId],
  )
  const { isWithdrawing = false, retriedBy = null } = rows[0] ?? {}
  if (retriedBy !== null) throw new OperatorError(`The campaign ${id} was already retried by ${retriedBy}; retry that one.`)
  if (isWithdrawing) throw new OperatorError(`Messages of the campaign ${id} are still being withdrawn; try again in a moment.`)
  return campaign
}
