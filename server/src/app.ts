import type { Socket } from 'node:net'
import { type FastifyInstance, fastify, LogController } from 'fastify'
import type { Logger } from 'pino'
import packageJson from '../package.json' with { type: 'json' }
import { createAuthenticator } from './accounts/authenticate.ts'
import { AGENTS_TAG, agentRoutes } from './agents/routes.ts'
import type { Config } from './config.ts'
import type { Pool } from './db/pool.ts'
import { serveDocs } from './http/docs.ts'
import { answerBrokenRequest, answerErrors, missingHost, newRequestId, unavailable } from './http/error-answers.ts'
import { createPolicies, guardRoutes } from './http/guard.ts'
import { serveHealth } from './http/health.ts'
import { acceptJsonOnly } from './http/json-body.ts'
import { createDatabaseLimiter } from './http/limits-database.ts'
import { createMemoryLimiter } from './http/limits-memory.ts'
import { logRequest } from './http/log.ts'
import { createMetrics, type Metrics, serveMetrics } from './http/metrics.ts'
import { describeApi } from './http/openapi.ts'
import { answerUnknownRoutes, unknownRoute } from './http/routes.ts'
import { NoQuery } from './http/schemas.ts'
import { buildValidator } from './http/validation.ts'

export type Timeouts = { headersMs: number; requestMs: number; keepAliveMs: number }

const BODY_LIMIT_BYTES = 256 * 1024
const HEADER_LIMIT_BYTES = 16 * 1024

// Headers within 10 s and the whole request within 30 s: a slow client can't hold a connection for longer. An idle connection is kept
// for 72 s, which is longer than load balancers keep theirs (60 s), so that it is they who close it and no request is lost in between.
const TIMEOUTS: Timeouts = { headersMs: 10_000, requestMs: 30_000, keepAliveMs: 72_000 }

export type App = {
  fastify: FastifyInstance
  metrics: Metrics
  /** From now on every answer is 503; requests under way are finished. */
  drain: () => void
}

export async function buildApp(config: Config, pool: Pool, logger: Logger, timeouts: Timeouts = TIMEOUTS): Promise<App> {
  let stopping = false
  const app = createServer(config, logger, timeouts)
  const metrics = createMetrics(pool)
  metrics.countRequests(app)

  app.addHook('onRequest', async (request, reply) => {
    reply.header('X-Request-Id', request.id)
    if (stopping && request.url !== '/healthz' && request.url !== '/readyz') {
      throw unavailable('The service is shutting down.')
    }
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1') throw missingHost()
  })
  // Otherwise a connection that has just been served would be kept open for the next request, and the stop would wait for it.
  app.addHook('onSend', async (_request, reply) => {
    if (stopping) reply.header('Connection', 'close')
  })
  app.addHook('onResponse', async (request, reply) => logRequest(request, reply))
  answerErrors(app)
  answerUnknownRoutes(app)
  acceptJsonOnly(app)
  await describeApi(app, { version: packageJson.version, tags: [AGENTS_TAG] })

  serveHealth(app, pool, () => stopping)
  serveDocs(app)
  if (config.metricsAddress === undefined) serveMetrics(app, metrics)
  await app.register((v1) => addApiRoutes(v1, config, pool), { prefix: '/v1' })
  await app.ready()
  return {
    fastify: app,
    metrics,
    drain: () => {
      stopping = true
    },
  }
}

async function addApiRoutes(v1: FastifyInstance, config: Config, pool: Pool): Promise<void> {
  let limiter = createMemoryLimiter()
  if (config.limits.store === 'database') {
    const shared = createDatabaseLimiter(pool)
    limiter = shared.limiter
    v1.addHook('onClose', async () => shared.stop())
  }
  guardRoutes(v1, { authenticate: createAuthenticator(pool), limiter, policies: createPolicies(config.limits) })
  // Of its own, so that the guard stands before unknown paths too.
  v1.setNotFoundHandler(unknownRoute)

  v1.get('/openapi.json', { schema: { hide: true, querystring: NoQuery }, config: { public: true } }, async () => v1.swagger())
  await v1.register(agentRoutes, { pool })
}

function createServer(config: Config, logger: Logger, timeouts: Timeouts): FastifyInstance {
  const serverOptions = {
    maxHeaderSize: HEADER_LIMIT_BYTES,
    headersTimeout: timeouts.headersMs,
    // Node would answer without a body; the first hook says it in ours.
    requireHostHeader: false,
    // How often Node looks for connections that have run out of time.
    connectionsCheckingInterval: Math.min(1_000, timeouts.headersMs / 4),
  }
  const app = fastify({
    ...(config.tls === undefined ? { http: serverOptions } : { https: { ...serverOptions, ...config.tls } }),
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: newRequestId,
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    forceCloseConnections: 'idle',
    // Ours says so in the documented form.
    return503OnClosing: false,
    trustProxy: config.trustProxy.length > 0 ? config.trustProxy : false,
    clientErrorHandler: answerBrokenRequest,
    // Not setValidatorCompiler: Fastify forgets that in every scope that adds a schema. Its type here fits only its own compiler.
    schemaController: { compilersFactory: { buildValidator: buildValidator as never } },
    routerOptions: { maxParamLength: HEADER_LIMIT_BYTES },
    rewriteUrl: ({ url = '/' }) => routableUrl(url),
  }) as unknown as FastifyInstance
  app.decorateRequest('caller', undefined)
  // An expectation that we don't know may be ignored, says HTTP; Node would answer it without a body. CONNECT it would not answer at all.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.server.on('connect', (_request, socket) => answerBrokenRequest(new Error('CONNECT'), socket as Socket))
  return app
}

/** A path that can't be decoded is taken to the letter. It then names nothing that exists, and is answered like any other such path. */
function routableUrl(url: string): string {
  const [path = '', ...query] = url.split('?')
  try {
    decodeURIComponent(path)
    return url
  } catch {
    return [path.replaceAll('%', '%25'), ...query].join('?')
  }
}
