import type { Executor } from '../db/pool.ts'
import { PRIORITIES } from '../messages/states.ts'
import { findCampaign } from './campaigns.ts'
import { countRetried } from './retry.ts'
import type { Campaign } from './schemas.ts'
import { CAMPAIGN_MOVES } from './states.ts'

/**
 * `waiting`: accepted messages, some of which may still be sent. `notCreated`: messages that the fan-out has not created yet; an upper bound,
 * since a recipient in several groups gets one message.
 */
export type Cancellation = { campaign: Campaign; waiting: number; waitingSms: number; notCreated: number }

type Row = {
  isFanOutCompleted: boolean
  fanOutCursor: string
  retryOf: string | null
  includeCancelled: boolean
  members: number
  waitingSms: number
}

/** Counts what a cancellation would withdraw now. Returns undefined if the campaign is over. Changes nothing. */
export async function planCancel(db: Executor, id: string, withinMs?: number): Promise<Cancellation | undefined> {
  const campaign = await findCampaign(db, id)
  if (!CAMPAIGN_MOVES.CANCELLED.some((status) => status === campaign.status)) return undefined
  const { rows } = await db.query<Row>(
    `select c.fan_out_completed_at is not null as "isFanOutCompleted", c.fan_out_cursor as "fanOutCursor", c.retry_of as "retryOf",
       c.retry_includes_cancelled as "includeCancelled",
       (
         select coalesce(sum(g.members), 0)::bigint from groups g where g.account_id = c.account_id and g.number = any (c.group_numbers)
       ) as members,
       (
         select count(*) from sms_queue s
         where s.account_id = c.account_id and s.priority = ${PRIORITIES.campaign} and s.campaign_id = c.id and s.lease is null
       ) as "waitingSms"
     from campaigns c where c.id = $1`,
    [campaign.campaignId],
  )
  const row = rows[0] as Row
  const { ACCEPTED, SENDING } = campaign.counts
  const notCreated = await countNotCreated(db, campaign, row, withinMs)
  return { campaign, waiting: ACCEPTED + SENDING, waitingSms: row.waitingSms, notCreated }
}

async function countNotCreated(
  db: Executor,
  { recipients }: Campaign,
  { retryOf, isFanOutCompleted, ...row }: Row,
  withinMs?: number,
): Promise<number> {
  if (isFanOutCompleted) return 0
  if (retryOf === null) return Math.max(0, row.members - recipients)
  const { messages, isMore } = await countRetried(db, retryOf, row, { fanOutCursor: row.fanOutCursor, withinMs })
  // A retry has at most one message for each of the first campaign.
  return isMore ? Math.max(0, (await findCampaign(db, retryOf)).recipients - recipients) : messages
}
