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
import { createEventTaker } from './delivery/receipts.ts'
import { watchKeyFile } from './encryption/key-file.ts'
import { isReadableByOthers } from './files.ts'
import { listen } from './http/listen.ts'
import { serveMetrics } from './http/metrics.ts'
import type { Timeouts } from './http/server.ts'
import type { UnreadLimits } from './http/unread.ts'
import { isLoopback } from './loopback.ts'
import { createAnnouncer } from './messages/announce.ts'
import type { Reserve } from './messages/send-at-once.ts'
import { ROLES, type Role } from './roles.ts'
import { reloadCertificate } from './tls.ts'
import { createWebhookMetrics } from './webhooks/metrics.ts'
import { startWebhooks } from './webhooks/webhooks.ts'

export type Service = {
  /** Where it listens, such as http://127.0.0.1:8080. */
  url: string
  /** Where carriers' webhooks are served: the same, unless they have a port of their own. */
  carrierWebhookUrl: string
  /** Where its metrics are, such as http://127.0.0.1:9464/metrics. */
  metricsUrl: string
  database: Database
  /** Reads the certificate and its key again. Without TLS there is nothing to read. */
  reloadCertificate: () => void
  /** Finishes the requests under way, then closes everything; what has not ended by the deadline is cut off. */
  stop: () => Promise<void>
}

// Requests under way and the carriers (3.5 s at the most) end side by side. With PostgreSQL's own 5 s at the most, Ctrl-C takes under 10 s
// in the worst case and some tens of milliseconds in the usual one.
const DRAIN_MS = 3_000
const NO_CARRIERS: CarrierSettings = { rcs: [], sms: undefined }

export type ServiceOptions = {
  /** All of them where none are named. */
  roles?: readonly Role[]
  /** Which networks there are. Asked once the database is open: of two services on one directory, the second learns that first. */
  findCarriers?: () => Promise<CarrierSettings>
  /** What has to be there before anybody is let in: whoever finds /readyz willing finds it done. */
  beforeListening?: (pool: Pool) => Promise<void>
  timeouts?: Timeouts
  unreadLimits?: UnreadLimits
}

export async function startService(config: Config, logger: Logger, options: ServiceOptions = {}): Promise<Service> {
  const { roles = ROLES, findCarriers = async () => NO_CARRIERS } = options
  warnOfSettings(config, logger)
  const newKey = watchKeyFile(config)
  const database = await openDatabase(config, { role: 'service', onProgress: (sentence) => logger.warn(sentence) })
  const closers: (() => Promise<unknown>)[] = [() => database.close()]
  try {
    const keyring = await openKeyring(database.pool, config)
    const sentence = newKey()
    if (sentence !== undefined) logger.warn(sentence)
    warnOfReadableFiles(logger, [keyring.keyFile, config.carriersFile])
    const settings = await findCarriers()
    const postbackKey = await installationSecret(database.pool, 'postback', keyring)
    const announce = createAnnouncer(database.pool)
    const onEvents = createEventTaker(database.pool, announce)
    const webhook = { carriers: settings.rcs, postbackKey, onEvents }
    const cursorKey = await installationSecret(database.pool, 'cursors', keyring)
    let delivery: Delivery | undefined
    const reserve: Reserve = (...message) => delivery?.reserve(...message)
    const app = await buildApp(config, database.pool, logger, { ...options, webhook, cursorKey, announce, reserve })
    const workers: (() => Promise<void>)[] = []
    // First of all: nobody new is let in while the rest is closed.
    closers.unshift(() => Promise.all([closeApp(app), ...workers.map((stop) => stop())]))
    await options.beforeListening?.(database.pool)
    const url = await listen(app.fastify, config, 'HERALD_HOST and HERALD_PORT')
    const carrierWebhookUrl = await listenForCarriers(app, config, url)
    // After the API: if the API has the default port of the metrics, the metrics take a free one.
    const metricsServer = await serveMetrics(config.metrics, app.metrics)
    closers.splice(1, 0, metricsServer.close)
    logger.info({ metricsUrl: metricsServer.url }, 'metrics are served')
    if (roles.includes('delivery')) {
      // Before the networks are opened: from then on nothing may fail before there is somebody to close them, or the process neither works nor ends.
      const links = { key: await installationSecret(database.pool, 'links', keyring), publicUrl: config.publicUrl ?? url }
      const carriers = openCarriers(settings, { postbackKey, onEvents, logger })
      const metrics = createDeliveryMetrics(app.metrics.registry)
      const started = startDelivery({ pool: database.pool, carriers, logger, metrics, links, announce })
      delivery = started
      workers.push(() => endDelivery(started, carriers))
    }
    if (roles.includes('webhooks')) {
      const metrics = createWebhookMetrics(app.metrics.registry)
      workers.push(startWebhooks({ pool: database.pool, keyring, logger, metrics, allowPrivate: config.webhookAllowPrivate }).stop)
    }
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

function warnOfReadableFiles(logger: Logger, files: (string | undefined)[]): void {
  for (const file of files) {
    if (file !== undefined && isReadableByOthers(file)) logger.warn({ file }, 'a file with secrets is readable by other users: chmod 600')
  }
}

/** Nothing more is taken up; calls under way end, or are ended, and what came of them is written down. */
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
