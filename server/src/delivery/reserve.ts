import { randomUUID } from 'node:crypto'
import type { RcsCarrier } from '../carriers/carrier.ts'
import type { Reservation, Reserve } from '../messages/send-at-once.ts'
import { DEFAULT_LIFE_HOURS } from '../messages/store.ts'
import type { Entry } from './claim.ts'
import { isRated } from './rate.ts'

type Options = {
  carrier: RcsCarrier
  /** Agents that belong to this carrier, as far as the worker knows. */
  agents: ReadonlySet<string>
  leaseMs: number
  /** Reserves calls if the account's share has room for them and the worker knows of no due entry that new messages would overtake. */
  reserveCalls: (accountId: number, count: number) => boolean
  /** Frees a reserved call that was not made. */
  end: (accountId: number) => void
  /** Sends the message of an entry whose call is already counted. */
  send: (entry: Entry, leasedAt: number) => Promise<void>
  /** Tracks work that the worker waits for when it stops. */
  add: (work: Promise<void>) => void
}

// Messages with a delivery window are not sent at once.
const FIRST_ATTEMPT = {
  task: 'send',
  attempts: 1,
  slotAt: 0,
  expiresInMs: DEFAULT_LIFE_HOURS * 3_600_000,
  window: null,
  nowMs: 0,
} as const

/** Reserves calls for messages that this process is about to accept. A carrier with a rate gets no reservations: only a claim takes slots. */
export function createReserve({ carrier, agents, leaseMs, reserveCalls, end, send, add }: Options): Reserve {
  return (accountId, agentId, count): Reservation | undefined => {
    if (isRated(carrier) || !agents.has(agentId) || carrier.pausedForMs(agentId) > 0) return undefined
    // Read before the statement that leases the entries, so the lease never ends earlier than this worker assumes.
    const leasedAt = performance.now()
    if (!reserveCalls(accountId, count)) return undefined
    const lease = randomUUID()
    const { promise: used, resolve: markUsed } = Promise.withResolvers<void>()
    add(used)
    let isUsed = false
    return {
      lease,
      leaseMs,
      send: (messageIds) => {
        isUsed = true
        for (const messageId of messageIds) add(send({ messageId, accountId, agentId, lease, ...FIRST_ATTEMPT }, leasedAt))
      },
      release: () => {
        if (!isUsed) for (let n = 0; n < count; n += 1) end(accountId)
        markUsed()
      },
    }
  }
}
