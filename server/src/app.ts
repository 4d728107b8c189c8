import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import packageJson from '../package.json' with { type: 'json' }
import { createAuthenticator } from './accounts/authenticate.ts'
import { createUseRecorder } from './accounts/last-use.ts'
import { AGENTS_TAG, agentRoutes } from './agents/routes.ts'
import { CAMPAIGNS_TAG, campaignRoutes } from './campaigns/routes.ts'
import { CAPABILITIES_TAG, capabilityRoutes } from './capabilities/routes.ts'
import type { RcsCarrier } from './carriers/carrier.ts'
import { createWebhook, type WebhookOptions } from './carriers/google-rbm/webhook.ts'
import type { Config } from './config.ts'
import { CONTENT_SCHEMAS } from './content/content.ts'
import type { Pools } from './db/database.ts'
import { cancelMessage } from './delivery/cancel.ts'
import type { Keyring } from './encryption/keyring.ts'
import { eventRoutes } from './events/routes.ts'
import { describeWebhooks, EVENTS_TAG, WEBHOOK_HEADERS } from './events/schemas.ts'
import { SEGMENTS_TAG, segmentRoutes } from './groups/routes.ts'
import type { UploadLimits } from './groups/upload.ts'
import { createBodyBudgets, limitBodies } from './http/body-budget.ts'
import { createDirectHandler } from './http/direct-route.ts'
import { serveDocs } from './http/docs.ts'
import { entryProblem, handleErrors } from './http/error-responses.ts'
import { createPolicies, guardRoutes } from './http/guard.ts'
import { serveHealth } from './http/health.ts'
import { acceptJsonOnly } from './http/json-body.ts'
import { addressOf, createAddressReader } from './http/limits.ts'
import { createDatabaseLimiter } from './http/limits-database.ts'
import { createMemoryLimiter } from './http/limits-memory.ts'
import { logOf, logRequest, servedRequest } from './http/log.ts'
import { createMetrics, type Metrics } from './http/metrics.ts'
import { describeApi } from './http/openapi.ts'
import { refuseUnknownRoutes, unknownRoute } from './http/routes.ts'
import { BODY_LIMIT_BYTES, createServer, listeningUrl, type Timeouts } from './http/server.ts'
import { createUnreadWatch, type UnreadLimits, type UnreadWatch } from './http/unread.ts'
import { checkQueryFirst } from './http/validation.ts'
import { linkRoutes } from './links/routes.ts'
import type { Announce } from './messages/announce.ts'
import { MESSAGES_TAG, messageRoutes } from './messages/routes.ts'
import type { Reserve } from './messages/send-at-once.ts'
import { OPT_OUTS_TAG, optOutRoutes } from './replies/routes.ts'
import { exportRoutes } from './reports/exports/routes.ts'
import { reportRoutes } from './reports/routes.ts'
import { REPORTS_TAG } from './reports/schemas.ts'
import { ROLES, type Role } from './roles.ts'
import { NoQuery } from './schemas.ts'
import { TEMPLATES_TAG, templateRoutes } from './templates/routes.ts'
import { timelineRoutes } from './timeline/routes.ts'
import { webhookRoutes } from './webhooks/routes.ts'
import { WEBHOOKS_TAG } from './webhooks/schemas.ts'

export type App = {
  fastify: FastifyInstance
  /** The server for carriers' webhooks, if they have a port of their own. */
  carrierWebhooks: FastifyInstance | undefined
  /** The server of the API and, if they have a port of their own, the server of the carriers' webhooks. */
  servers: FastifyInstance[]
  metrics: Metrics
  /** Refuses new requests with 503. Requests in progress are completed. */
  drain: () => void
}

type FindCarrier = (name: string) => RcsCarrier | undefined

type AppOptions = {
  /** Encrypts the cursors of the event feed. */
  cursorKey: Buffer
  /** Encrypts the secrets of webhook endpoints. */
  keyring: Keyring
  /** Wakes the delivery nodes when there are new messages. */
  announce: Announce
  /** Reserves calls to the network for new messages. Returns undefined unless this process also delivers. */
  reserve?: Reserve
  /** Returns the carrier of this name, for look-ups; undefined if this process does not use it. */
  findCarrier?: FindCarrier
  /** All roles by default. */
  roles?: readonly Role[]
  /** The route that networks post their events to. */
  webhook?: WebhookOptions
  timeouts?: Timeouts
  unreadLimits?: UnreadLimits
  uploadLimits?: UploadLimits
}

/** The reference lists the operations in this order. */
const TAGS = [
  AGENTS_TAG,
  TEMPLATES_TAG,
  MESSAGES_TAG,
  CAMPAIGNS_TAG,
  SEGMENTS_TAG,
  OPT_OUTS_TAG,
  CAPABILITIES_TAG,
  REPORTS_TAG,
  EVENTS_TAG,
  WEBHOOKS_TAG,
]

export async function buildApp(config: Config, { pool, hotPool }: Pools, logger: Logger, options: AppOptions): Promise<App> {
  const { cursorKey, keyring, announce, reserve = () => undefined, findCarrier = () => undefined, roles = ROLES, webhook } = options
  const metrics = createMetrics([hotPool, pool])
  const unread = createUnreadWatch(logger, options.unreadLimits)
  const bodies = createBodyBudgets()
  let isStopping = false
  const carrierRoute = webhook && createWebhook(webhook)
  const hasOwnServer = carrierRoute !== undefined && config.carrierWebhookPort !== undefined
  const common = { logger, metrics, unread, bodies, bodyLimit: BODY_LIMIT_BYTES, isStopping: () => isStopping }
  const handleCarriers = carrierRoute && createDirectHandler(carrierRoute, { ...common, addressOf: createAddressReader(config.trustProxy) })
  function newServer(hasCarriers: boolean): FastifyInstance {
    const handleDirectly = hasCarriers ? handleCarriers : undefined
    const server = createServer(config, logger, { timeouts: options.timeouts, handleDirectly })
    addCommonHooks(server, common)
    unread.watch(server)
    handleErrors(server)
    refuseUnknownRoutes(server, hasCarriers && carrierRoute !== undefined ? [carrierRoute.pattern] : [])
    limitBodies(server, bodies)
    acceptJsonOnly(server)
    return server
  }
  const app = newServer(!hasOwnServer)
  app.addHook('onClose', async () => unread.stop())
  checkQueryFirst(app)
  await describeApi(app, { version: packageJson.version, tags: TAGS, webhooks: describeWebhooks(), parameters: WEBHOOK_HEADERS })

  serveHealth(app, hotPool, () => isStopping)
  serveDocs(app)
  const carrierWebhooks = hasOwnServer ? newServer(true) : undefined
  if (roles.includes('api')) await app.register(linkRoutes, { pool, addressOf })
  if (roles.includes('api')) {
    const publicUrl = () => shortLinkBase(config, app)
    const { uploadLimits } = options
    const routes = { config, pool, hotPool, unread, cursorKey, keyring, announce, reserve, findCarrier, publicUrl, uploadLimits }
    await app.register((v1) => addApiRoutes(v1, routes), { prefix: '/v1' })
  }
  await app.ready()
  await carrierWebhooks?.ready()
  return {
    fastify: app,
    carrierWebhooks,
    servers: carrierWebhooks === undefined ? [app] : [app, carrierWebhooks],
    metrics,
    drain: () => {
      isStopping = true
    },
  }
}

type Common = { logger: Logger; metrics: Metrics; isStopping: () => boolean }

/** These hooks run for every request. They use callbacks, since each promise would cost another turn of the event loop. */
function addCommonHooks(server: FastifyInstance, { logger, metrics, isStopping }: Common): void {
  server.addHook('onRequest', (request, reply, done) => {
    reply.header('X-Request-Id', request.id)
    done(entryProblem(request.raw, isStopping()))
  })
  // Otherwise the connection would stay open for the next request, and the shutdown would wait for it.
  server.addHook('onSend', (_request, reply, _payload, done) => {
    if (isStopping()) reply.header('Connection', 'close')
    done()
  })
  server.addHook('onResponse', (request, reply, done) => {
    const served = servedRequest(request, reply)
    if (logger.isLevelEnabled('info')) logRequest(logOf(request), served)
    metrics.countRequest(served)
    done()
  })
}

type ApiRoutes = Pools & {
  config: Config
  unread: UnreadWatch
  cursorKey: Buffer
  keyring: Keyring
  announce: Announce
  reserve: Reserve
  findCarrier: FindCarrier
  publicUrl: () => string | undefined
  uploadLimits: UploadLimits | undefined
}

async function addApiRoutes(v1: FastifyInstance, routes: ApiRoutes): Promise<void> {
  const { config, pool, hotPool, unread, cursorKey, keyring, announce, reserve, findCarrier, publicUrl, uploadLimits } = routes
  let limiter = createMemoryLimiter()
  if (config.limits.store === 'database') {
    const shared = createDatabaseLimiter(hotPool)
    limiter = shared.limiter
    v1.addHook('onClose', async () => shared.stop())
  }
  const uses = createUseRecorder(pool)
  v1.addHook('onClose', () => uses.stop())
  guardRoutes(v1, { ...createAuthenticator(hotPool), noteUse: uses.note, limiter, policies: createPolicies(config.limits) })
  // Set in this scope, so that the guard also runs for unknown paths.
  v1.setNotFoundHandler(unknownRoute)

  v1.get('/openapi.json', { schema: { hide: true, querystring: NoQuery }, config: { public: true } }, async () => v1.swagger())
  for (const schema of CONTENT_SCHEMAS) v1.addSchema(schema)
  await v1.register(agentRoutes, { pool })
  await v1.register(templateRoutes, { pool })
  await v1.register(messageRoutes, { pool: hotPool, listPool: pool, publicUrl, reserve, announce, cancel: cancelMessage })
  await v1.register(timelineRoutes, { pool })
  await v1.register(campaignRoutes, { pool, publicUrl })
  await v1.register(segmentRoutes, { pool, ...(uploadLimits && { uploadLimits }) })
  await v1.register(optOutRoutes, { pool })
  await v1.register(capabilityRoutes, { pool, findCarrier })
  await v1.register(reportRoutes, { pool })
  await v1.register(exportRoutes, { pool, allowIdle: unread.allowIdle })
  await v1.register(eventRoutes, { pool: hotPool, cursorKey })
  await v1.register(webhookRoutes, { pool, keyring, hosts: config.webhookHosts })
}

/** The base URL of short links. With real networks it has no default, since recipients could not open links to this process's own address. */
function shortLinkBase({ publicUrl, carriersFile }: Config, app: FastifyInstance): string | undefined {
  return publicUrl ?? (carriersFile === undefined ? listeningUrl(app) : undefined)
}
