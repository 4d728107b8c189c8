/** The statuses of a message. `SENDING` is not stored: it is an accepted message that a worker has claimed. */
export const STATUSES = ['ACCEPTED', 'SENDING', 'SENT', 'DELIVERED', 'READ', 'FAILED', 'EXPIRED'] as const
export type Status = (typeof STATUSES)[number]

/** The allowed moves between statuses. The guards of all statements that move a message, and the model of the tests, are made from this. */
export const MOVES = {
  SENDING: ['ACCEPTED'],
  SENT: ['ACCEPTED', 'SENDING'],
  // A receipt can be quicker than the response to its message.
  DELIVERED: ['ACCEPTED', 'SENDING', 'SENT'],
  READ: ['ACCEPTED', 'SENDING', 'SENT', 'DELIVERED'],
  FAILED: ['ACCEPTED', 'SENDING', 'SENT'],
  EXPIRED: ['ACCEPTED', 'SENDING', 'SENT'],
} as const satisfies Partial<Record<Status, readonly Status[]>>

/** In SQL: whether a stored status may become another one. */
const guardOf =
  <Status extends string>(moves: Record<Status, readonly string[]>) =>
  (status: Status, column: string) =>
    `${column} in (${moves[status].map((from) => `'${from}'`).join(', ')})`

export const mayBecome = guardOf(MOVES)

/**
 * A lower number comes first. Somebody waits for a message that a caller sends by itself; nobody waits for a campaign. To revoke a message late
 * is useless, but new messages come first.
 */
export const PRIORITIES = { transactional: 0, revoke: 1, campaign: 2 } as const

/** The campaign of an entry that has none: null would not compare. */
export const NO_CAMPAIGN = '00000000-0000-0000-0000-000000000000'

/** The statuses of the SMS that a message falls back to. */
export const FALLBACK_STATUSES = ['WAITING', 'SCHEDULED', 'SENT', 'DELIVERED', 'FAILED', 'NOT_NEEDED', 'SKIPPED'] as const
export type FallbackStatus = (typeof FALLBACK_STATUSES)[number]

/** If the RCS message is delivered before the SMS is scheduled, nothing is stored: the SMS is WAITING, and shown as NOT_NEEDED. */
export const FALLBACK_MOVES = {
  SCHEDULED: ['WAITING'],
  SENT: ['SCHEDULED'],
  DELIVERED: ['SENT'],
  FAILED: ['SCHEDULED', 'SENT'],
  NOT_NEEDED: ['SCHEDULED'],
  SKIPPED: ['WAITING', 'SCHEDULED'],
} as const satisfies Partial<Record<FallbackStatus, readonly FallbackStatus[]>>

export const fallbackMayBecome = guardOf(FALLBACK_MOVES)
