import type { Executor } from '../db/pool.ts'
import { notFound } from '../errors.ts'
import { UUID } from '../ids.ts'
import type { Bounds } from './range.ts'

/**
 * A campaign of the account, and the bounds of its messages' ids, so that statements read no other months. `nowId` is above all ids that
 * exist now.
 */
export type CampaignKey = Bounds & { id: string; nowId: string }

// A database's clock can be set back while a campaign runs, or differ after a failover.
const SLACK = `interval '1 day'`

export async function requireCampaign(db: Executor, accountId: number, id: string): Promise<CampaignKey> {
  const { rows } = UUID.test(id)
    ? await db.query<CampaignKey>({
        name: 'find-reported-campaign',
        text: `select id, uuid_v7_from(created_at - ${SLACK}) as "firstId",
                 uuid_v7_from(coalesce(fan_out_completed_at, cancelled_at, now()) + ${SLACK}) as "endId",
                 uuid_v7_from(now() + ${SLACK}) as "nowId"
               from campaigns where account_id = $1 and id = $2`,
        values: [accountId, id],
      })
    : { rows: [] }
  if (rows[0] === undefined) throw notFound('RCS_CAMPAIGN_NOT_FOUND', 'id', 'campaign')
  return rows[0]
}
