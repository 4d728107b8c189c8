import type { Static } from 'typebox'
import type { Executor } from '../db/pool.ts'
import { NO_CAMPAIGN } from '../ids.ts'
import { COUNTED, type Counts, countersWhere } from './counters.ts'
import { type Range, timesOf } from './range.ts'
import type { MessagesSummary } from './schemas.ts'

/** The counters of an account ($1) and a campaign or none ($2), in a range of hours ($3, $4). */
export const COUNTERS = countersWhere('account_id = $1 and campaign_id = $2 and hour >= $3::timestamptz and hour < $4::timestamptz')

export const SUMS = COUNTED.map((counter) => `coalesce(sum(${counter}), 0)::bigint as ${counter}`).join(', ')

export type Summary = Static<typeof MessagesSummary>

/** Reads how many messages reached each state in the range: messages of a campaign or, without one, messages that the account sent one by one. */
export async function readSummary(db: Executor, accountId: number, campaignId: string | undefined, range: Range): Promise<Summary> {
  const { rows } = await db.query<Counts>({
    name: 'read-summary',
    text: `select ${SUMS} from (${COUNTERS}) as counted`,
    values: [accountId, campaignId ?? NO_CAMPAIGN, ...timesOf(range)],
  })
  const { opted_out: optedOut, sms_sent, sms_delivered, sms_failed, sms_skipped, unsent: _, claimed: __, ...counts } = rows[0] as Counts
  return {
    from: range.from ?? null,
    to: range.to ?? null,
    // A campaign has one message per recipient; of messages sent one by one, each counts as one recipient.
    recipients: counts.accepted,
    ...counts,
    optedOut,
    deliveryRate: rate(counts.delivered, counts.sent),
    readRate: rate(counts.read, counts.delivered),
    clickRate: rate(counts.clicked, counts.delivered),
    smsFallback: { sent: sms_sent, delivered: sms_delivered, failed: sms_failed, skipped: sms_skipped },
  }
}

/**
 * Returns a rate to four decimal places, at most 1. The range may contain the delivery of a message but not its sending, and a link in an SMS can
 * be clicked although RCS delivered nothing.
 */
function rate(part: number, whole: number): number | null {
  return whole === 0 ? null : Math.min(Math.round((part / whole) * 10_000) / 10_000, 1)
}
