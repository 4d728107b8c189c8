import { join, relative } from 'node:path'
import { Command } from 'commander'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import { createLogger } from '../http/log.ts'
import type { Service } from '../service.ts'
import { listArgument, readConfig } from './command.ts'

// Those that there are so far.
const ROLES = ['api'] as const

// npm passes a terminal's Ctrl-C on to a service that has got it already: two signals within this time are one.
const SAME_SIGNAL_MS = 1_000
const STOP_DEADLINE_MS = 9_500

export const serveCommand = new Command('serve')
  .description('run the service')
  .option('--only <roles>', 'run only these roles, separated by commas', listArgument(ROLES, 1), [...ROLES])
  .action(async () => {
    const config = readConfig()
    const logger = createLogger(config.logLevel)
    process.on('uncaughtException', (error) => {
      logger.fatal({ err: error }, 'a fault that nothing caught: the process ends')
      process.exit(1)
    })
    const starting = start(config, logger)
    stopOnSignal(config, starting)
    await starting
  })

async function start(config: Config, logger: Logger): Promise<Service> {
  // Loaded here and not above: no other command needs the HTTP server and the features, which take longer to load than all else together.
  const { startService } = await import('../service.ts')
  const { makeDemoAccount } = await import('./demo.ts')
  const service = await startService(config, logger)
  try {
    const isNew = config.databaseUrl === undefined && (await makeDemoAccount(service.database.pool, config.dataDir))
    greet(config, service, isNew)
    return service
  } catch (error) {
    await service.stop()
    throw error
  }
}

/** For people, on the error stream: the output is the log's. */
function greet(config: Config, { url }: Service, isNew: boolean): void {
  const lines = [`Herald is ready at ${url}; the API's reference is at ${url}/docs. Ctrl-C stops it.`]
  if (isNew) {
    lines.push(
      `A demo account is set up; its credentials are in ${shownPath(join(config.dataDir, 'demo.json'))}. A first request:`,
      `  curl -H @${shownPath(join(config.dataDir, 'demo.header'))} ${url}/v1/agents`,
    )
  }
  console.error(lines.join('\n'))
}

/** As short as it can be typed from here. */
function shownPath(path: string): string {
  const fromHere = relative('.', path)
  return fromHere.startsWith('..') ? path : fromHere
}

/**
 * The first signal stops in order. One that comes later, from somebody who can't wait, ends the process as it is: nothing is lost by
 * that. A start is stopped as soon as it is through, so that no database is left behind; one that waits for a database elsewhere has
 * nothing to leave behind and ends at once.
 */
function stopOnSignal(config: Config, starting: Promise<Service>): void {
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
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, onSignal)
}

async function stop(starting: Promise<Service>): Promise<void> {
  setTimeout(() => {
    console.error('Herald did not stop in time, and ends as it is; nothing that was answered is lost.')
    process.exit(1)
  }, STOP_DEADLINE_MS)
  try {
    const service = await starting
    await service.stop()
    process.exit(0)
  } catch (error) {
    console.error(`Herald did not stop in order: ${(error as Error).message}`)
    process.exit(1)
  }
}
