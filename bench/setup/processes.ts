import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { joinEmbeddedServer } from '../../server/src/db/embedded/server.ts'
import { freePort } from '../../server/test/support/ports.ts'
import { heraldOf, simulatorOf, THIS_CHECKOUT } from './checkouts.ts'
import { atEnd, fail } from './clean-up.ts'
import { benchKeyFile, remove, temporaryDirectory } from './files.ts'

// The processes that a part starts: the service, the simulated network, peers, and programs that are not ours.

// As the first line of `herald` has it, for the service and for what it is compared with.
const EXEC_ARGV = ['--v8-pool-size=1']
const INSPECTED = '--inspect=127.0.0.1:0'
const LAST_CHARACTERS = 1_000

export type Program = { child: ChildProcess; stop: () => Promise<void> }
export type Peer = Program & { port: number; url: string }

/** A program of `peers/`, in a process of its own, so that it does not share a core with what it is a peer of. */
export async function startPeer(name: string, args: string[] = []): Promise<Peer> {
  const file = fileURLToPath(new URL(`../peers/${name}.ts`, import.meta.url))
  const child = fork(file, args, { execArgv: EXEC_ARGV, detached: true })
  const stop = stopAtEnd(name, child, () => '')
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return { port, url: `http://127.0.0.1:${port}`, child, stop }
}

/** A program that is not ours. Its input stays open and empty. */
export function startProgram(file: string, args: string[]): Program {
  const child = spawn(file, args, { stdio: 'pipe', detached: true })
  child.stdout.resume()
  return { child, stop: stopAtEnd(file, child, gather(child.stderr)) }
}

/** `inspector`: the address of Node's inspector, if it was started with one. */
export type Inspected = Program & { inspector: string }
export type SimulatorProcess = Inspected & { url: string; carriersFile: string }

/** `checkout`: whose simulator. `delayMs`: the time between the steps of a message. */
export async function startSimulator({ inspect = false, checkout = THIS_CHECKOUT, delayMs = 0 } = {}): Promise<SimulatorProcess> {
  const dataDir = temporaryDirectory()
  const args = ['--data-dir', dataDir, '--delay-ms', String(delayMs)]
  const child = fork(simulatorOf(checkout), args, { silent: true, detached: true, execArgv: inspect ? [INSPECTED] : [] })
  const errors = gather(child.stderr as NodeJS.ReadableStream)
  const stop = stopAtEnd('simulator', child, errors, { after: () => remove(dataDir) })
  const [chunk] = await once(child.stdout as NodeJS.ReadableStream, 'data')
  return { ...JSON.parse(String(chunk)), child, inspector: inspectorIn(errors()), stop }
}

export async function putWebhook({ url, carriersFile }: SimulatorProcess, address: string): Promise<void> {
  const { webhookToken } = JSON.parse(readFileSync(carriersFile, 'utf8')).simulator
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${webhookToken}` }
  const response = await fetch(`${url}/simulator/webhook`, { method: 'PUT', headers, body: JSON.stringify({ url: address }) })
  if (!response.ok) throw new Error(`the simulator refuses ${address} as its webhook: ${await response.text()}`)
}

export type HeraldProcess = Inspected & { url: string; metricsUrl: string; dataDir: string; databaseUrl: string }

/** Limits are on, and so high that no request reaches them. They are counted where an operator has them: in the database, if one is named. */
export const LIMITS = {
  HERALD_LIMIT_MESSAGES_PER_SECOND: '1000000',
  HERALD_LIMIT_EVENTS_PER_SECOND: '1000000',
  HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000',
}

/** `herald serve`, with an embedded database unless `env` names one. `checkout`: whose service. */
export async function startHerald(
  args: string[],
  env: Record<string, string> = {},
  { inspect = false, checkout = THIS_CHECKOUT } = {},
): Promise<HeraldProcess> {
  const dataDir = temporaryDirectory()
  const metricsPort = String(await freePort())
  const settings = {
    HERALD_DATA_DIR: dataDir,
    HERALD_ENCRYPTION_KEY_FILE: benchKeyFile(),
    HERALD_PORT: '0',
    HERALD_METRICS_PORT: metricsPort,
    HERALD_LOG_LEVEL: 'warn',
  }
  const child = fork(heraldOf(checkout), ['serve', ...args], {
    env: { PATH: process.env.PATH, ...settings, ...LIMITS, ...env },
    execArgv: inspect ? [...EXEC_ARGV, INSPECTED] : EXEC_ARGV,
    silent: true,
    detached: true,
  })
  const errors = gather(child.stderr as NodeJS.ReadableStream)
  const after = async () => {
    await stopDatabaseIn(dataDir)
    remove(dataDir)
  }
  const stop = stopAtEnd(['herald', ...args].join(' '), child, errors, { signal: 'SIGTERM', after })
  // Not by `pipe`, which warns if more than ten streams go to one.
  child.stdout?.on('data', (chunk) => process.stderr.write(chunk))
  while (!errors().includes('ready at')) {
    await Promise.race([once(child.stderr as NodeJS.ReadableStream, 'data'), once(child, 'exit')])
    if (hasEnded(child)) throw new Error(errors())
  }
  const url = /ready at (\S+);/.exec(errors())?.[1] as string
  const databaseUrl = `postgres://herald@localhost/herald?host=${encodeURIComponent(readSocketDir(dataDir))}`
  const metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`
  return { url, metricsUrl, dataDir, databaseUrl, child, inspector: inspectorIn(errors()), stop }
}

/** Collects all output. A process whose output is not read would stop. */
function gather(stream: NodeJS.ReadableStream): () => string {
  let text = ''
  stream.on('data', (chunk) => {
    text += chunk
  })
  return () => text
}

function inspectorIn(errors: string): string {
  return /ws:\S+/.exec(errors)?.[0] ?? ''
}

/** A killed service leaves its PostgreSQL running. */
async function stopDatabaseIn(dataDir: string): Promise<void> {
  if (!existsSync(join(dataDir, 'postgres', 'postmaster.pid'))) return
  const server = await joinEmbeddedServer(dataDir, false, () => {})
  await server.leave()
}

/** Where the embedded server listens: the fifth line of its lock file. */
function readSocketDir(dataDir: string): string {
  const file = join(dataDir, 'postgres', 'postmaster.pid')
  return existsSync(file) ? (readFileSync(file, 'utf8').split('\n')[4] ?? '') : ''
}

type Stopping = { signal?: 'SIGTERM' | 'SIGKILL'; after?: () => void | Promise<void> }

/** If a process ends before it is stopped, the part fails, with the last output of the process. */
function stopAtEnd(
  name: string,
  child: ChildProcess,
  errors: () => string,
  { signal = 'SIGKILL', after }: Stopping = {},
): () => Promise<void> {
  let isStopping = false
  child.once('exit', (code, received) => {
    if (!isStopping) fail(new Error(`${name} has died (${received ?? code}): ${errors().trim().slice(-LAST_CHARACTERS)}`))
  })
  return atEnd(async () => {
    isStopping = true
    if (!hasEnded(child)) {
      const ended = once(child, 'exit')
      child.kill(signal)
      await ended
    }
    await after?.()
  })
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}
