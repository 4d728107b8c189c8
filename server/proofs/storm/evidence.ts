import type pg from 'pg'
import { BY_STATUS, countersOfCampaign } from '../../src/reports/counters.ts'
import { assertAllCounted } from '../../test/support/counted.ts'
import { compareEmitted } from '../../test/support/emitted.ts'
import { inParallel } from '../in-parallel.ts'
import { type Ask, type LedgerEntry, readEntries } from '../ledger.ts'
import { type Head, type Logged, type Page, readLog, readPlaces } from '../log.ts'
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

export type StoredCampaign = { id: string; accountId: number; status: string; shown: ShownCampaign }
/** As the API shows it. */
export type ShownCampaign = { recipients: number; counts: Record<string, number> }
/** How far the expiry of messages has got, in ms: `dueAt` is how far it may have. `passed`: messages it has left behind that are open. */
export type Walk = { reachedAt: number; dueAt: number; passed: string[] }
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
  pages: Page[]
  heads: Head[]
  walks: Walk[]
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
  /** Of `openForJudging`, or one connection of it. */
  pool: Pick<pg.ClientBase, 'query'>
  tenancies: readonly Tenancy[]
  ask: Ask
} & Pick<Evidence, 'seenBefore' | 'processes' | 'upsets' | 'stalls' | 'essential' | 'addresses'>

const AT_ONCE = 48
type Db = Sources['pool']

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
    campaigns: await readCampaigns(pool, callers),
    ledger: await readEntries({ ask }),
    received: await readReceived(ask),
    ...(await readRows({ pool, tenancies, ask })),
    tries: callers.flatMap(({ tries }) => tries),
    secrets: callers.map(({ authorization }) => authorization),
  }
}

/** What of the evidence the database alone has. */
export async function readRows({ pool, tenancies, ask }: Pick<Sources, 'pool' | 'tenancies' | 'ask'>) {
  const log = await readLogs(
    pool,
    tenancies.map(({ caller }) => caller),
  )
  return {
    keys: await readKeys(pool),
    actions: await readActions(pool),
    log,
    ...(await readPlaces(pool)),
    walks: await readWalks(pool),
    attempts: await readAttempts(pool, log),
    leaseChanges: await readLeaseChanges(pool),
    counted: await compareCounters(pool),
    campaignsCounted: await compareCampaigns(pool),
    changesTold: await compareChanges(pool),
    left: await readLeft(pool, ask),
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

async function readLogs(pool: Db, callers: readonly Caller[]): Promise<Evidence['log']> {
  const logs: Evidence['log'] = []
  for (const { accountId } of callers) logs.push(...(await readLog(pool, accountId)).map((event) => ({ ...event, accountId })))
  return logs
}

async function readKeys(pool: Db): Promise<StoredKey[]> {
  const text = 'select account_id as "accountId", endpoint, key, resource_id as id from idempotency_keys'
  return (await pool.query<StoredKey>(text)).rows
}

async function readActions(pool: Db): Promise<Action[]> {
  const { rows } = await pool.query<Action>(
    `select account_id as "accountId", agent_id as "agentId", recipient as phone, message_id as "messageId", kind, text, button_id as "buttonId",
       payload, url
     from recipient_actions`,
  )
  return rows
}

/** Every key that has made something, also of those who had given up. Others would only now be accepted. */
async function askAgain(pool: Db, caller: Caller, { messages, campaigns }: Asked): Promise<AskedAgain[]> {
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

async function readAttempts(pool: Db, log: Evidence['log']): Promise<Attempt[]> {
  const { rows } = await pool.query<{ url: string; place: string; status: number | null }>(
    `select w.url, a.account_id || ' ' || a.position as place, a.status
     from webhook_attempts a join webhook_endpoints w on w.id = a.endpoint_id`,
  )
  const idOf = new Map(log.map(({ accountId, position, eventId }) => [`${accountId} ${position}`, eventId]))
  return rows.map(({ url, place, status }) => ({
    path: new URL(url).pathname,
    eventId: idOf.get(place) ?? `of account and position ${place}, where the log has none`,
    status,
  }))
}

async function readCampaigns(pool: Db, callers: readonly Caller[]): Promise<StoredCampaign[]> {
  const { rows } = await pool.query<Omit<StoredCampaign, 'shown'>>('select id, account_id as "accountId", status from campaigns')
  const campaigns: StoredCampaign[] = []
  for (const row of rows) {
    const caller = callers.find(({ accountId }) => accountId === row.accountId) as Caller
    const { status, body } = await persist(caller, { method: 'GET', path: `/campaigns/${row.id}` })
    const nothing: ShownCampaign = { recipients: -1, counts: {} }
    campaigns.push({ ...row, shown: status === 200 ? { recipients: body.recipients, counts: body.counts } : nothing })
  }
  return campaigns
}

const OPEN = `m.status in ('ACCEPTED', 'SENT')`
const timeOfId = (id: string) => `('x' || left(replace(${id}::text, '-', ''), 12))::bit(48)::bigint`

/** All messages that expire by the walk live for 48 hours. */
async function readWalks(pool: Db): Promise<Walk[]> {
  const { rows } = await pool.query<Walk>(
    `select ${timeOfId('w.reached')} as "reachedAt", floor(extract(epoch from clock_timestamp() - interval '48 hours') * 1000)::bigint as "dueAt",
       array(select m.id::text from messages m
             where m.id < w.reached and ${OPEN} and not exists (select from expiries e where e.message_id = m.id)) as passed
     from expiry_walk w`,
  )
  return rows
}

async function compareCounters(pool: Db): Promise<Compared> {
  try {
    return { compared: await assertAllCounted(pool), faults: [] }
  } catch (error) {
    return { compared: 0, faults: (error as Error).message.split('\n') }
  }
}

async function compareChanges(pool: Db): Promise<Compared> {
  const { compared, ...faults } = await compareEmitted(pool)
  const named = Object.entries(faults).flatMap(([fault, all]) => all.map((one: unknown) => `${fault}: ${JSON.stringify(one)}`))
  return { compared, faults: named }
}

/** The counts by status, as the API works them out of the counters of reports, against the messages: in one statement, and so of one moment. */
async function compareCampaigns(pool: Db): Promise<Compared> {
  const { rows } = await pool.query<{ id: string; status: string; counted: number; rows: number }>(
    `select campaign_id as id, status, sum(counted)::int as counted, sum(rows)::int as rows from (
       select c.id as campaign_id, by_status.status, by_status.count as counted, 0 as rows
       from campaigns c, lateral ${countersOfCampaign('c')} as counters, lateral (
         values ${Object.entries(BY_STATUS)
           .map(([status, count]) => `('${status}', ${count})`)
           .join(', ')}
       ) as by_status (status, count)
       union all select campaign_id, status, 0, 1 from messages where campaign_id is not null
       union all select id, 'recipients', recipients, 0 from campaigns
       union all select campaign_id, 'recipients', 0, 1 from messages where campaign_id is not null
     ) as compared group by 1, 2`,
  )
  const wrong = rows.filter(({ counted, rows: there }) => counted !== there)
  return { compared: rows.length, faults: wrong.map((row) => JSON.stringify(row)) }
}
