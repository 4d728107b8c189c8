import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

// As the first line of `herald` has it, which a shell would read; and the same for what it is held against.
const EXEC_ARGV = ['--v8-pool-size=1']

export type Peer = { port: number; child: ChildProcess; stop: () => Promise<void> }

/** Another program of this folder, which says on which port it listens. A process of its own, so that each side has a core. */
export async function startPeer(file: string): Promise<Peer> {
  const child = keep(fork(fileURLToPath(new URL(file, import.meta.url)), { execArgv: EXEC_ARGV }))
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return { port, child, stop: () => end(child) }
}

export type SimulatorProcess = { url: string; carriersFile: string; child: ChildProcess; stop: () => Promise<void> }

export async function startSimulator(): Promise<SimulatorProcess> {
  const dataDir = temporaryDirectory()
  const program = fileURLToPath(new URL('../simulator/bin/herald-simulator.js', import.meta.url))
  const child = keep(fork(program, ['--data-dir', dataDir, '--delay-ms', '0'], { silent: true }))
  const [chunk] = await once(child.stdout as NodeJS.ReadableStream, 'data')
  const stop = async () => {
    await end(child)
    rmSync(dataDir, { recursive: true })
  }
  return { ...JSON.parse(String(chunk)), child, stop }
}

export type HeraldProcess = { url: string; dataDir: string; databaseUrl: string; child: ChildProcess; stop: () => Promise<void> }

/** `herald serve` with an embedded database of its own, unless it is given one, and with limits that nobody reaches. */
export async function startHerald(args: string[], env: Record<string, string> = {}): Promise<HeraldProcess> {
  const dataDir = temporaryDirectory()
  const limits = { HERALD_LIMITS: 'memory', HERALD_LIMIT_MESSAGES_PER_SECOND: '1000000', HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000' }
  const child = fork(fileURLToPath(new URL('../server/bin/herald.js', import.meta.url)), ['serve', ...args], {
    env: { PATH: process.env.PATH, HERALD_DATA_DIR: dataDir, HERALD_PORT: '0', HERALD_LOG_LEVEL: 'warn', ...limits, ...env },
    execArgv: EXEC_ARGV,
    silent: true,
  })
  keep(child).stdout?.pipe(process.stderr)
  let greeting = ''
  for await (const chunk of child.stderr as NodeJS.ReadableStream) {
    greeting += chunk
    if (greeting.includes('ready at')) break
  }
  const url = /ready at (\S+);/.exec(greeting)?.[1]
  if (url === undefined) throw new Error(greeting)
  const socketDir = readSocketDir(dataDir)
  const databaseUrl = `postgres://herald@localhost/herald?host=${encodeURIComponent(socketDir)}`
  return { url, dataDir, databaseUrl, child, stop: () => stopHerald(child, dataDir) }
}

/** In order, so that its PostgreSQL stops too. */
async function stopHerald(child: ChildProcess, dataDir: string): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
  rmSync(dataDir, { recursive: true, force: true })
}

/** Where the embedded server listens: the fifth line of its lock file. */
function readSocketDir(dataDir: string): string {
  try {
    return readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[4] ?? ''
  } catch {
    return ''
  }
}

const started = new Set<ChildProcess>()
// Should what measures fail or be broken off: nothing of it goes on.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
process.on('exit', () => {
  for (const child of started) {
    child.kill('SIGTERM')
    // Some are stopped while others are measured.
    child.kill('SIGCONT')
  }
})

function keep(child: ChildProcess): ChildProcess {
  started.add(child)
  return child
}

export function temporaryDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'herald-bench-'))
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

const TICKS_PER_SECOND = 100

/** What a process has used so far, in ms; undefined where the system does not say it in this way (it is Linux that does). */
export function cpuMs({ pid }: { pid?: number | undefined }): number | undefined {
  if (process.platform !== 'linux') return undefined
  const fields = readStat(`${pid}`)
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND
}

/** Of a process and those that it has started, also of those that have ended. */
export function cpuOfFamilyMs(pid: number): number | undefined {
  if (process.platform !== 'linux') return undefined
  const ended = readStat(`${pid}`).slice(11, 15)
  const alive = childrenOf(pid).flatMap((child) => readStat(child).slice(11, 13))
  return [...ended, ...alive].reduce((sum, field) => sum + Number(field), 0) * (1000 / TICKS_PER_SECOND)
}

export function childrenOf(pid: number): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(readStat(name)[1]) === pid)
}

/** From the state on; nothing of a process that has just ended. */
function readStat(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
  } catch {
    return []
  }
}

/** `RssAnon` leaves out what processes share. */
export function residentMiB(pid: string, field: 'VmRSS' | 'RssAnon'): number {
  try {
    return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}
