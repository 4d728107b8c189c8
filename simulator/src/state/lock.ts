import { closeSync, constants, openSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StartError } from '../options.ts'

const TRY_FOR_MS = 500
const TRY_EVERY_MS = 25
// Opening a file with this flag locks it. macOS and the BSDs support it; Node has no name for it.
const O_EXLOCK = 0x20

/**
 * Locks a data directory for this process. The kernel releases the lock when the process ends, also by `kill -9`. Waits half a second for a previous
 * simulator that is just ending. Returns a function that releases the lock.
 */
export async function lockDirectory(dataDir: string): Promise<() => void> {
  const failAt = performance.now() + TRY_FOR_MS
  for (;;) {
    const release = process.platform === 'linux' ? await takeName(dataDir) : openLocked(join(dataDir, 'simulator.lock'))
    if (release !== undefined) return release
    if (performance.now() > failAt) throw new StartError(`Another simulator is running in ${dataDir}.`)
    await sleep(TRY_EVERY_MS)
  }
}

/** Linux: listens on a socket whose name is not in the file system (it begins with a zero byte). Only one process can have a name. */
function takeName(dataDir: string): Promise<(() => void) | undefined> {
  const { dev, ino } = statSync(dataDir)
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error)))
    server.listen({ path: `\0herald-simulator-${dev}-${ino}` }, () => resolve(() => server.close()))
    server.unref()
  })
}

function openLocked(path: string): (() => void) | undefined {
  try {
    const file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | O_EXLOCK, 0o600)
    return () => closeSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined
    throw error
  }
}
