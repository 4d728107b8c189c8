import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Cleanup } from '../chaos/support/cleanup.ts'
import { createDatabaseServer } from '../chaos/topology/database.ts'
import { createNetwork } from '../chaos/topology/network.ts'
import { createProgram, type Program } from '../chaos/topology/program.ts'
import { createPool } from '../src/db/pool.ts'
import { joinGroup } from '../test/support/groups.ts'
import { freePort } from '../test/support/ports.ts'
import { createAssignedAgent, createCaller } from '../test/support/service.ts'
import type { Ids, World } from './world.ts'

// The service under test: all roles in one process, as `herald serve` runs them, on a PostgreSQL and a simulated network of its own. The
// limits are so high that only wrong credentials reach one.

const HERALD = fileURLToPath(new URL('../bin/herald.js', import.meta.url))
const SETTINGS = {
  HERALD_LIMITS: 'memory',
  HERALD_LIMIT_MESSAGES_PER_SECOND: '1000000',
  HERALD_LIMIT_EVENTS_PER_SECOND: '1000000',
  HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000',
  HERALD_LOG_LEVEL: 'warn',
}

export type FuzzedService = {
  program: Program
  port: number
  /** Where Node's inspector listens. */
  inspector: string
  world: World
  /** Texts that no response may contain. */
  secrets: string[]
}

export async function startService(dir: string, cleanup: Cleanup): Promise<FuzzedService> {
  const database = await createDatabaseServer(dir)
  cleanup.push(() => database.stop())
  await database.start()
  const network = await createNetwork(dir)
  cleanup.push(() => network.kill())
  await network.start()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const env = {
    ...SETTINGS,
    HERALD_PORT: String(port),
    HERALD_DATA_DIR: join(dir, 'service'),
    HERALD_DATABASE_URL: database.url,
    HERALD_CARRIERS: network.carriersFile,
  }
  mkdirSync(env.HERALD_DATA_DIR)
  const program = createServiceProgram(dir, env)
  cleanup.push(() => program.stop())
  await program.start()
  await network.ask('webhook', { url: `${url}/carriers/simulator/webhook` }, 'PUT')
  const inspector = /ws:\S+/.exec(readFileSync(program.errFile, 'utf8'))?.[0] ?? ''
  const world = await createWorld(url, database.url, network.carriersFile)
  const secrets = [...Object.values(world.credentials).map((authorization) => authorization.split(':')[1] as string), world.webhookToken]
  return { program, port, inspector, world, secrets }
}

function createServiceProgram(dir: string, env: Record<string, string>): Program {
  return createProgram({
    name: 'herald',
    args: ['--v8-pool-size=1', '--inspect=127.0.0.1:0', HERALD, 'serve'],
    env,
    dir,
    readyText: 'Herald is ready at',
  })
}

const GROUPS = [1, 2]
const MEMBERS = 5
const TEMPLATES = 10
const MESSAGES = 10
const CAMPAIGNS = 3

async function createWorld(url: string, databaseUrl: string, carriersFile: string): Promise<World> {
  const pool = createPool({ connectionString: databaseUrl }, () => {})
  const [own, other, bare] = [await createCaller(pool), await createCaller(pool), await createCaller(pool, [])]
  const agents: string[] = []
  for (const { accountId } of [own, other]) {
    agents.push(await createAssignedAgent(pool, accountId))
    for (const group of GROUPS)
      for (let n = 0; n < MEMBERS; n++) await joinGroup(pool, accountId, `+48500${group}0${n}${accountId % 10}10`, { group })
  }
  const changedAgentId = await createAssignedAgent(pool, own.accountId)
  await pool.end()
  const [agentId = '', otherAgentId = ''] = agents
  return {
    now: Date.now(),
    agentId,
    changedAgentId,
    groups: GROUPS,
    credentials: { own: own.authorization, other: other.authorization, withoutModule: bare.authorization },
    webhookToken: /"webhookToken":\s*"([^"]+)"/.exec(readFileSync(carriersFile, 'utf8'))?.[1] as string,
    own: await createIds(url, own.authorization, agentId),
    other: await createIds(url, other.authorization, otherAgentId),
    cursors: new Map(),
  }
}

async function createIds(url: string, authorization: string, agentId: string): Promise<Ids> {
  let keys = 0
  async function post<T>(path: string, body: object): Promise<T> {
    const headers = { authorization, 'content-type': 'application/json', 'idempotency-key': `prepare-${keys++}` }
    const response = await fetch(`${url}/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }
  const message = { type: 'MESSAGE', content: 'Your parcel is on its way.' }
  const ids: Ids = { templates: [], messages: [], campaigns: [] }
  for (let n = 0; n < TEMPLATES; n++)
    ids.templates.push((await post<{ id: number }>('/templates', { name: `Template ${n}`, status: 'APPROVED', message })).id)
  for (let n = 0; n < MESSAGES; n++) {
    const body = { agentId, recipient: `+4850010020${n}`, message: { inline: message } }
    ids.messages.push((await post<{ messageId: string }>('/messages', body)).messageId)
  }
  for (let n = 0; n < CAMPAIGNS; n++) {
    const body = { name: `Campaign ${n}`, agentId, segmentIds: GROUPS, message: { inline: message } }
    ids.campaigns.push((await post<{ campaignId: string }>('/campaigns', body)).campaignId)
  }
  return ids
}
