import { setTimeout as sleep } from 'node:timers/promises'
import { isUnavailable, type Pool } from '../../src/db/pool.ts'
import type { Keyring } from '../../src/encryption/keyring.ts'
import type { EventKind } from '../../src/events/schemas.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import type { Arrival } from '../crash/webhook-sink.ts'
import { startSink } from '../crash/webhook-sink.ts'
import { between, type Random } from '../random.ts'
import { type Caller, persist } from './caller.ts'

// Those of an account who are told: two endpoints, one that wants all kinds and one some, which refuse a tenth and take their time; and somebody who reads
// the feed all the while, in pages of ever another length. `const followers = await startFollowers(…)`, later `await followers.stop()`,
// which reads the feed to its end.

export type Told = {
  accountId: number
  /** As the feed's pages had them, one after the other. */
  followed: unknown[]
  endpoints: Endpoint[]
}
export type Endpoint = { path: string; kinds: readonly string[] | undefined; arrivals: Arrival[] }

export type Followers = { stop: () => Promise<Told> }

const FAILURE_RATE = 0.1
const LONGEST_ANSWER_MS = 60
const LONGEST_PAGE = 200
const LOOK_EVERY_MS = 100
const HASTEN_EVERY_MS = 500
const SOME: readonly EventKind[] = ['message.delivered', 'message.failed', 'sms.delivered', 'campaign.completed']

type FollowerOptions = { pool: Pool; keyring: Keyring; caller: Caller; random: Random }

export async function startFollowers({ pool, keyring, caller, random }: FollowerOptions): Promise<Followers> {
  const sink = await startSink({ random, failureRate: FAILURE_RATE, longestAnswerMs: LONGEST_ANSWER_MS })
  const wanted = [
    { path: `/${caller.accountId}/all`, kinds: undefined },
    { path: `/${caller.accountId}/some`, kinds: SOME },
  ]
  for (const { path, kinds } of wanted) {
    sink.trust(path, (await addEndpoint(pool, { accountId: caller.accountId, url: sink.url(path), kinds }, keyring)).secret)
  }
  const stopping = new AbortController()
  const reading = follow(caller, random, stopping.signal)
  const hastening = hasten(pool, stopping.signal)
  return {
    stop: async () => {
      stopping.abort()
      const [followed] = await Promise.all([reading, hastening])
      sink.close()
      const { accountId } = caller
      return {
        accountId,
        followed,
        endpoints: wanted.map((endpoint) => ({ ...endpoint, arrivals: sink.arrivals.get(endpoint.path) ?? [] })),
      }
    },
  }
}

async function follow(caller: Caller, random: Random, stopping: AbortSignal): Promise<unknown[]> {
  const items: unknown[] = []
  for (let after = ''; ; ) {
    const isLast = stopping.aborted
    const limit = Math.floor(between(random, 1, LONGEST_PAGE))
    const { status, body } = await persist(caller, { method: 'GET', path: `/events?limit=${limit}${after}` })
    // What is no page stands among the events, where the verdict finds it.
    items.push(...(status === 200 ? body.items : [{ status, body }]))
    if (status === 200) after = `&after=${body.nextCursor}`
    if (body?.hasMore) continue
    if (isLast) return items
    await sleep(LOOK_EVERY_MS)
  }
}

/**
 * The one thing that does not wait for its time: what an endpoint has refused twice would come again after five minutes, and is made due by
 * data. First retries come after their 5 s, and an endpoint that refused five times in a row is left alone for as long as that takes.
 */
async function hasten(pool: Pool, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    try {
      await pool.query(`update webhook_deliveries set due_at = now() where attempts > 1 and due_at > now()`)
    } catch (error) {
      if (!isUnavailable(error)) throw error
    }
    await sleep(HASTEN_EVERY_MS)
  }
}
