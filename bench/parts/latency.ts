import { type Receiver, saturateHttp } from '../load/connections.ts'
import { type Sent, sendAtOnce, sendAtRandom } from '../load/requests.ts'
import { atMost, labelled, percentile, percentileOf, type Target } from '../measure/figures.ts'
import { type Side, sideOf, takeTurns } from '../measure/rounds.ts'
import type { Bench } from '../part.ts'
import { createSenderBy, messageRequest } from '../setup/accounts.ts'
import { startHerald, startPeer } from '../setup/processes.ts'
import { type Service, startApart, startTogether, untilAllRead } from '../setup/service.ts'

// Requests at random moments, at a fifth of the top rate of the last server, which is measured first: all servers get the same load. A
// percentile is of all requests of all rounds; its spread is of single rounds.

const SHARE = 0.2
const ACCEPT_TARGET = atMost(10)
const HAND_OVER_TARGET = atMost(18)
/** Load before each round that is not timed: a server that waited for its turn has closed its connections to PostgreSQL. */
const LEAD_SECONDS = 2

export async function measureLatency(bench: Bench): Promise<void> {
  const plan = bench.quick
    ? { rounds: 3, seconds: 2, warmUp: 500, top: { messages: 1_000, seconds: 1 } }
    : { rounds: 5, seconds: 8, warmUp: 20_000, top: { messages: 5_000, seconds: 5 } }
  await measureAccepting(bench, plan)
  await measureHandingOver(bench, plan)
}

/** `warmUp`: requests before. `top`: the messages, or the seconds, for the top rate. */
type Plan = { rounds: number; seconds: number; warmUp: number; top: { messages: number; seconds: number } }

const tookMs = (sent: Sent[]) => sent.map((one) => one.tookMs)
const show = (sent: Sent[]) => `99 % accepted within ${percentile(tookMs(sent), 0.99).toFixed(1)} ms`

/** Accepting alone. The same requests to a bare route show how much of it is the client and the machine. */
async function measureAccepting(bench: Bench, { rounds, seconds, warmUp, top }: Plan): Promise<void> {
  const receivers: Receiver[] = []
  for (const { checkout } of bench.servers) {
    const { url, dataDir } = await startHerald(['--only', 'api'], {}, { checkout })
    const account = await createSenderBy(checkout, { HERALD_DATA_DIR: dataDir })
    receivers.push({ url, request: () => messageRequest(account) })
  }
  const last = receivers.at(-1) as Receiver
  const bareReceiver = { ...last, url: (await startPeer('bare-route')).url }
  for (const receiver of [bareReceiver, ...receivers]) await sendAtOnce(receiver, warmUp)
  const { perSecond: most } = await saturateHttp(last, top.seconds)
  const perSecond = most * SHARE
  const sideAt = (label: string, receiver: Receiver) =>
    sideOf(label, async () => {
      await sendAtRandom(receiver, perSecond, LEAD_SECONDS)
      return await sendAtRandom(receiver, perSecond, seconds)
    })
  const bare = sideAt('bare route', bareReceiver)
  const sides = receivers.map((receiver, index) => sideAt(bench.servers[index]?.label ?? '', receiver))
  await takeTurns(bench, [bare, ...sides], { rounds, show })
  for (const side of sides) {
    const what = labelled(side.label, `request to 202, at ${perSecond.toFixed(0)} a second`)
    for (const share of [0.5, 0.99]) {
      const limit = { what: bare.label, ...percentileOf(bare.rounds.map(tookMs), share) }
      const target = share === 0.99 && side === sides.at(-1) ? ACCEPT_TARGET : undefined
      bench.report({ what: `${what}, ${share * 100} %`, unit: 'ms', measured: percentileOf(side.rounds.map(tookMs), share), limit, target })
    }
  }
}

type Way = { label: string; service: Service; sent: number }

/** With everything at work, in one process and with a process for each role. The targets are for the latter. */
async function measureHandingOver(bench: Bench, { rounds, seconds, warmUp, top }: Plan): Promise<void> {
  const ways: Way[] = []
  for (const { label, ...server } of bench.servers) {
    const starting = { ...server, delayMs: bench.delayMs }
    ways.push({ label: labelled(label, 'one process'), service: await startTogether(starting), sent: 0 })
    ways.push({ label: labelled(label, 'a process for each role'), service: await startApart(starting), sent: 0 })
  }
  for (const way of ways) await sendThrough(way, warmUp)
  const perSecond = (await sendThrough(ways.at(-1) as Way, top.messages)) * SHARE
  const sides = ways.map((way) =>
    sideOf(way.label, async () => {
      const lead = await sendAtRandom(receiverOf(way), perSecond, LEAD_SECONDS)
      const sent = await sendAtRandom(receiverOf(way), perSecond, seconds)
      way.sent += lead.length + sent.length
      await untilAllRead(way.service, way.sent)
      return sent
    }),
  )
  await takeTurns(bench, sides, { rounds, show })
  for (const [index, side] of sides.entries())
    await reportHandingOver(bench, ways[index] as Way, side, { perSecond, isLast: side === sides.at(-1) })
}

function receiverOf({ service }: Way): Receiver {
  return { url: service.url, request: () => messageRequest(service.account) }
}

/** Returns how many a second became READ. */
async function sendThrough(way: Way, count: number): Promise<number> {
  const startedAt = performance.now()
  await sendAtOnce(receiverOf(way), count)
  way.sent += count
  await untilAllRead(way.service, way.sent)
  return (count * 1_000) / (performance.now() - startedAt)
}

type At = { perSecond: number; isLast: boolean }

async function reportHandingOver(
  { report }: Bench,
  { service }: Way,
  { label, rounds }: Side<Sent[]>,
  { perSecond, isLast }: At,
): Promise<void> {
  const takenAt = await readHandOvers(service)
  const handingOver = rounds.map((sent) => sent.map((one) => handedOverAfter(one, takenAt)))
  function line(what: string, times: number[][], share: number, target?: Target): void {
    const named = `${label}: ${what}, at ${perSecond.toFixed(0)} a second, ${share * 100} %`
    report({ what: named, unit: 'ms', measured: percentileOf(times, share), target: isLast ? target : undefined })
  }
  line('request to 202, all at work', rounds.map(tookMs), 0.99, ACCEPT_TARGET)
  line('request to the carrier', handingOver, 0.5)
  line('request to the carrier', handingOver, 0.99, HAND_OVER_TARGET)
}

function handedOverAfter({ sentAt, response }: Sent, takenAt: Map<string, number>): number {
  const at = takenAt.get(/"messageId":"([^"]+)"/.exec(response)?.[1] ?? '')
  if (at === undefined) throw new Error(`the network has no message of the response ${response}`)
  return at - sentAt
}

/** When the network accepted each message, by its ledger. */
async function readHandOvers({ simulator }: Service): Promise<Map<string, number>> {
  const takenAt = new Map<string, number>()
  for (let after = 0; ; ) {
    const response = await fetch(`${simulator.url}/simulator/ledger?after=${after}&limit=10000`)
    const { entries, next } = (await response.json()) as { entries: { kind: string; at: string; messageId: string }[]; next: number }
    for (const { kind, at, messageId } of entries) if (kind === 'accepted') takenAt.set(messageId, Date.parse(at))
    if (next === after) return takenAt
    after = next
  }
}
