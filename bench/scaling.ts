import type { Server } from './checkouts.ts'
import { CONNECTIONS, openConnections } from './http-load.ts'
import { byMedian, type Report, type ReportTable } from './lines.ts'
import { inTurn, say } from './measure.ts'
import { type HeraldProcess, startPeer } from './processes.ts'
import { messageRequest, putWebhook, type Service } from './service.ts'
import { ratesOf, totalsOf, walOfEach } from './side-lines.ts'
import type { Measuring } from './through.ts'
import { type Waits, watchWaits } from './waits.ts'
import { openSide, type Round, type Side } from './whole-way.ts'

// What more processes of the API and of delivery cost on one PostgreSQL: CPU time of each message, commits, and what PostgreSQL's connections
// wait for. All of it runs on the cores of one machine, so the rate says little; docs/scaling.md says what follows from the rest.

const PART = 'scaling'
const SIZES = [1, 2, 4, 8]
const QUICK_SIZES = [1, 2]

/** `each`: so many processes of the API and of delivery. */
type Scaled = { each: number; side: Side; waits: Waits }

/** Of the last server. */
export async function measureScaling({ quick, servers, delayMs }: Measuring, report: Report, reportTable: ReportTable): Promise<void> {
  const plan = quick ? { warmUp: 500, count: 1_000, rounds: 2 } : { warmUp: 50_000, count: 20_000, rounds: 3 }
  const all: Scaled[] = []
  for (const each of quick ? QUICK_SIZES : SIZES) {
    const scaled = await measureSize(servers.at(-1) as Server, delayMs, { each, ...plan })
    reportSize(report, scaled, all[0] ?? scaled)
    all.push(scaled)
  }
  reportTable(tableOfWaits(all))
}

type Plan = { each: number; warmUp: number; count: number; rounds: number }

async function measureSize(server: Server, delayMs: number, { each, warmUp, count, rounds }: Plan): Promise<Scaled> {
  const side = await openSide(server, delayMs, each)
  const urls = Object.entries(side.service.processes).flatMap(([name, node]) =>
    name.startsWith('api') ? [(node as HeraldProcess).url] : [],
  )
  const balancer = await startPeer(
    'balancer-peer.ts',
    urls.map((url) => new URL(url).port),
  )
  await putWebhook(side.service.simulator, `http://127.0.0.1:${balancer.port}/carriers/simulator/webhook`)
  const start = (service: Service, messages: number) => sendToAll(urls, service, messages)
  await side.run(warmUp, start)
  const endWatching = await watchWaits(side.service.databaseUrl)
  for (let round = 1; round <= rounds; round++) {
    side.rounds.push(byRole(await side.run(count, start)))
    say(`${PART}, ${each} of each, round ${round} of ${rounds}: ${side.rounds.at(-1)?.perSecond.toFixed(0)} a second`)
  }
  const waits = await endWatching()
  await side.stop()
  await balancer.stop()
  return { each, side, waits }
}

/** Over as many connections as in other parts, shared out evenly. */
async function sendToAll(urls: string[], { account }: Service, count: number): Promise<void> {
  const all = await Promise.all(urls.map((url) => openConnections(url, CONNECTIONS / urls.length, 202)))
  let sent = 0
  await inTurn(count, CONNECTIONS, () => {
    sent += 1
    return (all[sent % all.length] as (typeof all)[number]).send(messageRequest(account))
  })
  for (const { close } of all) close()
}

/** The processes of a role are added up: `api 1` and `api 2` are `api`. */
function byRole(round: Round): Round {
  const cpu: Round['cpu'] = {}
  for (const [name, each] of Object.entries(round.cpu)) {
    const role = name.replace(/ \d+$/, '')
    cpu[role] = (cpu[role] ?? 0) + each
  }
  return { ...round, cpu }
}

function reportSize(report: Report, { each, side, waits }: Scaled, base: Scaled): void {
  const what = `${each} ${each === 1 ? 'process' : 'processes'} of the API and of delivery each`
  function line(of: string, unit: string, read: (side: Side) => ReturnType<typeof ratesOf>): void {
    const limit = base.side === side ? {} : { limit: { what: '1 of each', ...read(base.side) } }
    report({ part: PART, what: `${what}: ${of}`, unit, measured: read(side), ...limit })
  }
  line('accepted to READ', 'a second', ratesOf)
  for (const name of Object.keys(side.rounds[0]?.cpu ?? {})) {
    line(`CPU of each message: ${name}`, 'µs', ({ rounds }) => byMedian(rounds.map(({ cpu }) => cpu[name] ?? 0)))
  }
  line('CPU of each message: service and PostgreSQL', 'µs', totalsOf)
  line('commits of each message', '', walOfEach('commits'))
  line('commits', 'a second', ({ rounds }) => byMedian(rounds.map(({ wal, perSecond }) => wal.commits * perSecond)))
  const busy = byMedian([sumOf(waits) / waits.samples])
  report({ part: PART, what: `${what}: connections of PostgreSQL that are not idle, on average`, unit: '', measured: busy })
}

function sumOf({ seen }: Waits): number {
  return Object.values(seen).reduce((sum, count) => sum + count, 0)
}

/** The shares of what connections that were not idle were seen waiting for. */
function tableOfWaits(all: Scaled[]) {
  const names = [...new Set(all.flatMap(({ waits }) => Object.keys(waits.seen)))].toSorted()
  const share = ({ waits }: Scaled, name: string) => `${((100 * (waits.seen[name] ?? 0)) / sumOf(waits)).toFixed(1)} %`
  return {
    title: 'scaling: what connections of PostgreSQL that are not idle wait for, by processes of the API and of delivery each',
    head: ['', ...all.map(({ each }) => String(each))],
    rows: names.map((name) => [name, ...all.map((one) => share(one, name))]),
  }
}
