import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import { OperatorError } from '../errors.ts'

// The simulator is a program of its own, which stands in for the networks where no carrier is configured. Here it is only started, watched
// and stopped: once it runs, it is a network like any other, with settings in the same form.

export type Simulator = {
  url: string
  /** What HERALD_CARRIERS would name. */
  carriersFile: string
  /** Tells it where its events go, as one would tell Google in its console. It asks the address to prove itself. */
  sendEventsTo: (webhookUrl: string) => Promise<void>
  stop: () => Promise<void>
}

type Ready = { url: string; smppPort: number; carriersFile: string }

const PROGRAM = fileURLToPath(import.meta.resolve('@herald/simulator/bin/herald-simulator.js'))
const START_AGAIN_MS = 1_000
const STOP_MS = 3_000
const WEBHOOK_MS = 15_000

export async function startSimulator(config: Config, logger: Logger): Promise<Simulator> {
  const dataDir = join(config.dataDir, 'simulator')
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const options = ['--data-dir', dataDir, '--delay-ms', `${config.simulatorDelayMs}`]
  let stopping = false
  let current = await run(options)
  const { url, smppPort, carriersFile } = current.ready

  /** On the ports it had, since the connectors go on looking for it there. */
  async function startAgain(): Promise<void> {
    if (stopping) return
    try {
      current = await run([...options, '--port', new URL(url).port, '--smpp-port', `${smppPort}`])
    } catch (error) {
      logger.error({ err: error }, 'the simulator did not start again')
    }
  }
  /** A network that breaks down comes back. */
  async function keepRunning(): Promise<void> {
    for (;;) {
      const { child } = current
      if (isRunning(child)) await once(child, 'exit')
      if (stopping) return
      logger.error({ code: child.exitCode, signal: child.signalCode }, 'the simulator ended; it is started again')
      await sleep(START_AGAIN_MS)
      await startAgain()
      if (stopping) await end(current.child)
    }
  }
  void keepRunning()

  return {
    url,
    carriersFile,
    sendEventsTo: (webhookUrl) => setWebhook(url, webhookUrl),
    stop: async () => {
      stopping = true
      await end(current.child)
    },
  }
}

/**
 * It ends with its standard input, so that it does not outlive this process, however that ends. But a terminal's Ctrl-C is not for it,
 * so it is in a process group of its own: the network is still there for what the service finishes.
 */
async function run(options: string[]): Promise<{ child: ChildProcess; ready: Ready }> {
  const child = spawn(process.execPath, [PROGRAM, ...options, '--stop-with-stdin'], { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  child.stdin.on('error', () => {})
  let complaint = ''
  child.stderr.on('data', (chunk) => {
    complaint = `${complaint}${chunk}`.slice(-2_000)
  })
  const line = await Promise.race([
    once(createInterface(child.stdout), 'line').then(([text]) => text as string),
    once(child, 'close').then(() => undefined),
  ])
  if (line === undefined) {
    throw new OperatorError(
      `The simulated network did not start: ${complaint.trim()} It needs a HERALD_DATA_DIR of its own, or set HERALD_CARRIERS.`,
    )
  }
  child.stderr.on('data', (chunk) => process.stderr.write(chunk))
  return { child, ready: JSON.parse(line) as Ready }
}

async function end(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) return
  const deadline = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  const ended = once(child, 'exit')
  child.stdin?.end()
  await ended
  clearTimeout(deadline)
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null
}

async function setWebhook(url: string, webhookUrl: string): Promise<void> {
  const response = await fetch(`${url}/simulator/webhook`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ url: webhookUrl }),
    signal: AbortSignal.timeout(WEBHOOK_MS),
  })
  if (!response.ok) throw new Error(`The simulator does not take ${webhookUrl} for its events: ${await response.text()}`)
}
