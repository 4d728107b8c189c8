import { requireAccount } from '../accounts/accounts.ts'
import { countUsage } from '../accounts/usage.ts'
import type { Executor } from '../db/pool.ts'
import { noSuch, notFound, OperatorError } from '../errors.ts'
import { recordCampaigns } from '../events/changes.ts'
import { UUID } from '../ids.ts'
import { BY_STATUS, countersOfCampaign } from '../reports/counters.ts'
import type { Campaign } from './schemas.ts'
import { CAMPAIGN_MOVES, type CampaignStatus, campaignMayBecome, dropReferences } from './states.ts'

const COUNTED = Object.keys(BY_STATUS) as (keyof typeof BY_STATUS)[]

const READ = `
  select c.id as "campaignId", c.client_reference_id as "clientReferenceId", c.name, c.agent_id as "agentId", c.group_numbers as "segmentIds",
    c.retry_of as "retryOf", c.status, c.basic, c.created_at as "createdAt", c.scheduled_at as "scheduledAt", c.started_at as "startedAt",
    c.completed_at as "completedAt", c.cancelled_at as "cancelledAt", c.expires_at as "expiresAt", c.recipients, counted.*
  from campaigns c, lateral (
    select ${COUNTED.map((status) => `coalesce(sum(${BY_STATUS[status]}), 0)::bigint as "${status}"`).join(', ')}
    from ${countersOfCampaign('c')} as counters
  ) as counted`

type Row = Record<string, unknown> & Record<keyof typeof BY_STATUS, number>

function toCampaign(row: Row): Campaign {
  const present = Object.entries(row).filter(([name, value]) => value !== null && !(name in BY_STATUS))
  const counts = Object.fromEntries(COUNTED.map((status) => [status, row[status]])) as Campaign['counts']
  // A database that was restored to an earlier state has lost claims, but the receipts of these messages still come.
  const lost = Math.min(counts.SENDING, 0)
  return {
    ...Object.fromEntries(present),
    counts: { ...counts, ACCEPTED: counts.ACCEPTED + lost, SENDING: counts.SENDING - lost },
  } as Campaign
}

export async function readCampaign(db: Executor, accountId: number, id: string): Promise<Campaign> {
  const { rows } = UUID.test(id)
    ? await db.query<Row>({ name: 'read-campaign', text: `${READ} where c.account_id = $1 and c.id = $2`, values: [accountId, id] })
    : { rows: [] }
  if (rows[0] === undefined) throw notFound('RCS_CAMPAIGN_NOT_FOUND', 'id', 'campaign')
  return toCampaign(rows[0])
}

/** Lists the newest campaigns first, for operators. */
export async function listCampaigns(db: Executor, accountId: number, limit: number): Promise<Campaign[]> {
  const { rows } = await db.query<Row>(`${READ} where c.account_id = $1 order by c.id desc limit $2`, [accountId, limit])
  if (rows.length === 0) await requireAccount(db, accountId)
  return rows.map(toCampaign)
}

/** Finds a campaign without its account, for operators. */
export async function findCampaign(db: Executor, id: string): Promise<Campaign> {
  const { rows } = UUID.test(id) ? await db.query<Row>(`${READ} where c.id = $1`, [id]) : { rows: [] }
  return rows[0] === undefined ? noSuchCampaign(id) : toCampaign(rows[0])
}

function noSuchCampaign(id: string): never {
  throw noSuch(`There is no campaign ${id}; see "herald campaign list ACCOUNT_ID".`)
}

/**
 * Pauses, resumes or cancels a campaign, in one statement with the guard of the state machine. The delivery worker checks the status in
 * every claim, so the change applies to everything except sends in progress. Moving to the current status is not an error.
 */
export async function moveCampaign(db: Executor, id: string, to: Exclude<keyof typeof CAMPAIGN_MOVES, 'COMPLETED'>): Promise<Campaign> {
  const from = to === 'RUNNING' ? `c.status = 'PAUSED'` : campaignMayBecome(to, 'c.status')
  if (UUID.test(id)) {
    await db.query(
      `with moved as (
         update campaigns c set status = $2, cancelled_at = case when $2 = 'CANCELLED' then greatest(now(), c.created_at) end
         where c.id = $1 and ${from}
         returning c.*
       ), cancelled as (
         select * from moved where cancelled_at is not null
       ), released as (${countUsage({ account: 'account_id', from: 'cancelled where reserved_bytes > 0', contentBytes: '-sum(reserved_bytes)' })}
       ), ${dropReferences('cancelled')}, ${recordCampaigns('cancelled', 'campaign.cancelled', 'cancelled_at')}
       select`,
      [id, to],
    )
  }
  const campaign = await findCampaign(db, id)
  if (campaign.status === to) return campaign
  throw new OperatorError(refusal(campaign.status, to, id))
}

const VERBS = { RUNNING: 'resumed', PAUSED: 'paused', CANCELLED: 'cancelled' } as const

function refusal(status: CampaignStatus, to: keyof typeof VERBS, id: string): string {
  const possible = to === 'RUNNING' ? ['PAUSED'] : CAMPAIGN_MOVES[to]
  return `The campaign ${id} is ${status}; only a campaign that is ${possible.join(' or ')} can be ${VERBS[to]}.`
}
