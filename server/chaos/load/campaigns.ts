import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import { isUnavailable, type Pool } from '../../src/db/pool.ts'
import { OperatorError } from '../../src/errors.ts'
import type { Random } from '../support/random.ts'
import { type ApiResponse, type Caller, persist } from './caller.ts'
import { CAMPAIGN, type Requested, type RequestedCampaign, recordResponse } from './requested.ts'
import { type DrawnCampaign, drawCampaign, type Sender } from './requests.ts'

const AGAIN_MS = 250

export async function fillGroup(pool: Pool, accountId: number, number: number, phones: readonly string[]): Promise<void> {
  await pool.query('insert into groups (account_id, number) values ($1, $2)', [accountId, number])
  await pool.query('insert into group_members (account_id, group_number, phone) select $1, $2, unnest($3::text[])', [
    accountId,
    number,
    phones,
  ])
}

/** Draws campaigns, and puts their phones into groups. */
export async function prepareCampaigns(
  pool: Pool,
  accountId: number,
  sender: Sender,
  random: Random,
  { count, people }: { count: number; people: number },
): Promise<DrawnCampaign[]> {
  const campaigns = Array.from({ length: count }, (_, n) => drawCampaign(random, n + 1, sender, people))
  for (const [n, { phones }] of campaigns.entries()) await fillGroup(pool, accountId, n + 1, phones)
  return campaigns
}

/** Requests a campaign, twice with the same key, and records the responses. */
export async function requestCampaign(caller: Caller, requested: Requested, drawn: DrawnCampaign): Promise<RequestedCampaign> {
  const { startInMs, lifeMs } = drawn
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
  const body = {
    ...drawn.body,
    ...(startInMs !== undefined && { scheduledAt: inMs(startInMs) }),
    ...(lifeMs !== undefined && { expiresAt: inMs((startInMs ?? 0) + lifeMs) }),
  }
  const one: RequestedCampaign = { ...drawn, body, key: randomUUID(), outcome: 'unanswered', ids: [] }
  requested.campaigns.push(one)
  const record = (response: ApiResponse) => recordResponse(requested, one, response, CAMPAIGN)
  const request = { method: 'POST', path: '/campaigns', key: one.key, body } as const
  await Promise.all([persist(caller, request, record), persist(caller, request, record)])
  if (one.outcome === 'unanswered') requested.unexpected.push(`${one.key}: no response within two minutes`)
  return one
}

/** Requests a campaign, and pauses and resumes or cancels it as drawn. */
export async function runCampaign({ caller, pool }: { caller: Caller; pool: Pool }, requested: Requested, drawn: DrawnCampaign) {
  const { lifecycle, stopAfterMs, resumeAfterMs } = drawn
  const [campaignId] = (await requestCampaign(caller, requested, drawn)).ids
  if (campaignId === undefined || lifecycle === 'untouched') return
  await sleep(stopAfterMs)
  await move(pool, campaignId, lifecycle === 'paused' ? 'PAUSED' : 'CANCELLED')
  if (lifecycle !== 'paused') return
  await sleep(resumeAfterMs)
  await move(pool, campaignId, 'RUNNING')
}

/** Tries until the database is there. A campaign that is over, or has not begun, stays as it is. */
async function move(pool: Pool, campaignId: string, to: 'PAUSED' | 'RUNNING' | 'CANCELLED'): Promise<void> {
  for (;;) {
    try {
      await moveCampaign(pool, campaignId, to)
      return
    } catch (error) {
      if (error instanceof OperatorError) return
      if (!isUnavailable(error)) throw error
      await sleep(AGAIN_MS)
    }
  }
}
