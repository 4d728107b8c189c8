import { countUsage } from '../accounts/usage.ts'
import { type Executor, listed } from '../db/pool.ts'
import { ApiError, notFound, OperatorError } from '../errors.ts'
import { recordCampaigns } from '../events/changes.ts'
import { UUID } from '../ids.ts'
import { missing } from '../refusal.ts'
import { BY_STATUS, countersOfCampaign } from '../reports/counters.ts'
import { withWindow } from '../windows/window.ts'
import type { Campaign } from './schemas.ts'
import { CAMPAIGN_MOVES, type CampaignStatus, dropReferences } from './states.ts'

const COUNTED = Object.keys(BY_STATUS) as (keyof typeof BY_STATUS)[]

const readFrom = (campaigns: string) => `
  select c.id as "campaignId", c.client_reference_id as "clientReferenceId", c.name, c.agent_id as "agentId", c.group_numbers as "segmentIds",
    c.retry_of as "retryOf", (select id from campaigns where retry_of = c.id) as "retriedBy", c.status, c.basic, c.routing,
    c.created_at as "createdAt", c.scheduled_at as "scheduledAt", c.started_at as "startedAt",
    c.completed_at as "completedAt", c.cancelled_at as "cancelledAt", c.expires_at as "expiresAt",
    c.delivery_window as "deliveryWindow", c.recipients, counted.*
  from ${campaigns} c, lateral (
    select ${COUNTED.map((status) => `coalesce(sum(${BY_STATUS[status]}), 0)::bigint as "${status}"`).join(', ')}
    from ${countersOfCampaign('c')} as counters
  ) as counted`
const READ = readFrom('campaigns')

/** Reads the campaigns that `page` selects, in the order `orderBy`. Only the counters of these campaigns are summed. */
export async function readCampaigns(db: Executor, page: string, orderBy: string, values: unknown[]): Promise<Campaign[]> {
  const text = `with page as materialized (${page}) ${readFrom('page')} order by ${orderBy}`
  return (await db.query<Row>(text, values)).rows.map(toCampaign)
}

export const READ_CAMPAIGNS = `${readFrom('campaigns')} where c.id = any ($1::uuid[]) order by c.id`

/** Reads campaigns of any accounts. */
export async function readCampaignsById(db: Executor, ids: string[]): Promise<Campaign[]> {
  return (await db.query<Row>({ name: 'read-campaigns', text: READ_CAMPAIGNS, values: [ids] })).rows.map(toCampaign)
}

// More campaigns of one account rarely run at the same time, and each takes 0.3 ms of PostgreSQL's CPU to sum up.
const MOST_RUNNING = 20

export const FIND_RUNNING = `
  select id as "campaignId", account_id as "accountId" from (
    select id, account_id, row_number() over (partition by account_id order by id desc) as place
    from campaigns where status = 'RUNNING' and account_id = any (${listed('$1::int[]')}::int[])
  ) as running
  where place <= ${MOST_RUNNING}`

/** Finds the running campaigns of accounts, the newest of each. */
export async function findRunning(db: Executor, accountIds: number[]): Promise<{ campaignId: string; accountId: number }[]> {
  return (await db.query({ name: 'find-running', text: FIND_RUNNING, values: [accountIds] })).rows
}

type Row = Record<string, unknown> & Record<keyof typeof BY_STATUS, number>

function toCampaign(row: Row): Campaign {
  const present = Object.entries(row).filter(([name, value]) => value !== null && !(name in BY_STATUS))
  const counts = Object.fromEntries(COUNTED.map((status) => [status, row[status]])) as Campaign['counts']
  // A database that was restored to an earlier state has lost claims, but the receipts of these messages still come.
  const lost = Math.min(counts.SENDING, 0)
  return {
    ...withWindow(Object.fromEntries(present)),
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

/** Finds a campaign without its account, for operators. */
export async function findCampaign(db: Executor, id: string): Promise<Campaign> {
  const { rows } = UUID.test(id) ? await db.query<Row>(`${READ} where c.id = $1`, [id]) : { rows: [] }
  return rows[0] === undefined ? noSuchCampaign(id) : toCampaign(rows[0])
}

/** The account of a campaign, for operators. */
export async function ownerOfCampaign(db: Executor, id: string): Promise<number> {
  const { rows } = UUID.test(id)
    ? await db.query<{ accountId: number }>('select account_id as "accountId" from campaigns where id = $1', [id])
    : { rows: [] }
  return rows[0]?.accountId ?? noSuchCampaign(id)
}

function noSuchCampaign(id: string): never {
  throw missing(`There is no campaign ${id}`, 'see "herald campaign list ACCOUNT_ID"')
}

type Move = Exclude<keyof typeof CAMPAIGN_MOVES, 'COMPLETED'>

/** For operators: pauses, resumes or cancels a campaign. */
export async function moveCampaign(db: Executor, id: string, to: Move): Promise<Campaign> {
  const { campaign, refusal } = (await tryMove(db, id, to)) ?? noSuchCampaign(id)
  if (refusal !== undefined) throw new OperatorError(`The campaign ${id} ${refusal}.`)
  return campaign
}

/** For callers: pauses, resumes or cancels a campaign of the account. */
export async function moveOwnCampaign(db: Executor, accountId: number, id: string, to: Move): Promise<Campaign> {
  const moved = await tryMove(db, id, to, accountId)
  if (moved === undefined) throw notFound('RCS_CAMPAIGN_NOT_FOUND', 'id', 'campaign')
  if (moved.refusal !== undefined) throw new ApiError('RCS_CAMPAIGN_STATE', { details: [{ path: '/status', reason: moved.refusal }] })
  return moved.campaign
}

/**
 * Moves a campaign in one statement with the guard of the state machine. The delivery worker checks the status in every claim, so the change
 * applies to everything except sends in progress. Moving to the current status is not an error. Undefined if there is no such campaign.
 */
async function tryMove(
  db: Executor,
  id: string,
  to: Move,
  accountId?: number,
): Promise<{ campaign: Campaign; refusal?: string } | undefined> {
  if (!UUID.test(id)) return undefined
  const possible: readonly CampaignStatus[] = to === 'RUNNING' ? ['PAUSED'] : CAMPAIGN_MOVES[to]
  const { rowCount: moved } = await db.query(MOVE, [id, to, possible, accountId ?? null])
  const text = `${READ} where c.id = $1 and ($2::int is null or c.account_id = $2)`
  const { rows } = await db.query<Row>(text, [id, accountId ?? null])
  if (rows[0] === undefined) return undefined
  const campaign = toCampaign(rows[0])
  if (moved === 1 || campaign.status === to) return { campaign }
  // The status has changed since the first statement.
  if (possible.includes(campaign.status)) return await tryMove(db, id, to, accountId)
  return { campaign, refusal: `is ${campaign.status}; only a campaign that is ${possible.join(' or ')} can be ${VERBS[to]}` }
}

const VERBS = { RUNNING: 'resumed', PAUSED: 'paused', CANCELLED: 'cancelled' } as const satisfies Record<Move, string>

const MOVE = `
  with moved as (
    update campaigns c set status = $2, cancelled_at = case when $2 = 'CANCELLED' then greatest(now(), c.created_at) end
    where c.id = $1 and c.status = any ($3::text[]) and ($4::int is null or c.account_id = $4)
    returning c.*
  ), cancelled as (
    select * from moved where cancelled_at is not null
  ), released as (${countUsage({ account: 'account_id', from: 'cancelled where reserved_bytes > 0', contentBytes: '-sum(reserved_bytes)' })}
  ), ${dropReferences('cancelled')}, ${recordCampaigns('cancelled', 'campaign.cancelled', 'cancelled_at')}
  select from moved`
