import { type Connections, openConnections } from './http-load.ts'
import type { Line } from './lines.ts'
import { median, say } from './measure.ts'
import { cpuMs, startHerald, startPeer } from './processes.ts'
import { type Cpu, cpuOf, createSenderAt, eachMicroseconds, messageRequest, type Saying } from './service.ts'

// How many messages are accepted: with credentials, limits and idempotency keys, each answered when it is on the disk. Against a bare route of
// Fastify with the same schemas that stores nothing. The two take turns, over as many connections, with the same client.

export const CONNECTIONS = 256
const MARK = 0.7

type Rate = { perSecond: number; cpu: Cpu }

/** Keeps all connections busy for so long, after a warm-up of a quarter of it. `cpu`: what was used so far; in the end, µs for each request. */
export async function saturate(connections: Connections, seconds: number, request: () => string, cpu: () => Cpu): Promise<Rate> {
  let done = 0
  let isOver = false
  async function keepSending(): Promise<void> {
    while (!isOver) {
      await connections.send(request())
      done += 1
    }
  }
  const senders = Array.from({ length: CONNECTIONS }, keepSending)
  await sleep(seconds * 250)
  const from = { done, at: performance.now(), cpu: cpu() }
  await sleep(seconds * 1_000)
  const count = done - from.done
  const rate = { perSecond: (count * 1_000) / (performance.now() - from.at), cpu: eachMicroseconds(from.cpu, cpu(), count) }
  isOver = true
  await Promise.all(senders)
  return rate
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** `perSecond`: of what is said in the request itself. */
export async function measureAccept({ quick }: { quick: boolean }): Promise<{ lines: Line[]; perSecond: number }> {
  const [seconds, rounds] = quick ? [1, 3] : [5, 7]
  const peer = await startPeer('bare-route-peer.ts')
  const api = await startHerald(['--only', 'api'])
  const account = await createSenderAt(api)
  const bare = await openConnections(`http://127.0.0.1:${peer.port}`, CONNECTIONS, 202)
  const ours = await openConnections(api.url, CONNECTIONS, 202)
  const lines: Line[] = []
  const rates: number[] = []
  for (const saying of ['inline', 'template'] satisfies Saying[]) {
    const runs: { bare: Rate; ours: Rate }[] = []
    // The first is a warm-up.
    for (let round = 0; round <= rounds; round++) {
      const request = () => messageRequest(account, saying)
      const run = {
        bare: await saturate(bare, seconds, request, () => ({ route: cpuMs(peer.child) ?? 0 })),
        ours: await saturate(ours, seconds, request, () => cpuOf({ api, processes: { api: api.child } })),
      }
      say(`accept, ${saying}: ${run.ours.perSecond.toFixed(0)} a second, bare ${run.bare.perSecond.toFixed(0)}`)
      if (round > 0) runs.push(run)
    }
    lines.push(...linesOf(saying, runs))
    rates.push(median(runs.map((run) => run.ours.perSecond)))
  }
  bare.close()
  ours.close()
  await peer.stop()
  await api.stop()
  return { lines, perSecond: rates[0] as number }
}

function linesOf(saying: Saying, runs: { bare: Rate; ours: Rate }[]): Line[] {
  // Of the rounds' ratios: what else the machine did fell on both halves of a round.
  const ratio = median(runs.map(({ bare, ours }) => ours.perSecond / bare.perSecond))
  const value = median(runs.map(({ ours }) => ours.perSecond))
  const cpuOfEach = (name: string) => median(runs.map(({ ours }) => ours.cpu[name] ?? 0))
  return [
    {
      part: 'accept',
      what: `accepted, ${saying}`,
      value,
      unit: 'a second',
      limit: { what: 'bare route', value: value / ratio },
      mark: { least: MARK },
    },
    {
      part: 'accept',
      what: `CPU of the API for each, ${saying}`,
      value: cpuOfEach('api'),
      unit: 'µs',
      limit: { what: 'bare route', value: median(runs.map(({ bare }) => bare.cpu.route ?? 0)) },
    },
    { part: 'accept', what: `CPU of PostgreSQL for each, ${saying}`, value: cpuOfEach('postgres'), unit: 'µs' },
  ]
}
