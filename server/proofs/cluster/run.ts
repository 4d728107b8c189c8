import { setTimeout as sleep } from 'node:timers/promises'
import type { Cleanup } from '../cleanup.ts'
import { say } from '../progress.ts'
import { streamOf } from '../random.ts'
import type { Asked } from '../storm/asked.ts'
import { gatherEvidence } from '../storm/evidence.ts'
import { openForJudging, untilNothingIsLeft } from '../storm/left.ts'
import type { Line } from '../storm/line.ts'
import { inspectProcesses } from '../storm/processes.ts'
import { watchStalls } from '../storm/stalls.ts'
import { TIMEOUT_MS } from '../storm/storm.ts'
import { endTenancies, startTenants, stopLoads, type Tenant } from '../storm/tenants.ts'
import type { Disturbance } from '../storm/upsets.ts'
import { judge } from '../storm/verdict.ts'
import { type Failover, failOver, MANNERS } from './failover.ts'
import { type Course, judgeCluster } from './lines.ts'
import { startPulse } from './pulse.ts'
import { killOneOfEach, restartInTurn } from './rolling.ts'
import { logFileOf } from './server.ts'
import { noteShare, type Shares } from './shares.ts'
import { crashWhileAlone, hangStandby, misleadAddress } from './standby-away.ts'
import { buildWorld, type World } from './world.ts'

export type ClusterOptions = { seed: number; rounds: number; rate: number; binDir: string; dir: string }

/** As many as there is time for: the nodes' part takes 50 s, and a failover 12 s. */
const campaignsFor = (rounds: number) => 5 + rounds
const CAMPAIGN_EVERY_MS = 12_000
const CAMPAIGN_PEOPLE = 200
const WARM_UP_MS = 2_000
const BEAT_EVERY_MS = 50
/** A node of each role; the database is lost in other ways, which have lines of their own. */
const ESSENTIAL = ['api', 'delivery', 'webhooks'].map((victim) => ({ victim, manner: 'killed', leastFrozenMs: 0 }) as const)

export async function runCluster(options: ClusterOptions, cleanup: Cleanup): Promise<Line[]> {
  const { seed, rounds, rate, binDir, dir } = options
  const world = await buildWorld(binDir, dir, cleanup)
  const { pool, keyring, callers, network, nodes, address, addresses, pair } = world
  say('a primary, its standby, and two nodes of each role are up')
  const load = { seed, rate, campaigns: campaignsFor(rounds), campaignEveryMs: CAMPAIGN_EVERY_MS, people: CAMPAIGN_PEOPLE }
  const stalls = watchStalls()
  cleanup.push(() => void stalls.stop())
  const tenants = await startTenants({ pool, keyring, callers, ...load })
  const { asked } = (tenants[0] as Tenant).load
  const upsets: Disturbance[] = []
  const course = await goThrough(world, asked, upsets, options)
  await stopLoads(tenants)
  const judging = openForJudging(address.url)
  cleanup.push(() => judging.end())
  await untilNothingIsLeft(judging, network.ask, TIMEOUT_MS)
  const unconfirmed = await during(upsets, 'database', 'crashed while alone', () => crashWhileAlone(world, asked))
  await untilNothingIsLeft(judging, network.ask, TIMEOUT_MS)
  for (const node of nodes) await noteShare(course.shares, node)
  const evidence = await gatherEvidence({
    pool: judging,
    tenancies: await endTenancies(tenants),
    ask: network.ask,
    seenBefore: network.seen,
    processes: await inspectProcesses(nodes, [network], logFileOf(pair.primary().place)),
    upsets,
    stalls: stalls.stop(),
    essential: ESSENTIAL,
    addresses,
  })
  return [...judge(evidence), ...judgeCluster({ ...course, unconfirmed }, evidence)]
}

/** Notes what is done to somebody, and for how long. */
async function during<T>(upsets: Disturbance[], victim: string, manner: string, work: () => Promise<T>): Promise<T> {
  const from = Date.now()
  const result = await work()
  upsets.push({ victim, manner, from, frozenMs: 0, to: Date.now() })
  return result
}

async function goThrough(
  world: World,
  asked: Asked,
  upsets: Disturbance[],
  { seed, rounds }: ClusterOptions,
): Promise<Omit<Course, 'unconfirmed'>> {
  const shares: Shares = new Map()
  await sleep(WARM_UP_MS)
  const note = <T>(victim: string, manner: string, work: () => Promise<T>) => during(upsets, victim, manner, work)
  const stops = await restartInTurn(world, asked, shares, note)
  await killOneOfEach(world, streamOf(seed, 'kills'), shares, note)
  const pulse = startPulse(asked, world.caller, BEAT_EVERY_MS)
  const random = streamOf(seed, 'failovers')
  const failovers: Failover[] = []
  const first = Math.floor(random() * MANNERS.length)
  for (let n = 0; n < rounds; n++) {
    const manner = MANNERS[(first + n) % MANNERS.length] as Failover['manner']
    failovers.push(await note('database', manner, () => failOver(world, manner, random, pulse)))
  }
  const away = await note('database', 'its standby frozen', () => hangStandby(world, pulse))
  const misled = await note('database', 'its standby at its address', () => misleadAddress(world, pulse))
  await pulse.stop()
  return { stops, shares, failovers, away, misled }
}
