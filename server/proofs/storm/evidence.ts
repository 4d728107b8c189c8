import type pg from 'pg'
import { assertAllCounted } from '../../test/support/counted.ts'
import { compareTold } from '../../test/support/told.ts'
import { type Logged, readLog } from '../crash/webhook-checks.ts'
import { inParallel } from '../in-parallel.ts'
import { type Ask, type LedgerEntry, readEntries } from '../ledger.ts'
import type { Asked, AskedCampaign, AskedMessage } from './asked.ts'
import { type Caller, persist, type Try } from './caller.ts'
import type { Span } from './causes.ts'
import type { Told } from './followers.ts'
import { type LeaseChange, readLeaseChanges } from './leases.ts'
import { type Left, readLeft } from './left.ts'
import type { Essential } from './plan.ts'
import type { Processes } from './processes.ts'
import { type Received, readReceived } from './received.ts'
import { readMessages, type Stored } from './stored.ts'
import type { Tenancy } from './tenants.ts'
import type { Disturbance } from './upsets.ts'

// Everything that the verdict is about, as plain data: read once, when all is settled.

export type StoredCampaign = { id: string; accountId: number; status: string }
/** `id`: of what was made under this key. */
export type StoredKey = { accountId: number; endpoint: string; key: string; id: string }
export type AskedAgain = { key: string; status: number; id: string | undefined; isReplayed: boolean }
/** `faults`: each in a line. */
export type Compared = { compared: number; faults: string[] }
/** What somebody did, as it is kept here. */
export type Action = {
  accountId: number
  agentId: string
  phone: string
  messageId: string | null
  kind: string
  text: string | null
  buttonId: string | null
  payload: string | null
  url: string | null
}
/** A try to post an event that the service has written down; `status` null where no answer came. To which endpoint: by its path. */
export type Attempt = { path: string; eventId: string; status: number | null }

/** Of one account, by whom it was asked for. */
type Owned<T> = T & { accountId: number }

export type Evidence = {
  asked: { messages: Owned<AskedMessage>[]; campaigns: Owned<AskedCampaign>[]; strange: string[] }
  told: Told[]
  tries: Try[]
  messages: Stored[]
  /** Messages that the other account was shown. */
  leaked: string[]
  campaigns: StoredCampaign[]
  keys: StoredKey[]
  actions: Action[]
  again: AskedAgain[]
  ledger: LedgerEntry[]
  received: Received[]
  /** What the ledger had when the network was about to be killed. */
  seenBefore: LedgerEntry[]
  log: Owned<Logged>[]
  attempts: Attempt[]
  leaseChanges: LeaseChange[]
  counted: Compared
  campaignsCounted: Compared
  changesTold: Compared
  left: Left
  processes: Processes
  upsets: Disturbance[]
  /** When the machine had no time for us. */
  stalls: Span[]
  /** What must have been done, or the rest would prove little. */
  essential: readonly Essential[]
  /** Of those that callers ask, by name. */
  addresses: Record<string, string>
  /** What callers show to be let in. */
  secrets: string[]
}

export type Sources = {
  /** Of `openForJudging`. */
  pool: pg.Pool
  tenancies: readonly Tenancy[]
  ask: Ask
} & Pick<Evidence, 'seenBefore' | 'processes' | 'upsets' | 'stalls' | 'essential' | 'addresses'>

const AT_ONCE = 48

export async function gatherEvidence({ pool, tenancies, ask, ...rest }: Sources): Promise<Evidence> {
  const callers = tenancies.map(({ caller }) => caller)
  // First of all: what a repeated request would make must be seen by all that follows.
  const again: AskedAgain[] = []
  for (const { caller, asked } of tenancies) again.push(...(await askAgain(pool, caller, asked)))
  const { messages, leaked } = await readMessages(pool, callers)
  return {
    ...rest,
    asked: mergeAsked(tenancies),
    told: tenancies.map(({ told }) => told),
    again,
    messages,
    leaked,
    campaigns: (await pool.query<StoredCampaign>('select id, account_id as "accountId", status from campaigns')).rows,
    keys: await readKeys(pool),
    actions: await readActions(pool),
    ledger: await readEntries({ ask }),
    received: await readReceived(ask),
    log: await readLogs(pool, callers),
    attempts: await readAttempts(pool),
    leaseChanges: await readLeaseChanges(pool),
    counted: await compareCounters(pool),
    campaignsCounted: await compareCampaigns(pool),
    changesTold: await compareChanges(pool),
    left: await readLeft(pool, ask),
    tries: callers.flatMap(({ tries }) => tries),
    secrets: callers.map(({ authorization }) => authorization),
  }
}

function mergeAsked(tenancies: readonly Tenancy[]): Evidence['asked'] {
  const own = <T>({ caller: { accountId } }: Tenancy, all: readonly T[]) => all.map((one) => ({ ...one, accountId }))
  return {
    messages: tenancies.flatMap((one) => own(one, one.asked.messages)),
    campaigns: tenancies.flatMap((one) => own(one, one.asked.campaigns)),
    strange: tenancies.flatMap(({ asked }) => asked.strange),
  }
}

async function readLogs(pool: pg.Pool, callers: readonly Caller[]): Promise<Evidence['log']> {
  const logs: Evidence['log'] = []
  for (const { accountId } of callers) logs.push(...(await readLog(pool, accountId)).map((event) => ({ ...event, accountId })))
  return logs
}

async function readKeys(pool: pg.Pool): Promise<StoredKey[]> {
  const text = 'select account_id as "accountId", endpoint, key, message_id as id from idempotency_keys'
  return (await pool.query<StoredKey>(text)).rows
}

async function readActions(pool: pg.Pool): Promise<Action[]> {
  const { rows } = await pool.query<Action>(
    `select account_id as "accountId", agent_id as "agentId", recipient as phone, message_id as "messageId", kind, text, button_id as "buttonId",
       payload, url
     from recipient_actions`,
  )
  return rows
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

async function readAttempts(pool: pg.Pool): Promise<Attempt[]> {
  const { rows } = await pool.query<{ url: string; eventId: string; status: number | null }>(
    `select w.url, e.event_id as "eventId", a.status
     from webhook_attempts a join webhook_endpoints w on w.id = a.endpoint_id
     join events e on e.account_id = a.account_id and e.position = a.position`,
  )
  return rows.map(({ url, ...attempt }) => ({ path: new URL(url).pathname, ...attempt }))
}

async function compareCounters(pool: pg.Pool): Promise<Compared> {
  try {
    return { compared: await assertAllCounted(pool), faults: [] }
  } catch (error) {
    return { compared: 0, faults: (error as Error).message.split('\n') }
  }
}

async function compareChanges(pool: pg.Pool): Promise<Compared> {
  const { compared, ...faults } = await compareTold(pool)
  const named = Object.entries(faults).flatMap(([fault, all]) => all.map((one: unknown) => `${fault}: ${JSON.stringify(one)}`))
  return { compared, faults: named }
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
