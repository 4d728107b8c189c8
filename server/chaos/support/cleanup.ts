import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { say } from './progress.ts'

// A run that starts processes, in a directory of its own. Whatever ends the run, its processes are ended. The directory, with the logs, is
// removed after a clean run and after a signal, and is kept and named otherwise.

/** Ends what was started; called in the opposite order. */
export type Cleanup = (() => Promise<void> | void)[]

const cleanup: Cleanup = []
let current: string | undefined
let isBrokenOff = false

/** Calls all of them, even if one fails. */
async function cleanUp(): Promise<void> {
  for (const end of cleanup.splice(0).toReversed()) await Promise.resolve(end()).catch((error: unknown) => console.error(error))
}

function leave(isWanted: boolean): void {
  if (current === undefined) return
  if (isWanted) say(`the logs are in ${current}`)
  else rmSync(current, { recursive: true, force: true })
  current = undefined
}

export async function inDirectory<T>(
  prefix: string,
  run: (dir: string, cleanup: Cleanup) => Promise<T>,
  isClean: (result: T) => boolean,
): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), prefix))
  current = dir
  const result = await run(dir, cleanup)
  await cleanUp()
  leave(!isClean(result))
  return result
}

/** Acts on the first cause only: work that goes on meanwhile fails because its processes have ended. */
async function breakOff(cause: unknown): Promise<void> {
  if (isBrokenOff) return
  isBrokenOff = true
  const isSignal = typeof cause === 'string'
  if (!isSignal) console.error(cause)
  await cleanUp()
  leave(!isSignal)
  process.exit(1)
}

/** Makes a signal, or an error that nothing has caught, end the run. For programs, at their start. */
export function breakOffInOrder(): void {
  for (const cause of ['SIGINT', 'SIGTERM', 'SIGHUP', 'uncaughtException', 'unhandledRejection'] as const)
    process.on(cause, (error: unknown) => void breakOff(error))
}
