import { randomUUID } from 'node:crypto'
import type { RcsCarrier } from '../carriers/carrier.ts'
import type { Reservation, Reserve } from '../messages/send-at-once.ts'
import { DEFAULT_LIFE_HOURS } from '../messages/store.ts'
import type { Entry } from './claim.ts'
import { isRated } from './rate.ts'

type Options = {
  carrier: RcsCarrier
  /** Those that are known to belong to this carrier. */
  agents: ReadonlySet<string>
  leaseMs: number
  /** Whether the account can get so many calls now, and nothing waits that new messages would overtake. */
  hasRoomFor: (accountId: number, count: number) => boolean
  begin: (accountId: number) => void
  /** For a call that is not made. */
  end: (accountId: number) => void
  /** Sends the message of an entry whose call has begun. */
  send: (entry: Entry, leasedAt: number) => Promise<void>
  /** Has to end before the worker stops. */
  add: (work: Promise<void>) => void
}

const DEFAULT_LIFE_MS = DEFAULT_LIFE_HOURS * 3_600_000

/** Reserves calls for messages that this process is about to accept, unless a rate has to be kept: turns are given out by claims. */
export function createReserve({ carrier, agents, leaseMs, hasRoomFor, begin, end, send, add }: Options): Reserve {
  return (accountId, agentId, count): Reservation | undefined => {
    if (isRated(carrier) || !agents.has(agentId) || carrier.pausedForMs(agentId) > 0 || !hasRoomFor(accountId, count)) return undefined
    // Before the statement that leases the entries, so that their lease ends no earlier than this worker assumes.
    const leasedAt = performance.now()
    const lease = randomUUID()
    for (let n = 0; n < count; n += 1) begin(accountId)
    const { promise: isOver, resolve: over } = Promise.withResolvers<void>()
    add(isOver)
    return {
      lease,
      leaseMs,
      send: (messageIds) => {
        for (let n = messageIds.length; n < count; n += 1) end(accountId)
        for (const messageId of messageIds) {
          const entry = {
            messageId,
            accountId,
            agentId,
            task: 'send' as const,
            attempts: 1,
            lease,
            turnAt: 0,
            expiresInMs: DEFAULT_LIFE_MS,
          }
          add(send(entry, leasedAt))
        }
        over()
      },
    }
  }
}
