import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { acceptCampaign, type CampaignSubmission } from '../../src/campaigns/accept.ts'
import { findCampaign } from '../../src/campaigns/campaigns.ts'
import type { Executor, Pool } from '../../src/db/pool.ts'
import { fanOut } from '../../src/delivery/campaigns/fan-out.ts'
import { startDue } from '../../src/delivery/campaigns/lifecycle.ts'
import { fallbackOf } from '../../src/messages/sms-fallback.ts'
import { erased } from '../support/erased.ts'
import { type MessageCaller, newKey, smsFallback, startMessageService } from '../support/messages.ts'
import type { ApiResponse } from '../support/service.ts'
import { TEXT } from '../support/templates.ts'
import { untilDue } from '../support/until.ts'

// Groups as an import leaves them, campaigns as accepting leaves them, and the outcome of their messages.

/** The n-th of a million numbers, in ascending order. */
export function phone(n: number): string {
  return `+48700${String(n).padStart(6, '0')}`
}

/** `count` numbers from the n-th on. */
export function phones(from: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => phone(from + index))
}

/** Adds members to a group, which may be new. */
export async function fillGroup(db: Executor, accountId: number, group: number, members: string[]): Promise<void> {
  await fillGroups(db, accountId, new Map([[group, members]]))
}

/** By their numbers. */
export async function fillGroups(db: Executor, accountId: number, groups: ReadonlyMap<number, string[]>): Promise<void> {
  const rows = [...groups].flatMap(([group, members]) => members.map((member) => ({ group, member })))
  const fill = 'insert into groups (account_id, number) select $1, unnest($2::int[]) on conflict do nothing'
  await db.query(fill, [accountId, [...groups.keys()]])
  await db.query(
    `insert into group_members (account_id, group_number, phone) select $1, * from unnest($2::int[], $3::text[]) on conflict do nothing`,
    [accountId, rows.map(({ group }) => group), rows.map(({ member }) => member)],
  )
}

type Fields = Partial<Omit<CampaignSubmission, 'accountId' | 'agentId' | 'fallback' | 'idempotency'>> & {
  /** With an SMS fallback, which is due as soon as the message fails. */
  sms?: { planParams?: Record<string, unknown>; variant?: Record<string, unknown>; afterExpiry?: { delay?: number; sendTime?: string } }
}

/** Accepts a campaign, by default to group 1, and returns its id once it is due. */
export async function acceptedCampaign(db: Executor, sender: { accountId: number; agentId: string }, fields: Fields = {}): Promise<string> {
  const { sms, ...others } = fields
  const plan = smsFallback(sms?.planParams, sms?.variant) as Parameters<typeof fallbackOf>[0]
  const { campaignId } = await acceptCampaign(db, {
    name: 'Spring sale',
    segmentIds: [1],
    message: { inline: { type: 'MESSAGE', content: 'Hello' } },
    ...others,
    accountId: sender.accountId,
    agentId: sender.agentId,
    fallback: sms && fallbackOf(plan, sms.afterExpiry, 'http://127.0.0.1:8080'),
    idempotency: { key: newKey(), hash: randomBytes(32) },
  })
  await untilDue(db)
  return campaignId
}

/** Creates all messages of all due campaigns. Returns the number of messages of each chunk. */
export async function makeAll(pool: Pool): Promise<number[]> {
  await startDue(pool)
  const chunks: number[] = []
  for (;;) {
    const { created, mayBeMore } = await fanOut(pool, erased)
    if (!mayBeMore) return chunks
    chunks.push(created)
  }
}

/** The recipient of each message of a campaign, in ascending order. */
export async function recipientsOf(db: Executor, campaignId: string): Promise<string[]> {
  const { rows } = await db.query<{ recipient: string }>('select recipient from messages where campaign_id = $1 order by recipient', [
    campaignId,
  ])
  return rows.map(({ recipient }) => recipient)
}

/** The number of messages by status and reason, such as `FAILED OPTED_OUT`. */
export async function statusCountsOf(db: Executor, campaignId: string): Promise<Record<string, number>> {
  return await countsBy(db, campaignId, `concat_ws(' ', m.status, m.failure_reason)`)
}

/** The number of SMS by status and reason. */
export async function smsStatusCountsOf(db: Executor, campaignId: string): Promise<Record<string, number>> {
  return await countsBy(db, campaignId, `concat_ws(' ', f.status, f.reason)`, 'join sms_fallbacks f on f.message_id = m.id')
}

async function countsBy(db: Executor, campaignId: string, what: string, join = ''): Promise<Record<string, number>> {
  const { rows } = await db.query<{ what: string; count: number }>(
    `select ${what} as what, count(*) from messages m ${join} where m.campaign_id = $1 group by 1 order by 1`,
    [campaignId],
  )
  return Object.fromEntries(rows.map(({ what, count }) => [what, count]))
}

const STORED_OR_SENDING = `case when m.status = 'ACCEPTED' and coalesce(q.claimed, true) then 'SENDING' else m.status end`
const NONE = { ACCEPTED: 0, SENDING: 0, SENT: 0, DELIVERED: 0, READ: 0, FAILED: 0, EXPIRED: 0 }

/** The counts that callers read equal a count of the messages. */
export async function assertCountersEqualRows(db: Executor, campaignId: string): Promise<void> {
  const { recipients, counts } = await findCampaign(db, campaignId)
  const rows = { ...NONE, ...(await countsBy(db, campaignId, STORED_OR_SENDING, 'left join queue q on q.message_id = m.id')) }
  assert.deepEqual(counts, rows)
  assert.equal(
    recipients,
    Object.values(rows).reduce((sum, count) => sum + count, 0),
  )
}

export type CampaignCaller = MessageCaller & {
  /** A valid request for a campaign to group 1, with the fields of the test. */
  campaign: (fields?: Record<string, unknown>) => Record<string, unknown>
  create: (key: string, body: unknown) => Promise<ApiResponse>
  /** Creates one and returns its id. */
  created: (fields?: Record<string, unknown>) => Promise<string>
  readCampaign: (campaignId: string) => Promise<ApiResponse>
}

/** The service, and callers that have group 1 with two members. */
export async function startCampaignService(database: { url: string; pool: Pool }, env: Record<string, string> = {}) {
  const service = await startMessageService(database, env)
  async function newCaller(): Promise<CampaignCaller> {
    const caller = await service.newCaller()
    const { accountId, agentId, ask } = caller
    await fillGroup(database.pool, accountId, 1, phones(0, 2))
    const campaign: CampaignCaller['campaign'] = (fields = {}) => ({
      name: 'Spring sale',
      agentId,
      segmentIds: [1],
      message: { inline: TEXT },
      ...fields,
    })
    const create: CampaignCaller['create'] = (key, body) => ask('POST', '/campaigns', body, { 'Idempotency-Key': key })
    return {
      ...caller,
      campaign,
      create,
      created: async (fields) => (await create(newKey(), campaign(fields))).body.campaignId,
      readCampaign: (campaignId) => ask('GET', `/campaigns/${campaignId}`),
    }
  }
  return { ...service, newCaller }
}

/** The number of rows of the account in every table that accepting a campaign writes to. */
export async function countStored(pool: Pool, accountId: number) {
  const { rows } = await pool.query(
    `select
       (select count(*) from campaigns where account_id = $1) as campaigns,
       (select count(*) from contents where account_id = $1) as contents,
       (select count(*) from messages where account_id = $1) as messages,
       (select count(*) from idempotency_keys where account_id = $1) as keys`,
    [accountId],
  )
  return rows[0]
}
export const NOTHING = { campaigns: 0, contents: 0, messages: 0, keys: 0 }
export const ONE_CAMPAIGN = { campaigns: 1, contents: 1, messages: 0, keys: 1 }
