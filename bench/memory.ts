import { setTimeout as sleep } from 'node:timers/promises'
import { collectAndLook, type Memory } from './inspector.ts'
import { byMedian, type Line, once, type Report } from './lines.ts'
import { say, until } from './measure.ts'
import { childrenOf, residentBytes } from './proc.ts'
import { startPeer } from './processes.ts'
import { type Service, startApart, untilAllRead } from './service.ts'
import { askSink, subscribe } from './webhook-scene.ts'
import { send } from './whole-way.ts'

// Whether a process keeps anything of the messages that have passed: as many as an hour brings at the rate that a caller may send, 35 a
// second, with an endpoint that is told of every step. Looked at three times while nothing is under way: after a tenth as many, which warm
// everything up, at half, and at the end; each time when what can be cleared up has been cleared up.

const HOUR = 35 * 3_600
const EVENTS_EACH = 3
/** What an id has in its shortest form: who keeps anything of each message keeps more. It is 2 MiB of an hour's worth. */
const TARGET_BYTES = 16
// A backend grows with the statements that it has met, to a size that it then has.
const BACKEND_TARGET = 1.1
// Connections to the database that are idle end after 10 s: each look finds only those that are always there.
const SETTLE_MS = 12_000
const MIB = 2 ** 20

/** `processes`: by what each is. `backends`: PostgreSQL's, in bytes. */
type Look = { processes: Record<string, Memory>; backends: number[] }

export async function measureMemory(quick: boolean, report: Report): Promise<void> {
  const half = quick ? 1_000 : HOUR / 2
  const service = await startApart({ inspect: true })
  const sink = await startPeer('sink-peer.ts')
  await subscribe(service.pool, service.account.accountId, sink, '/taken')
  let sent = 0
  const rates: number[] = []
  async function sendAndLook(count: number): Promise<Look> {
    const startedAt = performance.now()
    await send(service, count)
    sent += count
    await untilAllRead(service, sent)
    await until(async () => (await askSink(sink, 'count')).count >= EVENTS_EACH * sent)
    rates.push((count * 1_000) / (performance.now() - startedAt))
    say(`memory: ${sent.toLocaleString('en')} messages are READ, and told of`)
    await sleep(quick ? 0 : SETTLE_MS)
    return await look(service)
  }
  const warm = await sendAndLook(half / 5)
  rates.length = 0
  reportLooks(report, { warm, middle: await sendAndLook(half), end: await sendAndLook(half) }, half)
  report({ part: 'memory', what: 'accepted to READ meanwhile, and told of', unit: 'a second', measured: byMedian(rates) })
}

async function look({ processes, postmaster }: Service): Promise<Look> {
  const looks: Record<string, Memory> = {}
  for (const [name, { inspector }] of Object.entries(processes)) looks[name] = await collectAndLook(inspector)
  return { processes: looks, backends: childrenOf(postmaster).map((pid) => residentBytes(pid, 'RssAnon')) }
}

type Looks = { warm: Look; middle: Look; end: Look }

function reportLooks(report: Report, looks: Looks, half: number): void {
  const part = 'memory'
  for (const name of Object.keys(looks.end.processes)) {
    const [warm, middle, end] = [looks.warm, looks.middle, looks.end].map((look) => look.processes[name]) as [Memory, Memory, Memory]
    // By the second half. A leak is in both; but with the first collection, code that was used at the start alone begins to go: 1 MiB of every
    // process until the second look, which would hide 16 bytes of each of 63,000 messages. Of the second half, noise was at most 120 KiB.
    const rounds = [middle.held - warm.held, end.held - middle.held].map((bytes) => bytes / half)
    const measured = { value: rounds[1] as number, rounds }
    const what = `${name}: kept of each message of the second half, by heap and buffers`
    report({ part, what, unit: 'bytes', measured, target: { of: 'measured', most: TARGET_BYTES } })
    report({ part, what: `${name}: heap and buffers in the end`, unit: 'MiB', ...sinceThen('warmed up', warm.held, end.held) })
    report({ part, what: `${name}: resident (RSS) in the end`, unit: 'MiB', ...sinceThen('warmed up', warm.resident, end.resident) })
  }
  const largest = ({ backends }: Look) => Math.max(...backends)
  const all = ({ backends }: Look) => backends.reduce((sum, bytes) => sum + bytes, 0)
  report({
    part,
    what: 'postgres: its largest backend in the end, without shared buffers',
    unit: 'MiB',
    ...sinceThen('at half', largest(looks.middle), largest(looks.end)),
    target: { of: 'ratio', most: BACKEND_TARGET },
  })
  const what = 'postgres: all its processes in the end, without shared buffers'
  report({ part, what, unit: 'MiB', ...sinceThen('at half', all(looks.middle), all(looks.end)) })
}

function sinceThen(when: string, then: number, now: number): Pick<Line, 'measured' | 'limit'> {
  return { measured: once(now / MIB), limit: { what: when, ...once(then / MIB) } }
}
