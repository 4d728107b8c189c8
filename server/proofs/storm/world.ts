import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createPool, type Pool } from '../../src/db/pool.ts'
import { newKeyLine } from '../../src/encryption/key-file.ts'
import { type Keyring, loadKeyring } from '../../src/encryption/keyring.ts'
import { writePrivateFile } from '../../src/files.ts'
import { createAssignedAgent, createCaller } from '../../test/support/service.ts'
import type { Cleanup } from '../cleanup.ts'
import { startBalancer } from './balancer.ts'
import type { Caller } from './caller.ts'
import { namedAddress, watchLeases } from './leases.ts'
import { createNetwork, type Network } from './network.ts'
import { createNode, type Node, type Role, SENDS_AT_ONCE } from './nodes.ts'
import { ACCOUNTS } from './tenants.ts'

const ROLES: readonly Role[] = ['api', 'delivery', 'webhooks']

/** What runs on a database: each a process of its own, with a directory of its own below `dir`. */
export type World = {
  dir: string
  network: Network
  nodes: Node[]
  pool: Pool
  /** All nodes have the same. */
  keyring: Keyring
  callers: Caller[]
  /** Of the nodes that callers ask, by name. */
  addresses: Record<string, string>
}

/** A network, two nodes of each role, and the accounts of those who call them. The database is there, and empty. */
export async function buildWorld(dir: string, databaseUrl: string, cleanup: Cleanup): Promise<World> {
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
  // All at once, on an empty database: one of them makes the schema.
  await Promise.all(nodes.map((node) => node.start()))
  const addresses = Object.fromEntries(nodes.filter(({ role }) => role === 'api').map(({ name, url }) => [name, url]))
  const nodeUrls = () => Object.values(addresses)
  const balancer = await startBalancer(nodeUrls)
  cleanup.push(balancer.close)
  await network.ask('webhook', { url: `${balancer.url}/carriers/simulator/webhook` }, 'PUT')
  const pool = createPool({ connectionString: databaseUrl }, () => {})
  cleanup.push(() => pool.end())
  await watchLeases(pool)
  return { dir, network, nodes, pool, keyring, callers: await createCallers(pool, nodeUrls), addresses }
}

/** Each of an account of its own, with an agent of its own. */
export async function createCallers(pool: Pool, nodeUrls: Caller['nodeUrls']): Promise<Caller[]> {
  const callers: Caller[] = []
  while (callers.length < ACCOUNTS) {
    const { accountId, authorization } = await createCaller(pool)
    callers.push({ accountId, authorization, agentId: await createAssignedAgent(pool, accountId), nodeUrls, tries: [] })
  }
  return callers
}
