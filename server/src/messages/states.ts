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

/** As a condition on a stored status. */
export function mayBecome(status: keyof typeof MOVES, column: string): string {
  return `${column} in (${MOVES[status].map((from) => `'${from}'`).join(', ')})`
}

/**
 * Higher ones wait for lower ones. What a caller sends by itself is waited for by somebody; a campaign is not. Taking a message back is
 * worth nothing if it comes late, but it comes after what is new.
 */
export const PRIORITIES = { transactional: 0, revoke: 1, campaign: 2 } as const

/** Where those who hand messages to the networks are woken up. */
export const QUEUE_CHANNEL = 'herald_queue'
