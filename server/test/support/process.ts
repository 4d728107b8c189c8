import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Command, Outcome } from './command-host.ts'
import { until } from './until.ts'

export const HERALD = fileURLToPath(new URL('../../bin/herald.js', import.meta.url))

type Env = Record<string, string>

// A failing test leaves its services running. They end before their databases, which they would start again.
const running = new Map<ChildProcess, string>()
function killServicesBelow(dataDir: string): void {
  for (const [child, dir] of running) if (dir.startsWith(dataDir)) child.kill('SIGKILL')
}
after(() => killServicesBelow(''))

export function spawnHerald(args: string[], env: Env, cwd = tmpdir(), wrapper: string[] = []) {
  const [program = '', ...rest] = [...wrapper, process.execPath, HERALD, ...args]
  const child = spawn(program, rest, {
    env: environmentOf(env),
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  running.set(child, env.HERALD_DATA_DIR ?? '')
  void ended.then(() => running.delete(child))
  return { child, output, ended }
}

function environmentOf(env: Env): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  // The compile cache of the tests saves a quarter of the start.
  return { PATH, NODE_COMPILE_CACHE, HERALD_METRICS_PORT: '0', HERALD_SIMULATOR_PORT: '0', ...sharedKeys(env), ...env }
}

/** Nodes and commands on a test database share a key file; an embedded database has its own. */
function sharedKeys({ HERALD_DATABASE_URL }: Env): Env {
  const file = process.env.HERALD_TEST_KEY_FILE
  return HERALD_DATABASE_URL === undefined || file === undefined ? {} : { HERALD_ENCRYPTION_KEY_FILE: file }
}

/** Runs a `herald` command in its own process, for a test of processes. It takes more CPU than `runHerald`, to load the program. */
export async function runHeraldProcess(args: string[], env: Env, cwd?: string): Promise<{ code: number | null } & Omit<Outcome, 'code'>> {
  const { output, ended } = spawnHerald(args, env, cwd)
  const code = await ended
  return { code, ...output }
}

let host: { child: ChildProcess; waiting: PromiseWithResolvers<Outcome>[] } | undefined

/** Runs a `herald` command, after those before it, in the process of command-host.ts. */
export async function runHerald(args: string[], env: Env, cwd = tmpdir()): Promise<Outcome> {
  host ??= startHost()
  const { child, waiting } = host
  const outcome = Promise.withResolvers<Outcome>()
  waiting.push(outcome)
  child.channel?.ref()
  child.send({ args, env: environmentOf(env), cwd } satisfies Command)
  return await outcome.promise
}

function startHost() {
  const child = fork(join(import.meta.dirname, 'command-host.ts'), { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const waiting: PromiseWithResolvers<Outcome>[] = []
  child.on('message', (outcome: Outcome) => {
    waiting.shift()?.resolve(outcome)
    if (waiting.length === 0) child.channel?.unref()
  })
  child.once('exit', (code) => {
    for (const { reject } of waiting) reject(new Error(`the process of the commands exited with ${code}`))
    host = undefined
  })
  child.unref()
  process.once('beforeExit', () => {
    child.ref()
    if (child.connected) child.disconnect()
  })
  return { child, waiting }
}

/** Returns the JSON that a command prints with --json. Fails if the command fails. */
export async function heraldJson(args: string[], env: Env): Promise<any> {
  const { code, stdout, stderr } = await runHerald([...args, '--json'], env)
  if (code !== 0) throw new Error(`herald ${args.join(' ')} exited with ${code}: ${stderr}`)
  return JSON.parse(stdout)
}

type Failure = [args: string[], error: RegExp, status?: number]

/** Tests that each of these commands fails with an error that matches and, if it is given, this status, without output or a stack. */
export function testFailures(command: string[], failures: Failure[], env: Env): void {
  for (const [args, error, status] of failures) {
    const name = [...command, ...args].join(' ').replace(tmpdir(), '').slice(0, 80)
    test(`"${name}" fails with a readable error`, async () => {
      const { code, stdout, stderr } = await runHerald([...command, ...args], env)
      assert.ok(code !== 0 && stdout === '', `status ${code}, ${stdout}`)
      assert.match(stderr, error)
      if (status !== undefined) assert.equal(code, status)
      assert.doesNotMatch(stderr, /\n\s+at /)
    })
  }
}

export type HeraldProcess = {
  child: ChildProcess
  url: string
  output: { stdout: string; stderr: string }
  ended: Promise<number | null>
}

// Without the simulated network, which takes as long to start as everything else.
const SERVE = ['serve', '--only', 'api']

/** Runs `herald serve` in its own process on a free port, and kills it when the test ends. `wrapper`: a program that runs it. */
export async function startHerald(env: Env, wrapper?: string[], args = SERVE): Promise<HeraldProcess> {
  const started = spawnHerald(args, { HERALD_PORT: '0', ...env }, undefined, wrapper)
  after(() => started.child.kill('SIGKILL'))
  return await untilReady(started)
}

/** A process that outlives its test. It is killed when the test file ends. */
export async function startLastingHerald(env: Env, args = SERVE): Promise<HeraldProcess> {
  return await untilReady(spawnHerald(args, { HERALD_PORT: '0', ...env }))
}

export const START_TIMEOUT_MS = 120_000

export async function untilReady(started: ReturnType<typeof spawnHerald>): Promise<HeraldProcess> {
  let exited = false
  void started.ended.then(() => {
    exited = true
  })
  try {
    const url = await until('herald is ready', () => {
      if (exited) throw new Error(`herald exited: ${started.output.stderr}`)
      return /ready at (\S+);/.exec(started.output.stderr)?.[1]
    })
    return { ...started, url }
  } catch (error) {
    // Otherwise it would block the next test on its directory.
    started.child.kill('SIGKILL')
    await started.ended
    throw error
  }
}

/**
 * A data directory. When the test file ends, its embedded server is stopped and the directory removed. `like`: a directory to copy, whose
 * server is stopped; creating a database takes ten times as long.
 */
export async function createDataDir(like?: string): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'herald-data-'))
  if (like !== undefined) execFileSync('cp', ['-a', `${like}/.`, dataDir])
  after(async () => {
    killServicesBelow(dataDir)
    const pid = postmasterPid(dataDir)
    if (pid !== undefined && isRunning(pid)) {
      process.kill(pid, 'SIGQUIT')
      await until('PostgreSQL is gone', () => !isRunning(pid))
    }
    rmSync(dataDir, { recursive: true, force: true })
  })
  return dataDir
}

export function postmasterPid(dataDir: string): number | undefined {
  try {
    return Number(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0])
  } catch {
    return undefined
  }
}

/** False for a zombie, too: it has ended. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
