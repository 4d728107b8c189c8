import type pg from 'pg'
import { type Caller, persist } from '../load/caller.ts'
import { inParallel } from '../support/in-parallel.ts'

/** A step of a message or its SMS. `reason`: of a failure. */
export type Step = { kind: string; at: number; reason: string | null }

/** A message as the database stores it and as the API shows it. Times in ms. */
export type StoredMessage = {
  id: string
  accountId: number
  agentId: string
  recipient: string
  clientReferenceId: string | null
  campaignId: string | null
  triggeredBy: string | null
  acceptedAt: number
  expiresAt: number
  /** By its columns and those of its SMS. */
  steps: Step[]
  /** By its timeline, with the same names. */
  timeline: Step[]
  shown: Shown
}

export type Shown = {
  status: string
  messageId?: string
  agentId?: string
  recipient?: string
  clientReferenceId?: string
  campaignId?: string
  scheduledAt?: string
  expiresAt?: string
  sentAt?: string
  deliveredAt?: string
  readAt?: string
  failedAt?: string
  expiredAt?: string
  failure?: { reason: string }
  routing?: string
  smsFallback?: { status: string; reason?: string; segments: number; sentAt?: string; deliveredAt?: string }
}

type Db = Pick<pg.ClientBase, 'query'>

const ms = (column: string) => `round(extract(epoch from ${column}) * 1000)::bigint`
const step = (kind: string, at: string, reason = 'null') => `('${kind}', ${at}, ${reason})`

/** Only the timelines of a campaign's messages have an entry for these. */
export const OF_CAMPAIGNS = ['sent', 'delivered', 'read', 'failed', 'expired']
/** Each of these has a column and, apart from the above, an entry in the timeline, with the same time. */
export const WITH_COLUMN = [...OF_CAMPAIGNS, 'sms-sent', 'sms-delivered', 'sms-failed']
/** These have no time of their own, or that of another moment. */
export const TIMELESS = ['sms-scheduled', 'sms-skipped', 'sms-not-needed']
export const LATE = 'delivered-late'

const READ = `
  select m.id, m.account_id as "accountId", m.agent_id as "agentId", m.recipient, m.campaign_id as "campaignId", m.triggered_by as "triggeredBy",
    coalesce(m.client_reference_id, c.client_reference_id) as "clientReferenceId", ${ms('m.accepted_at')} as "acceptedAt",
    ${ms('m.expires_at')} as "expiresAt",
    (select coalesce(json_agg(json_build_object('kind', s.kind, 'at', ${ms('s.at')}, 'reason', s.reason)), '[]') from (values
      ${step('sent', 'm.sent_at')}, ${step('delivered', 'm.delivered_at')}, ${step('read', 'm.read_at')},
      ${step('failed', 'm.failed_at', 'm.failure_reason')}, ${step('expired', `case m.status when 'EXPIRED' then m.expires_at end`)},
      ${step('sms-sent', 'f.sent_at')}, ${step('sms-delivered', 'f.delivered_at')}, ${step('sms-failed', 'f.failed_at', 'f.reason')},
      ${step('sms-scheduled', 'f.due_at')}, ${step('sms-skipped', `case f.status when 'SKIPPED' then m.accepted_at end`, 'f.reason')},
      ${step('sms-not-needed', `case f.status when 'NOT_NEEDED' then m.accepted_at end`)}
    ) as s (kind, at, reason) where s.at is not null) as steps,
    (select coalesce(json_agg(json_build_object('kind', e.kind, 'at', ${ms('e.occurred_at')}, 'reason',
        case when e.kind in ('failed', 'sms-failed', 'sms-skipped') then e.reason end)), '[]')
      from message_events e where e.message_id = m.id and e.kind = any ($1)) as timeline
  from messages m left join campaigns c on c.id = m.campaign_id left join sms_fallbacks f on f.message_id = m.id`

const IN_PARALLEL = 48
// One message in ten is also requested by the other account.
const BY_OTHERS = 10

export async function readRowsOfMessages(pool: Db): Promise<Omit<StoredMessage, 'shown'>[]> {
  return (await pool.query<Omit<StoredMessage, 'shown'>>(READ, [[...WITH_COLUMN, ...TIMELESS, LATE]])).rows
}

/** Of these callers. `leaked`: messages that the API showed to another account. */
export async function readMessages(pool: Db, callers: readonly Caller[]): Promise<{ messages: StoredMessage[]; leaked: string[] }> {
  const rows = await readRowsOfMessages(pool)
  const messages: StoredMessage[] = []
  const leaked: string[] = []
  for (const caller of callers) {
    const own = rows.filter(({ accountId }) => accountId === caller.accountId)
    const others = rows.filter(({ accountId }, n) => accountId !== caller.accountId && n % BY_OTHERS === 0)
    const show = (id: string) => persist(caller, { method: 'GET', path: `/messages/${id}` })
    await inParallel(own, IN_PARALLEL, async (row) => {
      const { status, body } = await show(row.id)
      messages.push({ ...row, shown: status === 200 ? body : { status: `none: the API responds with ${status}` } })
    })
    await inParallel(others, IN_PARALLEL, async ({ id, accountId }) => {
      const { status } = await show(id)
      if (status !== 404) leaked.push(`${id} of account ${accountId}, requested by account ${caller.accountId}: ${status}`)
    })
  }
  return { messages, leaked }
}

/** Its timeline says that the phone got it after its final status. */
export function isLate({ timeline }: Pick<StoredMessage, 'timeline'>): boolean {
  return timeline.some(({ kind }) => kind === LATE)
}
