import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { joinEmbeddedServer } from '../server/src/db/embedded/server.ts'
import { freePort } from '../server/test/support/ports.ts'
import { heraldOf, simulatorOf, THIS_CHECKOUT } from './checkouts.ts'
import { fail, keep } from './clean-up.ts'
import { benchKeyFile } from './keys.ts'
import { remove, temporaryDirectory } from './temporary.ts'

// As the first line of `herald` has it, which a shell would read; and the same for what it is held against.
const EXEC_ARGV = ['--v8-pool-size=1']
// For who wants to look into a process: it listens where it says on its error stream, and does nothing until it is asked.
const INSPECTED = '--inspect=127.0.0.1:0'

export type Peer = { port: number; child: ChildProcess; stop: () => Promise<void> }

/** Another program of this folder, which says on which port it listens. A process of its own, so that each side has a core. */
export async function startPeer(file: string, args: string[] = []): Promise<Peer> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, { execArgv: EXEC_ARGV, detached: true })
  const stop = keepChild(
    file,
    child,
    () => '',
    () => end(child, 'SIGKILL'),
  )
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return { port, child, stop }
}

export type Program = { child: ChildProcess; stop: () => Promise<void> }

/** A program that is not ours. Its input stays open and has nothing. */
export function startProgram(file: string, args: string[]): Program {
  const child = spawn(file, args, { stdio: 'pipe', detached: true })
  const errors = gather(child.stderr)
  child.stdout.resume()
  const stop = keepChild(file, child, errors, () => end(child, 'SIGKILL'))
  return { child, stop }
}

/** `inspector`: where it can be asked about itself, if it was started so. */
export type Inspected = { child: ChildProcess; inspector: string }
export type SimulatorProcess = Inspected & { url: string; carriersFile: string; stop: () => Promise<void> }

/** `program`: the simulator of another checkout. `delayMs`: the time between the steps of a message. */
export async function startSimulator({
  inspect = false,
  program = simulatorOf(THIS_CHECKOUT),
  delayMs = 0,
} = {}): Promise<SimulatorProcess> {
  const dataDir = temporaryDirectory()
  const execArgv = inspect ? [INSPECTED] : []
  const child = fork(program, ['--data-dir', dataDir, '--delay-ms', String(delayMs)], { silent: true, detached: true, execArgv })
  const errors = gather(child.stderr as NodeJS.ReadableStream)
  const stop = keepChild('simulator', child, errors, async () => {
    await end(child, 'SIGKILL')
    remove(dataDir)
  })
  const [chunk] = await once(child.stdout as NodeJS.ReadableStream, 'data')
  return { ...JSON.parse(String(chunk)), child, inspector: inspectorIn(errors()), stop }
}

export type HeraldProcess = Inspected & {
  url: string
  metricsUrl: string
  dataDir: string
  databaseUrl: string
  stop: () => Promise<void>
}

/** Limits are on, so high that nobody reaches them; where they are counted is what an operator gets: in the database, where one is named. */
export const LIMITS = { HERALD_LIMIT_MESSAGES_PER_SECOND: '1000000', HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000' }

/** `herald serve` with an embedded database of its own, unless it is given one. `program`: the `herald` of another checkout. */
export async function startHerald(
  args: string[],
  env: Record<string, string> = {},
  { inspect = false, program = heraldOf(THIS_CHECKOUT) } = {},
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
  const child = fork(program, ['serve', ...args], {
    env: { PATH: process.env.PATH, ...settings, ...LIMITS, ...env },
    execArgv: inspect ? [...EXEC_ARGV, INSPECTED] : EXEC_ARGV,
    silent: true,
    detached: true,
  })
  const errors = gather(child.stderr as NodeJS.ReadableStream)
  const stop = keepChild(['herald', ...args].join(' '), child, errors, async () => {
    await end(child, 'SIGTERM')
    await stopDatabaseIn(dataDir)
    remove(dataDir)
  })
  // Not by a pipe, of which the stream warns when there are more than ten.
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

/** All that is said, also by one that would stand still if nobody read it. */
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

/** One that was killed has left its PostgreSQL running. */
async function stopDatabaseIn(dataDir: string): Promise<void> {
  if (!existsSync(join(dataDir, 'postgres', 'postmaster.pid'))) return
  const server = await joinEmbeddedServer(dataDir, false, () => {})
  await server.leave()
}

/** Where the embedded server listens: the fifth line of its lock file. */
function readSocketDir(dataDir: string): string {
  try {
    return readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[4] ?? ''
  } catch {
    return ''
  }
}

/** A process that ends before `stop` is called fails the measurement, with what it wrote last. */
function keepChild(name: string, child: ChildProcess, errors: () => string, stop: () => Promise<void>): () => Promise<void> {
  let isStopping = false
  child.once('exit', (code, signal) => {
    if (!isStopping) fail(new Error(`${name} has died (${signal ?? code}): ${errors().trim().slice(-LAST_WORDS)}`))
  })
  return keep(async () => {
    isStopping = true
    await stop()
  })
}

const LAST_WORDS = 1_000

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

async function end(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (hasEnded(child)) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}
