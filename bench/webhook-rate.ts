import { randomUUID } from 'node:crypto'
import { Pool as Connections, type Dispatcher } from 'undici'
import { newSecret, sign } from '../server/src/webhooks/sign.ts'
import { median, printTable, say, until } from './measure.ts'
import { cpuMs } from './proc.ts'
import type { HeraldProcess, Peer } from './processes.ts'
import { askSink, clear, createSubscriber, fillLog, type Scene } from './webhook-scene.ts'

// How many events a second go from the log to an endpoint that takes all. The yardstick posts the same headers and a body of the same
// size to the same sink, over as many connections, and does nothing else.

const CONNECTIONS = 64
const WARM_UP = 5_000
const NOBODY = '00000000-0000-0000-0000-000000000000'

/** CPU time is in microseconds for each event. `poster` is who posts: the worker, or this process. */
type Run = { perSecond: number; poster: number | undefined; postgres: number | undefined; sink: number | undefined }
type Way = {
  what: string
  runs: Run[]
  poster: { pid?: number | undefined }
  before: (count: number) => Promise<unknown>
  run: (count: number) => Promise<void>
}

export async function measureRate(scene: Scene, count: number, rounds: number): Promise<void> {
  const sink = await scene.startSink()
  const worker = await scene.startWorker()
  const ways = await prepare(scene, sink, worker)
  for (const way of ways) await measure(scene, sink, way, WARM_UP)
  for (const { runs } of ways) runs.pop()
  for (let round = 0; round < rounds; round++) for (const way of ways) await measure(scene, sink, way, count)
  print(ways)
  await scene.stopAll()
}

async function prepare({ pool, bare }: Scene, sink: Peer, worker: HeraldProcess): Promise<Way[]> {
  const { accountId, endpointId } = await createSubscriber(pool, sink, '/taken')
  const fill = async (count: number) => {
    await clear(bare)
    await bare.query('begin')
    await fillLog(bare, accountId, count)
  }
  // Somebody else's, who does nothing with it: events are routed to it, and not posted.
  const leaseToNobody = (until: string) =>
    pool.query('update webhook_endpoints set lease = $2, leased_until = $3 where id = $1', [endpointId, NOBODY, until])
  const fillAndBar = async (count: number) => {
    await fill(count)
    await leaseToNobody('infinity')
  }
  const commit = () => bare.query('commit')
  const unbar = () => leaseToNobody('-infinity')
  // Asking the tables all the while would cost as much as what is measured: rows that are gone are read until they are vacuumed.
  const untilRouted = async (count: number, begin: () => Promise<unknown>) => {
    const had = await countRouted(worker)
    await begin()
    await until(async () => (await countRouted(worker)) >= had + count)
  }
  const untilPosted = async (count: number, begin: () => Promise<unknown>) => {
    const { count: had } = await askSink(sink, 'count')
    await begin()
    await until(async () => (await askSink(sink, 'count')).count >= had + count)
    await until(async () => (await pool.query('select from webhook_deliveries limit 1')).rowCount === 0)
  }
  const nothing = async () => {}
  return [
    { what: 'bare loop: posted, nothing stored', runs: [], poster: process, before: nothing, run: (n) => postBare(sink, n) },
    {
      what: 'routed: placed in the log, deliveries written',
      runs: [],
      poster: worker.child,
      before: fillAndBar,
      run: (n) => untilRouted(n, commit),
    },
    { what: 'posted: from the log to the endpoint', runs: [], poster: worker.child, before: nothing, run: (n) => untilPosted(n, unbar) },
    { what: 'routed and posted at once', runs: [], poster: worker.child, before: fill, run: (n) => untilPosted(n, commit) },
  ]
}

async function countRouted({ metricsUrl }: HeraldProcess): Promise<number> {
  const metrics = await (await fetch(metricsUrl)).text()
  return Number(/^herald_events_total (\d+)/m.exec(metrics)?.[1] ?? 0)
}

async function measure({ postgresCpuMs }: Scene, sink: Peer, { what, runs, poster, before, run }: Way, count: number): Promise<void> {
  await before(count)
  const had = (await askSink(sink, 'count')).count
  const cpu = () => ({ poster: cpuMs(poster), postgres: postgresCpuMs(), sink: cpuMs(sink.child) })
  const from = { at: performance.now(), ...cpu() }
  await run(count)
  const to = { at: performance.now(), ...cpu() }
  const each = (part: 'poster' | 'postgres' | 'sink') => {
    const [a, b] = [from[part], to[part]]
    return a === undefined || b === undefined ? undefined : ((b - a) * 1_000) / count
  }
  const came = (await askSink(sink, 'count')).count - had
  if (came !== 0 && came !== count) throw new Error(`${what}: ${came} requests instead of ${count}`)
  const perSecond = (count * 1_000) / (to.at - from.at)
  runs.push({ perSecond, poster: each('poster'), postgres: each('postgres'), sink: each('sink') })
  say(`${what}: ${Math.round(perSecond).toLocaleString('en')} a second`)
}

async function postBare({ port }: Peer, count: number): Promise<void> {
  const connections = new Connections(`http://127.0.0.1:${port}`, { connections: CONNECTIONS, pipelining: 1 })
  const eventId = randomUUID()
  const data = `{"messageId":"${eventId}","clientReferenceId":"order-12345","agentId":"bench","recipient":"+48500012345","test":false}`
  const body = `{"eventId":"${eventId}","type":"message.delivered","occurredAt":"2026-01-01T00:00:00.000Z","data":${data}}`
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'herald/0.1.0',
    'webhook-id': eventId,
    'webhook-timestamp': '1767225600',
    'webhook-signature': sign([newSecret()], { eventId, timestamp: 1_767_225_600, body }),
  }
  const request = { method: 'POST', path: '/taken', headers, body } as const
  let left = count
  async function keepPosting(): Promise<void> {
    while (left > 0) {
      left -= 1
      await post(connections, request)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, keepPosting))
  await connections.destroy()
}

function post(connections: Connections, request: Dispatcher.DispatchOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const nothing = () => {}
    connections.dispatch(request, {
      onRequestStart: nothing,
      onResponseStart: nothing,
      onResponseData: nothing,
      onResponseEnd: () => resolve(),
      onResponseError: (_, error) => reject(error),
    })
  })
}

function print(ways: Way[]): void {
  const [yardstick] = ways as [Way, ...Way[]]
  const cpuOf = ({ runs }: Way, part: 'poster' | 'postgres' | 'sink') => {
    const known = runs.flatMap((run) => run[part] ?? [])
    return known.length === 0 ? '' : median(known).toFixed(0)
  }
  // Round by round, since a shared machine is as fast as it is at the moment.
  const ratioOf = ({ runs }: Way) => median(runs.map(({ perSecond }, round) => perSecond / (yardstick.runs[round] as Run).perSecond))
  printTable(
    ['', 'a second', 'of the bare loop', 'CPU µs: poster', 'PostgreSQL', 'sink'],
    ways.map((way) => [
      way.what,
      Math.round(median(way.runs.map(({ perSecond }) => perSecond))).toLocaleString('en'),
      ratioOf(way).toFixed(2),
      cpuOf(way, 'poster'),
      cpuOf(way, 'postgres'),
      cpuOf(way, 'sink'),
    ]),
  )
}
