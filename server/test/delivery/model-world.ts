import { pino } from 'pino'
import { Registry } from 'prom-client'
import type { OnEvents } from '../../src/carriers/carrier.ts'
import type { Pool } from '../../src/db/pool.ts'
import type { Entry } from '../../src/delivery/claim.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { createEventReceiver } from '../../src/delivery/receipts.ts'
import { createSend, type Send } from '../../src/delivery/send.ts'
import { createAcceptor } from '../../src/messages/accept.ts'
import type { Message } from '../../src/messages/messages.ts'
import type { Status } from '../../src/messages/states.ts'
import { erased } from '../support/erased.ts'
import { createNetwork, type Network } from './model-network.ts'
import type { SendResult } from './worker.ts'

/** What the model expects of a message. */
export type Known = {
  id: string
  caller: Caller
  phone: string
  /** As stored: without SENDING. */
  status: Exclude<Status, 'SENDING'>
  /** It is in the queue, to be sent. */
  isQueued: boolean
  /** Only a result with this lease counts. */
  lease: string | undefined
  /** No other worker may claim it. */
  isLeased: boolean
  /** `just`: a receipt may still be on its way into the database. */
  expired: 'no' | 'just' | 'long'
  /** As a caller last read it. */
  seen: Message | undefined
  /** Its rows as they were last read, in JSON. */
  stored: string
}

export type Caller = { accountId: number; agentId: string; isActive: boolean }

/** What a worker has in memory, and loses when it crashes. `result`: once the call was made. */
export type Held = { entry: Entry; claimedAt: number; result?: SendResult }

export type Key = { key: string; caller: Caller; phone: string; messageId: string }

export type World = {
  pool: Pool
  network: Network
  send: Send
  /** Two nodes accept requests, four store receipts, and two workers send. */
  accept: ReturnType<typeof createAcceptor>[]
  receivers: OnEvents[]
  workers: { held: Held[] }[]
  callers: Caller[]
  keys: Key[]
  known: Map<string, Known>
  /** The messages that a worker has claimed to send, once or more. */
  tried: Set<string>
  newName: () => string
}

/** The lease of a call of this carrier. */
export const LEASE_MS = 30_000

let names = 0

/** A world with an empty queue. Messages of earlier runs stay, but nothing is left to do for them. */
export async function newWorld(pool: Pool, carrierName: string, agents: Pick<Caller, 'accountId' | 'agentId'>[]): Promise<World> {
  await pool.query('delete from queue')
  await pool.query('delete from expiries')
  await pool.query('update agent_assignments set active = true')
  const network = createNetwork(carrierName)
  return {
    pool,
    network,
    send: createSend({
      carrier: network.carrier,
      metrics: createDeliveryMetrics(new Registry()),
      logger: pino({ level: 'silent' }),
      route: async () => undefined,
      stopping: new AbortController().signal,
    }),
    accept: [createAcceptor(pool, () => {}), createAcceptor(pool, () => {})],
    receivers: Array.from({ length: 4 }, () => createEventReceiver(pool, () => {}, erased)),
    workers: [{ held: [] }, { held: [] }],
    callers: agents.map((agent) => ({ ...agent, isActive: true })),
    keys: [],
    known: new Map(),
    tried: new Set(),
    newName: () => {
      names += 1
      return String(names).padStart(8, '0')
    },
  }
}

/** The pool, and its failed statements: a batcher retries after a deadlock, so no test would see it. */
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

/** Picks an item by a random number. */
export function pick<T>(items: readonly T[], index: number): T {
  return items[index % items.length] as T
}
