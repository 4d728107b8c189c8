import type pg from 'pg'
import { assertAllCounted } from '../../test/support/counted.ts'
import { assertAllTold } from '../../test/support/told.ts'
import { type Logged, readLog } from '../crash/webhook-checks.ts'
import { inParallel } from '../in-parallel.ts'
import { type LedgerEntry, readEntries } from '../ledger.ts'
import type { Asked } from './asked.ts'
import { type Caller, persist } from './caller.ts'
import type { Told } from './followers.ts'
import { type Left, readLeft } from './left.ts'
import type { Processes } from './processes.ts'

// Everything that the verdict is about, as plain data: read once, when all is settled.

/** A message as the database has it, and as the API shows it. */
export type Stored = {
  id: string
  recipient: string
  campaignId: string | null
  triggeredBy: string | null
  /** Its timeline says that the phone got it after it had ended here. */
  isLate: boolean
  shown: {
    status: string
    failure?: { reason: string }
    smsFallback?: { status: string; reason?: string; segments: number }
  }
}

export type StoredCampaign = { id: string; status: string }
/** `id`: of what was made under this key. */
export type StoredKey = { endpoint: string; key: string; id: string }
export type AskedAgain = { key: string; status: number; id: string | undefined; isReplayed: boolean }
/** `faults`: each in a line. */
export type Compared = { compared: number; faults: string[] }

export type Evidence = {
  asked: Asked
  told: Told
  messages: Stored[]
  campaigns: StoredCampaign[]
  keys: StoredKey[]
  /** By whom, one for each time. */
  actions: { phone: string }[]
  again: AskedAgain[]
  ledger: LedgerEntry[]
  /** What the ledger had when the network was about to be killed. */
  seenBefore: LedgerEntry[]
  log: Logged[]
  /** Tries of which the service has written down that no answer came: to which endpoint, by its path. */
  unanswered: { path: string; eventId: string }[]
  counted: Compared
  campaignsCounted: Compared
  changesTold: Compared
  left: Left
  processes: Processes
  upsets: number
}

export type Sources = {
  /** Of `openForJudging`. */
  pool: pg.Pool
  caller: Caller
  ask: (path: string) => Promise<any>
  asked: Asked
  told: Told
  seenBefore: LedgerEntry[]
  processes: Processes
  upsets: number
}

const AT_ONCE = 48

export async function gatherEvidence({ pool, caller, ask, asked, told, seenBefore, processes, upsets }: Sources): Promise<Evidence> {
  // First of all: what a repeated request would make must be seen by all that follows.
  const again = await askAgain(pool, caller, asked)
  return {
    asked,
    told,
    seenBefore,
    processes,
    upsets,
    again,
    messages: await readMessages(pool, caller),
    campaigns: (await pool.query<StoredCampaign>('select id, status from campaigns')).rows,
    keys: await readKeys(pool),
    actions: (await pool.query<{ phone: string }>('select recipient as phone from recipient_actions')).rows,
    ledger: await readEntries({ ask }),
    log: await readLog(pool, caller.accountId),
    unanswered: await readUnanswered(pool),
    counted: await compare(() => assertAllCounted(pool)),
    campaignsCounted: await compareCampaigns(pool),
    changesTold: await compare(() => assertAllTold(pool)),
    left: await readLeft(pool, ask),
  }
}

async function readKeys(pool: pg.Pool): Promise<StoredKey[]> {
  return (await pool.query<StoredKey>('select endpoint, key, message_id as id from idempotency_keys')).rows
}

/** Every key that has made something, also of those who had given up. Others would only now be accepted. */
async function askAgain(pool: pg.Pool, caller: Caller, { messages, campaigns }: Asked): Promise<AskedAgain[]> {
  const used = new Set((await readKeys(pool)).map(({ key }) => key))
  const requests = [
    ...messages.map(({ key, body }) => ({ method: 'POST', path: '/messages', key, body }) as const),
    ...campaigns.map(({ key, body }) => ({ method: 'POST', path: '/campaigns', key, body }) as const),
  ].filter(({ key }) => used.has(key))
  const again: AskedAgain[] = []
  await inParallel(requests, AT_ONCE, async (request) => {
    const { status, body, isReplayed } = await persist(caller, request)
    again.push({ key: request.key, status, id: body?.messageId ?? body?.campaignId, isReplayed })
  })
  return again
}

async function readMessages(pool: pg.Pool, caller: Caller): Promise<Stored[]> {
  const { rows } = await pool.query<Omit<Stored, 'shown'>>(
    `select m.id, m.recipient, m.campaign_id as "campaignId", m.triggered_by as "triggeredBy",
       exists (select from message_events e where e.message_id = m.id and e.kind = 'delivered-late') as "isLate"
     from messages m`,
  )
  const stored: Stored[] = []
  await inParallel(rows, AT_ONCE, async (row) => {
    const { status, body } = await persist(caller, { method: 'GET', path: `/messages/${row.id}` })
    stored.push({ ...row, shown: status === 200 ? body : { status: `none: the API answers ${status}` } })
  })
  return stored
}

async function readUnanswered(pool: pg.Pool): Promise<Evidence['unanswered']> {
  const { rows } = await pool.query<{ url: string; eventId: string }>(
    `select distinct w.url, e.event_id as "eventId"
     from webhook_attempts a join webhook_endpoints w on w.id = a.endpoint_id
     join events e on e.account_id = a.account_id and e.position = a.position
     where a.status is null`,
  )
  return rows.map(({ url, eventId }) => ({ path: new URL(url).pathname, eventId }))
}

async function compare(check: () => Promise<number>): Promise<Compared> {
  try {
    return { compared: await check(), faults: [] }
  } catch (error) {
    return { compared: 0, faults: (error as Error).message.split('\n') }
  }
}

/** The counts by status that the API shows of campaigns, against their messages. */
async function compareCampaigns(pool: pg.Pool): Promise<Compared> {
  const { rows } = await pool.query<{ id: string; status: string; counted: number; rows: number }>(
    `select campaign_id as id, status, sum(counted)::int as counted, sum(rows)::int as rows from (
       select campaign_id, status, count as counted, 0 as rows from campaign_counts
       union all select campaign_id, status, change, 0 from campaign_changes
       union all select campaign_id, status, 0, 1 from messages where campaign_id is not null
       union all select id, 'recipients', recipients, 0 from campaigns
       union all select campaign_id, 'recipients', 0, 1 from messages where campaign_id is not null
     ) as compared group by 1, 2`,
  )
  const wrong = rows.filter(({ counted, rows: there }) => counted !== there)
  return { compared: rows.length, faults: wrong.map((row) => JSON.stringify(row)) }
}
