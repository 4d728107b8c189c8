import { readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/support/ports.ts'
import { until } from '../../test/support/until.ts'
import { createProgram, type Program } from './process.ts'

// Processes of the service, by role: `const node = await createNode({ name, role, env, dir })`, then `start`, `kill`, `freeze`, `thaw` as
// often as one likes. A node keeps its port, so its address stays. `env` has what all nodes share, such as HERALD_DATABASE_URL and
// HERALD_CARRIERS; the log is in `node.outFile`.

export type Role = 'api' | 'delivery' | 'webhooks'
export type Node = Program & { role: Role; url: string; metricsUrl: string }

/** A node for callers that also delivers, so that it sends messages at once. */
export const SENDS_AT_ONCE = 'api-2'

/** `also`: further roles. */
export type NodeOptions = { name: string; role: Role; also?: Role[]; env: Record<string, string>; dir: string }

const HERALD = fileURLToPath(new URL('../../bin/herald.js', import.meta.url))
// A start waits up to 30 s for a database that is away.
const START_TIMEOUT_MS = 60_000

/** Limits that nobody reaches, counted by the database as they are with several nodes. */
export const SHARED_SETTINGS = {
  HERALD_LIMIT_MESSAGES_PER_SECOND: '1000000',
  HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000',
  HERALD_WEBHOOK_ALLOW_PRIVATE: 'true',
  HERALD_LOG_LEVEL: 'info',
}

export async function createNode({ name, role, also = [], env, dir }: NodeOptions): Promise<Node> {
  const port = await freePort()
  const metricsPort = await freePort()
  const url = `http://127.0.0.1:${port}`
  const program = createProgram({
    name,
    args: [HERALD, 'serve', '--only', [role, ...also].join()],
    env: { ...SHARED_SETTINGS, ...env, HERALD_PORT: String(port), HERALD_METRICS_PORT: String(metricsPort), HERALD_DATA_DIR: dir },
    dir,
    untilReady: async ({ errFile, assertRunning }) => {
      const greetings = countGreetings(errFile)
      await until(
        `${name} is ready`,
        () => {
          assertRunning()
          return countGreetings(errFile) > greetings
        },
        START_TIMEOUT_MS,
      )
    },
  })
  return { ...program, role, url, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics` }
}

function countGreetings(errFile: string): number {
  if (statSync(errFile, { throwIfNoEntry: false }) === undefined) return 0
  return readFileSync(errFile, 'utf8').split('Herald is ready at').length - 1
}

/** It answers, and says that it can serve. */
export async function isReady({ url }: Pick<Node, 'url'>): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(5_000) })).ok
  } catch {
    return false
  }
}
