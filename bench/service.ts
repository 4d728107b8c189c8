import { randomInt, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createAccount } from '../server/src/accounts/accounts.ts'
import { createKey } from '../server/src/accounts/keys.ts'
import { assignAgent, createAgent } from '../server/src/agents/agents.ts'
import { createPool, type Pool } from '../server/src/db/pool.ts'
import { createTemplate } from '../server/src/templates/templates.ts'
import { heraldOf, simulatorOf, THIS_CHECKOUT } from './checkouts.ts'
import { keep } from './clean-up.ts'
import { type Account, AGENT, commandOf, createBenchAgent, createCaller } from './commands.ts'
import { postRequest } from './http-load.ts'
import { until } from './measure.ts'
import { postmasterIn, startPostgres, urlOf } from './postgres.ts'
import { type Cpu, cpuMs, cpuOfFamilyMs } from './proc.ts'
import { type HeraldProcess, type Inspected, type SimulatorProcess, startHerald, startSimulator } from './processes.ts'

// What the measurements of the whole service have in common: its processes, an account that sends, and what each process has used.

const TEMPLATE = {
  name: 'On its way',
  description: 'For the measurements.',
  basic: false,
  status: 'APPROVED' as const,
  message: { type: 'MESSAGE' as const, content: 'Your order is on its way.' },
}

/** An account of this checkout that may send, by an agent of the simulated network, what is in a template. */
export async function createSender(pool: Pool): Promise<Account> {
  const { accountId } = await createAccount(pool, 'Bench', ['rcs'])
  await createAgent(pool, { agentId: AGENT, name: AGENT, billingType: 'single', carrier: 'simulator' })
  await assignAgent(pool, AGENT, accountId)
  const { integrationKey, secret } = await createKey(pool, accountId)
  const { id: templateId } = await createTemplate(pool, accountId, TEMPLATE)
  return { accountId, authorization: `Bearer ${integrationKey}:${secret}`, templateId }
}

/** The same at the database of a process. */
export async function createSenderAt({ databaseUrl }: { databaseUrl: string }): Promise<Account> {
  const pool = createPool({ connectionString: databaseUrl }, () => {})
  const account = await createSender(pool)
  await pool.end()
  return account
}

/** What is said: in the request, or by a template. */
export type Saying = 'inline' | 'template'

/** A request to send a message, with a key of its own, to a number at random: indexes are met everywhere. All of them are delivered and read. */
export function messageRequest({ authorization, templateId }: Account, saying: Saying = 'inline'): string {
  const recipient = `+4850${String(randomInt(100_000)).padStart(5, '0')}10`
  const message = saying === 'template' ? { templateId } : { inline: TEMPLATE.message }
  const headers = { Authorization: authorization, 'Idempotency-Key': randomUUID() }
  return postRequest('/v1/messages', headers, JSON.stringify({ agentId: AGENT, recipient, message }))
}

export type Service = {
  url: string
  databaseUrl: string
  simulator: SimulatorProcess
  pool: Pool
  account: Account
  /** Those of the service, by their roles, and the simulator. */
  processes: Record<string, Inspected>
  /** PostgreSQL's first process. */
  postmaster: number
  /** CPU time used so far in ms: by each process, and by PostgreSQL as `postgres`. */
  cpu: () => Cpu
  stop: () => Promise<void>
}

/** `checkout`: where the service comes from. `simulator`: the checkout of the network. `delayMs`: between the steps of a message. */
export type Starting = { checkout?: string; simulator?: string; delayMs?: number; inspect?: boolean }
/** `each`: so many processes of the API and of delivery. */
export type StartingApart = Starting & { each?: number }

/** All roles in one process with the embedded database, as a trial has it, and the network beside it. */
export async function startTogether(starting: Starting = {}): Promise<Service> {
  const { checkout = THIS_CHECKOUT } = starting
  const simulator = await startNetworkOf(starting)
  const program = heraldOf(checkout)
  const herald = await startHerald([], { HERALD_CARRIERS: simulator.carriersFile }, { program })
  const account = await createAccountAt(checkout, { HERALD_DATA_DIR: herald.dataDir })
  const postmaster = postmasterIn(herald.dataDir)
  return await serve({ simulator, nodes: { service: herald }, databaseUrl: herald.databaseUrl, postmaster, account })
}

// A process has up to 10 connections and some of its own; PostgreSQL allows 100 by default.
const MANY_CONNECTIONS = { max_connections: '400' }

/**
 * Each role in a process of its own, on a PostgreSQL of their own, as a large installation has it and as their work can be told
 * apart. Callers' endpoints may be on this machine.
 */
export async function startApart(starting: StartingApart = {}): Promise<Service> {
  const { checkout = THIS_CHECKOUT, inspect = false, each = 1 } = starting
  const postgres = await startPostgres(each === 1 ? {} : MANY_CONNECTIONS)
  const simulator = await startNetworkOf(starting)
  const databaseUrl = urlOf(postgres.connection)
  const env = { HERALD_CARRIERS: simulator.carriersFile, HERALD_DATABASE_URL: databaseUrl, HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' }
  const nodes: Record<string, HeraldProcess> = {}
  const program = heraldOf(checkout)
  for (const [role, count] of Object.entries({ api: each, delivery: each, webhooks: 1 })) {
    for (let n = 1; n <= count; n++) {
      nodes[count === 1 ? role : `${role} ${n}`] = await startHerald(['--only', role], env, { inspect, program })
    }
  }
  const account = await createAccountAt(checkout, { HERALD_DATABASE_URL: databaseUrl })
  const service = await serve({ simulator, nodes, databaseUrl, postmaster: postgres.postmaster, account })
  async function stop(): Promise<void> {
    await service.stop()
    await postgres.stop()
  }
  return { ...service, stop }
}

async function startNetworkOf({ simulator = THIS_CHECKOUT, delayMs = 0, inspect = false }: Starting): Promise<SimulatorProcess> {
  return await startSimulator({ inspect, delayMs, program: simulatorOf(simulator) })
}

/** An account by the commands of the checkout. */
export async function createAccountAt(checkout: string, env: Record<string, string>): Promise<Account> {
  const command = commandOf(heraldOf(checkout), env)
  await createBenchAgent(command)
  return await createCaller(command, 'Bench')
}

type Started = Pick<Service, 'simulator' | 'databaseUrl' | 'postmaster' | 'account'> & { nodes: Record<string, HeraldProcess> }

/** The first of the nodes is the one that takes requests. */
async function serve({ nodes, ...started }: Started): Promise<Service> {
  const { simulator, databaseUrl, postmaster } = started
  const [{ url }] = Object.values(nodes) as [HeraldProcess]
  await putWebhook(simulator, `${url}/carriers/simulator/webhook`)
  const pool = createPool({ connectionString: databaseUrl }, () => {})
  const endPool = keep(() => pool.end())
  const processes = { ...nodes, simulator }
  const children = Object.fromEntries(Object.entries(processes).map(([name, { child }]) => [name, child]))
  async function stop(): Promise<void> {
    await endPool()
    for (const node of Object.values(nodes).toReversed()) await node.stop()
    await simulator.stop()
  }
  return { ...started, url, pool, processes, cpu: () => cpuOf(children, postmaster), stop }
}

export async function putWebhook({ url, carriersFile }: SimulatorProcess, address: string): Promise<void> {
  const { webhookToken } = JSON.parse(readFileSync(carriersFile, 'utf8')).simulator
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${webhookToken}` }
  const response = await fetch(`${url}/simulator/webhook`, { method: 'PUT', headers, body: JSON.stringify({ url: address }) })
  if (!response.ok) throw new Error(`The simulator refuses ${address} as its webhook: ${await response.text()}`)
}

/** Returns when all messages are READ and the network has its receipts; throws where a message has come to another end. */
export async function untilAllRead({ simulator, pool }: Pick<Service, 'simulator' | 'pool'>, count: number): Promise<void> {
  await untilReceiptsAccepted(simulator, count)
  await untilRead(pool, count)
}

// Every look costs the simulator CPU time, which is measured.
const LOOK_EVERY_MS = 100

const STALLED_MS = 60_000

/** Two receipts of each message, DELIVERED and READ. The service accepts a receipt when it is committed. */
export async function untilReceiptsAccepted({ url }: SimulatorProcess, messages: number): Promise<void> {
  let last = { accepted: 0, at: performance.now() }
  await until(async () => {
    const counts = (await (await fetch(`${url}/simulator/counts`)).json()) as Record<string, number>
    const accepted = counts['webhook-accepted'] ?? 0
    if (accepted > last.accepted) last = { accepted, at: performance.now() }
    if (performance.now() - last.at > STALLED_MS)
      throw new Error(`of ${2 * messages} receipts ${accepted} were accepted, and none for a minute`)
    return accepted >= 2 * messages
  }, LOOK_EVERY_MS)
}

/** Looks at the messages that were accepted from `since` on (in ms), so that its cost does not grow with the history. */
export async function untilRead(pool: Pool, count: number, since = 0): Promise<void> {
  const text = 'select status, count(*) from messages where id >= $1 group by status'
  await until(async () => {
    const { rows } = await pool.query<{ status: string; count: number }>(text, [leastIdAt(since)])
    const wrong = rows.find(({ status }) => status === 'FAILED' || status === 'EXPIRED')
    if (wrong !== undefined) throw new Error(`${wrong.count} messages are ${wrong.status}`)
    const sum = rows.reduce((total, row) => total + row.count, 0)
    if (sum > count) throw new Error(`there are ${sum} messages, and ${count} were sent`)
    return rows.every(({ status }) => status === 'READ') && sum === count
  })
}

/** Ids are UUIDs of version 7, which begin with the time. */
function leastIdAt(ms: number): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`
}

/** What was used so far, by each process and by PostgreSQL. */
export function cpuOf(processes: Record<string, { pid?: number | undefined }>, postmaster: number): Cpu {
  const own = Object.entries(processes).map(([name, child]) => [name, cpuMs(child) ?? 0])
  return { ...Object.fromEntries(own), postgres: cpuOfFamilyMs(postmaster) ?? 0 }
}
