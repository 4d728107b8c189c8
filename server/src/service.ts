import type { Server as TlsServer } from 'node:tls'
import type { Logger } from 'pino'
import { type App, buildApp } from './app.ts'
import { type Carriers, openCarriers } from './carriers/carriers.ts'
import type { CarrierSettings } from './carriers/settings.ts'
import type { Config } from './config.ts'
import { type Database, openDatabase } from './db/database.ts'
import type { Pool } from './db/pool.ts'
import { installationSecret, openKeyring } from './db/secrets.ts'
import { type Delivery, startDelivery } from './delivery/delivery.ts'
import { createDeliveryMetrics } from './delivery/metrics.ts'
import { createEventReceiver } from './delivery/receipts.ts'
import { watchKeyFile } from './encryption/key-file.ts'
import type { Keyring } from './encryption/keyring.ts'
import { createErasedPeople, ERASURE_SECRET } from './erasure/erased.ts'
import { createEventMetrics } from './events/metrics.ts'
import { startRouter } from './events/router-loop.ts'
import { isReadableByOthers } from './files.ts'
import type { UploadLimits } from './groups/upload.ts'
import { listen } from './http/listen.ts'
import { serveMetrics } from './http/metrics.ts'
import type { Timeouts } from './http/server.ts'
import type { UnreadLimits } from './http/unread.ts'
import { isLoopback } from './loopback.ts'
import { createAnnouncer } from './messages/announce.ts'
import type { Reserve } from './messages/send-at-once.ts'
import { ROLES, type Role } from './roles.ts'
import { reloadCertificate } from './tls.ts'
import { createDispatcher } from './webhooks/dispatcher.ts'
import { createWebhookMetrics } from './webhooks/metrics.ts'

export type Service = {
  /** The URL that the service listens on, such as http://127.0.0.1:8080. */
  url: string
  /** The URL for carriers' webhooks: the same, unless they have a port of their own. */
  carrierWebhookUrl: string
  /** The URL of the metrics, such as http://127.0.0.1:9464/metrics. */
  metricsUrl: string
  database: Database
  /** Reads the certificate and its key again. Does nothing without TLS. */
  reloadCertificate: () => void
  /** Completes the requests in progress, then closes everything. Connections that are still open at the deadline are closed. */
  stop: () => Promise<void>
}

// Requests in progress and carriers (at most 3.5 s) end at the same time. With at most 5 s for PostgreSQL, Ctrl-C takes under 10 s in the worst
// case, and usually some tens of milliseconds.
const DRAIN_MS = 3_000
const NO_CARRIERS: CarrierSettings = { rcs: [], sms: undefined }

export type ServiceOptions = {
  /** All roles by default. */
  roles?: readonly Role[]
  /** Returns the carriers' settings. Called after the database is open: a second service on the same data directory fails before that. */
  findCarriers?: () => Promise<CarrierSettings>
  /** Work that must be done before the service listens, so that it is done once /readyz returns 200. */
  beforeListening?: (pool: Pool) => Promise<void>
  timeouts?: Timeouts
  unreadLimits?: UnreadLimits
  uploadLimits?: UploadLimits
}

export async function startService(config: Config, logger: Logger, options: ServiceOptions = {}): Promise<Service> {
  const { roles = ROLES, findCarriers = async () => NO_CARRIERS } = options
  warnOfSettings(config, logger)
  const newKey = watchKeyFile(config)
  const database = await openDatabase(config, { role: 'service', onProgress: (sentence) => logger.warn(sentence) })
  const { pool, hotPool } = database
  const { retentionMonths } = config
  const closers: (() => Promise<unknown>)[] = [() => database.close()]
  try {
    const keyring = await openKeyring(pool, config)
    warnOfFiles(logger, newKey(), [keyring.keyFile, config.carriersFile])
    const settings = await findCarriers()
    const postbackKey = await installationSecret(pool, 'postback', keyring)
    const announce = createAnnouncer(hotPool)
    const erased = createErasedPeople(await installationSecret(pool, ERASURE_SECRET, keyring))
    const onEvents = createEventReceiver(hotPool, announce, erased)
    const webhook = { carriers: settings.rcs, postbackKey, onEvents }
    const cursorKey = await installationSecret(pool, 'cursors', keyring)
    let delivery: Delivery | undefined
    let carriers: Carriers | undefined
    const reserve: Reserve = (...message) => delivery?.reserve(...message)
    const findCarrier = (name: string) => carriers?.rcs.get(name)
    const app = await buildApp(config, database, logger, { ...options, webhook, cursorKey, keyring, announce, reserve, findCarrier })
    const workers: (() => Promise<void>)[] = []
    // The servers close first, so that no new requests arrive while the rest closes.
    closers.unshift(() => Promise.all([closeApp(app), ...workers.map((stop) => stop())]))
    await options.beforeListening?.(pool)
    const url = await listen(app.fastify, config, 'HERALD_HOST and HERALD_PORT')
    const carrierWebhookUrl = await listenForCarriers(app, config, url)
    // Listens after the API: if the API has the default port of the metrics, the metrics take a free one.
    const metricsServer = await serveMetrics(config.metrics, app.metrics)
    closers.splice(1, 0, metricsServer.close)
    logger.info({ metricsUrl: metricsServer.url }, 'metrics are served')
    if (roles.includes('delivery')) {
      // Read the secret before the networks are opened: if anything failed between opening them and adding their closer, the open connections
      // would keep the process running.
      const links = { key: await installationSecret(pool, 'links', keyring), publicUrl: config.publicUrl ?? url }
      const opened = openCarriers(settings, { postbackKey, onEvents, logger })
      carriers = opened
      const metrics = createDeliveryMetrics(app.metrics.registry)
      const started = startDelivery({ ...database, carriers: opened, logger, metrics, links, erased, announce, retentionMonths })
      delivery = started
      workers.push(() => endDelivery(started, opened))
    } else if (roles.includes('api')) {
      // For look-ups only: another process delivers.
      carriers = openCarriers({ ...settings, sms: undefined }, { postbackKey, onEvents, logger })
      workers.push(carriers.close)
    }
    workers.push(...startEvents(config, database, keyring, app, logger, roles.includes('webhooks')))
    return {
      url,
      carrierWebhookUrl,
      metricsUrl: metricsServer.url,
      database,
      reloadCertificate: () => reloadCertificates(config, app, logger),
      stop: () => closeAll(closers),
    }
  } catch (error) {
    await closeAll(closers)
    throw error
  }
}

/** Starts the router, which gives events their positions, and in the role `webhooks` the dispatcher that posts them. */
function startEvents({ webhookHosts }: Config, { hotPool }: Database, keyring: Keyring, app: App, logger: Logger, posts: boolean) {
  const { registry } = app.metrics
  const common = { pool: hotPool, logger }
  const dispatcher = posts
    ? createDispatcher({ ...common, keyring, metrics: createWebhookMetrics(registry), hosts: webhookHosts })
    : undefined
  const router = startRouter({ ...common, metrics: createEventMetrics(registry), onRouted: dispatcher?.wake })
  return [router, dispatcher].flatMap((started) => started?.stop ?? [])
}

function reloadCertificates({ tls }: Config, { servers }: App, logger: Logger): void {
  const listening = servers.map(({ server }) => server as unknown as TlsServer)
  if (tls !== undefined) reloadCertificate(tls, listening, logger)
}

function warnOfSettings(config: Config, logger: Logger): void {
  if (config.tls === undefined && config.trustProxy.length === 0 && !isLoopback(config.host)) {
    logger.warn(
      'credentials cross the network unencrypted: set HERALD_TLS_CERT and HERALD_TLS_KEY, or put a proxy in front (HERALD_TRUST_PROXY)',
    )
  }
  for (const name of config.unknownVariables) logger.warn({ name }, 'this variable is not a setting of Herald')
}

/** `newKey`: a sentence about a key file that was just created. */
function warnOfFiles(logger: Logger, newKey: string | undefined, files: (string | undefined)[]): void {
  if (newKey !== undefined) logger.warn(newKey)
  for (const file of files) {
    if (file !== undefined && isReadableByOthers(file)) logger.warn({ file }, 'a file with secrets is readable by other users: chmod 600')
  }
}

/** Claims no more messages. Calls in progress complete or are aborted, and their results are stored. */
async function endDelivery(delivery: Delivery, carriers: Carriers): Promise<void> {
  await Promise.all([delivery.stop(), carriers.close()])
}

async function closeAll(closers: (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = []
  for (const close of closers) await close().catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

async function listenForCarriers({ carrierWebhooks }: App, { host, carrierWebhookPort: port }: Config, apiUrl: string): Promise<string> {
  if (carrierWebhooks === undefined || port === undefined) return apiUrl
  return await listen(carrierWebhooks, { host, port }, 'HERALD_HOST and HERALD_CARRIER_WEBHOOK_PORT')
}

async function closeApp({ servers, drain }: App): Promise<void> {
  drain()
  const deadline = setTimeout(() => servers.map((each) => each.server.closeAllConnections()), DRAIN_MS)
  await Promise.all(servers.map((each) => each.close()))
  clearTimeout(deadline)
}
