import { randomUUID } from 'node:crypto'
import { Pool as Connections, type Dispatcher } from 'undici'
import { EVENTS_PER_PAGE } from '../../server/src/events/pages.ts'
import { newSecret, sign } from '../../server/src/webhooks/sign.ts'
import { cpuMs } from '../measure/process-usage.ts'
import { inParallel, type Rate, reportRates, showRate, sideOf, timed, until } from '../measure/rounds.ts'
import type { Bench } from '../part.ts'
import { askSink, clearEvents, createSubscriber, createWebhookDatabase, type WebhookDatabase } from '../setup/endpoints.ts'
import type { Database } from '../setup/postgres.ts'
import { type HeraldProcess, type Peer, startPeer } from '../setup/processes.ts'

// Events from the log to an endpoint that accepts all. The limit is a bare loop that posts the same headers and a body of the same size to the
// same sink, over as many connections, and does nothing else. `poster` is the worker, or the process of the bare loop.

const CONNECTIONS = 64
const WARM_UP = 5_000
const NOBODY = '00000000-0000-0000-0000-000000000000'

export async function measureWebhookRate(bench: Bench): Promise<void> {
  const { count, rounds } = bench.quick ? { count: 10_000, rounds: 3 } : { count: 100_000, rounds: 1 }
  const database = await createWebhookDatabase()
  const sink = await startPeer('sink')
  const worker = await database.startWorker()
  const steps = await stepsOf(database, sink, worker)
  const waysWith = (events: number) =>
    Object.entries(steps).map(([label, step]) => sideOf(label, () => measure({ database, sink, worker, events }, step)))
  for (const way of waysWith(WARM_UP)) await way.run()
  const ways = waysWith(count)
  // Always in this order: what is routed is posted next.
  for (let round = 1; round <= rounds; round++) {
    for (const way of ways) {
      way.rounds.push(await way.run())
      bench.say(`round ${round} of ${rounds}: ${way.label}: ${showRate(way.rounds.at(-1) as Rate)}`)
    }
  }
  for (const way of ways) reportRates(bench, way, way === ways[0] ? undefined : ways[0])
}

/** `prepare` is not timed. `isBare`: this process posts, and not the worker. */
type Step = { prepare?: (events: number) => Promise<unknown>; work: (events: number) => Promise<void>; isBare?: boolean }

async function stepsOf(database: WebhookDatabase, sink: Peer, worker: HeraldProcess): Promise<Record<string, Step>> {
  const { client, pool } = database
  const { accountId, endpointId } = await createSubscriber(pool, `${sink.url}/taken`)
  async function fill(events: number): Promise<void> {
    await clearEvents(database)
    await client.query('begin')
    await fillLog(database, accountId, events)
  }
  // With the lease of another worker, events are routed to the endpoint and not posted.
  const leaseToNobody = (leasedUntil: string) =>
    pool.query('update webhook_endpoints set lease = $2, leased_until = $3 where id = $1', [endpointId, NOBODY, leasedUntil])
  async function fillAndLease(events: number): Promise<void> {
    await fill(events)
    await leaseToNobody('infinity')
  }
  const commit = () => client.query('commit')
  // By the metrics: polling the tables would cost as much as what is measured, since dead rows are read until they are vacuumed.
  async function untilRouted(events: number, begin: () => Promise<unknown>): Promise<void> {
    const had = await countRouted(worker)
    await begin()
    await until(async () => (await countRouted(worker)) >= had + events)
  }
  async function untilPosted(events: number, begin: () => Promise<unknown>): Promise<void> {
    const { count: had } = await askSink(sink, 'count')
    await begin()
    await until(async () => (await askSink(sink, 'count')).count >= had + events)
    await until(async () => (await pool.query('select from webhook_deliveries limit 1')).rowCount === 0)
  }
  return {
    'bare loop: posted, nothing stored': { work: (events) => postBare(sink, events), isBare: true },
    'routed: positions assigned, deliveries written': { prepare: fillAndLease, work: (events) => untilRouted(events, commit) },
    'posted: from the log to the endpoint': { work: (events) => untilPosted(events, () => leaseToNobody('-infinity')) },
    'routed and posted at once': { prepare: fill, work: (events) => untilPosted(events, commit) },
  }
}

async function countRouted({ metricsUrl }: HeraldProcess): Promise<number> {
  const metrics = await (await fetch(metricsUrl)).text()
  return Number(/^herald_events_total (\d+)/m.exec(metrics)?.[1] ?? 0)
}

type Measured = { database: WebhookDatabase; sink: Peer; worker: HeraldProcess; events: number }

async function measure({ database, sink, worker, events }: Measured, { prepare, work, isBare = false }: Step): Promise<Rate> {
  await prepare?.(events)
  const { count: had } = await askSink(sink, 'count')
  const poster = isBare ? process : worker.child
  const cpu = () => ({ poster: cpuMs(poster), sink: cpuMs(sink.child), ...(!isBare && { postgres: database.postgresCpuMs() }) })
  const rate = await timed(events, cpu, () => work(events))
  const came = (await askSink(sink, 'count')).count - had
  if (came !== 0 && came !== events) throw new Error(`${came} requests came instead of ${events}`)
  return rate
}

const KINDS = ['message.sent', 'message.delivered', 'message.read']

/** Events without a position, as a campaign leaves them: all messages are sent, then all are delivered, then all are read. */
async function fillLog({ client }: Database, accountId: number, events: number): Promise<void> {
  const messages = Math.ceil(events / KINDS.length)
  await client.query(
    `insert into log_pages (account_id, event_count, events)
     select $1, count(*), json_agg(json_build_array(($3::text[])[n / $4 + 1], now()::timestamptz(3), md5((n % $4)::text)::uuid, 'order-' || n % $4, 'bench',
       '+48' || 500000000 + n % $4, null, false, null) order by n)
     from generate_series(0, $2::int - 1) as n group by n / ${EVENTS_PER_PAGE} order by n / ${EVENTS_PER_PAGE}`,
    [accountId, events, KINDS, messages],
  )
}

async function postBare({ url }: Peer, events: number): Promise<void> {
  const connections = new Connections(url, { connections: CONNECTIONS, pipelining: 1 })
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
  await inParallel(events, CONNECTIONS, () => post(connections, { method: 'POST', path: '/taken', headers, body }))
  await connections.destroy()
}

/** By `dispatch`, as the service posts. */
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
