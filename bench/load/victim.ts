import { setTimeout as sleep } from 'node:timers/promises'
import { inParallel } from '../measure/rounds.ts'
import { type Account, messageRequest } from '../setup/accounts.ts'
import { openConnection, statusOf } from './connections.ts'

// The caller whose response times count during an attack. It stays within the default limits: 50 requests a second from 25 addresses, so
// that even a backlog of many seconds brings at most 35 requests from one address at once. Every request has its own connection.

export const PER_SECOND = 50
const ADDRESSES = Array.from({ length: 25 }, (_, n) => `127.0.3.${n + 1}`)
/** A request without a response for this long has failed, and counts with this time. */
const TIMEOUT_MS = 30_000
const WARM_UP = 500

/** `status`: undefined without a response. */
export type Sample = { tookMs: number; status: number | undefined }
/** `send` returns when every request has a response or has failed. */
type Victim = { send: (seconds: number) => Promise<Sample[]>; warmUp: () => Promise<void> }

export function createVictim(port: number, account: Account): Victim {
  let requests = 0
  async function exchange(): Promise<number> {
    const connection = await openConnection('127.0.0.1', port, ADDRESSES[requests++ % ADDRESSES.length])
    const response = await connection.exchange(messageRequest(account))
    connection.close()
    return statusOf(response)
  }
  async function sendOne(): Promise<number | undefined> {
    const timeout = sleep(TIMEOUT_MS, undefined, { ref: false })
    // Fails if the service refuses or closes the connection.
    return await Promise.race([exchange().catch(() => undefined), timeout])
  }
  // Times count from the moment a request was due: a client that waits for the service would hide the delay.
  async function send(seconds: number): Promise<Sample[]> {
    const startedAt = performance.now()
    const samples: Promise<Sample>[] = []
    for (let n = 0; n < seconds * PER_SECOND; n++) {
      // At random within its slot, so that requests do not fall into step with a loop of the service.
      const dueAt = startedAt + ((n + Math.random()) * 1_000) / PER_SECOND
      const early = dueAt - performance.now()
      if (early > 0) await sleep(early)
      samples.push(sendOne().then((status) => ({ tookMs: performance.now() - dueAt, status })))
    }
    return await Promise.all(samples)
  }
  // Four at a time over all addresses stay below the limit of each.
  return { send, warmUp: () => inParallel(WARM_UP, 4, sendOne) }
}
