import { chmodSync } from 'node:fs'
import type { Cleanup } from '../cleanup.ts'
import type { Caller } from '../storm/caller.ts'
import { buildWorld as buildOn, type World as Nodes } from '../storm/world.ts'
import { type Address, openAddress } from './address.ts'
import { type Pair, startPair } from './pair.ts'

/** `caller`: the first of the callers. */
export type World = Nodes & { pair: Pair; address: Address; caller: Caller }

/** Two nodes of each role, on one PostgreSQL that has a standby, and a network; each a process of its own. */
export async function buildWorld(binDir: string, dir: string, cleanup: Cleanup): Promise<World> {
  // For the user that PostgreSQL runs as.
  chmodSync(dir, 0o755)
  const pair = await startPair(binDir, dir, cleanup)
  const address = await openAddress(pair.primary().place, cleanup)
  const nodes = await buildOn(dir, address.url, cleanup)
  return { ...nodes, pair, address, caller: nodes.callers[0] as Caller }
}
