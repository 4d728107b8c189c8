import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import type { Logger } from 'pino'
import type { CarrierSettings } from '../carriers/settings.ts'
import type { Config } from '../config.ts'
import type { Pool } from '../db/pool.ts'
import { createLogger } from '../http/log.ts'
import { ROLES, type Role } from '../roles.ts'
import type { Service } from '../service.ts'
import { declareUnaudited, listArgument, readConfig } from './command.ts'
import { localUrl, setupLink } from './setup-link.ts'
import type { Simulator } from './simulator.ts'
import { printError } from './terminal.ts'

// npm forwards a terminal's Ctrl-C to a service that has received it already: two signals within this time count as one.
const SAME_SIGNAL_MS = 1_000
const STOP_DEADLINE_MS = 9_500
// Each start waits up to 30 s for the database.
const MAX_STARTS = 10
const RETRY_MS = 1_000
// The message of the README. The demo account has this agent.
const DEMO_MESSAGE = {
  agentId: 'demo-single',
  recipient: '+48500100200',
  message: { inline: { type: 'MESSAGE', content: 'Hello' } },
}

export const serveCommand = declareUnaudited(new Command('serve'))
  .description('run the service')
  .option('--only <roles>', 'run only these roles, separated by commas', listArgument(ROLES, 1), [...ROLES])
  .action(async ({ only }: { only: Role[] }) => {
    const config = readConfig()
    const logger = createLogger(config.logLevel)
    process.on('uncaughtException', (error) => {
      logger.fatal({ err: error }, 'uncaught exception; the process exits')
      process.exit(1)
    })
    const starting = untilStarted(config, logger, only)
    handleSignals(config, starting)
    await starting
  })

/**
 * Starts the service. If an external database becomes unavailable during the start, this closes everything and starts again, which waits for the
 * database. It does not wait for a read-only database, since only an operator can fix that.
 */
async function untilStarted(config: Config, logger: Logger, roles: Role[]): Promise<Service> {
  const { checkProduction } = await import('../production.ts')
  checkProduction(config, roles)
  const { isReadOnlyError, isUnavailable } = await import('../db/pool.ts')
  for (let startsLeft = MAX_STARTS - 1; ; startsLeft--) {
    try {
      return await start(config, logger, roles)
    } catch (error) {
      const isWorthRetrying = config.databaseUrl !== undefined && isUnavailable(error) && !isReadOnlyError(error)
      if (!isWorthRetrying || startsLeft === 0) throw error
      logger.warn({ err: error }, 'lost the database during the start; starting again')
      await sleep(RETRY_MS)
    }
  }
}

async function start(config: Config, logger: Logger, roles: Role[]): Promise<Service> {
  // Imported here because no other command needs the HTTP server and the features, which take longer to load than all the rest.
  const { startService } = await import('../service.ts')
  const { hasAccounts } = await import('../accounts/accounts.ts')
  const { createFirstLink } = await import('../people/links.ts')
  const { makeDemoAccount } = await import('./demo.ts')
  const { refuseDemoAccount } = await import('../production.ts')
  const { findCarriers, simulator } = await chooseNetwork(config, logger, roles)
  let isNew = false
  let hasAccount = true
  let setupToken: string | undefined
  async function beforeListening(pool: Pool): Promise<void> {
    if (config.environment === 'production') await refuseDemoAccount(pool)
    else isNew = config.databaseUrl === undefined && (await makeDemoAccount(pool, config.dataDir))
    hasAccount = isNew || (await hasAccounts(pool))
    if (roles.includes('api')) setupToken = await createFirstLink(pool)
  }
  const service = await startService(config, logger, { roles, findCarriers, beforeListening }).catch(async (error: unknown) => {
    await simulator()?.stop()
    throw error
  })
  const stop = async () => {
    await service.stop()
    await simulator()?.stop()
  }
  try {
    await simulator()?.setServiceUrl(localUrl(service.carrierWebhookUrl))
    greet(config, { url: localUrl(service.url), roles, isNew, hasAccount, setupToken, simulator: simulator() })
    return { ...service, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Chooses the configured carriers or, if there are none, the simulator. Only a process that delivers starts the simulator. */
async function chooseNetwork(config: Config, logger: Logger, roles: Role[]) {
  const { readCarriers } = await import('../carriers/settings.ts')
  const configured = config.carriersFile === undefined ? undefined : readCarriers(config.carriersFile)
  let simulator: Simulator | undefined
  async function findCarriers(): Promise<CarrierSettings> {
    if (configured !== undefined) return configured
    if (!roles.includes('delivery')) return { rcs: [], sms: undefined }
    const { startSimulator } = await import('./simulator.ts')
    simulator = await startSimulator(config, logger)
    logger.warn('no carrier is configured (HERALD_CARRIERS): messages go to a simulated network and reach no phone')
    return readCarriers(simulator.carriersFile)
  }
  return { findCarriers, simulator: () => simulator }
}

type Greeting = {
  url: string
  roles: Role[]
  isNew: boolean
  hasAccount: boolean
  /** Undefined if there is an operator already. */
  setupToken: string | undefined
  simulator: Simulator | undefined
}

/** Prints to standard error, since standard output is for the log. */
function greet(config: Config, { url, roles, isNew, hasAccount, setupToken, simulator }: Greeting): void {
  const hasApi = roles.includes('api')
  const reference = hasApi ? ` the API's reference is at ${url}/docs.` : ''
  const lines = [...(hasApi ? consoleLines(config, url, setupToken) : []), `Herald is ready at ${url};${reference} Ctrl-C stops it.`]
  if (simulator !== undefined) {
    lines.push(`No carrier is configured: a simulated network stands in. What its phones get is at ${simulator.url}/simulator/phones.`)
  }
  if (!hasAccount && hasApi) {
    lines.push(
      'The database has no account yet. These commands add one that can send:',
      '  npx herald account create "My shop"',
      '  npx herald agent create AGENT_ID --name "My shop" --billing-type single && npx herald agent assign AGENT_ID ACCOUNT_ID',
      '  npx herald key create ACCOUNT_ID',
    )
  }
  if (isNew) {
    lines.push(
      `A demo account is set up; its credentials are in ${shownPath(join(config.dataDir, 'demo.json'))}. A first message:`,
      `  curl -H @${shownPath(join(config.dataDir, 'demo.header'))} -H 'Content-Type: application/json' -H 'Idempotency-Key: first' \\`,
      `    ${url}/v1/messages -d '${JSON.stringify(DEMO_MESSAGE)}'`,
    )
  }
  printError(lines)
}

/**
 * The link makes its owner an operator, so it must not be stored in a log. In production, standard error is usually stored in a log, too. If it is not
 * a terminal, Herald prints the command that makes a link instead.
 */
function consoleLines({ environment, publicUrl }: Config, url: string, setupToken: string | undefined): string[] {
  const plain = `The console: ${publicUrl ?? url}/console`
  if (setupToken === undefined) return [plain]
  if (environment === 'production' && !process.stderr.isTTY)
    return [plain, 'There is no operator yet. This prints a link to set a password: npx herald user create EMAIL --name NAME --operator']
  return [`The console: ${setupLink(publicUrl ?? url, setupToken)} (creates the first operator; valid for 24 hours)`]
}

/** Returns the path relative to the working directory, if it is inside. */
function shownPath(path: string): string {
  const fromHere = relative('.', path)
  return fromHere.startsWith('..') ? path : fromHere
}

/**
 * The first signal stops the service cleanly. A later one ends the process at once, which loses nothing. A signal during the start stops the
 * service as soon as it has started, so that no embedded database stays behind; with an external database it ends the process at once.
 *
 * With TLS, SIGHUP reloads the certificate, as with other servers. Without TLS there is nothing to reload: SIGHUP then means that the terminal
 * was closed, which must not leave a service behind.
 */
function handleSignals(config: Config, starting: Promise<Service>): void {
  let firstAt: number | undefined
  let isStarting = true
  void starting
    .finally(() => {
      isStarting = false
    })
    .catch(() => {})
  function onSignal(): void {
    if (firstAt !== undefined) {
      if (performance.now() - firstAt > SAME_SIGNAL_MS) process.exit(1)
      return
    }
    firstAt = performance.now()
    if (isStarting && config.databaseUrl !== undefined) process.exit(0)
    void stop(starting)
  }
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, onSignal)
  process.on('SIGHUP', config.tls === undefined ? onSignal : () => reloadOnceStarted(starting))
}

/** Reads the files again once the start has finished: it may have read them before the signal. A failed start is reported elsewhere. */
function reloadOnceStarted(starting: Promise<Service>): void {
  void starting.then(({ reloadCertificate }) => reloadCertificate()).catch(() => {})
}

async function stop(starting: Promise<Service>): Promise<void> {
  setTimeout(() => {
    printError('Herald did not stop in time and exits now; nothing that was accepted is lost.')
    process.exit(1)
  }, STOP_DEADLINE_MS)
  try {
    const service = await starting
    await service.stop()
    printError('Herald has stopped.')
    process.exit(0)
  } catch (error) {
    printError(`Herald did not stop cleanly: ${(error as Error).message}`)
    process.exit(1)
  }
}
