import { join } from 'node:path'
import type { Cleanup } from '../cleanup.ts'
import { say } from '../progress.ts'
import { createDatabaseServer } from './database.ts'
import { gatherEvidence } from './evidence.ts'
import { openForJudging, untilNothingIsLeft } from './left.ts'
import type { Line } from './line.ts'
import { USUAL_FAULTS } from './network.ts'
import { essentialUpsets, planUpsets } from './plan.ts'
import { inspectProcesses } from './processes.ts'
import { watchStalls } from './stalls.ts'
import { endTenancies, startTenants, stopLoads } from './tenants.ts'
import { upset } from './upsets.ts'
import { judge } from './verdict.ts'
import { buildWorld } from './world.ts'

/** `dir`: an empty directory. */
export type StormOptions = { seed: number; seconds: number; rate: number; dir: string }
export type Verdict = { lines: Line[]; messages: number; upsets: number; settledMs: number }

const CAMPAIGN_EVERY_MS = 10_000
const CAMPAIGN_PEOPLE = 200
// The longest wait there is: an SMS of which nobody knows, 73 s after it was taken up by somebody who died; a three-part one, 93 s.
export const TIMEOUT_MS = 240_000

export async function runStorm({ seed, seconds, rate, dir }: StormOptions, cleanup: Cleanup): Promise<Verdict> {
  const database = await createDatabaseServer(join(dir, 'database'))
  cleanup.push(() => database.stop())
  await database.start()
  const { pool, keyring, callers, network, nodes, addresses } = await buildWorld(dir, database.url, cleanup)
  await network.ask('faults', USUAL_FAULTS, 'PUT')
  say(
    `two nodes for callers (one of them delivers, too), two that deliver, two that post events, a database and a network are up; their logs are in ${dir}`,
  )
  const campaigns = Math.ceil((seconds * 1_000) / CAMPAIGN_EVERY_MS)
  const load = { seed, rate, campaigns, campaignEveryMs: CAMPAIGN_EVERY_MS, people: CAMPAIGN_PEOPLE }
  const stalls = watchStalls()
  cleanup.push(() => void stalls.stop())
  const tenants = await startTenants({ pool, keyring, callers, ...load })
  const plan = planUpsets(seed, seconds)
  say(`seed ${seed}: ${seconds} s of ${rate} messages a second, ${plan.length} upsets planned`)
  const brokenOff = new AbortController()
  cleanup.push(() => brokenOff.abort())
  const upsets = await upset(plan, [...nodes, database, network], seconds * 1_000, brokenOff.signal)
  const waiting = tenants.reduce((sum, tenant) => sum + tenant.load.underWay(), 0)
  say(`all is up again after ${upsets.length} upsets; ${waiting} callers still wait for an answer`)
  await stopLoads(tenants)
  const judging = openForJudging(database.url)
  cleanup.push(() => judging.end())
  const settledMs = await untilNothingIsLeft(judging, network.ask, TIMEOUT_MS)
  const tenancies = await endTenancies(tenants)
  say('the verdict is being worked out')
  const evidence = await gatherEvidence({
    pool: judging,
    tenancies,
    ask: network.ask,
    seenBefore: network.seen,
    processes: await inspectProcesses(nodes, [network], database.logFile),
    upsets,
    stalls: stalls.stop(),
    essential: essentialUpsets(seconds),
    addresses,
  })
  return { lines: judge(evidence), messages: evidence.messages.length, upsets: upsets.length, settledMs }
}
