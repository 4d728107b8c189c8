import { randomInt, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createAccount } from '../server/src/accounts/accounts.ts'
import { createKey } from '../server/src/accounts/keys.ts'
import { assignAgent, createAgent } from '../server/src/agents/agents.ts'
import { createPool, type Pool } from '../server/src/db/pool.ts'
import { createTemplate } from '../server/src/templates/templates.ts'
import { keep } from './clean-up.ts'
import { postRequest } from './http-load.ts'
import { until } from './measure.ts'
import { postmasterIn, startPostgres, urlOf } from './postgres.ts'
import { type Cpu, cpuMs, cpuOfFamilyMs } from './proc.ts'
import { type HeraldProcess, type Inspected, type SimulatorProcess, startHerald, startSimulator } from './processes.ts'

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
  url: string
  databaseUrl: string
  simulator: SimulatorProcess
  pool: Pool
  account: Account
  /** Those of the service, by their roles, and the simulator. */
  processes: Record<string, Inspected>
  /** PostgreSQL's first process. */
  postmaster: number
  stop: () => Promise<void>
}

/** Its roles in one process with the database that it brings, as a trial has it, and the network beside it. */
export async function startTogether(): Promise<Service> {
  const simulator = await startSimulator()
  const herald = await startHerald([], { HERALD_CARRIERS: simulator.carriersFile })
  return await serve({ simulator, nodes: { service: herald }, databaseUrl: herald.databaseUrl, postmaster: postmasterIn(herald.dataDir) })
}

/**
 * Each role in a process of its own, on a database that they are told of, as a large installation has it and as their work can be told
 * apart. Callers' endpoints may be on this machine.
 */
export async function startApart({ inspect = false } = {}): Promise<Service> {
  const postgres = await startPostgres()
  const simulator = await startSimulator({ inspect })
  const databaseUrl = urlOf(postgres.connection)
  const env = { HERALD_CARRIERS: simulator.carriersFile, HERALD_DATABASE_URL: databaseUrl, HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' }
  const nodes: Record<string, HeraldProcess> = {}
  for (const role of ['api', 'delivery', 'webhooks']) nodes[role] = await startHerald(['--only', role], env, { inspect })
  const service = await serve({ simulator, nodes, databaseUrl, postmaster: postgres.postmaster })
  async function stop(): Promise<void> {
    await service.stop()
    await postgres.stop()
  }
  return { ...service, stop }
}

type Started = Pick<Service, 'simulator' | 'databaseUrl' | 'postmaster'> & { nodes: Record<string, HeraldProcess> }

/** The first of the nodes is the one that takes requests. */
async function serve({ nodes, simulator, databaseUrl, postmaster }: Started): Promise<Service> {
  const [{ url }] = Object.values(nodes) as [HeraldProcess]
  await putWebhook(simulator, `${url}/carriers/simulator/webhook`)
  const pool = createPool({ connectionString: databaseUrl }, () => {})
  const endPool = keep(() => pool.end())
  const account = await createSender(pool)
  async function stop(): Promise<void> {
    await endPool()
    for (const node of Object.values(nodes).toReversed()) await node.stop()
    await simulator.stop()
  }
  return { url, databaseUrl, simulator, pool, account, processes: { ...nodes, simulator }, postmaster, stop }
}

export async function putWebhook({ url, carriersFile }: SimulatorProcess, address: string): Promise<void> {
  const { webhookToken } = JSON.parse(readFileSync(carriersFile, 'utf8')).simulator
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${webhookToken}` }
  const response = await fetch(`${url}/simulator/webhook`, { method: 'PUT', headers, body: JSON.stringify({ url: address }) })
  if (!response.ok) throw new Error(`The simulator refuses ${address} as its webhook: ${await response.text()}`)
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

/** What was used so far, by each process and by PostgreSQL. */
export function cpuOf(processes: Record<string, { pid?: number | undefined }>, postmaster: number): Cpu {
  const own = Object.entries(processes).map(([name, child]) => [name, cpuMs(child) ?? 0])
  return { ...Object.fromEntries(own), postgres: cpuOfFamilyMs(postmaster) ?? 0 }
}
