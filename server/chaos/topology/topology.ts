import { mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createHotPool, type Pool } from '../../src/db/pool.ts'
import { newKeyLine } from '../../src/encryption/key-file.ts'
import { type Keyring, loadKeyring } from '../../src/encryption/keyring.ts'
import { writePrivateFile } from '../../src/files.ts'
import { createAssignedAgent, createCaller } from '../../test/support/service.ts'
import { namedAddress, watchLeases } from '../history/leases.ts'
import type { Caller } from '../load/caller.ts'
import type { Cleanup } from '../support/cleanup.ts'
import { createNetwork, type Network } from './network.ts'
import { createNode, type Node, type Role, SENDS_AT_ONCE } from './node.ts'
import { openProxy } from './proxy.ts'

const ROLES: readonly Role[] = ['api', 'delivery', 'webhooks']

/** What runs on a database. Each node is a process with a directory of its own below `dir`. */
export type Topology = {
  dir: string
  network: Network
  nodes: Node[]
  pool: Pool
  /** The same for all nodes. */
  keyring: Keyring
  callers: Caller[]
  /** The URLs of the API nodes, by name. */
  addresses: Record<string, string>
  /** Receipts are refused until they are released. Then those that are owed come at once. */
  holdReceipts: () => void
  releaseReceipts: () => Promise<void>
}

/** A network, two nodes of each role, and `accounts` callers. The database exists, and is empty. */
export async function buildTopology(dir: string, databaseUrl: string, accounts: number, cleanup: Cleanup): Promise<Topology> {
  const network = await createNetwork(dir)
  cleanup.push(() => network.kill())
  await network.start()
  const keyFile = join(dir, 'encryption.key')
  writePrivateFile(keyFile, `${newKeyLine()}\n`)
  const keyring = loadKeyring({ databaseUrl, dataDir: dir, encryptionKeyFile: keyFile })
  const shared = { HERALD_CARRIERS: network.carriersFile, HERALD_ENCRYPTION_KEY_FILE: keyFile }
  const nodes: Node[] = []
  for (const role of ROLES) {
    for (const name of [`${role}-1`, `${role}-2`]) {
      const env = { ...shared, HERALD_DATABASE_URL: namedAddress(databaseUrl, name) }
      mkdirSync(join(dir, name))
      const also: Role[] = name === SENDS_AT_ONCE ? ['delivery'] : []
      nodes.push(await createNode({ name, role, also, env, dir: join(dir, name) }))
    }
  }
  cleanup.push(async () => void (await Promise.all(nodes.map((node) => node.kill()))))
  // All at once, on an empty database: one of them creates the schema.
  await Promise.all(nodes.map((node) => node.start()))
  const addresses = Object.fromEntries(nodes.filter(({ role }) => role === 'api').map(({ name, url }) => [name, url]))
  const nodeUrls = () => Object.values(addresses)
  // Receipts go to the API nodes that run, in turn.
  let turn = 0
  const balancer = await openProxy(() => {
    const running = nodes.filter(({ role, isRunning }) => role === 'api' && isRunning())
    return connect(Number(new URL(running[turn++ % running.length]?.url ?? 'http://localhost:9').port), '127.0.0.1')
  }, cleanup)
  const holdReceipts = () => balancer.break('refused')
  async function releaseReceipts(): Promise<void> {
    await balancer.restore()
    await network.ask('webhook', { url: `http://127.0.0.1:${balancer.port}/carriers/simulator/webhook` }, 'PUT')
  }
  await releaseReceipts()
  const pool = createHotPool({ connectionString: databaseUrl }, () => {})
  cleanup.push(() => pool.end())
  await watchLeases(databaseUrl)
  const callers = await createCallers(pool, accounts, nodeUrls)
  return { dir, network, nodes, pool, keyring, callers, addresses, holdReceipts, releaseReceipts }
}

/** Each has an account and an agent of its own. */
export async function createCallers(pool: Pool, count: number, nodeUrls: Caller['nodeUrls']): Promise<Caller[]> {
  const callers: Caller[] = []
  while (callers.length < count) {
    const { accountId, authorization } = await createCaller(pool)
    callers.push({ accountId, authorization, agentId: await createAssignedAgent(pool, accountId), nodeUrls, calls: [] })
  }
  return callers
}
