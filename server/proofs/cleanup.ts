import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { say } from './progress.ts'

// A run that starts processes, in a directory of its own: `await inDirectory('herald-storm-', run)`. Whatever ends it, what was started is
// ended. Its directory, with the logs, is removed where the run was clean and where somebody has broken it off, and else kept, and named.

/** Ends of what was started; done in the opposite order. */
export type Cleanup = (() => Promise<void> | void)[]

const cleanup: Cleanup = []
let current: string | undefined
let isBrokenOff = false

/** Each of them, whatever becomes of the others. */
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

/** Once: what then still runs, and misses what has ended, is not worth a word. */
async function breakOff(error: unknown): Promise<void> {
  if (isBrokenOff) return
  isBrokenOff = true
  const isAsked = typeof error === 'string'
  if (!isAsked) console.error(error)
  await cleanUp()
  leave(!isAsked)
  process.exit(1)
}

/** A signal, or a fault that nothing has caught, ends the run. For programs, at their start. */
export function breakOffInOrder(): void {
  for (const cause of ['SIGINT', 'SIGTERM', 'SIGHUP', 'uncaughtException', 'unhandledRejection'] as const)
    process.on(cause, (error: unknown) => void breakOff(error))
}
