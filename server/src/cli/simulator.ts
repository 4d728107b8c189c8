import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { webhookPath } from '../carriers/google-rbm/webhook.ts'
import { type CarrierSettings, readCarriers } from '../carriers/settings.ts'
import type { Config } from '../config.ts'
import { OperatorError } from '../errors.ts'
import { printError } from './terminal.ts'

// The simulator is a separate program, which replaces the networks if no carrier is configured. This file only starts, restarts and stops it:
// once the simulator runs, Herald uses it like any other network, with settings in the same form.

export type Simulator = {
  url: string
  /** The file that HERALD_CARRIERS would name. */
  carriersFile: string
  /** Sets where the simulator posts its events, as in Google's console. The simulator then verifies the webhook. */
  setServiceUrl: (serviceUrl: string) => Promise<void>
  stop: () => Promise<void>
}

type Ready = { url: string; smppPort: number; carriersFile: string }

const PROGRAM = fileURLToPath(import.meta.resolve('@herald/simulator/bin/herald-simulator.js'))
/** The name of the RCS carrier in the carriers file that the simulator writes. */
const CARRIER = 'simulator'
const DEFAULT_PORT = 8081
const START_TIMEOUT_MS = 30_000
const FIRST_RESTART_DELAY_MS = 1_000
const MAX_RESTART_DELAY_MS = 60_000
// The simulator can be killed at any moment, since its state is on the disk.
const STOP_TIMEOUT_MS = 1_000
const WEBHOOK_TIMEOUT_MS = 15_000

export async function startSimulator(config: Config, logger: Logger): Promise<Simulator> {
  const dataDir = join(config.dataDir, 'simulator')
  makeDirectory(dataDir)
  const options = ['--data-dir', dataDir, '--delay-ms', `${config.simulatorDelayMs}`]
  let stopping = false
  let current = await runFirst(options, config.simulatorPort)
  const { url, smppPort, carriersFile } = current.ready

  /** Restarts the simulator if it exits, on the same ports, since the connectors continue to use them. */
  async function keepRunning(): Promise<void> {
    let delayMs = FIRST_RESTART_DELAY_MS
    for (;;) {
      if (isRunning(current.child)) await once(current.child, 'exit')
      if (stopping) return
      logger.error({ code: current.child.exitCode, signal: current.child.signalCode }, 'the simulated network exited; restarting it')
      await sleep(delayMs, undefined, { ref: false })
      delayMs = (await restart()) ? FIRST_RESTART_DELAY_MS : Math.min(2 * delayMs, MAX_RESTART_DELAY_MS)
    }
  }

  async function restart(): Promise<boolean> {
    if (stopping) return false
    try {
      current = await run([...options, '--port', new URL(url).port, '--smpp-port', `${smppPort}`])
      if (stopping) await end(current.child)
      return true
    } catch (error) {
      logger.error({ err: error }, 'failed to restart the simulated network; will retry')
      return false
    }
  }
  void keepRunning()

  return {
    url,
    carriersFile,
    setServiceUrl: (serviceUrl) => setWebhook({ url, carriersFile }, `${serviceUrl}${webhookPath(CARRIER)}`),
    stop: async () => {
      stopping = true
      await end(current.child)
    },
  }
}

/** Starts the simulator on the configured port. By default that is 8081, so that its address is the same on every machine. */
async function runFirst(options: string[], port: number | undefined): Promise<{ child: ChildProcess; ready: Ready }> {
  try {
    return await run([...options, '--port', `${port ?? DEFAULT_PORT}`])
  } catch (error) {
    const isInUse = error instanceof OperatorError && error.message.includes('EADDRINUSE')
    if (!isInUse) throw error
    if (port !== undefined) throw new OperatorError(`Port ${port} is in use: HERALD_SIMULATOR_PORT must name a free port, or 0 for any.`)
    return await run([...options, '--port', '0'])
  }
}

/**
 * Starts the simulator and waits until it is ready. It exits when its standard input closes, so that it does not outlive this process, however
 * that ends. It has its own process group, so that a terminal's Ctrl-C does not reach it: the service needs the network to finish its work.
 */
async function run(options: string[]): Promise<{ child: ChildProcess; ready: Ready }> {
  const child = spawn(process.execPath, [PROGRAM, ...options, '--stop-with-stdin'], { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  child.stdin.on('error', () => {})
  let errorOutput = ''
  child.stderr.on('data', (chunk) => {
    errorOutput = `${errorOutput}${chunk}`.slice(-2_000)
  })
  const line = await Promise.race([
    once(createInterface(child.stdout), 'line').then(([text]) => text as string),
    once(child, 'close').then(() => ''),
    sleep(START_TIMEOUT_MS, '', { ref: false }),
  ])
  const ready = readyLine(line)
  if (ready === undefined) {
    child.kill('SIGKILL')
    throw new OperatorError(
      ...`The simulated network did not start: ${errorOutput.trim()}`.split('\n'),
      'Give it a HERALD_DATA_DIR of its own, or set HERALD_CARRIERS to use your carriers instead.',
    )
  }
  createInterface(child.stderr).on('line', printError)
  return { child, ready }
}

function readyLine(line: string): Ready | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function makeDirectory(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new OperatorError(`The simulated network can't keep its data in ${dataDir}: ${(error as Error).message}.`)
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) return
  const deadline = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  const ended = once(child, 'exit')
  child.stdin?.end()
  await ended
  clearTimeout(deadline)
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null
}

async function setWebhook({ url, carriersFile }: Pick<Ready, 'url' | 'carriersFile'>, webhookUrl: string): Promise<void> {
  const { webhookToken } = readCarriers(carriersFile).rcs[0] as CarrierSettings['rcs'][number]
  const response = await fetch(`${url}/simulator/webhook`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${webhookToken}` },
    body: JSON.stringify({ url: webhookUrl }),
    signal: AbortSignal.timeout(WEBHOOK_TIMEOUT_MS),
  })
  if (!response.ok) throw new Error(`The simulator rejected the webhook URL ${webhookUrl}: ${await response.text()}`)
}
