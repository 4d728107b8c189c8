import { setTimeout as sleep } from 'node:timers/promises'
import { isUnavailable, type Pool } from '../../src/db/pool.ts'
import type { Keyring } from '../../src/encryption/keyring.ts'
import type { EventKind } from '../../src/events/kinds.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { between, type Random } from '../support/random.ts'
import { type Caller, persist } from './caller.ts'
import { type Arrival, startSink } from './sink.ts'

// The receivers of an account's events: an endpoint for all kinds, an endpoint for some, and a reader of the feed with pages of varying
// length. `stop` reads the feed to its end.

export type Received = {
  accountId: number
  /** The items of all pages of the feed. */
  feed: unknown[]
  endpoints: Endpoint[]
}
export type Endpoint = { path: string; kinds: readonly string[] | undefined; arrivals: Arrival[] }

export type Subscribers = { stop: () => Promise<Received> }

const LONGEST_PAGE = 200
const LOOK_EVERY_MS = 100
const HASTEN_EVERY_MS = 500
const SOME: readonly EventKind[] = ['message.delivered', 'message.failed', 'sms.delivered', 'campaign.completed']

type SubscriberOptions = { pool: Pool; keyring: Keyring; caller: Caller; random: Random }

export async function startSubscribers({ pool, keyring, caller, random }: SubscriberOptions): Promise<Subscribers> {
  const sink = await startSink(random)
  const wanted = [
    { path: `/${caller.accountId}/all`, kinds: undefined },
    { path: `/${caller.accountId}/some`, kinds: SOME },
  ]
  for (const { path, kinds } of wanted) {
    sink.trust(path, (await addEndpoint(pool, { accountId: caller.accountId, url: sink.url(path), types: kinds }, keyring)).secret)
  }
  const stopping = new AbortController()
  const reading = readFeed(caller, random, stopping.signal)
  const hastening = hastenRetries(pool, stopping.signal)
  return {
    stop: async () => {
      stopping.abort()
      const [feed] = await Promise.all([reading, hastening])
      sink.close()
      const endpoints = wanted.map((endpoint) => ({ ...endpoint, arrivals: sink.arrivals.get(endpoint.path) ?? [] }))
      return { accountId: caller.accountId, feed, endpoints }
    },
  }
}

async function readFeed(caller: Caller, random: Random, stopping: AbortSignal): Promise<unknown[]> {
  const items: unknown[] = []
  for (let after = ''; ; ) {
    const isLast = stopping.aborted
    const limit = Math.floor(between(random, 1, LONGEST_PAGE))
    const { status, body } = await persist(caller, { method: 'GET', path: `/events?limit=${limit}${after}` })
    // A response that is no page is put among the events, where a check finds it.
    items.push(...(status === 200 ? body.items : [{ status, body }]))
    if (status === 200) after = `&after=${body.nextCursor}`
    if (body?.hasMore) continue
    if (isLast) return items
    await sleep(LOOK_EVERY_MS)
  }
}

/** The second retry of an event would come after five minutes, so it is made due. First retries come after 5 s by themselves. */
async function hastenRetries(pool: Pool, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    try {
      await pool.query(`update webhook_deliveries set due_at = now() where attempts > 1 and due_at > now()`)
    } catch (error) {
      if (!isUnavailable(error)) throw error
    }
    await sleep(HASTEN_EVERY_MS)
  }
}
