import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'

// A program as a process of its own that can be killed, frozen and started again, in the same place; both of its outputs go to files.

export type Restartable = {
  name: string
  /** Returns when it is ready. It was not running. */
  start: () => Promise<void>
  /** By SIGKILL. Returns when it is gone. */
  kill: () => Promise<void>
  /** By SIGSTOP and SIGCONT. */
  freeze: () => void
  thaw: () => void
  isRunning: () => boolean
  endedByItself?: string[]
}

export type Program = Restartable & {
  /** By SIGTERM, in order. Returns when it is gone. */
  stop: () => Promise<void>
  outFile: string
  errFile: string
  /** Undefined while it does not run. */
  pid: () => number | undefined
  /** How it ended, whenever nobody had killed it; and where it was stopped, and did not end as it should. */
  endedByItself: string[]
}

export type ProgramOptions = {
  name: string
  args: string[]
  env: Record<string, string>
  dir: string
  /** Throws where it has ended meanwhile. */
  untilReady: (program: { errFile: string; outFile: string; assertRunning: () => void }) => Promise<void>
}

/** Node.js on these arguments. What it writes is added to what earlier ones have written. */
export function createProgram({ name, args, env, dir, untilReady }: ProgramOptions): Program {
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

  function assertRunning(): void {
    if (child === undefined) throw new Error(`${name} has ended: see ${errFile}`)
  }

  return {
    name,
    outFile,
    errFile,
    endedByItself,
    pid: () => child?.pid,
    start: async () => {
      launch()
      await untilReady({ errFile, outFile, assertRunning })
    },
    kill: async () => {
      wanted = 'kill'
      child?.kill('SIGKILL')
      await ended
    },
    stop: async () => {
      wanted = 'stop'
      child?.kill('SIGTERM')
      await ended
    },
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    isRunning: () => child !== undefined,
  }
}
