import type { Pool } from '../../server/src/db/pool.ts'
import { type Cpu, cpuOfAll } from '../measure/process-usage.ts'
import { until } from '../measure/rounds.ts'
import { type Account, createSenderBy } from './accounts.ts'
import { THIS_CHECKOUT } from './checkouts.ts'
import { openPool, postmasterIn, startPostgres } from './postgres.ts'
import { type HeraldProcess, type Inspected, putWebhook, type SimulatorProcess, startHerald, startSimulator } from './processes.ts'

// The whole service with the simulated network, and an account that sends.

export type Service = {
  url: string
  databaseUrl: string
  simulator: SimulatorProcess
  pool: Pool
  account: Account
  /** Those of the service, by role, and the simulator. */
  processes: Record<string, Inspected>
  postmaster: number
  /** CPU time used so far in ms: by each process, and by PostgreSQL as `postgres`. */
  cpu: () => Cpu
  stop: () => Promise<void>
}

/** `checkout`: whose service. `simulator`: whose network. `delayMs`: the time between the steps of a message. */
type Starting = { checkout?: string; simulator?: string; delayMs?: number; inspect?: boolean }
/** `each`: the number of processes of the API, and of delivery. */
type StartingApart = Starting & { each?: number }

/** All roles in one process with the embedded database, as a first installation has them. */
export async function startTogether(starting: Starting = {}): Promise<Service> {
  const { checkout = THIS_CHECKOUT } = starting
  const simulator = await startNetworkOf(starting)
  const herald = await startHerald([], { HERALD_CARRIERS: simulator.carriersFile }, { checkout })
  const account = await createSenderBy(checkout, { HERALD_DATA_DIR: herald.dataDir })
  const postmaster = postmasterIn(herald.dataDir)
  return await serve({ simulator, nodes: { service: herald }, databaseUrl: herald.databaseUrl, postmaster, account })
}

// A process has up to 10 connections and some for LISTEN; PostgreSQL allows 100 by default.
const MANY_CONNECTIONS = { max_connections: '400' }

/** Each role in a process of its own, on one PostgreSQL, as a large installation has them. Endpoints may be on this machine. */
export async function startApart(starting: StartingApart = {}): Promise<Service> {
  const { checkout = THIS_CHECKOUT, inspect = false, each = 1 } = starting
  const { url: databaseUrl, postmaster, stop: stopPostgres } = await startPostgres(each === 1 ? {} : MANY_CONNECTIONS)
  const simulator = await startNetworkOf(starting)
  const env = { HERALD_CARRIERS: simulator.carriersFile, HERALD_DATABASE_URL: databaseUrl, HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' }
  const nodes: Record<string, HeraldProcess> = {}
  for (const [role, count] of Object.entries({ api: each, delivery: each, webhooks: 1 })) {
    for (let n = 1; n <= count; n++) {
      nodes[count === 1 ? role : `${role} ${n}`] = await startHerald(['--only', role], env, { inspect, checkout })
    }
  }
  const account = await createSenderBy(checkout, { HERALD_DATABASE_URL: databaseUrl })
  const service = await serve({ simulator, nodes, databaseUrl, postmaster, account })
  async function stop(): Promise<void> {
    await service.stop()
    await stopPostgres()
  }
  return { ...service, stop }
}

async function startNetworkOf({ simulator = THIS_CHECKOUT, delayMs = 0, inspect = false }: Starting): Promise<SimulatorProcess> {
  return await startSimulator({ inspect, delayMs, checkout: simulator })
}

type Started = Pick<Service, 'simulator' | 'databaseUrl' | 'postmaster' | 'account'> & { nodes: Record<string, HeraldProcess> }

/** The first node gets the requests. */
async function serve({ nodes, ...started }: Started): Promise<Service> {
  const { simulator, databaseUrl, postmaster } = started
  const [{ url }] = Object.values(nodes) as [HeraldProcess]
  await putWebhook(simulator, `${url}/carriers/simulator/webhook`)
  const { pool, end } = openPool(databaseUrl)
  const processes = { ...nodes, simulator }
  const children = Object.fromEntries(Object.entries(processes).map(([name, { child }]) => [name, child]))
  async function stop(): Promise<void> {
    await end()
    for (const node of Object.values(nodes).toReversed()) await node.stop()
    await simulator.stop()
  }
  return { ...started, url, pool, processes, cpu: () => cpuOfAll(children, postmaster), stop }
}

/** Returns when all messages are READ and all receipts accepted. Throws if a message has failed or expired. */
export async function untilAllRead({ simulator, pool }: Pick<Service, 'simulator' | 'pool'>, count: number): Promise<void> {
  await untilReceiptsAccepted(simulator, count)
  await untilRead(pool, count)
}

// A poll costs the simulator CPU time, which is measured.
const POLL_MS = 100
const STALLED_MS = 60_000

/** Two receipts of each message, DELIVERED and READ. The service accepts a receipt once it is committed. */
export async function untilReceiptsAccepted(simulator: SimulatorProcess, messages: number): Promise<void> {
  let last = { accepted: 0, at: performance.now() }
  await until(async () => {
    const accepted = Number((await readCounts(simulator))['webhook-accepted'] ?? 0)
    if (accepted > last.accepted) last = { accepted, at: performance.now() }
    if (performance.now() - last.at > STALLED_MS)
      throw new Error(`${accepted} of ${2 * messages} receipts were accepted, and none for a minute`)
    return accepted >= 2 * messages
  }, POLL_MS)
}

/** All receipts were accepted. */
export async function owesNothing(simulator: SimulatorProcess): Promise<boolean> {
  const { owed } = await readCounts(simulator)
  return Object.values(owed as Record<string, number>).every((count) => count === 0)
}

async function readCounts({ url }: SimulatorProcess): Promise<Record<string, unknown>> {
  return (await (await fetch(`${url}/simulator/counts`)).json()) as Record<string, unknown>
}

/** Reads the messages that were accepted from `since` on (in ms), so that its cost does not grow with the history. */
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
