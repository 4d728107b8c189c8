import { setTimeout as sleep } from 'node:timers/promises'
import { atMost, byMedian, grouped, type Line, once, ratioAtMost } from '../measure/figures.ts'
import { collectAndLook, type Memory } from '../measure/inspector.ts'
import { childrenOf, residentBytes } from '../measure/process-usage.ts'
import { timed, until } from '../measure/rounds.ts'
import { sendOneByOne } from '../measure/whole-way.ts'
import type { Bench } from '../part.ts'
import { askSink, subscribe } from '../setup/endpoints.ts'
import { startPeer } from '../setup/processes.ts'
import { type Service, startApart, untilAllRead } from '../setup/service.ts'

// Whether a process keeps anything of the messages that have passed: as many as one caller may send in an hour, 35 a second, with an endpoint
// that gets an event for every step. Each process is looked at three times while nothing is pending: after a tenth as many messages, which
// warm it up, after half, and at the end; each time after a garbage collection.

const HOUR = 35 * 3_600
const EVENTS_EACH = 3
/** The shortest form of an id: a process that keeps anything of each message keeps more. It is 2 MiB of an hour's messages. */
const TARGET = atMost(16)
// A backend grows with the statements that it has run, and then stays.
const BACKEND_TARGET = ratioAtMost(1.1)
// Idle connections to the database end after 10 s, so each look finds only those that are always open.
const SETTLE_MS = 12_000
const MIB = 2 ** 20

/** `backends`: PostgreSQL's processes, in bytes. */
type Look = { processes: Record<string, Memory>; backends: number[] }

export async function measureMemory({ quick, report, say }: Bench): Promise<void> {
  const half = quick ? 1_000 : HOUR / 2
  const service = await startApart({ inspect: true })
  const sink = await startPeer('sink')
  await subscribe(service.pool, service.account.accountId, `${sink.url}/taken`)
  let sent = 0
  const rates: number[] = []
  async function sendAndLook(count: number): Promise<Look> {
    sent += count
    const { perSecond } = await timed(count, service.cpu, async () => {
      await sendOneByOne(service, count)
      await untilAllRead(service, sent)
      await until(async () => (await askSink(sink, 'count')).count >= EVENTS_EACH * sent)
    })
    rates.push(perSecond)
    say(`${grouped(sent)} messages are READ, and their events posted`)
    await sleep(quick ? 0 : SETTLE_MS)
    return await look(service)
  }
  const warm = await sendAndLook(half / 5)
  rates.length = 0
  reportLooks(report, { warm, middle: await sendAndLook(half), end: await sendAndLook(half) }, half)
  report({ what: 'accepted to READ meanwhile, with events', unit: 'a second', measured: byMedian(rates) })
}

async function look({ processes, postmaster }: Service): Promise<Look> {
  const looks: Record<string, Memory> = {}
  for (const [name, { inspector }] of Object.entries(processes)) looks[name] = await collectAndLook(inspector)
  return { processes: looks, backends: childrenOf(postmaster).map((pid) => residentBytes(pid, 'RssAnon')) }
}

type Looks = { warm: Look; middle: Look; end: Look }

function reportLooks(report: Bench['report'], looks: Looks, half: number): void {
  for (const name of Object.keys(looks.end.processes)) {
    const [warm, middle, end] = [looks.warm, looks.middle, looks.end].map((look) => look.processes[name]) as [Memory, Memory, Memory]
    // A leak shows in both halves. In the first, code that only the start needed is still collected: 1 MiB of every process, which would hide
    // 16 bytes of each of 63,000 messages. In the second half, the noise was at most 120 KiB.
    const rounds = [middle.held - warm.held, end.held - middle.held].map((bytes) => bytes / half)
    const measured = { value: rounds[1] as number, rounds }
    report({ what: `${name}: kept of each message of the second half, by heap and buffers`, unit: 'bytes', measured, target: TARGET })
    report({ what: `${name}: heap and buffers in the end`, unit: 'MiB', ...since('warmed up', warm.held, end.held) })
    report({ what: `${name}: resident (RSS) in the end`, unit: 'MiB', ...since('warmed up', warm.resident, end.resident) })
  }
  const { middle, end } = looks
  const largest = ({ backends }: Look) => Math.max(...backends)
  const all = ({ backends }: Look) => backends.reduce((sum, bytes) => sum + bytes, 0)
  const ofLargest = since('at half', largest(middle), largest(end))
  report({ what: 'postgres: its largest backend in the end, without shared buffers', unit: 'MiB', ...ofLargest, target: BACKEND_TARGET })
  report({
    what: 'postgres: all its processes in the end, without shared buffers',
    unit: 'MiB',
    ...since('at half', all(middle), all(end)),
  })
}

function since(when: string, then: number, now: number): Pick<Line, 'measured' | 'limit'> {
  return { measured: once(now / MIB), limit: { what: when, ...once(then / MIB) } }
}
