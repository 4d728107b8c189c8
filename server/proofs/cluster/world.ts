import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPool, type Pool } from '../../src/db/pool.ts'
import { createAssignedAgent, createCaller } from '../../test/support/service.ts'
import { startBalancer } from '../storm/balancer.ts'
import type { Caller } from '../storm/caller.ts'
import { createNetwork, type Network } from '../storm/network.ts'
import { createNode, type Node, type Role } from '../storm/nodes.ts'
import type { Cleanup } from '../storm/storm.ts'
import { type Address, openAddress } from './address.ts'
import { type Pair, startPair } from './pair.ts'

const ROLES: readonly Role[] = ['api', 'delivery', 'webhooks']

export type World = {
  dir: string
  pair: Pair
  address: Address
  network: Network
  nodes: Node[]
  pool: Pool
  caller: Caller
}

/** Two nodes of each role, on one PostgreSQL that has a standby, and a network; each a process of its own. */
export async function buildWorld(binDir: string, cleanup: Cleanup): Promise<World> {
  const dir = mkdtempSync(join(tmpdir(), 'herald-cluster-'))
  // For the user that PostgreSQL runs as.
  chmodSync(dir, 0o755)
  const pair = await startPair(binDir, dir, cleanup)
  const address = await openAddress(pair.primary().place, cleanup)
  const network = await createNetwork(dir)
  cleanup.push(() => network.kill())
  await network.start()
  const env = { HERALD_DATABASE_URL: address.url, HERALD_CARRIERS: network.carriersFile }
  const nodes: Node[] = []
  for (const role of ROLES) {
    for (const name of [`${role}-1`, `${role}-2`]) {
      const nodeDir = join(dir, name)
      mkdirSync(nodeDir)
      const node = await createNode({ name, role, env, dir: nodeDir })
      cleanup.push(() => node.kill())
      nodes.push(node)
    }
  }
  // All at once, on an empty database: one of them makes the schema.
  await Promise.all(nodes.map(({ start }) => start()))
  const nodeUrls = () => nodes.filter(({ role }) => role === 'api').map(({ url }) => url)
  const balancer = await startBalancer(nodeUrls)
  cleanup.push(balancer.close)
  await network.ask('webhook', { url: `${balancer.url}/carriers/simulator/webhook` }, 'PUT')
  const pool = createPool({ connectionString: address.url }, () => {})
  cleanup.push(() => pool.end())
  const { accountId, authorization } = await createCaller(pool)
  const caller: Caller = { accountId, authorization, agentId: await createAssignedAgent(pool, accountId), nodeUrls }
  return { dir, pair, address, network, nodes, pool, caller }
}
