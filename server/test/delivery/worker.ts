import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { Registry } from 'prom-client'
import type { RcsCarrier } from '../../src/carriers/carrier.ts'
import { createHotPool, type Executor, type Pool } from '../../src/db/pool.ts'
import { type ClaimRequest, claim, type Entry } from '../../src/delivery/claim.ts'
import { createDeliveryMetrics, type DeliveryMetrics } from '../../src/delivery/metrics.ts'
import { recordResults } from '../../src/delivery/results.ts'
import { createDispatcher } from '../../src/delivery/send.ts'
import type { Dispatcher } from '../../src/delivery/worker.ts'
import { createLogger } from '../../src/http/log.ts'
import { erased } from '../support/erased.ts'
import { untilDue } from '../support/until.ts'

// A worker, step by step or as a whole, and a network that a test controls.

export const CARRIER = 'simulator'
export const logger = createLogger('silent')

export const NO_RATE = { name: CARRIER, messagesPerSecond: undefined, messagesPerSecondPerAgent: undefined }

/** A pool for many concurrent statements: on a busy machine, the service's timeout of 2 s is too short for the last one to get a connection. */
export function createBusyPool(databaseUrl: string): Pool {
  const pool = createHotPool({ connectionString: databaseUrl }, () => {})
  pool.options.connectionTimeoutMillis = 120_000
  return pool
}

/** A claim of a worker without running calls, for a carrier without a rate. */
export async function claimNow(db: Executor, fields: Partial<ClaimRequest> = {}) {
  await untilDue(db)
  return await claim(db as Pool, { carrier: NO_RATE, free: 1_000, leaseMs: 60_000, pausedAgents: [], calls: new Map(), ...fields })
}

export type Result = Parameters<typeof recordResults>[1][number]
/** The result of a send, without its message and lease. */
export type SendResult = Result extends infer Each ? (Each extends Result ? Omit<Each, 'messageId' | 'lease'> : never) : never

/** Records the result of a claimed message. Returns false if the result does not count. */
export async function record(db: Executor, { messageId, lease }: Pick<Entry, 'messageId' | 'lease'>, result: SendResult): Promise<boolean> {
  return (await recordResults(db, [{ messageId, lease, ...result } as Result]))[0] === true
}

/** Makes an entry due now, as if its lease or its pause had ended. */
export async function makeDue(pool: Pool, messageIds: string[]): Promise<void> {
  await pool.query('update queue set due_at = now(), leased_until = now() where message_id = any ($1)', [messageIds])
}

/** Fails unless the entry was postponed by `ms`, between `since` (by Date.now()) and now. */
export function assertPostponed({ due_at }: { due_at: string }, ms: number, since: number): void {
  const dueAt = Date.parse(due_at)
  assert.ok(dueAt >= since + ms && dueAt <= Date.now() + ms, `due at ${due_at}, not ${ms} ms after ${new Date(since).toISOString()}`)
}

type Seen = { task: 'send' | 'revoke'; messageId: string; agentId: string; at: number }

/** `seen`: its calls, in order, with their times by performance.now(). */
export type TestCarrier = RcsCarrier & { seen: Seen[] }

type Call<Name extends 'send' | 'revoke'> = (
  message: Parameters<RcsCarrier[Name]>[0],
) => ReturnType<RcsCarrier[Name]> | Awaited<ReturnType<RcsCarrier[Name]>>
export type CarrierOptions = Partial<Omit<RcsCarrier, 'send' | 'revoke'>> & { onSend?: Call<'send'>; onRevoke?: Call<'revoke'> }
type SendOutcome = Awaited<ReturnType<RcsCarrier['send']>>

export function sent({ messageId }: { messageId: string }): SendOutcome {
  return { is: 'sent', carrierMessageId: messageId }
}

/** A network that accepts everything, unless a test sets `onSend` or `onRevoke`. */
export function createCarrier({ onSend = sent, onRevoke = () => ({ is: 'accepted' }), ...options }: CarrierOptions = {}): TestCarrier {
  const seen: Seen[] = []
  const note = (task: Seen['task'], { messageId, agentId }: Omit<Seen, 'task' | 'at'>) =>
    seen.push({ task, messageId, agentId, at: performance.now() })
  return {
    ...NO_RATE,
    longestCallMs: 1_000,
    concurrency: 10,
    pausedForMs: () => 0,
    health: () => ({ circuit: 'closed', sessions: null }),
    connect: async () => {},
    reach: async () => [],
    close: async () => {},
    ...options,
    seen,
    send: async (message) => {
      note('send', message)
      return await onSend(message)
    },
    revoke: async (message) => {
      note('revoke', message)
      return await onRevoke(message)
    },
  }
}

/** Runs a dispatcher as a process does, with its own connections, until the test ends. */
export function runDispatcher<D extends Dispatcher>(
  t: TestContext,
  databaseUrl: string,
  create: (pool: Pool, metrics: DeliveryMetrics) => D,
) {
  const pool = createHotPool({ connectionString: databaseUrl }, () => {})
  const registry = new Registry()
  const dispatcher = create(pool, createDeliveryMetrics(registry))
  let stopped: Promise<void> | undefined
  function stop(): Promise<void> {
    stopped ??= dispatcher.stop()
    return stopped
  }
  t.after(async () => {
    await stop()
    await pool.end()
  })
  return { ...dispatcher, stop, pool, registry }
}

export function startWorker(t: TestContext, databaseUrl: string, carrier: RcsCarrier) {
  return runDispatcher(t, databaseUrl, (pool, metrics) => createDispatcher({ pool, carrier, erased, logger, metrics }))
}

/** A promise that `release` resolves, or the end of the test: the worker of a failed test must not wait for it. Create it before the worker. */
export function createHold(t: TestContext): { released: Promise<void>; release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  t.after(() => resolve())
  return { released: promise, release: resolve }
}
