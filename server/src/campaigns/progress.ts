import type { Executor } from '../db/pool.ts'
import { requireCampaign } from '../reports/campaign.ts'

// How a campaign goes, in more detail than its counters: why messages failed, and what happened in each minute. Counters have hours only, so
// these read the events of the messages, and stop at a limit.

/** A page asks every few seconds, and each failure is read together with its SMS. */
const MAX_FAILURES = 20_000
/** Of each kind. An hour at 80 messages a second has fewer. */
const MAX_EVENTS = 300_000
export const MAX_MINUTES = 60
const MINUTE_MS = 60_000

/** The start of the minute, so that no minute is counted in part. */
export const minuteOf = (at: number) => new Date(Math.floor(at / MINUTE_MS) * MINUTE_MS)

/** The start of the last hour, whose last minute is the present one. */
export const lastHour = () => minuteOf(Date.now() - (MAX_MINUTES - 1) * MINUTE_MS)

const WITHIN = 'campaign_id = $1 and message_id >= $2::uuid and message_id < $3::uuid'

type Failures = { items: { reason: string; messages: number; bySms: number; smsWaiting: number }[]; isMore: boolean }

/** Counts the last failures by their reason, and what became of their SMS. `isMore`: there are older ones, which are not counted. */
export async function readFailures(db: Executor, accountId: number, campaignId: string, limit = MAX_FAILURES): Promise<Failures> {
  const { id, firstId, endId } = await requireCampaign(db, accountId, campaignId)
  const { rows } = await db.query<Failures['items'][number] & { isMore: boolean }>(
    `with failed as materialized (
       select message_id, reason from message_events where ${WITHIN} and kind = 'failed' order by occurred_at desc, message_id desc limit $4
     )
     select coalesce(failed.reason, '') as reason, count(*)::int as messages,
       count(*) filter (where f.status in ('SENT', 'DELIVERED'))::int as "bySms",
       count(*) filter (where f.status in ('WAITING', 'SCHEDULED'))::int as "smsWaiting", (select count(*) = $4 from failed) as "isMore"
     from (select * from failed limit $4 - 1) as failed left join lateral (
       -- By key. As a join, all SMS of these days could be read.
       select status from sms_fallbacks s
       where s.message_id = failed.message_id and s.message_id >= $2::uuid and s.message_id < $3::uuid offset 0
     ) as f on true
     group by 1 order by 2 desc, 1`,
    [id, firstId, endId, limit + 1],
  )
  return { items: rows.map(({ isMore: _, ...item }) => item), isMore: rows[0]?.isMore ?? false }
}

const COUNTED_BY_MINUTE = ['sent', 'delivered', 'read', 'failed'] as const
type Counted = (typeof COUNTED_BY_MINUTE)[number]
type Minute = { minute: Date } & Record<Counted, number>

/**
 * Counts what happened in each minute of an hour, from the minute of `from` on. Minutes without events are left out. If there were more events
 * than are read, the first minutes are left out.
 */
export async function readMinutes(
  db: Executor,
  accountId: number,
  campaignId: string,
  from: Date,
  limit = MAX_EVENTS,
): Promise<{ items: Minute[] }> {
  const { id, firstId, endId } = await requireCampaign(db, accountId, campaignId)
  const { rows } = await db.query<{ minute: Date; kind: Counted; count: number }>(
    `select date_trunc('minute', occurred_at, 'UTC') as minute, kind, count(*)::int as count
     from unnest($4::text[]) as k (kind), lateral (
       select occurred_at from message_events e
       where ${WITHIN} and e.kind = k.kind and occurred_at >= $5 and occurred_at < $5::timestamptz + interval '${MAX_MINUTES} minutes'
       order by occurred_at desc limit $6
     ) as happened
     group by 1, 2 order by 1`,
    [id, firstId, endId, COUNTED_BY_MINUTE, minuteOf(from.getTime()), limit + 1],
  )
  const completeFrom = Math.max(
    ...COUNTED_BY_MINUTE.map((kind) =>
      firstComplete(
        rows.filter((row) => row.kind === kind),
        limit,
      ),
    ),
  )
  const byMinute = Map.groupBy(rows, ({ minute }) => minute.getTime())
  const items = [...byMinute]
    .filter(([minute]) => minute > completeFrom)
    .map(([minute, counts]) => ({
      minute: new Date(minute),
      ...(Object.fromEntries(COUNTED_BY_MINUTE.map((kind) => [kind, counts.find((each) => each.kind === kind)?.count ?? 0])) as Record<
        Counted,
        number
      >),
    }))
  return { items }
}

/** The last minute that is not whole, since the limit ended the reading. */
function firstComplete(rows: { minute: Date; count: number }[], limit: number): number {
  const isCut = rows.reduce((sum, { count }) => sum + count, 0) > limit
  return isCut ? (rows[0]?.minute.getTime() ?? 0) : Number.NEGATIVE_INFINITY
}
