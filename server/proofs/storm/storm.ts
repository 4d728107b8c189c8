import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPool } from '../../src/db/pool.ts'
import { createAssignedAgent, createCaller } from '../../test/support/service.ts'
import { say } from '../progress.ts'
import { streamOf } from '../random.ts'
import { startBalancer } from './balancer.ts'
import type { Caller } from './caller.ts'
import { prepareCampaigns } from './campaigns.ts'
import { createDatabaseServer } from './database.ts'
import { gatherEvidence } from './evidence.ts'
import { startFollowers } from './followers.ts'
import { openForJudging, untilNothingIsLeft } from './left.ts'
import type { Line } from './line.ts'
import { startLoad } from './load.ts'
import { createNetwork, USUAL_FAULTS } from './network.ts'
import { createNode, type Role } from './nodes.ts'
import { planUpsets } from './plan.ts'
import { inspectProcesses } from './processes.ts'
import { makeTemplates } from './templates.ts'
import { upset } from './upsets.ts'
import { judge } from './verdict.ts'

export type StormOptions = { seed: number; seconds: number; rate: number }
export type Verdict = { lines: Line[]; dir: string; messages: number; upsets: number; settledMs: number }

const CAMPAIGN_EVERY_MS = 10_000
const CAMPAIGN_PEOPLE = 200
// The longest wait there is: an SMS of which nobody knows, 73 s after it was taken up by somebody who died; a three-part one, 93 s.
const PATIENCE_MS = 240_000

const NODES: readonly [string, Role][] = [
  ['api-1', 'api'],
  ['api-2', 'api'],
  ['delivery-1', 'delivery'],
  ['delivery-2', 'delivery'],
  ['webhooks-1', 'webhooks'],
  ['webhooks-2', 'webhooks'],
]

/** Whatever ends it, what was started is ended: the last first. */
export type Cleanup = (() => Promise<void> | void)[]

export async function runStorm({ seed, seconds, rate }: StormOptions, cleanup: Cleanup): Promise<Verdict> {
  const world = await buildWorld(cleanup)
  const { caller, pool, victims, nodes, network, database } = world
  const templates = await makeTemplates(caller)
  const campaigns = await prepareCampaigns(
    pool,
    caller,
    streamOf(seed, 'campaigns'),
    Math.ceil((seconds * 1_000) / CAMPAIGN_EVERY_MS),
    CAMPAIGN_PEOPLE,
  )
  const followers = await startFollowers({ pool, caller, random: streamOf(seed, 'followers') })
  const load = startLoad({
    caller,
    pool,
    rate,
    random: streamOf(seed, 'messages'),
    templates,
    campaigns,
    campaignEveryMs: CAMPAIGN_EVERY_MS,
  })
  const plan = planUpsets(seed, seconds)
  say(`seed ${seed}: ${seconds} s of ${rate} messages a second, ${plan.length} upsets planned`)
  const brokenOff = new AbortController()
  cleanup.push(() => brokenOff.abort())
  const upsets = await upset(plan, victims, seconds * 1_000, brokenOff.signal)
  say(`all is up again after ${upsets} upsets; ${load.underWay()} callers still wait for an answer`)
  const asked = await load.stop()
  const judging = openForJudging(database.url)
  cleanup.push(() => judging.end())
  const settledMs = await untilNothingIsLeft(judging, network.ask, PATIENCE_MS)
  const told = await followers.stop()
  say('the verdict is being worked out')
  const processes = await inspectProcesses(nodes, [network], database.logFile)
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
  return { lines: judge(evidence), dir: world.dir, messages: evidence.messages.length, upsets, settledMs }
}

async function buildWorld(cleanup: Cleanup) {
  const dir = mkdtempSync(join(tmpdir(), 'herald-storm-'))
  const database = await createDatabaseServer(join(dir, 'database'))
  cleanup.push(() => database.stop())
  await database.start()
  const network = await createNetwork(dir)
  cleanup.push(() => network.kill())
  await network.start()
  await network.ask('faults', USUAL_FAULTS, 'PUT')
  const env = { HERALD_DATABASE_URL: database.url, HERALD_CARRIERS: network.carriersFile }
  const nodes = await Promise.all(NODES.map(([name, role]) => createNode({ name, role, env, dir: makeDirectory(dir, name) })))
  cleanup.push(async () => void (await Promise.all(nodes.map((node) => node.kill()))))
  await Promise.all(nodes.map((node) => node.start()))
  const nodeUrls = () => nodes.filter(({ role }) => role === 'api').map(({ url }) => url)
  const balancer = await startBalancer(nodeUrls)
  cleanup.push(balancer.close)
  await network.ask('webhook', { url: `${balancer.url}/carriers/simulator/webhook` }, 'PUT')
  const pool = createPool({ connectionString: database.url }, () => {})
  cleanup.push(() => pool.end())
  const { accountId, authorization } = await createCaller(pool)
  const caller: Caller = { accountId, authorization, agentId: await createAssignedAgent(pool, accountId), nodeUrls }
  say(`two nodes for callers, two that deliver, two that post events, a database and a network are up; their logs are in ${dir}`)
  return { dir, database, network, nodes, pool, caller, victims: [...nodes, database, network] }
}

function makeDirectory(dir: string, name: string): string {
  const path = join(dir, name)
  mkdirSync(path)
  return path
}
