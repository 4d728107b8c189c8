import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import packageJson from '../package.json' with { type: 'json' }
import { createAuthenticator } from './accounts/authenticate.ts'
import { createUseRecorder } from './accounts/last-use.ts'
import { createLive, type Live } from './admin/live.ts'
import { ADMIN_TAGS, addAdminRoutes } from './admin/routes.ts'
import type { StreamLimits, Streams } from './admin/stream/streams.ts'
import { AGENTS_TAG, agentRoutes } from './agents/routes.ts'
import { CAMPAIGNS_TAG, campaignRoutes } from './campaigns/routes.ts'
import { CAPABILITIES_TAG, capabilityRoutes } from './capabilities/routes.ts'
import type { RcsCarrier } from './carriers/carrier.ts'
import type { GoogleRbmSettings } from './carriers/google-rbm/settings.ts'
import { createWebhook, type WebhookOptions } from './carriers/google-rbm/webhook.ts'
import { carrierNames } from './carriers/names.ts'
import type { Config } from './config.ts'
import { serveConsole } from './console/serve.ts'
import { CONTENT_SCHEMAS } from './content/content.ts'
import type { Pools } from './db/database.ts'
import { afterCommit } from './db/joined.ts'
import { createLongPool, type Pool } from './db/pool.ts'
import { cancelMessage } from './delivery/cancel.ts'
import type { Keyring } from './encryption/keyring.ts'
import type { ErasedPeople } from './erasure/erased.ts'
import { eventRoutes } from './events/routes.ts'
import { describeWebhooks, EVENTS_TAG, WEBHOOK_HEADERS } from './events/schemas.ts'
import { SEGMENTS_TAG, segmentRoutes } from './groups/routes.ts'
import { createReceiver, type Receive, type UploadLimits } from './groups/upload.ts'
import type { NodeStatus } from './health/node-status.ts'
import { createBodyBudgets, limitBodies } from './http/body-budget.ts'
import { createDirectHandler } from './http/direct-route.ts'
import { serveDocs } from './http/docs.ts'
import { entryProblem, handleErrors } from './http/error-responses.ts'
import { createPolicies, guardRoutes } from './http/guard.ts'
import { serveHealth } from './http/health.ts'
import { acceptJsonOnly } from './http/json-body.ts'
import { addressOf, createAddressReader, type Limiter } from './http/limits.ts'
import { createDatabaseLimiter } from './http/limits-database.ts'
import { createMemoryLimiter } from './http/limits-memory.ts'
import { logOf, logRequest, servedRequest } from './http/log.ts'
import { createMetrics, type Metrics } from './http/metrics.ts'
import { ADMIN_API, describeAdminApi, describeApi, serveDocument } from './http/openapi.ts'
import { refuseUnknownRoutes, unknownRoute } from './http/routes.ts'
import { BODY_LIMIT_BYTES, createServer, listeningUrl, type Timeouts } from './http/server.ts'
import { createUnreadWatch, type UnreadLimits, type UnreadWatch } from './http/unread.ts'
import { checkQueryFirst } from './http/validation.ts'
import { linkRoutes } from './links/routes.ts'
import type { Announce } from './messages/announce.ts'
import { MESSAGES_TAG, messageRoutes } from './messages/routes.ts'
import type { Reserve } from './messages/send-at-once.ts'
import { createSimulators } from './phones/simulators.ts'
import { OPT_OUTS_TAG, optOutRoutes } from './replies/routes.ts'
import { exportRoutes } from './reports/exports/routes.ts'
import { type Exporting, openExports } from './reports/exports/send-export.ts'
import { reportRoutes } from './reports/routes.ts'
import { REPORTS_TAG } from './reports/schemas.ts'
import { ROLES, type Role } from './roles.ts'
import { templateRoutes } from './templates/routes.ts'
import { TEMPLATES_TAG } from './templates/schemas.ts'
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
  streams: Pick<Streams, 'wake' | 'count'>
  /** Refuses new requests with 503. Requests in progress are completed; streams end at once. */
  drain: () => void
}

type FindCarrier = (name: string) => RcsCarrier | undefined

type AppOptions = {
  /** Encrypts the cursors of the event feed and of the list of messages. */
  cursorKey: Buffer
  /** Encrypts the secrets of webhook endpoints. */
  keyring: Keyring
  erased: ErasedPeople
  /** Wakes the delivery nodes when there are new messages. */
  announce: Announce
  /** Reserves calls to the network for new messages. Returns undefined unless this process also delivers. */
  reserve?: Reserve
  /** Returns the carrier of this name, for look-ups; undefined if this process does not use it. */
  findCarrier?: FindCarrier
  /** What this process knows of itself; undefined while it starts. */
  currentNode?: () => NodeStatus | undefined
  /** The settings of the RCS carriers. */
  rcsCarriers?: GoogleRbmSettings[]
  /** All roles by default. */
  roles?: readonly Role[]
  /** The route that networks post their events to. */
  webhook?: WebhookOptions
  timeouts?: Timeouts
  unreadLimits?: UnreadLimits
  uploadLimits?: UploadLimits
  streamLimits?: Partial<StreamLimits>
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
  const { roles = ROLES, webhook } = options
  const metrics = createMetrics([hotPool, pool])
  const unread = createUnreadWatch(logger, options.unreadLimits)
  const bodies = createBodyBudgets()
  const live = createLive({ ...options, hotPool, logger, registry: metrics.registry, unread })
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
  app.addHook('onClose', () => live.streams.stop())
  checkQueryFirst(app)
  await describeAdminApi(app, { version: packageJson.version, tags: [...ADMIN_TAGS, ...TAGS] })
  await describeApi(app, { version: packageJson.version, tags: TAGS, webhooks: describeWebhooks(), parameters: WEBHOOK_HEADERS })

  serveHealth(app, hotPool, () => isStopping)
  serveDocs(app)
  if (roles.includes('api')) serveConsole(app)
  const carrierWebhooks = hasOwnServer ? newServer(true) : undefined
  if (roles.includes('api')) {
    await addRoutes(app, { reserve: () => undefined, findCarrier: () => undefined, ...options, config, pool, hotPool, unread }, live)
  }
  await app.ready()
  await carrierWebhooks?.ready()
  return {
    fastify: app,
    carrierWebhooks,
    servers: carrierWebhooks === undefined ? [app] : [app, carrierWebhooks],
    metrics,
    streams: live.streams,
    drain: () => {
      isStopping = true
      live.streams.end()
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

type AccountRoutes = Pools & {
  config: Config
  unread: UnreadWatch
  cursorKey: Buffer
  keyring: Keyring
  erased: ErasedPeople
  announce: Announce
  reserve: Reserve
  findCarrier: FindCarrier
  publicUrl: () => string | undefined
  exporting: Exporting
  longPool: Pool
  receive: Receive
  rcsCarriers?: GoogleRbmSettings[]
  batches: boolean
}

type RouteOptions = Omit<AccountRoutes, 'publicUrl' | 'batches' | 'exporting' | 'longPool' | 'receive'> & { uploadLimits?: UploadLimits }

/** Shared by all paths of a route: the limits of exports and imports are for the node, whichever path a request uses. */
function openShared(app: FastifyInstance, { pool, unread, uploadLimits }: RouteOptions) {
  const longPool = createLongPool(pool)
  app.addHook('onClose', async () => await longPool.end())
  const exporting = openExports(app, { pool, allowIdle: unread.allowIdle })
  return { exporting, longPool, receive: createReceiver(longPool, uploadLimits) }
}

/** Adds the routes of callers, of people who administer accounts, and of recipients who open a short link. */
async function addRoutes(app: FastifyInstance, options: RouteOptions, live: Live): Promise<void> {
  const { config, pool } = options
  const shared = openShared(app, options)
  const routes = { ...options, ...shared, publicUrl: () => shortLinkBase(config, app), batches: true }
  await app.register(linkRoutes, { pool, addressOf })
  const limiter = openLimiter(app, config, options)
  await app.register((v1) => addApiRoutes(v1, limiter, routes), { prefix: '/v1' })
  const simulators = createSimulators(options.rcsCarriers ?? [])
  // Ends the requests that wait for what phones do.
  app.addHook('preClose', simulators.close)
  const announce: Announce = (work) => afterCommit(() => options.announce(work))
  const admin = {
    pool,
    limiter,
    publicReads: createPolicies(config.limits).others,
    addAccountRoutes: (scope: FastifyInstance, pools: Pools) =>
      addAccountRoutes(scope, { ...routes, ...pools, announce, reserve: () => undefined, batches: false }),
    carriers: () => carrierNames(config),
    keyring: routes.keyring,
    erased: routes.erased,
    oidc: config.oidc,
    baseUrl: () => config.publicUrl ?? listeningUrl(app),
    exporting: shared.exporting,
    live,
    // Webhooks may go to this machine in a trial. An image proxy there would tell every viewer which ports are open.
    hosts: config.webhookHosts === 'any' ? ('any' as const) : ('public' as const),
    simulators,
    idKey: options.cursorKey,
  }
  await app.register(addAdminRoutes, { prefix: ADMIN_API, ...admin })
}

function openLimiter(app: FastifyInstance, { limits }: Config, { hotPool }: Pools): Limiter {
  if (limits.store !== 'database') return createMemoryLimiter()
  const { limiter, stop } = createDatabaseLimiter(hotPool)
  app.addHook('onClose', async () => stop())
  return limiter
}

async function addApiRoutes(v1: FastifyInstance, limiter: Limiter, routes: AccountRoutes): Promise<void> {
  const { config, pool, hotPool } = routes
  const uses = createUseRecorder(pool)
  v1.addHook('onClose', () => uses.stop())
  guardRoutes(v1, { ...createAuthenticator(hotPool), noteUse: uses.note, limiter, policies: createPolicies(config.limits) })
  // Set in this scope, so that the guard also runs for unknown paths.
  v1.setNotFoundHandler(unknownRoute)

  serveDocument(v1, () => v1.swagger())
  await addAccountRoutes(v1, routes)
}

/** The routes of one account: for its callers, and again for people who administer it. */
async function addAccountRoutes(scope: FastifyInstance, routes: AccountRoutes): Promise<void> {
  const { config, pool, hotPool, cursorKey, keyring, announce, reserve, findCarrier, publicUrl, exporting, longPool, receive, batches } =
    routes
  for (const schema of CONTENT_SCHEMAS) scope.addSchema(schema)
  await scope.register(agentRoutes, { pool })
  await scope.register(templateRoutes, { pool })
  await scope.register(messageRoutes, {
    pool: hotPool,
    listPool: pool,
    cursorKey,
    publicUrl,
    reserve,
    announce,
    batches,
    cancel: cancelMessage,
  })
  await scope.register(timelineRoutes, { pool })
  await scope.register(campaignRoutes, { pool, publicUrl })
  await scope.register(segmentRoutes, { pool, longPool, receive })
  await scope.register(optOutRoutes, { pool })
  await scope.register(capabilityRoutes, { pool, findCarrier })
  await scope.register(reportRoutes, { pool })
  await scope.register(exportRoutes, { exporting })
  await scope.register(eventRoutes, { pool: hotPool, cursorKey })
  await scope.register(webhookRoutes, { pool, keyring, hosts: config.webhookHosts })
}

/** The base URL of short links. With real networks it has no default, since recipients could not open links to this process's own address. */
function shortLinkBase({ publicUrl, carriersFile }: Config, app: FastifyInstance): string | undefined {
  return publicUrl ?? (carriersFile === undefined ? listeningUrl(app) : undefined)
}
