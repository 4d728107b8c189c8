import type { Logger } from 'pino'
import type { RcsCarrier, Reach } from '../carriers/carrier.ts'
import { createBatcher } from '../db/batcher.ts'
import { isUnavailable, type Pool } from '../db/pool.ts'
import type { ErasedPeople } from '../erasure/erased.ts'
import { readAhead, readKnown, storeCapabilities } from './capabilities.ts'
import type { Entry } from './claim.ts'
import type { DeliveryMetrics } from './metrics.ts'
import type { Claimed } from './read-claimed.ts'
import type { EntryResult } from './results.ts'

// Asks the network about the numbers of claimed messages, and about those of the next messages of their lane. A look-up only saves a message that
// would be refused, so it must not hold up messages: without a result in time, the message is attempted.

/** Returns the result of an entry that must not be sent, or not now; undefined if it is to be sent. Never throws. */
export type Route = (entry: Entry, message: Claimed | undefined) => Promise<EntryResult | undefined>

/** Returns whether a number has RCS; undefined if the network does not say, or not in time. Never throws. */
type LookUp = (entry: Entry, recipient: string) => Promise<boolean | undefined>

type Options = { pool: Pool; carrier: RcsCarrier; erased: ErasedPeople; logger: Logger; metrics: DeliveryMetrics }
type Wanted = { messageId: string; recipient: string }

// The network usually responds within a second.
const TIMEOUT_MS = 5_000
// After a look-up without a result, messages are attempted for this long: otherwise a slow network would hold up each of them.
const PAUSE_MS = 10_000
// A response that came after the timeout is used by the next look-up, after the pause.
const LATE_MS = 60_000
const BATCH_SIZE = 1_000

/**
 * Routes messages by look-ups. An earlier attempt may have sent a message, so only the first attempt is routed: later ones learn from the network's
 * response to the message.
 */
export function createRoute({ stopping, ...options }: Options & { stopping: AbortSignal }): Route {
  const lookUp = createLookUp(options)
  return async (entry, message) => {
    if (message === undefined || entry.task !== 'send' || entry.attempts > 1 || stopping.aborted) return undefined
    const { capability, recipient, isErased, stoppedBy } = message
    if (capability === null || isErased || stoppedBy !== null) return undefined
    const hasRcs = capability === 'unknown' ? await lookUp(entry, recipient) : capability === 'reachable'
    if (hasRcs === false) return { is: 'no-rcs' }
    // The look-up took longer than the wait for the slot. Messages that were sent together after it would exceed the rate.
    const isLate = capability === 'unknown' && entry.slotAt > 0 && performance.now() > entry.slotAt
    return isLate ? { is: 'not-tried', afterMs: 0 } : undefined
  }
}

/**
 * Each account and agent has one look-up at a time, so that a slow network or the numbers of one account hold up no other. Numbers that are
 * wanted meanwhile share the next look-up, and need none if the look-up before read ahead.
 */
function createLookUp({ pool, carrier, erased, logger, metrics }: Options): LookUp {
  const lookUps = new Map<string, (wanted: Wanted) => Promise<boolean | undefined>>()

  return async ({ accountId, agentId, messageId }, recipient) => {
    const lookUp = lookUps.getOrInsertComputed(`${accountId} ${agentId}`, () => createFor(accountId, agentId))
    return await lookUp({ messageId, recipient }).catch(() => undefined)
  }

  function createFor(accountId: number, agentId: string) {
    let pausedUntil = 0
    return createBatcher(
      async (wanted: Wanted[]) => {
        if (performance.now() < pausedUntil) return wanted.map(() => undefined)
        const known = await find(accountId, agentId, wanted).catch((error: unknown) => {
          logger[isUnavailable(error) ? 'warn' : 'error']({ carrier: carrier.name, err: error }, 'failed to look up numbers; will try RCS')
          return new Map<string, boolean>()
        })
        if (wanted.some(({ recipient }) => !known.has(recipient))) pausedUntil = performance.now() + PAUSE_MS
        return wanted.map(({ recipient }) => known.get(recipient))
      },
      { maxItems: BATCH_SIZE },
    )
  }

  async function find(accountId: number, agentId: string, wanted: Wanted[]): Promise<Map<string, boolean>> {
    // The look-up before, or another process, may have asked by now.
    const known = await readKnown(pool, agentId, [...new Set(wanted.map(({ recipient }) => recipient))])
    const missing = wanted.filter(({ recipient }) => !known.has(recipient))
    const [first] = missing
    if (first === undefined) return known
    const ahead = await readAhead(pool, erased, accountId, first.messageId)
    const askedAt = performance.now()
    const phones = [...new Set([...missing.map(({ recipient }) => recipient), ...ahead])]
    const said = (await carrier.reach(agentId, phones, LATE_MS, TIMEOUT_MS)).flatMap(saidBy)
    const reachable = said.filter((each) => each.reachable).length
    metrics.countLookUps(carrier.name, 'reachable', reachable)
    metrics.countLookUps(carrier.name, 'unreachable', said.length - reachable)
    metrics.countLookUps(carrier.name, 'unknown', phones.length - said.length)
    await storeCapabilities(pool, erased, { agentId, accountId, carrier: carrier.name, askedMsAgo: performance.now() - askedAt }, said)
    for (const { phone, reachable } of said) known.set(phone, reachable)
    return known
  }
}

/** If the network denies the agent, it says nothing about the number, so the result must not be cached. */
function saidBy({ recipient, reachable, isDenied }: Reach) {
  return reachable === undefined || isDenied ? [] : [{ phone: recipient, reachable }]
}
