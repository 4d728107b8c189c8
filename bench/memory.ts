import { collectAndLook, type Memory } from './inspector.ts'
import { once, type Report } from './lines.ts'
import { say, until } from './measure.ts'
import { childrenOf, residentBytes } from './proc.ts'
import { type Peer, startPeer } from './processes.ts'
import { type Service, startApart, untilAllRead } from './service.ts'
import { send } from './through.ts'
import { askSink, subscribe } from './webhook-scene.ts'

// Whether a process keeps anything of the messages that have passed: as many as an hour brings at the rate that a caller may send, 35 a
// second, with an endpoint that is told of every step. Looked at three times while nothing is under way: after a tenth as many, which warm
// everything up, at half, and at the end; each time when what can be cleared up has been cleared up.

const HOUR = 35 * 3_600
const EVENTS_EACH = 3
/**
 * Less than the least that can be kept of a message: its id has 16 bytes, and as JavaScript keeps it, 56. At 450 messages a second it would be
 * 15 MiB in an hour, which is the noise of one look at a process that was busy just before.
 */
const MARK_BYTES = 10
const MIB = 2 ** 20

/** By what each process is; and PostgreSQL's, by their id. */
type Look = { processes: Record<string, Memory>; backends: Map<string, number> }

export async function measureMemory(quick: boolean, report: Report): Promise<void> {
  const half = quick ? 1_000 : HOUR / 2
  const service = await startApart({ inspect: true })
  const sink = await startPeer('sink-peer.ts')
  await subscribe(service.pool, service.account.accountId, sink, '/taken')
  let sent = 0
  async function sendAndLook(count: number): Promise<Look> {
    await send(service, count)
    sent += count
    await untilAllRead(service, sent)
    await until(async () => (await askSink(sink, 'count')).count >= EVENTS_EACH * sent)
    say(`memory: ${sent.toLocaleString('en')} messages are READ, and told of`)
    return await look(service)
  }
  const warm = await sendAndLook(half / 5)
  const startedAt = performance.now()
  const looks = { warm, middle: await sendAndLook(half), end: await sendAndLook(half) }
  const perSecond = (2 * half * 1_000) / (performance.now() - startedAt)
  for (const { stop } of [sink as Pick<Peer, 'stop'>, service]) await stop()
  reportLooks(report, looks, half, perSecond)
}

async function look({ processes, postmaster }: Service): Promise<Look> {
  const looks: Record<string, Memory> = {}
  for (const [name, { inspector }] of Object.entries(processes)) looks[name] = await collectAndLook(inspector)
  return { processes: looks, backends: new Map(childrenOf(postmaster).map((pid) => [pid, residentBytes(pid, 'RssAnon')])) }
}

type Looks = { warm: Look; middle: Look; end: Look }

function reportLooks(report: Report, looks: Looks, half: number, perSecond: number): void {
  const at = `with endpoints told, at ${perSecond.toFixed(0)} a second`
  for (const name of Object.keys(looks.end.processes)) {
    const of = (when: keyof Looks) => looks[when].processes[name] as Memory
    const growth = [of('middle').held - of('warm').held, of('end').held - of('middle').held]
    reportGrowth(report, { name, what: 'heap and buffers', growth, half, perSecond })
    reportSize(report, `${name}: heap and buffers, in the end`, of('warm').held, of('end').held)
    reportSize(report, `${name}: resident (RSS), in the end`, of('warm').resident, of('end').resident)
  }
  const growth = [growthOfBackends(looks.warm, looks.middle), growthOfBackends(looks.middle, looks.end)]
  reportGrowth(report, { name: 'postgres', what: 'its backends without shared buffers', growth, half, perSecond })
  reportSize(report, `postgres: largest backend without shared buffers, in the end`, largest(looks.warm), largest(looks.end))
  report({ part: 'memory', what: `messages ${at}`, unit: 'a second', measured: once(perSecond) })
}

type Growth = { name: string; what: string; growth: number[]; half: number; perSecond: number }

/** Judged by the second half: what is made once, when something is used first, belongs to the first. A leak is in both. */
function reportGrowth(report: Report, { name, what, growth, half, perSecond }: Growth): void {
  const rounds = growth.map((bytes) => bytes / half)
  const value = rounds.at(-1) as number
  const measured = { value, rounds }
  report({
    part: 'memory',
    what: `${name}: growth of ${what}, second half (and first)`,
    unit: 'bytes a message',
    measured,
    mark: { of: 'measured', most: MARK_BYTES },
  })
  const hourly = `${name}: the same in an hour at ${perSecond.toFixed(0)} a second`
  report({ part: 'memory', what: hourly, unit: 'MiB', measured: once((value * perSecond * 3_600) / MIB) })
}

function reportSize(report: Report, what: string, warm: number, end: number): void {
  report({ part: 'memory', what, unit: 'MiB', measured: once(end / MIB), limit: { what: 'warmed up', ...once(warm / MIB) } })
}

/** Of those that were there both times: connections come and go with the load, and PostgreSQL's own helpers too. */
function growthOfBackends(from: Look, to: Look): number {
  return [...to.backends].reduce((sum, [pid, bytes]) => sum + (bytes - (from.backends.get(pid) ?? bytes)), 0)
}

function largest({ backends }: Look): number {
  return Math.max(...backends.values())
}
