import { openConnections } from './http-load.ts'
import type { Line } from './lines.ts'
import { inTurn, percentile, say } from './measure.ts'
import { startPeer } from './processes.ts'
import { messageRequest, type Service, startService, untilAllRead } from './service.ts'

// How long a message takes at a fifth of the top rate. Requests come at random moments, as from many callers who know nothing of each other,
// and each is timed from the moment it was to be sent: what waits because the one before was slow counts as slow.

const SHARE = 0.2
const ACCEPT_MARK_MS = 15
const HAND_OVER_MARK_MS = 50
const CONNECTIONS = 64
const WARM_UP = 5_000

export async function measureLatency(top: { accept: number; through: number; quick: boolean }): Promise<Line[]> {
  const seconds = top.quick ? 5 : 40
  return [...(await measureAccepting(top.accept * SHARE, seconds)), ...(await measureHandingOver(top.through * SHARE, seconds))]
}

/** `isIdle`: returns when nothing of the warm-up is left to do. */
type Target = { url: string; request: () => string; isIdle?: () => Promise<void> }
type Sent = { sentAt: number; tookMs: number; answer: string }

/** Poisson arrivals. Times are of the clock that the network's ledger has, in ms. */
async function sendAtRandom({ url, request, isIdle = async () => {} }: Target, perSecond: number, seconds: number): Promise<Sent[]> {
  const connections = await openConnections(url, CONNECTIONS, 202)
  // What is compiled and planned with the first requests is not what is measured.
  await inTurn(WARM_UP, CONNECTIONS, () => connections.send(request()))
  await isIdle()
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

/** Accepting alone, at a fifth of what was accepted at most; the same requests to a bare route show what the client and the machine take. */
async function measureAccepting(perSecond: number, seconds: number): Promise<Line[]> {
  const peer = await startPeer('bare-route-peer.ts')
  const service = await startService('apart')
  const delivery = service.processes.delivery?.pid as number
  process.kill(delivery, 'SIGSTOP')
  const request = () => messageRequest(service.account)
  const bare = (await sendAtRandom({ url: `http://127.0.0.1:${peer.port}`, request }, perSecond, seconds)).map(({ tookMs }) => tookMs)
  const ours = (await sendAtRandom({ url: service.api.url, request }, perSecond, seconds)).map(({ tookMs }) => tookMs)
  process.kill(delivery, 'SIGCONT')
  await service.stop()
  await peer.stop()
  const at = `at ${perSecond.toFixed(0)} a second`
  say(`latency: ${ours.length} accepted ${at}, 50 % ${percentile(ours, 0.5).toFixed(1)} ms, bare ${percentile(bare, 0.5).toFixed(1)}`)
  return [
    { part: 'latency', what: `request to 202, 50 %, ${at}`, value: percentile(ours, 0.5), unit: 'ms' },
    { part: 'latency', what: `request to 202, 99 %, ${at}`, value: percentile(ours, 0.99), unit: 'ms', mark: { most: ACCEPT_MARK_MS } },
    { part: 'latency', what: 'the same at the bare route, 99 %', value: percentile(bare, 0.99), unit: 'ms' },
  ]
}

/** With everything at work: at a fifth of what goes all the way. */
async function measureHandingOver(perSecond: number, seconds: number): Promise<Line[]> {
  const service = await startService('together')
  const target = { url: service.api.url, request: () => messageRequest(service.account), isIdle: () => untilAllRead(service, WARM_UP) }
  const sent = await sendAtRandom(target, perSecond, seconds)
  await untilAllRead(service, await countMessages(service))
  const takenAt = await readHandOvers(service)
  await service.stop()
  const took = sent.map(({ sentAt, answer }) => {
    const at = takenAt.get(/"messageId":"([^"]+)"/.exec(answer)?.[1] ?? '')
    if (at === undefined) throw new Error(`the network has nothing of ${answer}`)
    return at - sentAt
  })
  const accepting = sent.map(({ tookMs }) => tookMs)
  const at = `at ${perSecond.toFixed(0)} a second`
  return [
    {
      part: 'latency',
      what: `request to 202, all at work, 99 %, ${at}`,
      value: percentile(accepting, 0.99),
      unit: 'ms',
      mark: { most: ACCEPT_MARK_MS },
    },
    { part: 'latency', what: `request to the carrier, 50 %, ${at}`, value: percentile(took, 0.5), unit: 'ms' },
    {
      part: 'latency',
      what: `request to the carrier, 99 %, ${at}`,
      value: percentile(took, 0.99),
      unit: 'ms',
      mark: { most: HAND_OVER_MARK_MS },
    },
  ]
}

async function countMessages({ pool }: Service): Promise<number> {
  const { rows } = await pool.query<{ count: number }>('select count(*) from messages')
  return (rows[0] as { count: number }).count
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
