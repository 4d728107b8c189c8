import { CONNECTIONS } from './accept.ts'
import { openConnections } from './http-load.ts'
import type { Line } from './lines.ts'
import { inTurn, say } from './measure.ts'
import { cpuOf, eachMicroseconds, memoryOf, messageRequest, type Service, startService, untilAllRead } from './service.ts'
import { measureNetwork } from './simulator-rate.ts'

// How many messages a second go all the way: accepted, handed to the network, delivered, read, and every receipt recorded. The limit is the
// network itself, which shares the two cores: the simulator with a client and a webhook that do nothing else. And what memory each process
// holds when as many have passed as an hour brings at the rate that a caller may send, 35 a second.

const HOUR = 35 * 3_600
const MEMORY_MARK = 1.1

export async function measureThrough({ quick }: { quick: boolean }): Promise<{ lines: Line[]; perSecond: number }> {
  const network = await measureNetwork(quick ? 2_000 : 20_000)
  say(`through: the network alone takes ${network.toFixed(0)} a second`)
  const together = await runThrough(await startService('together'), quick ? 1_000 : 20_000)
  const apart = await runThrough(await startService('apart'), quick ? 2_000 : HOUR)
  const limit = { what: 'network alone', value: network }
  const lines: Line[] = [
    { part: 'through', what: 'accepted to READ, one process', value: together.perSecond, unit: 'a second', limit },
    { part: 'through', what: 'accepted to READ, a process for each role', value: apart.perSecond, unit: 'a second', limit },
    ...Object.entries(apart.cpu).map(([name, value]) => ({ part: 'through', what: `CPU for each message: ${name}`, value, unit: 'µs' })),
    ...(quick ? [] : memoryLines(apart.least)),
  ]
  return { lines, perSecond: together.perSecond }
}

type Memory = Record<string, number>
/** `least`: the least that each process held at any time, in each half. */
type Run = { perSecond: number; cpu: Record<string, number>; least: [Memory, Memory] }

const HALVES = [0, 1] as const
const LOOK_EVERY_MS = 500

/** In two halves, with a look at the memory all the while. A tenth before them is a warm-up. */
async function runThrough(service: Service, count: number): Promise<Run> {
  const connections = await openConnections(service.api.url, CONNECTIONS, 202)
  const post = () => connections.send(messageRequest(service.account))
  const warmUp = Math.floor(count / 10)
  await inTurn(warmUp, CONNECTIONS, post)
  await untilAllRead(service, warmUp)
  const from = { at: performance.now(), cpu: cpuOf(service) }
  const least: [Memory, Memory] = [{}, {}]
  for (const half of HALVES) {
    const stopLooking = lookAtMemory(service, least[half])
    await inTurn(count / 2, CONNECTIONS, post)
    await untilAllRead(service, warmUp + (count / 2) * (half + 1))
    await stopLooking()
    say(
      `through: ${((count / 2) * (half + 1)).toLocaleString('en')} of ${count.toLocaleString('en')} are READ; MiB at least: ${written(least[half])}`,
    )
  }
  const perSecond = (count * 1_000) / (performance.now() - from.at)
  const cpu = eachMicroseconds(from.cpu, cpuOf(service), count)
  connections.close()
  await service.stop()
  return { perSecond, cpu, least }
}

/** Until the function that it returns is called, which waits for the last look: nobody is asked who has stopped. */
function lookAtMemory(service: Service, least: Memory): () => Promise<void> {
  let isOver = false
  async function look(): Promise<void> {
    while (!isOver) {
      lower(least, await memoryOf(service))
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
    }
  }
  const looking = look()
  return async () => {
    isOver = true
    await looking
  }
}

function lower(least: Memory, now: Memory): void {
  for (const [name, mib] of Object.entries(now)) least[name] = Math.min(least[name] ?? mib, mib)
}

function written(memory: Memory): string {
  return Object.entries(memory)
    .map(([name, mib]) => `${name} ${mib.toFixed(0)}`)
    .join(', ')
}

/**
 * By the least that it held, which is what was left when JavaScript had cleared up: when it does is its own affair, and between two of these
 * moments a process holds up to twice as much. One that keeps something of every message would keep twice as much of it in the second half.
 */
function memoryLines([first, second]: [Memory, Memory]): Line[] {
  return Object.entries(second).map(([name, value]) => ({
    part: 'memory',
    what: `${name}, in the second half of ${HOUR.toLocaleString('en')} messages`,
    value,
    unit: 'MiB',
    limit: { what: 'first half', value: first[name] ?? 0 },
    mark: { most: MEMORY_MARK },
  }))
}
