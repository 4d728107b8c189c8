import { setTimeout as sleep } from 'node:timers/promises'
import { say } from '../progress.ts'
import { streamOf } from '../random.ts'
import { prepareCampaigns } from '../storm/campaigns.ts'
import { gatherEvidence } from '../storm/evidence.ts'
import { startFollowers } from '../storm/followers.ts'
import { openForJudging, untilNothingIsLeft } from '../storm/left.ts'
import type { Line } from '../storm/line.ts'
import { type Load, startLoad } from '../storm/load.ts'
import { inspectProcesses } from '../storm/processes.ts'
import type { Cleanup } from '../storm/storm.ts'
import { makeTemplates } from '../storm/templates.ts'
import { judge } from '../storm/verdict.ts'
import { type Failover, failOver, MANNERS } from './failover.ts'
import { type Course, judgeCluster } from './lines.ts'
import { startPulse } from './pulse.ts'
import { killOneOfEach, restartInTurn } from './rolling.ts'
import { logFileOf } from './server.ts'
import { noteShare, type Shares } from './shares.ts'
import { crashWhileAlone, hangStandby, misleadAddress } from './standby-away.ts'
import { buildWorld, type World } from './world.ts'

export type ClusterOptions = { seed: number; rounds: number; rate: number; binDir: string }

/** As many as there is time for: the nodes' part takes 50 s, and a failover 12 s. */
const campaignsFor = (rounds: number) => 5 + rounds
const CAMPAIGN_EVERY_MS = 12_000
const CAMPAIGN_PEOPLE = 200
const WARM_UP_MS = 2_000
const BEAT_EVERY_MS = 50
// As in the storm: an SMS of which nobody knows, 93 s after it was taken up.
const PATIENCE_MS = 240_000

export async function runCluster(options: ClusterOptions, cleanup: Cleanup): Promise<{ lines: Line[]; dir: string }> {
  const { seed, rounds, rate, binDir } = options
  const world = await buildWorld(binDir, cleanup)
  const { pool, caller, network, nodes, address, pair } = world
  say('a primary, its standby, and two nodes of each role are up')
  const templates = await makeTemplates(caller)
  const campaigns = await prepareCampaigns(pool, caller, streamOf(seed, 'campaigns'), campaignsFor(rounds), CAMPAIGN_PEOPLE)
  const followers = await startFollowers({ pool, caller, random: streamOf(seed, 'followers') })
  const random = streamOf(seed, 'messages')
  const load = startLoad({ caller, pool, rate, random, templates, campaigns, campaignEveryMs: CAMPAIGN_EVERY_MS })
  const { course, upsets } = await goThrough(world, load, options)
  const asked = await load.stop()
  const judging = openForJudging(address.url)
  cleanup.push(() => judging.end())
  await untilNothingIsLeft(judging, network.ask, PATIENCE_MS)
  const unconfirmed = await crashWhileAlone(world, asked)
  await untilNothingIsLeft(judging, network.ask, PATIENCE_MS)
  for (const node of nodes) await noteShare(course.shares, node)
  const told = await followers.stop()
  const processes = await inspectProcesses(nodes, [network], logFileOf(pair.primary().place))
  const evidence = await gatherEvidence({
    pool: judging,
    caller,
    ask: network.ask,
    asked,
    told,
    seenBefore: network.seen,
    processes,
    upsets,
  })
  return { lines: [...judge(evidence), ...judgeCluster({ ...course, unconfirmed }, evidence)], dir: world.dir }
}

async function goThrough(
  world: World,
  load: Load,
  { seed, rounds }: ClusterOptions,
): Promise<{ course: Omit<Course, 'unconfirmed'>; upsets: number }> {
  const { asked } = load
  const shares: Shares = new Map()
  await sleep(WARM_UP_MS)
  const stops = await restartInTurn(world, asked, shares)
  const kills = await killOneOfEach(world, streamOf(seed, 'kills'), shares)
  const pulse = startPulse(asked, world.caller, BEAT_EVERY_MS)
  const random = streamOf(seed, 'failovers')
  const failovers: Failover[] = []
  const first = Math.floor(random() * MANNERS.length)
  for (let n = 0; n < rounds; n++)
    failovers.push(await failOver(world, MANNERS[(first + n) % MANNERS.length] as Failover['manner'], random, pulse))
  const away = await hangStandby(world, pulse)
  const misled = await misleadAddress(world, pulse)
  await pulse.stop()
  // The standby that hung, the address that led astray, and the primary that is killed when all is quiet.
  const others = 3
  return { course: { stops, shares, failovers, away, misled }, upsets: stops.length + kills + rounds + others }
}
