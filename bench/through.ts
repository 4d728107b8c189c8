import { CONNECTIONS, openConnections } from './http-load.ts'
import { byMedian, type Report } from './lines.ts'
import { inTurn, median, say } from './measure.ts'
import { type Cpu, eachMicroseconds } from './proc.ts'
import { cpuOf, messageRequest, type Service, startApart, startTogether, untilAllRead } from './service.ts'
import { startNetwork } from './simulator-rate.ts'

// How many messages a second go all the way: accepted, handed to the network, delivered, read, and every receipt recorded. The limit is the
// network itself, which shares the two cores: the simulator with a client and a webhook that do nothing else. The three take turns.

/** Returns how many a second go through one process. */
export async function measureThrough(quick: boolean, report: Report): Promise<number> {
  const [count, rounds] = quick ? [1_000, 3] : [10_000, 3]
  const network = await startNetwork()
  const together = follow(await startTogether())
  const apart = follow(await startApart())
  const alone: number[] = []
  for (let round = 0; round <= rounds; round++) {
    const [perSecond, one, three] = [await network.run(count), await together.run(count), await apart.run(count)]
    // The first round is a warm-up.
    if (round === 0) continue
    alone.push(perSecond)
    together.runs.push(one)
    apart.runs.push(three)
    const rates = [perSecond, one.perSecond, three.perSecond].map((rate) => rate.toFixed(0))
    say(`through, round ${round} of ${rounds}: network alone, one process, a process for each role: ${rates.join(', ')} a second`)
  }
  const limit = { what: 'network alone', ...byMedian(alone) }
  const part = 'through'
  const rates = (runs: Run[]) => runs.map(({ perSecond }) => perSecond)
  report({ part, what: 'accepted to READ, one process', unit: 'a second', measured: byMedian(rates(together.runs)), limit })
  report({ part, what: 'accepted to READ, a process for each role', unit: 'a second', measured: byMedian(rates(apart.runs)), limit })
  for (const name of Object.keys((apart.runs[0] as Run).cpu)) {
    const measured = byMedian(apart.runs.map(({ cpu }) => cpu[name] ?? 0))
    report({ part, what: `CPU for each message, a process for each role: ${name}`, unit: 'µs', measured })
  }
  for (const { stop } of [together.service, apart.service, network]) await stop()
  return median(rates(together.runs))
}

type Run = { perSecond: number; cpu: Cpu }

function follow(service: Service) {
  const children = Object.fromEntries(Object.entries(service.processes).map(([name, { child }]) => [name, child]))
  let sent = 0
  /** From the first request to the last receipt that is recorded. */
  async function run(count: number): Promise<Run> {
    const from = { at: performance.now(), cpu: cpuOf(children, service.postmaster) }
    await send(service, count)
    sent += count
    await untilAllRead(service, sent)
    const perSecond = (count * 1_000) / (performance.now() - from.at)
    return { perSecond, cpu: eachMicroseconds(from.cpu, cpuOf(children, service.postmaster), count) }
  }
  return { service, run, runs: [] as Run[] }
}

/** As fast as they are accepted. */
export async function send({ url, account }: Service, count: number): Promise<void> {
  const connections = await openConnections(url, CONNECTIONS, 202)
  await inTurn(count, CONNECTIONS, () => connections.send(messageRequest(account)))
  connections.close()
}
