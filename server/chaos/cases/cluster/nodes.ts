import { setTimeout as sleep } from 'node:timers/promises'
import type { Share, Stop } from '../../history/scripted.ts'
import { type Probes, startProbes } from '../../load/probes.ts'
import { during } from '../../schedule/faults.ts'
import { say, seconds } from '../../support/progress.ts'
import { between, oneOf, type Random } from '../../support/random.ts'
import { type Node, type Role, readMetric } from '../../topology/node.ts'
import type { Cluster } from './main.ts'

// Nodes are stopped in order and started again, one after the other, as for an upgrade; and one node of each role is killed.

const PROBE_EVERY_MS = 10
const BEFORE_MS = 300
const GONE_MS = 3_000

/** What a node of this role does, by its metrics. */
const WORK: Record<Role, RegExp> = {
  api: /^herald_http_request_duration_seconds_count\{.*route="\/v1\/messages".*\} (\d+)$/gm,
  delivery: /^herald_carrier_calls_total\{.*\} (\d+)$/gm,
  webhooks: /^herald_webhook_attempts_total\{.*\} (\d+)$/gm,
}

/** A node counts from its start on, so this is called before each of its ends. */
export async function addShare({ scripted: { shares = [] } }: Cluster, node: Node): Promise<void> {
  const { name, role } = node
  const done = await readMetric(node, WORK[role])
  const share: Share | undefined = shares.find((one) => one.node === name)
  if (share === undefined) shares.push({ node: name, role, done })
  else share.done += done
}

export async function restartInTurn(cluster: Cluster): Promise<Stop[]> {
  const { nodes, caller, requested, faults } = cluster
  const stops: Stop[] = []
  for (const node of nodes) {
    const isApi = node.role === 'api'
    const probes = isApi ? startProbes(requested, { ...caller, nodeUrls: () => [node.url] }, PROBE_EVERY_MS) : undefined
    // So that it has something under way.
    await sleep(BEFORE_MS)
    await addShare(cluster, node)
    const stop = await during(faults, node.name, 'stopped', () => restart(node, probes))
    say(`${node.name} was stopped in order, within ${seconds(stop.tookMs)}, and started again`)
    stops.push({ node: node.name, ...stop })
  }
  return stops
}

async function restart(node: Node, probes: Probes | undefined): Promise<Omit<Stop, 'node'>> {
  const from = performance.now()
  await node.stop()
  const tookMs = performance.now() - from
  const done = (await probes?.stop()) ?? []
  await node.start()
  return { tookMs, probes: done }
}

export async function killOneOfEach(cluster: Cluster, random: Random): Promise<void> {
  const targets = [...Map.groupBy(cluster.nodes, ({ role }) => role).values()].map((ofRole) => oneOf(random, ofRole))
  for (const node of targets) {
    const goneMs = between(random, 0, GONE_MS)
    await during(cluster.faults, node.name, 'killed', async () => {
      await addShare(cluster, node)
      say(`${node.name} is killed, for ${seconds(goneMs)}`)
      await node.kill()
      await sleep(goneMs)
      await node.start()
    })
  }
}
