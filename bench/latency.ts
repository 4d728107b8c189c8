import { heraldOf, type Server } from './checkouts.ts'
import { saturate } from './http-load.ts'
import type { Figure, Line, Report } from './lines.ts'
import { interleave, percentile, say } from './measure.ts'
import { startHerald, startPeer } from './processes.ts'
import { type Receiver, type Sent, sendAtOnce, sendAtRandom } from './random-load.ts'
import { createAccountAt, messageRequest, type Service, startApart, startTogether, untilAllRead } from './service.ts'
import type { Measuring } from './through.ts'
import { labelled } from './whole-way.ts'

// How long a message takes at a fifth of the top rate, which is that of the last server and is measured first: all servers get the same load.
// Requests come at random moments. A percentile is of all the requests of all rounds; the least and the most are of single rounds.

const PART = 'latency'
const SHARE = 0.2
const ACCEPT_TARGET_MS = 10
const HAND_OVER_TARGET_MS = 18
/** Of load before each round that is not timed: a server that has waited for its turn has closed its connections to PostgreSQL. */
const LEAD_SECONDS = 2

/** `warmUp`: so many requests before; `top`: so many messages for the top rate of the whole way, so many seconds for that of accepting. */
type Rounds = { count: number; seconds: number; warmUp: number; top: { messages: number; seconds: number } }

export async function measureLatency(measuring: Measuring, report: Report): Promise<void> {
  const rounds = measuring.quick
    ? { count: 3, seconds: 2, warmUp: 500, top: { messages: 1_000, seconds: 1 } }
    : { count: 5, seconds: 8, warmUp: 20_000, top: { messages: 5_000, seconds: 5 } }
  await measureAccepting(measuring, rounds, report)
  await measureHandingOver(measuring, rounds, report)
}

type Accepting = Receiver & { label: string; took: number[][]; stop: () => Promise<void> }

async function startAccepting({ checkout, label }: Server): Promise<Accepting> {
  const { url, dataDir, stop } = await startHerald(['--only', 'api'], {}, { program: heraldOf(checkout) })
  const account = await createAccountAt(checkout, { HERALD_DATA_DIR: dataDir })
  return { label, url, request: () => messageRequest(account), took: [], stop }
}

/** Accepting alone. The same requests to a bare route show what the client and the machine take. */
async function measureAccepting({ servers }: Measuring, { count, seconds, warmUp, top }: Rounds, report: Report): Promise<void> {
  const peer = await startPeer('bare-route-peer.ts')
  const all: Accepting[] = []
  for (const server of servers) all.push(await startAccepting(server))
  const [last] = all.slice(-1) as [Accepting]
  const bare: Accepting = { ...last, label: 'bare route', url: `http://127.0.0.1:${peer.port}`, took: [], stop: peer.stop }
  for (const one of [bare, ...all]) await sendAtOnce(one, warmUp)
  const { perSecond: most } = await saturate(last.url, top.seconds, last.request, () => ({}))
  const perSecond = most * SHARE
  const turns = [bare, ...all].map((one) => async (round: number) => {
    await sendAtRandom(one, perSecond, LEAD_SECONDS)
    const sent = await sendAtRandom(one, perSecond, seconds)
    one.took.push(sent.map(({ tookMs }) => tookMs))
    const within = percentile(one.took.at(-1) as number[], 0.99).toFixed(1)
    say(`${PART}, round ${round} of ${count}: ${labelled(one.label, `99 % accepted within ${within} ms`)}`)
  })
  await interleave(count, turns)
  for (const { stop } of [...all, bare]) await stop()
  const at = `at ${perSecond.toFixed(0)} a second`
  for (const { label, took } of all) {
    for (const share of [0.5, 0.99]) {
      const line = timed(labelled(label, `request to 202, ${at}`), took, share)
      const isTarget = share === 0.99 && took === last.took
      report({ ...line, limit: { what: bare.label, ...percentileOf(bare.took, share) }, ...(isTarget && targetAt(ACCEPT_TARGET_MS)) })
    }
  }
}

type HandingOver = { label: string; service: Service; isTarget: boolean; sent: number; rounds: Sent[][] }

/** With everything at work, in one process and with a process for each role. The targets are for the latter. */
async function measureHandingOver({ servers, delayMs }: Measuring, { count, seconds, warmUp, top }: Rounds, report: Report): Promise<void> {
  const all: HandingOver[] = []
  for (const [index, { label, ...server }] of servers.entries()) {
    const isTarget = index === servers.length - 1
    const together = { label: labelled(label, 'one process'), service: await startTogether({ ...server, delayMs }), isTarget: false }
    const apart = { label: labelled(label, 'a process for each role'), service: await startApart({ ...server, delayMs }), isTarget }
    for (const one of [together, apart]) all.push({ ...one, sent: 0, rounds: [] })
  }
  for (const one of all) await sendThrough(one, warmUp)
  const perSecond = (await sendThrough(all.at(-1) as HandingOver, top.messages)) * SHARE
  const turns = all.map((one) => async (round: number) => {
    const lead = await sendAtRandom(receiverOf(one), perSecond, LEAD_SECONDS)
    const sent = await sendAtRandom(receiverOf(one), perSecond, seconds)
    one.rounds.push(sent)
    one.sent += lead.length + sent.length
    await untilAllRead(one.service, one.sent)
    say(`${PART}, round ${round} of ${count}: ${one.label}: ${sent.length} messages with everything at work`)
  })
  await interleave(count, turns)
  for (const one of all) await reportHandingOver(report, one, `at ${perSecond.toFixed(0)} a second`)
  for (const { service } of all) await service.stop()
}

function receiverOf({ service }: HandingOver): Receiver {
  return { url: service.url, request: () => messageRequest(service.account) }
}

/** Returns how many a second went the whole way. */
async function sendThrough(one: HandingOver, count: number): Promise<number> {
  const startedAt = performance.now()
  await sendAtOnce(receiverOf(one), count)
  one.sent += count
  await untilAllRead(one.service, one.sent)
  return (count * 1_000) / (performance.now() - startedAt)
}

async function reportHandingOver(report: Report, { label, service, rounds, isTarget }: HandingOver, at: string): Promise<void> {
  const takenAt = await readHandOvers(service)
  const accepting = rounds.map((sent) => sent.map(({ tookMs }) => tookMs))
  const handingOver = rounds.map((sent) => sent.map((one) => handedOverAfter(one, takenAt)))
  const [accepted, handedOver] = [`${label}: request to 202, all at work, ${at}`, `${label}: request to the carrier, ${at}`]
  report({ ...timed(accepted, accepting, 0.99), ...(isTarget && targetAt(ACCEPT_TARGET_MS)) })
  report(timed(handedOver, handingOver, 0.5))
  report({ ...timed(handedOver, handingOver, 0.99), ...(isTarget && targetAt(HAND_OVER_TARGET_MS)) })
}

function handedOverAfter({ sentAt, response }: Sent, takenAt: Map<string, number>): number {
  const at = takenAt.get(/"messageId":"([^"]+)"/.exec(response)?.[1] ?? '')
  if (at === undefined) throw new Error(`the network has nothing of ${response}`)
  return at - sentAt
}

function timed(what: string, rounds: number[][], share: number): Line {
  return { part: PART, what: `${what}, ${share * 100} %`, unit: 'ms', measured: percentileOf(rounds, share) }
}

function percentileOf(rounds: number[][], share: number): Figure {
  return { value: percentile(rounds.flat(), share), rounds: rounds.map((times) => percentile(times, share)) }
}

function targetAt(most: number): Pick<Line, 'target'> {
  return { target: { of: 'measured', most } }
}

/** When the network had taken each message, by its ledger. */
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
