import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { moveCampaign } from '../../src/campaigns/campaigns.ts'
import { isUnavailable, type Pool } from '../../src/db/pool.ts'
import { OperatorError } from '../../src/errors.ts'
import type { Random } from '../random.ts'
import { A_CAMPAIGN, type Asked, type AskedCampaign, hearAnswer } from './asked.ts'
import { type Answer, type Caller, persist } from './caller.ts'
import { type Asker, drawCampaign, type WantedCampaign } from './requests.ts'

const AGAIN_MS = 250

/** Draws them, and puts the people into their groups. The database is there. */
export async function prepareCampaigns(
  pool: Pool,
  accountId: number,
  asker: Asker,
  random: Random,
  count: number,
  people: number,
): Promise<WantedCampaign[]> {
  const campaigns = Array.from({ length: count }, (_, n) => drawCampaign(random, n + 1, asker, people))
  for (const { group, phones } of campaigns) {
    await pool.query('insert into groups (account_id, number) values ($1, $2)', [accountId, group])
    await pool.query('insert into group_members (account_id, group_number, phone) select $1, $2, unnest($3::text[])', [
      accountId,
      group,
      phones,
    ])
  }
  return campaigns
}

/** Asks for it, twice with the same key, and pauses or cancels it on its way. Returns when nobody will touch it any more. */
export async function runCampaign({ caller, pool }: { caller: Caller; pool: Pool }, asked: Asked, wanted: WantedCampaign): Promise<void> {
  const { startInMs, lifeMs, course, stopAfterMs, resumeAfterMs } = wanted
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
  const body = {
    ...wanted.body,
    ...(startInMs !== undefined && { scheduledAt: inMs(startInMs) }),
    ...(lifeMs !== undefined && { expiresAt: inMs((startInMs ?? 0) + lifeMs) }),
  }
  const one: AskedCampaign = { ...wanted, body, key: randomUUID(), outcome: 'unanswered', ids: [] }
  asked.campaigns.push(one)
  const hear = (answer: Answer) => hearAnswer(asked, one, answer, A_CAMPAIGN)
  const request = { method: 'POST', path: '/campaigns', key: one.key, body } as const
  await Promise.all([persist(caller, request, hear), persist(caller, request, hear)])
  if (one.outcome === 'unanswered') asked.strange.push(`${one.key}: no answer, for as long as anybody would wait`)
  const [campaignId] = one.ids
  if (campaignId === undefined) return
  if (course === 'undisturbed') return
  await sleep(stopAfterMs)
  await move(pool, campaignId, course === 'paused' ? 'PAUSED' : 'CANCELLED')
  if (course !== 'paused') return
  await sleep(resumeAfterMs)
  await move(pool, campaignId, 'RUNNING')
}

/** As an operator does who tries until the database is there. Where the campaign is over, or has not begun, it stays as it is. */
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
