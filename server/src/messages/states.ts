/** The statuses of a message. `SENDING` is not stored: it is an ACCEPTED message whose queue entry a worker has claimed. */
export const STATUSES = ['ACCEPTED', 'SENDING', 'SENT', 'DELIVERED', 'READ', 'FAILED', 'EXPIRED'] as const
export type Status = (typeof STATUSES)[number]

/** For each status, the statuses that may become it. The guards of all statements that move a message, and the tests' model, come from this. */
export const MOVES = {
  SENDING: ['ACCEPTED'],
  SENT: ['ACCEPTED', 'SENDING'],
  // A receipt can come before the response to the send.
  DELIVERED: ['ACCEPTED', 'SENDING', 'SENT'],
  READ: ['ACCEPTED', 'SENDING', 'SENT', 'DELIVERED'],
  FAILED: ['ACCEPTED', 'SENDING', 'SENT'],
  EXPIRED: ['ACCEPTED', 'SENDING', 'SENT'],
} as const satisfies Partial<Record<Status, readonly Status[]>>

/** In SQL: whether the status in a column may become another one. */
const guardOf =
  <Status extends string>(moves: Record<Status, readonly string[]>) =>
  (status: Status, column: string) =>
    `${column} in (${moves[status].map((from) => `'${from}'`).join(', ')})`

export const mayBecome = guardOf(MOVES)

/**
 * A lower number goes out first. Recipients may be waiting for a single message, such as a code, but not for a campaign. Revocations go before
 * campaigns, since a late one is useless.
 */
export const PRIORITIES = { transactional: 0, revoke: 1, campaign: 2 } as const

/** The statuses of the SMS that a message falls back to. */
export const FALLBACK_STATUSES = ['WAITING', 'SCHEDULED', 'SENT', 'DELIVERED', 'FAILED', 'NOT_NEEDED', 'SKIPPED'] as const
type FallbackStatus = (typeof FALLBACK_STATUSES)[number]

/** If the RCS message is delivered before the SMS is scheduled, nothing is stored: the SMS stays WAITING, and callers see NOT_NEEDED. */
const FALLBACK_MOVES = {
  SCHEDULED: ['WAITING'],
  SENT: ['SCHEDULED'],
  DELIVERED: ['SENT'],
  FAILED: ['SCHEDULED', 'SENT'],
  NOT_NEEDED: ['SCHEDULED'],
  SKIPPED: ['WAITING', 'SCHEDULED'],
} as const satisfies Partial<Record<FallbackStatus, readonly FallbackStatus[]>>

export const fallbackMayBecome = guardOf(FALLBACK_MOVES)
