import { isLive } from '../../accounts/accounts.ts'
import { campaignMayBecome, dropReferences } from '../../campaigns/states.ts'
import type { Executor } from '../../db/pool.ts'
import { recordCampaigns } from '../../events/changes.ts'
import { countersOfCampaign, UNFINISHED } from '../../reports/counters.ts'

const BATCH_SIZE = 100

/** Starts campaigns whose start time has passed, even if no worker ran at that time, or the account was suspended. Returns how many it started. */
export async function startDue(db: Executor): Promise<number> {
  const { rowCount } = await db.query({ name: 'start-campaigns', text: START, values: [BATCH_SIZE] })
  return rowCount ?? 0
}

export const START = `
  with started as (
    update campaigns c set
      status = 'RUNNING',
      started_at = greatest(now(), c.scheduled_at),
      -- Records the groups' generations now: members who are added later are left out, and members who are removed later still get their message.
      -- A group that no longer exists has no members.
      group_generations = array(
        select coalesce(g.generation, -1) from unnest(c.group_numbers) with ordinality as n (number, place)
        left join groups g on g.account_id = c.account_id and g.number = n.number order by place)
    where c.id = any (array(
      select id from campaigns where status = 'SCHEDULED' and scheduled_at <= now() and ${isLive('account_id')}
      order by scheduled_at limit $1 for update skip locked
    ))
    returning c.*
  ), ${recordCampaigns('started', 'campaign.started', 'started_at')}
  select from started`

/**
 * Completes campaigns that have no message left to send, and returns how many. Once the fan-out is complete, the number of ACCEPTED and SENDING
 * messages only falls, so a count of 0 is final.
 */
export async function completeDone(db: Executor): Promise<number> {
  const { rowCount } = await db.query({ name: 'complete-campaigns', text: COMPLETE })
  return rowCount ?? 0
}

export const COMPLETE = `
  with completed as (
    update campaigns c set status = 'COMPLETED', completed_at = now()
    where ${campaignMayBecome('COMPLETED', 'c.status')} and c.fan_out_completed_at is not null
      and (select coalesce(sum(${UNFINISHED}), 0) from ${countersOfCampaign('c')} as counters) = 0
    returning c.*
  ), ${dropReferences('completed')}, ${recordCampaigns('completed', 'campaign.completed', 'completed_at')}
  select from completed`
