import { CONNECTIONS, openConnections } from '../load/connections.ts'
import { type Cost, reportCosts, showCost } from '../measure/costs.ts'
import { byMedian, once } from '../measure/figures.ts'
import { type Waits, watchWaits } from '../measure/postgres-statistics.ts'
import { inParallel, type Side, sideOf, takeTurns } from '../measure/rounds.ts'
import { openWholeWay } from '../measure/whole-way.ts'
import type { Bench } from '../part.ts'
import { messageRequest } from '../setup/accounts.ts'
import type { Server } from '../setup/checkouts.ts'
import { type HeraldProcess, putWebhook, startPeer } from '../setup/processes.ts'
import type { Service } from '../setup/service.ts'

// The cost of more processes of the API and of delivery on one PostgreSQL: CPU time and commits of each message, and what PostgreSQL's
// connections wait for. All share the cores of one machine, so the rate says little; docs/scaling.md draws the conclusions.

/** `each`: the number of processes of the API, and of delivery. */
type Scaled = { each: number; side: Side<Cost>; waits: Waits }

export async function measureScaling(bench: Bench): Promise<void> {
  const all: Scaled[] = []
  for (const each of bench.quick ? [1, 2] : [1, 2, 4, 8]) {
    const scaled = await measureSize(bench, each)
    all.push(scaled)
    reportSize(bench, scaled, all[0] as Scaled)
  }
  reportWaits(bench, all)
}

/** Of the last server. */
async function measureSize(bench: Bench, each: number): Promise<Scaled> {
  const { warmUp, count, rounds } = bench.quick ? { warmUp: 500, count: 1_000, rounds: 2 } : { warmUp: 50_000, count: 20_000, rounds: 3 }
  const { service, run } = await openWholeWay(bench.servers.at(-1) as Server, bench.delayMs, each)
  const apis = Object.entries(service.processes).filter(([name]) => name.startsWith('api'))
  const urls = apis.map(([, node]) => (node as HeraldProcess).url)
  const ports = urls.map((url) => new URL(url).port)
  const balancer = await startPeer('balancer', ports)
  await putWebhook(service.simulator, `${balancer.url}/carriers/simulator/webhook`)
  const start = (to: Service, messages: number) => sendToAll(urls, to, messages)
  await run(warmUp, start)
  const endWatching = await watchWaits(service.databaseUrl)
  const label = `${each} ${each === 1 ? 'process' : 'processes'} of the API and of delivery each`
  const side = sideOf(label, async () => byRole(await run(count, start)))
  await takeTurns(bench, [side], { rounds, show: showCost })
  const waits = await endWatching()
  await service.stop()
  await balancer.stop()
  return { each, side, waits }
}

/** Over as many connections as in other parts, shared out evenly. */
async function sendToAll(urls: string[], { account }: Service, count: number): Promise<void> {
  const all = await Promise.all(urls.map((url) => openConnections(url, CONNECTIONS / urls.length, 202)))
  let sent = 0
  await inParallel(count, CONNECTIONS, () => {
    sent += 1
    return (all[sent % all.length] as (typeof all)[number]).send(messageRequest(account))
  })
  for (const { close } of all) close()
}

/** Adds up the processes of a role: `api 1` and `api 2` are `api`. */
function byRole(cost: Cost): Cost {
  const cpu: Cost['cpu'] = {}
  for (const [name, each] of Object.entries(cost.cpu)) {
    const role = name.replace(/ \d+$/, '')
    cpu[role] = (cpu[role] ?? 0) + each
  }
  return { ...cost, cpu }
}

function reportSize(bench: Bench, { side, waits }: Scaled, { side: base }: Scaled): void {
  reportCosts(bench, side, { base: side === base ? undefined : { ...base, label: '1 of each' } })
  const commits = byMedian(side.rounds.map(({ wal, perSecond }) => wal.commits * perSecond))
  bench.report({ what: `${side.label}: commits`, unit: 'a second', measured: commits })
  const what = `${side.label}: connections of PostgreSQL that are not idle, on average`
  bench.report({ what, unit: '', measured: once(sumOf(waits) / waits.samples) })
}

function sumOf({ seen }: Waits): number {
  return Object.values(seen).reduce((sum, count) => sum + count, 0)
}

function reportWaits({ reportTable }: Bench, all: Scaled[]): void {
  const names = [...new Set(all.flatMap(({ waits }) => Object.keys(waits.seen)))].toSorted()
  const share = ({ waits }: Scaled, name: string) => `${((100 * (waits.seen[name] ?? 0)) / sumOf(waits)).toFixed(1)} %`
  reportTable({
    title: 'what connections of PostgreSQL that are not idle wait for, by processes of the API and of delivery each',
    head: ['', ...all.map(({ each }) => String(each))],
    rows: names.map((name) => [name, ...all.map((one) => share(one, name))]),
  })
}
