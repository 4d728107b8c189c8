/** What becomes of a message. `SENDING` is not stored: it is an accepted message that was taken up to be sent. */
export const STATUSES = ['ACCEPTED', 'SENDING', 'SENT', 'DELIVERED', 'READ', 'FAILED', 'EXPIRED'] as const
export type Status = (typeof STATUSES)[number]

/** From which statuses a message may come to which: the guards of all statements that move one, and the model of the tests, are made from this. */
export const MOVES = {
  SENDING: ['ACCEPTED'],
  SENT: ['ACCEPTED', 'SENDING'],
  // A receipt can be quicker than the answer to the message it is for.
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
 * Higher ones wait for lower ones. What a caller sends by itself is waited for by somebody; a campaign is not. Taking a message back is
 * worth nothing if it comes late, but it comes after what is new.
 */
export const PRIORITIES = { transactional: 0, revoke: 1, campaign: 2 } as const

/** What a queue's entry has that is of no campaign: a null would not compare. */
export const NO_CAMPAIGN = '00000000-0000-0000-0000-000000000000'

/** What becomes of the SMS that a message falls back to. */
export const FALLBACK_STATUSES = ['WAITING', 'SCHEDULED', 'SENT', 'DELIVERED', 'FAILED', 'NOT_NEEDED', 'SKIPPED'] as const
export type FallbackStatus = (typeof FALLBACK_STATUSES)[number]

/** Where the RCS message is delivered before the SMS is scheduled, nothing is stored: it is WAITING, and shown as NOT_NEEDED. */
export const FALLBACK_MOVES = {
  SCHEDULED: ['WAITING'],
  SENT: ['SCHEDULED'],
  DELIVERED: ['SENT'],
  FAILED: ['SCHEDULED', 'SENT'],
  NOT_NEEDED: ['SCHEDULED'],
  SKIPPED: ['WAITING', 'SCHEDULED'],
} as const satisfies Partial<Record<FallbackStatus, readonly FallbackStatus[]>>

export const fallbackMayBecome = guardOf(FALLBACK_MOVES)
