import { type Rate, saturate } from './http-load.ts'
import { byMedian, type Report } from './lines.ts'
import { say } from './measure.ts'
import { postmasterIn } from './postgres.ts'
import { cpuMs } from './proc.ts'
import { startHerald, startPeer } from './processes.ts'
import { cpuOf, createSenderAt, messageRequest, type Saying } from './service.ts'

// How many messages are accepted: with credentials, limits and idempotency keys, each answered when it is on the disk. Against a bare route of
// Fastify with the same schemas that stores nothing. All take turns, over as many connections, with the same client. With limits in memory, as
// the service has them on the database that it brings, and in the database, as several nodes have them.

const TARGET = 0.78

/** One of those that take turns, and what it did in each round. */
type Side = { what: string; saturate: () => Promise<Rate>; rates: Rate[] }

export async function measureAccept(quick: boolean, report: Report): Promise<void> {
  const [seconds, rounds] = quick ? [1, 3] : [5, 7]
  const peer = await startPeer('bare-route-peer.ts')
  const api = await startHerald(['--only', 'api'])
  const node = await startHerald(['--only', 'api'], { HERALD_DATABASE_URL: api.databaseUrl })
  const account = await createSenderAt(api)
  const database = postmasterIn(api.dataDir)
  const bareUrl = `http://127.0.0.1:${peer.port}`
  for (const saying of ['inline', 'template'] satisfies Saying[]) {
    const request = () => messageRequest(account, saying)
    const of = { api: api.child }
    const bare: Side = side('bare route', () => saturate(bareUrl, seconds, request, () => ({ route: cpuMs(peer.child) ?? 0 })))
    const ours: Side = side(`accepted, ${saying}`, () => saturate(api.url, seconds, request, () => cpuOf(of, database)))
    const nodes: Side = side(`accepted, ${saying}, limits in the database`, () => saturate(node.url, seconds, request, () => ({})))
    await takeTurns(saying === 'inline' ? [bare, ours, nodes] : [bare, ours], rounds)
    reportSides(report, saying, { bare, ours, nodes })
  }
  for (const { stop } of [peer, node, api]) await stop()
}

function side(what: string, saturate: () => Promise<Rate>): Side {
  return { what, saturate, rates: [] }
}

/** The first round is a warm-up. Every other one goes backwards, so that nobody always comes after the same. */
async function takeTurns(sides: Side[], rounds: number): Promise<void> {
  for (let round = 0; round <= rounds; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const rate = await side.saturate()
      if (round === 0) continue
      side.rates.push(rate)
      say(`accept, round ${round} of ${rounds}: ${side.what}: ${rate.perSecond.toFixed(0)} a second`)
    }
  }
}

function reportSides(report: Report, saying: Saying, { bare, ours, nodes }: { bare: Side; ours: Side; nodes: Side }): void {
  const part = 'accept'
  const perSecond = (side: Side) => byMedian(side.rates.map((rate) => rate.perSecond))
  const cpu = (side: Side, name: string) => byMedian(side.rates.map((rate) => rate.cpu[name] ?? 0))
  const limit = { what: bare.what, ...perSecond(bare) }
  report({ part, what: ours.what, unit: 'a second', measured: perSecond(ours), limit, target: { of: 'ratio', least: TARGET } })
  if (nodes.rates.length > 0) report({ part, what: nodes.what, unit: 'a second', measured: perSecond(nodes), limit })
  const routeCpu = { what: bare.what, ...cpu(bare, 'route') }
  report({ part, what: `CPU of the API for each, ${saying}`, unit: 'µs', measured: cpu(ours, 'api'), limit: routeCpu })
  report({ part, what: `CPU of PostgreSQL for each, ${saying}`, unit: 'µs', measured: cpu(ours, 'postgres') })
}
