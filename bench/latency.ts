import { openConnections } from './http-load.ts'
import type { Figure, Line, Report } from './lines.ts'
import { inTurn, percentile, say } from './measure.ts'
import { startHerald, startPeer } from './processes.ts'
import { createSenderAt, messageRequest, type Service, startTogether, untilAllRead } from './service.ts'

// How long a message takes at a fifth of the top rate. Requests come at random moments, as from many callers who know nothing of each other,
// and each is timed from the moment it was to be sent: what waits because the one before was slow counts as slow. A percentile is of all the
// requests of all rounds; the least and the most are of single rounds.

const SHARE = 0.2
const ACCEPT_MARK_MS = 15
const HAND_OVER_MARK_MS = 50
const CONNECTIONS = 64

/** `accept`, `through`: the top rates. */
export async function measureLatency(quick: boolean, report: Report, top: { accept: number; through: number }): Promise<void> {
  const rounds = quick ? { count: 3, seconds: 2, warmUp: 500 } : { count: 5, seconds: 8, warmUp: 5_000 }
  await measureAccepting(top.accept * SHARE, rounds, report)
  await measureHandingOver(top.through * SHARE, rounds, report)
}

/** `warmUp`: so many requests before. */
type Rounds = { count: number; seconds: number; warmUp: number }
type Target = { url: string; request: () => string }
type Sent = { sentAt: number; tookMs: number; answer: string }

/** What is compiled and planned with the first requests is not what is measured. */
async function sendAtOnce({ url, request }: Target, count: number): Promise<void> {
  const connections = await openConnections(url, CONNECTIONS, 202)
  await inTurn(count, CONNECTIONS, () => connections.send(request()))
  connections.close()
}

/** Poisson arrivals. Times are of the clock that the network's ledger has, in ms. */
async function sendAtRandom({ url, request }: Target, perSecond: number, seconds: number): Promise<Sent[]> {
  const connections = await openConnections(url, CONNECTIONS, 202)
  const sent: Promise<Sent>[] = []
  const startedAt = performance.now()
  let dueAt = startedAt
  while (dueAt < startedAt + seconds * 1_000) {
    const late = performance.now() - dueAt
    if (late < 0) await new Promise((resolve) => setTimeout(resolve, -late))
    const due = dueAt
    sent.push(
      connections.send(request()).then((answer) => ({ sentAt: performance.timeOrigin + due, tookMs: performance.now() - due, answer })),
    )
    dueAt += (-Math.log(1 - Math.random()) * 1_000) / perSecond
  }
  const all = await Promise.all(sent)
  connections.close()
  return all
}

/** Accepting alone, at a fifth of what was accepted at most. The same requests to a bare route show what the client and the machine take. */
async function measureAccepting(perSecond: number, { count, seconds, warmUp }: Rounds, report: Report): Promise<void> {
  const peer = await startPeer('bare-route-peer.ts')
  const api = await startHerald(['--only', 'api'])
  const account = await createSenderAt(api)
  const request = () => messageRequest(account)
  const targets = { bare: { url: `http://127.0.0.1:${peer.port}`, request }, ours: { url: api.url, request } }
  await sendAtOnce(targets.bare, warmUp)
  await sendAtOnce(targets.ours, warmUp)
  const took: { bare: number[][]; ours: number[][] } = { bare: [], ours: [] }
  for (let round = 1; round <= count; round++) {
    for (const side of ['bare', 'ours'] as const) {
      const sent = await sendAtRandom(targets[side], perSecond, seconds)
      took[side].push(sent.map(({ tookMs }) => tookMs))
    }
    const [bare, ours] = [took.bare.at(-1) as number[], took.ours.at(-1) as number[]].map((times) => percentile(times, 0.99).toFixed(1))
    say(`latency, round ${round} of ${count}: 99 % accepted within ${ours} ms, at the bare route ${bare}`)
  }
  await api.stop()
  await peer.stop()
  const at = `at ${perSecond.toFixed(0)} a second`
  for (const share of [0.5, 0.99]) {
    const limit = { what: 'bare route', ...percentileOf(took.bare, share) }
    report({ ...timed(`request to 202, ${at}`, took.ours, share), limit, ...(share === 0.99 && markAt(ACCEPT_MARK_MS)) })
  }
}

/** With everything at work: at a fifth of what goes all the way. */
async function measureHandingOver(perSecond: number, { count, seconds, warmUp }: Rounds, report: Report): Promise<void> {
  const service = await startTogether()
  const target = { url: service.url, request: () => messageRequest(service.account) }
  await sendAtOnce(target, warmUp)
  await untilAllRead(service, warmUp)
  const rounds: Sent[][] = []
  for (let round = 1; round <= count; round++) {
    rounds.push(await sendAtRandom(target, perSecond, seconds))
    say(`latency, round ${round} of ${count}: ${rounds.at(-1)?.length} messages sent with everything at work`)
  }
  await untilAllRead(service, warmUp + rounds.flat().length)
  const takenAt = await readHandOvers(service)
  await service.stop()
  const at = `at ${perSecond.toFixed(0)} a second`
  const accepting = rounds.map((sent) => sent.map(({ tookMs }) => tookMs))
  const handingOver = rounds.map((sent) => sent.map((one) => handedOverAfter(one, takenAt)))
  report({ ...timed(`request to 202, all at work, ${at}`, accepting, 0.99), ...markAt(ACCEPT_MARK_MS) })
  report(timed(`request to the carrier, ${at}`, handingOver, 0.5))
  report({ ...timed(`request to the carrier, ${at}`, handingOver, 0.99), ...markAt(HAND_OVER_MARK_MS) })
}

function handedOverAfter({ sentAt, answer }: Sent, takenAt: Map<string, number>): number {
  const at = takenAt.get(/"messageId":"([^"]+)"/.exec(answer)?.[1] ?? '')
  if (at === undefined) throw new Error(`the network has nothing of ${answer}`)
  return at - sentAt
}

function timed(what: string, rounds: number[][], share: number): Line {
  return { part: 'latency', what: `${what}, ${share * 100} %`, unit: 'ms', measured: percentileOf(rounds, share) }
}

function percentileOf(rounds: number[][], share: number): Figure {
  return { value: percentile(rounds.flat(), share), rounds: rounds.map((times) => percentile(times, share)) }
}

function markAt(most: number): Pick<Line, 'mark'> {
  return { mark: { of: 'measured', most } }
}

/** When the network had taken each message, by its ledger. */
async function readHandOvers({ simulator }: Service): Promise<Map<string, number>> {
  const takenAt = new Map<string, number>()
  for (let after = 0; ; ) {
    const answer = await fetch(`${simulator.url}/simulator/ledger?after=${after}&limit=10000`)
    const { entries, next } = (await answer.json()) as { entries: { kind: string; at: string; messageId: string }[]; next: number }
    for (const { kind, at, messageId } of entries) if (kind === 'accepted') takenAt.set(messageId, Date.parse(at))
    if (next === after) return takenAt
    after = next
  }
}
