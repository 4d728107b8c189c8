import type pg from 'pg'
import { isUnavailable } from '../../src/db/pool.ts'
import { BY_STATUS, countersOfCampaign } from '../../src/reports/counters.ts'
import { auditDatabase } from '../../test/support/audit.ts'
import { assertAllCounted, assertUsageCounted } from '../../test/support/counted.ts'
import { compareEmitted } from '../../test/support/emitted.ts'
import { type Call, type Caller, persist } from '../load/caller.ts'
import type { Requested, RequestedCampaign, RequestedMessage } from '../load/requested.ts'
import type { Received } from '../load/subscribers.ts'
import type { TenantRecord } from '../load/tenants.ts'
import type { Fault } from '../schedule/faults.ts'
import type { RequiredFault } from '../schedule/plan.ts'
import { inParallel } from '../support/in-parallel.ts'
import { type LeaseChange, readLeaseChanges } from './leases.ts'
import { type Ask, type LedgerEntry, readEntries } from './ledger.ts'
import { type Head, type Logged, type Page, readLog, readPages } from './log.ts'
import { readMessages, type StoredMessage } from './messages.ts'
import { type PhoneMessage, readPhones } from './phones.ts'
import type { Processes } from './processes.ts'
import { type Remaining, readRemaining } from './remaining.ts'
import type { Scripted } from './scripted.ts'
import type { Span } from './stalls.ts'

// Everything that the checks compare, as plain data. It is read once, when everything is settled.

export type StoredCampaign = { id: string; accountId: number; status: string; shown: ShownCampaign }
/** As the API shows it. */
export type ShownCampaign = { recipients: number; counts: Record<string, number> }
/** How far the expiry of messages has come, and how far it may have come, in ms. `passed`: open messages that it has skipped. */
export type Walk = { reachedAt: number; dueAt: number; passed: string[] }
/** `id`: of the message or campaign that was created with this key. */
export type StoredKey = { accountId: number; endpoint: string; key: string; id: string }
export type Replay = { key: string; status: number; id: string | undefined; isReplayed: boolean }
/** `wrong`: a sentence for each difference. */
export type Compared = { compared: number; wrong: string[] }
/** An action of a recipient, as it is stored. */
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
/** A stored attempt to post an event; `status` null if no response came. `path`: of the endpoint. */
export type Attempt = { path: string; eventId: string; status: number | null }

type Owned<T> = T & { accountId: number }

export type History = {
  requested: { messages: Owned<RequestedMessage>[]; campaigns: Owned<RequestedCampaign>[]; unexpected: string[] }
  received: Received[]
  calls: Call[]
  messages: StoredMessage[]
  /** Messages that the API showed to the other account. */
  leaked: string[]
  campaigns: StoredCampaign[]
  keys: StoredKey[]
  actions: Action[]
  replays: Replay[]
  ledger: LedgerEntry[]
  phones: PhoneMessage[]
  /** The ledger as it was before each kill of the network. */
  seenBefore: LedgerEntry[]
  log: Owned<Logged>[]
  pages: Page[]
  heads: Head[]
  walks: Walk[]
  attempts: Attempt[]
  leaseChanges: LeaseChange[]
  rules: Compared
  counters: Compared
  statusCounts: Compared
  emitted: Compared
  remaining: Remaining
  processes: Processes
  faults: Fault[]
  /** When the machine had no processor for us. */
  stalls: Span[]
  required: readonly RequiredFault[]
  /** The URLs of the API nodes, by name. */
  addresses: Record<string, string>
  /** The credentials of the callers. */
  secrets: string[]
  /** What scripted cases have recorded. */
  scripted: Scripted
}

export type Sources = {
  /** Of `openForChecks`, or one connection of it. */
  pool: Pick<pg.ClientBase, 'query'>
  tenants: readonly TenantRecord[]
  ask: Ask
} & Pick<History, 'seenBefore' | 'processes' | 'faults' | 'stalls' | 'required' | 'addresses' | 'scripted'>

const IN_PARALLEL = 48
type Db = Sources['pool']

export async function readHistory({ pool, tenants, ask, ...rest }: Sources): Promise<History> {
  const callers = tenants.map(({ caller }) => caller)
  // First of all: whatever a repeated request creates must be in all that is read later.
  const replays: Replay[] = []
  for (const { caller, requested } of tenants) replays.push(...(await repeatRequests(pool, caller, requested)))
  const { messages, leaked } = await readMessages(pool, callers)
  return {
    ...rest,
    requested: mergeRequested(tenants),
    received: tenants.map(({ received }) => received),
    replays,
    messages,
    leaked,
    campaigns: await readCampaigns(pool, callers),
    ledger: await readEntries({ ask }),
    phones: await readPhones(ask),
    ...(await readRows({ pool, tenants, ask })),
    calls: callers.flatMap(({ calls }) => calls),
    secrets: callers.map(({ authorization }) => authorization),
  }
}

/** The part of the history that is in the database alone. */
export async function readRows({ pool, tenants, ask }: Pick<Sources, 'pool' | 'tenants' | 'ask'>) {
  const log: History['log'] = []
  for (const { caller } of tenants) {
    const { accountId } = caller
    log.push(...(await readLog(pool, accountId)).map((event) => ({ ...event, accountId })))
  }
  return {
    keys: await readKeys(pool),
    actions: await readActions(pool),
    log,
    ...(await readPages(pool)),
    walks: await readWalks(pool),
    attempts: await readAttempts(pool, log),
    leaseChanges: await readLeaseChanges(pool),
    rules: await compare(async () => auditDatabase(pool).then(() => 1)),
    counters: await compareCounters(pool),
    statusCounts: await compareStatusCounts(pool),
    emitted: await readEmittedFaults(pool),
    remaining: await readRemaining(pool, ask),
  }
}

function mergeRequested(tenants: readonly TenantRecord[]): History['requested'] {
  const own = <T>({ caller: { accountId } }: TenantRecord, all: readonly T[]) => all.map((one) => ({ ...one, accountId }))
  return {
    messages: tenants.flatMap((one) => own(one, one.requested.messages)),
    campaigns: tenants.flatMap((one) => own(one, one.requested.campaigns)),
    unexpected: tenants.flatMap(({ requested }) => requested.unexpected),
  }
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

/** Repeats every request whose key has created something, also of callers that had stopped waiting. Others would only now be accepted. */
async function repeatRequests(pool: Db, caller: Caller, { messages, campaigns }: Requested): Promise<Replay[]> {
  const used = new Set((await readKeys(pool)).map(({ key }) => key))
  const requests = [
    ...messages.map(({ key, body }) => ({ method: 'POST', path: '/messages', key, body }) as const),
    ...campaigns.map(({ key, body }) => ({ method: 'POST', path: '/campaigns', key, body }) as const),
  ].filter(({ key }) => used.has(key))
  const replays: Replay[] = []
  await inParallel(requests, IN_PARALLEL, async (request) => {
    const { status, body, isReplayed } = await persist(caller, request)
    replays.push({ key: request.key, status, id: body?.messageId ?? body?.campaignId, isReplayed })
  })
  return replays
}

async function readAttempts(pool: Db, log: History['log']): Promise<Attempt[]> {
  const { rows } = await pool.query<{ url: string; position: string; status: number | null }>(
    `select w.url, a.account_id || ' ' || a.position as position, a.status
     from webhook_attempts a join webhook_endpoints w on w.id = a.endpoint_id`,
  )
  const idOf = new Map(log.map(({ accountId, position, eventId }) => [`${accountId} ${position}`, eventId]))
  return rows.map(({ url, position, status }) => ({
    path: new URL(url).pathname,
    eventId: idOf.get(position) ?? `of account and position ${position}, where the log has none`,
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

/** Turns an assertion into its result. Throws if the database is away. */
async function compare(assertEqual: () => Promise<number>): Promise<Compared> {
  try {
    return { compared: await assertEqual(), wrong: [] }
  } catch (error) {
    if (isUnavailable(error)) throw error
    return { compared: 0, wrong: (error as Error).message.split('\n') }
  }
}

/** Reports and usage, each counter computed again from the rows. */
export async function compareCounters(pool: Db): Promise<Compared> {
  return await compare(async () => {
    await assertUsageCounted(pool)
    return await assertAllCounted(pool)
  })
}

async function readEmittedFaults(pool: Db): Promise<Compared> {
  const { compared, ...faults } = await compareEmitted(pool)
  return {
    compared,
    wrong: Object.entries(faults).flatMap(([fault, all]) => all.map((one: unknown) => `${fault}: ${JSON.stringify(one)}`)),
  }
}

/**
 * The counts by status, as the API computes them from the counters of reports, against the messages; and a completed campaign has no message
 * that waits. In one statement, and so of one moment.
 */
export async function compareStatusCounts(pool: Db): Promise<Compared> {
  const { rows } = await pool.query<{ id: string; status: string; counted: number; rows: number }>(
    `select campaign_id as id, status, sum(counted)::int as counted, sum(rows)::int as rows from (
       select c.id as campaign_id, by_status.status, by_status.count as counted, 0 as rows
       from campaigns c, lateral ${countersOfCampaign('c')} as counters, lateral (
         values ${Object.entries(BY_STATUS)
           .map(([status, count]) => `('${status}', ${count})`)
           .join(', ')}
       ) as by_status (status, count)
       union all select m.campaign_id, case when m.status = 'ACCEPTED' and coalesce(q.claimed, true) then 'SENDING' else m.status end, 0, 1
         from messages m left join queue q on q.message_id = m.id where m.campaign_id is not null
       union all select id, 'recipients', recipients, 0 from campaigns
       union all select campaign_id, 'recipients', 0, 1 from messages where campaign_id is not null
       union all select c.id, 'ACCEPTED, but completed', 0, 1 from messages m join campaigns c on c.id = m.campaign_id
         where c.status = 'COMPLETED' and m.status = 'ACCEPTED'
     ) as compared group by 1, 2`,
  )
  const wrong = rows.filter(({ counted, rows: there }) => counted !== there)
  return { compared: rows.length, wrong: wrong.map((row) => JSON.stringify(row)) }
}
