import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { until } from '../../test/support/until.ts'

// A Node.js program as a process of its own that can be killed, frozen and started again in the same place. Both of its outputs go to files.

/** What faults are injected into. */
export type Target = {
  name: string
  /** Returns when it is ready. */
  start: () => Promise<void>
  /** By SIGKILL. Returns when it is gone. */
  kill: () => Promise<void>
  /** By SIGSTOP and SIGCONT. */
  freeze: () => void
  thaw: () => void
  isRunning: () => boolean
  endedByItself?: string[]
}

export type Program = Target & {
  /** By SIGTERM. Returns when it is gone. */
  stop: () => Promise<void>
  outFile: string
  errFile: string
  /** Undefined while it does not run. */
  pid: () => number | undefined
  /** One sentence for each end that was neither a kill of ours nor a clean stop. */
  endedByItself: string[]
}

/** `readyText`: what it prints when it is ready. */
export type ProgramOptions = { name: string; args: string[]; env: Record<string, string>; dir: string; readyText: string }

// A service that starts waits up to 30 s for its database, and six starts at once take a minute on a machine with a load of 28.
const START_TIMEOUT_MS = 180_000

/** Output is appended to what earlier processes have written. */
export function createProgram({ name, args, env, dir, readyText }: ProgramOptions): Program {
  const outFile = `${dir}/${name}.out`
  const errFile = `${dir}/${name}.err`
  const endedByItself: string[] = []
  let child: ChildProcess | undefined
  let ended: Promise<void> = Promise.resolve()
  let wanted: 'kill' | 'stop' | undefined

  function launch(): void {
    wanted = undefined
    const outputs = [outFile, errFile].map((file) => openSync(file, 'a'))
    const launched = spawn(process.execPath, args, {
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
      cwd: dir,
      stdio: ['pipe', ...outputs],
    })
    for (const output of outputs) closeSync(output)
    ended = new Promise((resolve) => {
      launched.once('exit', (code, signal) => {
        const isWanted = (wanted === 'kill' && signal === 'SIGKILL') || (wanted === 'stop' && code === 0)
        if (!isWanted) endedByItself.push(`${name} ended with ${signal ?? code}`)
        if (child === launched) child = undefined
        resolve()
      })
    })
    child = launched
  }

  const countStarts = () => [outFile, errFile].reduce((sum, file) => sum + readIfThere(file).split(readyText).length - 1, 0)

  async function start(): Promise<void> {
    const before = countStarts()
    launch()
    const isReady = () => {
      if (child === undefined) throw new Error(`${name} has ended: see ${errFile}`)
      return countStarts() > before
    }
    await until(`${name} is ready`, isReady, START_TIMEOUT_MS)
  }

  async function end(how: 'kill' | 'stop'): Promise<void> {
    wanted = how
    child?.kill(how === 'kill' ? 'SIGKILL' : 'SIGTERM')
    await ended
  }

  return {
    name,
    outFile,
    errFile,
    endedByItself,
    pid: () => child?.pid,
    start,
    kill: () => end('kill'),
    stop: () => end('stop'),
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    isRunning: () => child !== undefined,
  }
}

export function readIfThere(file: string): string {
  return statSync(file, { throwIfNoEntry: false }) === undefined ? '' : readFileSync(file, 'utf8')
}
