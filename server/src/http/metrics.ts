import { type FastifyInstance, fastify } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Config } from '../config.ts'
import type { Pool } from '../db/pool.ts'
import { handleErrors, newRequestId } from './error-responses.ts'
import { isPortTaken, listen } from './listen.ts'
import type { ServedRequest } from './log.ts'
import { refuseUnknownRoutes } from './routes.ts'

export type Metrics = {
  registry: Registry
  countRequest: (request: ServedRequest) => void
}

const OBSERVE_BATCH_SIZE = 250

/** The labels have few values: the pattern of a route, never a URL, a phone number, a key or an account. */
export function createMetrics(pools: Pool[]): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const duration = new Histogram({
    name: 'herald_http_request_duration_seconds',
    help: 'Time from the first byte of a request to the last byte of its response',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
    collect: observeAll,
  })
  // Looking up the labels takes longer than all other work at the end of a request. In a batch, each look-up takes less time.
  const waiting: ServedRequest[] = []
  function observeAll(): void {
    for (const { method, route, status, ms } of waiting) duration.observe({ method, route, status: String(status) }, ms / 1000)
    waiting.length = 0
  }
  const errors = new Counter({
    name: 'herald_http_errors_total',
    help: 'Requests that failed because of a fault in Herald (500) or because the database was out of reach (503)',
    labelNames: ['status'],
    registers: [registry],
  })
  const sumOf = (count: 'idleCount' | 'totalCount' | 'waitingCount') => pools.reduce((sum, pool) => sum + pool[count], 0)
  new Gauge({
    name: 'herald_database_connections',
    help: 'Connections of the pools, and requests that wait for one',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      this.set({ state: 'idle' }, sumOf('idleCount'))
      this.set({ state: 'busy' }, sumOf('totalCount') - sumOf('idleCount'))
      this.set({ state: 'waiting' }, sumOf('waitingCount'))
    },
  })

  return {
    registry,
    countRequest: (request) => {
      waiting.push(request)
      if (waiting.length >= OBSERVE_BATCH_SIZE) observeAll()
      if (request.status >= 500) errors.inc({ status: String(request.status) })
    },
  }
}

const DEFAULT_PORT = 9464
const REQUEST_TIMEOUT_MS = 10_000
const PATH = '/metrics'

type MetricsServer = { url: string; close: () => Promise<void> }

/** Serves /metrics on a port of its own, and nothing else there, since callers of the API should not learn how busy the service is. */
export async function serveMetrics(config: Config['metrics'], { registry }: Metrics): Promise<MetricsServer> {
  const server = fastify({ genReqId: newRequestId, requestTimeout: REQUEST_TIMEOUT_MS, forceCloseConnections: true })
  handleErrors(server)
  refuseUnknownRoutes(server)
  server.get(PATH, async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
  const url = await listenForMetrics(server, config)
  return { url: `${url}${PATH}`, close: () => server.close() }
}

/** All nodes on one machine have the same default port. The first node gets it, and the others take a free port. */
async function listenForMetrics(server: FastifyInstance, { host, port }: Config['metrics']): Promise<string> {
  const variables = 'HERALD_METRICS_HOST and HERALD_METRICS_PORT'
  if (port !== undefined) return await listen(server, { host, port }, variables)
  try {
    return await listen(server, { host, port: DEFAULT_PORT }, variables)
  } catch (error) {
    if (!isPortTaken(error)) throw error
    return await listen(server, { host, port: 0 }, variables)
  }
}
