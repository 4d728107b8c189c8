import type pg from 'pg'
import { describeResults, isClean } from './checks/checks.ts'
import type { Result } from './checks/result.ts'
import { type History, readHistory } from './history/history.ts'
import { inspectProcesses } from './history/processes.ts'
import { openForChecks, untilSettled } from './history/remaining.ts'
import type { Scripted } from './history/scripted.ts'
import { watchStalls } from './history/stalls.ts'
import { ACCOUNTS, type LoadSize, prepareTenants, stopTenants, type Tenant, type TenantRecord } from './load/tenants.ts'
import type { Fault } from './schedule/faults.ts'
import type { RequiredFault } from './schedule/plan.ts'
import { type Cleanup, inDirectory } from './support/cleanup.ts'
import { say, seconds } from './support/progress.ts'
import { USUAL_FAULTS } from './topology/network.ts'
import { buildTopology, type Topology } from './topology/topology.ts'

// What random, crash and cluster share: a topology under load, a script that breaks it, and the checks when everything is settled.

export type Run = Topology & {
  tenants: Tenant[]
  faults: Fault[]
  scripted: Scripted
  cleanup: Cleanup
  /** Connections without a time limit. */
  checkPool: pg.Pool
}

export type RunOptions = {
  dir: string
  cleanup: Cleanup
  databaseUrl: string
  databaseLog: () => string
  load: LoadSize
  required: readonly RequiredFault[]
}

/** `before` the load, `during` it, and `after` everything is settled. */
export type Script = {
  before?: (run: Run) => Promise<void>
  during: (run: Run) => Promise<void>
  after?: (run: Run) => Promise<void>
}

export type Finished = { run: Run; records: TenantRecord[]; history: History }

export async function runScript({ dir, cleanup, databaseUrl, databaseLog, load, required }: RunOptions, script: Script): Promise<Finished> {
  const topology = await buildTopology(dir, databaseUrl, ACCOUNTS, cleanup)
  const { network, nodes, addresses } = topology
  say(`two nodes of each role, a database and a network run; their logs are in ${dir}`)
  const checkPool = openForChecks(databaseUrl)
  cleanup.push(() => checkPool.end())
  const stalls = watchStalls()
  cleanup.push(() => void stalls.stop())
  const tenants = await prepareTenants(topology, load)
  const run: Run = { ...topology, tenants, faults: [], scripted: {}, cleanup, checkPool }
  await script.before?.(run)
  await network.ask('faults', USUAL_FAULTS, 'PUT')
  const loads = tenants.map(({ startLoad }) => startLoad())
  await script.during(run)
  await Promise.all(loads.map((one) => one.stop()))
  await untilSettled(checkPool, network.ask)
  if (script.after !== undefined) {
    await script.after(run)
    await untilSettled(checkPool, network.ask)
  }
  const records = await stopTenants(tenants)
  say('the history is read and checked')
  const { faults, scripted } = run
  const processes = await inspectProcesses(nodes, [network], databaseLog())
  const rest = { seenBefore: network.seen, processes, faults, stalls: stalls.stop(), required, addresses, scripted }
  const history = await readHistory({ pool: checkPool, tenants: records, ask: network.ask, ...rest })
  return { run, records, history }
}

/** Runs in a directory of its own, prints the results, and returns whether all checks passed. */
export async function report(seed: number, run: (dir: string, cleanup: Cleanup) => Promise<Result[]>): Promise<boolean> {
  const begunAt = performance.now()
  say(`seed ${seed}`)
  const results = await inDirectory('herald-chaos-', run, isClean)
  const failed = results.filter(({ wrong }) => wrong.length > 0).length
  process.stdout.write(`${describeResults(results)}\n`)
  const passed = failed === 0 ? 'all passed' : `${failed} FAILED`
  process.stdout.write(`seed ${seed}: ${results.length} checks, ${passed}, in ${seconds(performance.now() - begunAt)}\n`)
  return failed === 0
}
