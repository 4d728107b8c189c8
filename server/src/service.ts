import type { Server as TlsServer } from 'node:tls'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import packageJson from '../package.json' with { type: 'json' }
import type { StreamLimits } from './admin/stream/streams.ts'
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
import { createErasedPeople, ERASURE_SECRET, type ErasedPeople } from './erasure/erased.ts'
import { createEventMetrics, type EventMetrics } from './events/metrics.ts'
import { startRouter } from './events/router-loop.ts'
import { isReadableByOthers } from './files.ts'
import type { UploadLimits } from './groups/upload.ts'
import { type KnownFigures, type NodeStatusWriter, startNodeStatus } from './health/node-status.ts'
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
  streamLimits?: Partial<StreamLimits>
  /** How often the process writes its status. */
  statusEveryMs?: number
}

async function openSecrets(pool: Pool, keyring: Keyring): Promise<{ postbackKey: Buffer; cursorKey: Buffer; erased: ErasedPeople }> {
  const open = (name: string) => installationSecret(pool, name, keyring)
  return { postbackKey: await open('postback'), cursorKey: await open('cursors'), erased: createErasedPeople(await open(ERASURE_SECRET)) }
}

export async function startService(config: Config, logger: Logger, options: ServiceOptions = {}): Promise<Service> {
  const { roles = ROLES, findCarriers = async () => NO_CARRIERS } = options
  warnOfSettings(config, logger)
  const newKey = watchKeyFile(config)
  const database = await openDatabase(config, { role: 'service', onProgress: (sentence) => logger.warn(sentence) })
  const { pool, hotPool } = database
  const closers: (() => Promise<unknown>)[] = [() => database.close()]
  try {
    const keyring = await openKeyring(pool, config)
    warnOfFiles(logger, newKey(), [keyring.keyFile, config.carriersFile, config.oidc?.clientSecretFile])
    const settings = await findCarriers()
    const { postbackKey, cursorKey, erased } = await openSecrets(pool, keyring)
    const announce = createAnnouncer(hotPool)
    const onEvents = createEventReceiver(hotPool, announce, erased)
    const webhook = { carriers: settings.rcs, postbackKey, onEvents }
    let networks: Networks | undefined
    let node: NodeStatusWriter | undefined
    const reserve: Reserve = (...message) => networks?.delivery?.reserve(...message)
    const findCarrier = (name: string) => networks?.carriers.rcs.get(name)
    const rcsCarriers = settings.rcs
    const shared = { webhook, cursorKey, keyring, erased, announce, reserve, findCarrier, rcsCarriers, currentNode: () => node?.current() }
    const app = await buildApp(config, database, logger, { ...options, ...shared })
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
    // Read the secret before the networks are opened: if anything failed between opening them and adding their closer, the open connections
    // would keep the process running.
    const links = { key: await installationSecret(pool, 'links', keyring), publicUrl: config.publicUrl ?? url }
    const metrics = app.metrics.registry
    networks = openNetworks(roles, settings, { postbackKey, onEvents, database, logger, metrics, links, erased, announce, config })
    workers.push(networks.stop)
    const events = createEventMetrics(metrics)
    workers.push(...startEvents(config, { database, keyring, app, events, logger, posts: roles.includes('webhooks') }))
    const { figures: carriers } = networks
    const known = () => ({ carriers: carriers(), streams: app.streams.count(), eventsBehindMs: Math.round(events.behindMs()) })
    node = startNodeStatus({ pools: database, logger, roles, version: packageJson.version, known, everyMs: options.statusEveryMs })
    workers.push(node.stop)
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

/** `figures`: of the networks that this process delivers to. */
type Networks = { carriers: Carriers; delivery?: Delivery; figures: () => KnownFigures['carriers']; stop: () => Promise<void> }

type NetworkOptions = Parameters<typeof openCarriers>[1] &
  Pick<Parameters<typeof startDelivery>[0], 'links' | 'erased' | 'announce'> & { database: Database; metrics: Registry; config: Config }

/** Opens the networks, and delivers to them in the role `delivery`. In the role `api` alone, they are for look-ups, and another process delivers. */
function openNetworks(roles: readonly Role[], settings: CarrierSettings, options: NetworkOptions): Networks {
  if (!roles.includes('delivery')) {
    const carriers = openCarriers(roles.includes('api') ? { ...settings, sms: undefined } : NO_CARRIERS, options)
    return { carriers, figures: () => [], stop: carriers.close }
  }
  const { database, config, metrics: registry, ...rest } = options
  const { retentionMonths } = config
  const carriers = openCarriers(settings, options)
  const metrics = createDeliveryMetrics(registry)
  const delivery = startDelivery({ ...rest, ...database, carriers, metrics, retentionMonths })
  return {
    carriers,
    delivery,
    figures: () => describeCarriers(carriers, metrics.recentCalls),
    stop: () => endDelivery(delivery, carriers),
  }
}

type Events = { database: Database; keyring: Keyring; app: App; events: EventMetrics; logger: Logger; posts: boolean }

/** Starts the router, which gives events their positions, and in the role `webhooks` the dispatcher that posts them. */
function startEvents({ webhookHosts }: Config, { database: { hotPool }, keyring, app, events, logger, posts }: Events) {
  const common = { pool: hotPool, logger }
  const dispatcher = posts
    ? createDispatcher({ ...common, keyring, metrics: createWebhookMetrics(app.metrics.registry), hosts: webhookHosts })
    : undefined
  function onRouted(): void {
    dispatcher?.wake()
    app.streams.wake()
  }
  const router = startRouter({ ...common, metrics: events, onRouted: dispatcher && onRouted })
  return [router, dispatcher].flatMap((started) => started?.stop ?? [])
}

function describeCarriers({ rcs, sms }: Carriers, recentCalls: (carrier: string) => Record<string, number>): KnownFigures['carriers'] {
  const all = [
    ...[...rcs.values()].map((carrier) => ({ kind: 'rcs' as const, carrier })),
    ...(sms ? [{ kind: 'sms' as const, carrier: sms }] : []),
  ]
  return all.map(({ kind, carrier }) => ({ name: carrier.name, kind, ...carrier.health(), outcomes: recentCalls(carrier.name) }))
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
