import { pino } from 'pino'
import { Registry } from 'prom-client'
import type { OnEvents } from '../../src/carriers/carrier.ts'
import type { Pool } from '../../src/db/pool.ts'
import type { Entry } from '../../src/delivery/claim.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { ensurePace } from '../../src/delivery/rate.ts'
import { createEventTaker } from '../../src/delivery/receipts.ts'
import type { EntryResult } from '../../src/delivery/results.ts'
import { createSend, type Send } from '../../src/delivery/send.ts'
import { createAcceptor } from '../../src/messages/accept.ts'
import type { Message } from '../../src/messages/messages.ts'
import type { Status } from '../../src/messages/states.ts'
import { createNetwork, type Network } from './model-network.ts'

/** What the model holds to be true of a message. */
export type Known = {
  id: string
  caller: Caller
  phone: string
  /** As stored: without SENDING. */
  status: Exclude<Status, 'SENDING'>
  /** It waits to be sent, in the queue. */
  isQueued: boolean
  /** Whose result counts. */
  lease: string | undefined
  /** No other worker may take it up. */
  isLeased: boolean
  /** Its time is over: just now, so that a receipt may still be on its way into the database, or for long. */
  ranOut: 'no' | 'just' | 'long'
  /** As a caller saw it last. */
  seen: Message | undefined
  /** Its rows as they were last found, in JSON. */
  stored: string
}

export type Caller = { accountId: number; agentId: string; isActive: boolean }

/** What a worker holds in memory, and forgets when it crashes. Once the network was asked, with what is to be written. */
export type Held = { entry: Entry; claimedAt: number; asked?: { verdict: EntryResult } }

export type Key = { key: string; caller: Caller; phone: string; messageId: string }

export type World = {
  pool: Pool
  network: Network
  send: Send
  /** Two nodes take requests in, four take receipts in, and two workers send. */
  accept: ReturnType<typeof createAcceptor>[]
  takeEvents: OnEvents[]
  workers: { held: Held[] }[]
  callers: Caller[]
  keys: Key[]
  known: Map<string, Known>
  /** The ids of those that a worker has taken up to be sent, once or more. */
  takenUp: Set<string>
  newName: () => string
}

/** The longest that the engine gives a call of this carrier. */
export const LEASE_MS = 30_000

let names = 0

/** Nothing queued, and nobody at work. Messages of earlier runs stay, but nothing is left to do about them. */
export async function newWorld(pool: Pool, carrierName: string, agents: Pick<Caller, 'accountId' | 'agentId'>[]): Promise<World> {
  await pool.query('delete from queue')
  await pool.query('delete from expiries')
  await pool.query('update agent_assignments set active = true')
  const network = createNetwork(carrierName)
  await ensurePace(pool, carrierName)
  return {
    pool,
    network,
    send: createSend({
      carrier: network.carrier,
      metrics: createDeliveryMetrics(new Registry()),
      logger: pino({ level: 'silent' }),
      stopping: new AbortController().signal,
    }),
    accept: [createAcceptor(pool, () => {}), createAcceptor(pool, () => {})],
    takeEvents: Array.from({ length: 4 }, () => createEventTaker(pool, () => {})),
    workers: [{ held: [] }, { held: [] }],
    callers: agents.map((agent) => ({ ...agent, isActive: true })),
    keys: [],
    known: new Map(),
    takenUp: new Set(),
    newName: () => {
      names += 1
      return String(names).padStart(8, '0')
    },
  }
}

/** The pool, and what went wrong in it: a batcher gets over a deadlock by itself, and nobody would see it. */
export function watch(pool: Pool): { pool: Pool; failures: string[] } {
  const failures: string[] = []
  const query = async (...args: Parameters<Pool['query']>) => {
    try {
      return await pool.query(...args)
    } catch (error) {
      failures.push(`${(args[0] as { name?: string }).name}: ${(error as { code?: string }).code} ${(error as Error).message}`)
      throw error
    }
  }
  return { pool: Object.create(pool, { query: { value: query } }) as Pool, failures }
}

/** Of a random number, one of them. */
export function pick<T>(items: readonly T[], index: number): T {
  return items[index % items.length] as T
}
