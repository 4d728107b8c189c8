import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/support/ports.ts'
import { createProgram, type Program } from './program.ts'

// A process of the service. It keeps its port when it is started again.

export type Role = 'api' | 'delivery' | 'webhooks'
export type Node = Program & { role: Role; url: string; metricsUrl: string }

/** This API node also delivers, so it sends messages at once. */
export const SENDS_AT_ONCE = 'api-2'

/** `also`: further roles. `env`: what all nodes share, such as HERALD_DATABASE_URL. */
export type NodeOptions = { name: string; role: Role; also?: Role[]; env: Record<string, string>; dir: string }

const HERALD = fileURLToPath(new URL('../../bin/herald.js', import.meta.url))

/** Limits that no caller reaches, counted in the database as with several nodes. */
export const SHARED_SETTINGS = {
  HERALD_LIMIT_MESSAGES_PER_SECOND: '1000000',
  HERALD_LIMIT_EVENTS_PER_SECOND: '1000000',
  HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000',
  HERALD_WEBHOOK_ALLOW_PRIVATE: 'true',
  HERALD_LOG_LEVEL: 'info',
}

export async function createNode({ name, role, also = [], env, dir }: NodeOptions): Promise<Node> {
  const [port, metricsPort] = [await freePort(), await freePort()]
  const ports = { HERALD_PORT: String(port), HERALD_METRICS_PORT: String(metricsPort) }
  const program = createProgram({
    name,
    args: [HERALD, 'serve', '--only', [role, ...also].join()],
    env: { ...SHARED_SETTINGS, ...env, ...ports, HERALD_DATA_DIR: dir },
    dir,
    readyText: 'Herald is ready at',
  })
  return { ...program, role, url: `http://127.0.0.1:${port}`, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics` }
}

export async function isReady({ url }: Pick<Node, 'url'>): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(5_000) })).ok
  } catch {
    return false
  }
}

/** The sum of the counters that the pattern matches, of which the first group is the value. */
export async function readMetric({ metricsUrl }: Node, pattern: RegExp): Promise<number> {
  const text = await (await fetch(metricsUrl)).text()
  return [...text.matchAll(pattern)].reduce((sum, [, value]) => sum + Number(value), 0)
}
