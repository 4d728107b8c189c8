import { randomInt, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { createAccount } from '../server/src/accounts/accounts.ts'
import { createKey } from '../server/src/accounts/keys.ts'
import { assignAgent, createAgent } from '../server/src/agents/agents.ts'
import { createPool, type Pool } from '../server/src/db/pool.ts'
import { createTemplate } from '../server/src/templates/templates.ts'
import { postRequest } from './http-load.ts'
import { until } from './measure.ts'
import {
  childrenOf,
  cpuMs,
  cpuOfFamilyMs,
  type HeraldProcess,
  residentMiB,
  type SimulatorProcess,
  startHerald,
  startSimulator,
} from './processes.ts'

// What the measurements of the whole service have in common: its processes, an account that sends, and what each process has used.

export const AGENT = 'bench'
const TEMPLATE = {
  name: 'On its way',
  description: 'For the measurements.',
  basic: false,
  status: 'APPROVED' as const,
  message: { type: 'MESSAGE' as const, content: 'Your order is on its way.' },
}

export type Account = { accountId: number; authorization: string; templateId: number }

/** An account that may send, by an agent of the simulated network, what is in a template. */
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
  api: HeraldProcess
  simulator: SimulatorProcess
  pool: Pool
  account: Account
  /** The processes of the service, by what they are. */
  nodes: Record<string, HeraldProcess>
  /** All whose work is looked at. */
  processes: Record<string, { pid?: number | undefined }>
  stop: () => Promise<void>
}

/**
 * The service and the network beside it: its roles in one process, as a trial has it, or in processes of their own, as a large installation
 * has it and as their work can be told apart. PostgreSQL is of its own, and durable as in production.
 */
export async function startService(roles: 'together' | 'apart'): Promise<Service> {
  const simulator = await startSimulator()
  const carriers = { HERALD_CARRIERS: simulator.carriersFile }
  const api = await startHerald(roles === 'apart' ? ['--only', 'api'] : [], carriers)
  const others: [string, HeraldProcess][] = []
  for (const role of roles === 'apart' ? ['delivery', 'webhooks'] : []) {
    others.push([role, await startHerald(['--only', role], { ...carriers, HERALD_DATABASE_URL: api.databaseUrl })])
  }
  await putWebhook(simulator, `${api.url}/carriers/simulator/webhook`)
  const pool = createPool({ connectionString: api.databaseUrl }, () => {})
  const account = await createSender(pool)
  async function stop(): Promise<void> {
    await pool.end()
    for (const [, node] of others) await node.stop()
    await api.stop()
    await simulator.stop()
  }
  const nodes = { [roles === 'apart' ? 'api' : 'service']: api, ...Object.fromEntries(others) }
  const children = Object.entries(nodes).map(([name, { child }]) => [name, child])
  const processes = { ...Object.fromEntries(children), simulator: simulator.child }
  return { api, simulator, pool, account, nodes, processes, stop }
}

export async function putWebhook({ url }: SimulatorProcess, address: string): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  await fetch(`${url}/simulator/webhook`, { method: 'PUT', headers, body: JSON.stringify({ url: address }) })
}

/** Returns when the network has nothing more to tell, and all messages are READ; throws where one has come to another end. */
export async function untilAllRead({ simulator, pool }: Pick<Service, 'simulator' | 'pool'>, count: number): Promise<void> {
  await until(async () => {
    const counts = (await (await fetch(`${simulator.url}/simulator/counts`)).json()) as Record<string, number>
    return (counts['webhook-accepted'] ?? 0) >= 2 * count
  })
  await until(async () => {
    const { rows } = await pool.query<{ status: string; count: number }>('select status, count(*) from messages group by status')
    const wrong = rows.find(({ status }) => status === 'FAILED' || status === 'EXPIRED')
    if (wrong !== undefined) throw new Error(`${wrong.count} messages are ${wrong.status}`)
    return rows.every(({ status }) => status === 'READ') && rows.reduce((sum, row) => sum + row.count, 0) === count
  })
}

/** CPU time in ms, or for each message in µs, by what used it. */
export type Cpu = Record<string, number>

/** What was used so far, by each process and by PostgreSQL. */
export function cpuOf({ processes, api }: Pick<Service, 'processes' | 'api'>): Cpu {
  const own = Object.entries(processes).map(([name, child]) => [name, cpuMs(child) ?? 0])
  return { ...Object.fromEntries(own), postgres: cpuOfFamilyMs(postmasterPid(api)) ?? 0 }
}

export function eachMicroseconds(from: Cpu, to: Cpu, count: number): Cpu {
  return Object.fromEntries(Object.entries(to).map(([name, ms]) => [name, ((ms - (from[name] ?? 0)) * 1_000) / count]))
}

export function postmasterPid({ dataDir }: HeraldProcess): number {
  return Number(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0])
}

/**
 * What a process holds, in MiB: one of the service by its own word, what its JavaScript uses; the network, all of it; PostgreSQL, what its
 * processes hold for themselves, which is all but the shared buffers.
 */
export async function memoryOf({ nodes, simulator, api }: Pick<Service, 'nodes' | 'simulator' | 'api'>): Promise<Record<string, number>> {
  const own = await Promise.all(Object.entries(nodes).map(async ([name, node]) => [name, await heapOf(node)]))
  const postgres = childrenOf(postmasterPid(api)).reduce((sum, pid) => sum + residentMiB(pid, 'RssAnon'), 0)
  return { ...Object.fromEntries(own), simulator: residentMiB(`${simulator.child.pid}`, 'VmRSS'), postgres }
}

async function heapOf({ url }: HeraldProcess): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  return Number(/^nodejs_heap_size_used_bytes (\S+)/m.exec(metrics)?.[1]) / 2 ** 20
}

/** A connection of its own, for what takes longer than the pool allows. */
export async function openClient(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  return client
}
