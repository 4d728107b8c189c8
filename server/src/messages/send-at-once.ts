import type { Outcome, Submission } from './accept.ts'
import type { Announce } from './announce.ts'

/** Calls that a worker of this process reserves for new messages. The queue entries of the messages are inserted with this lease. */
export type Reservation = {
  lease: string
  leaseMs: number
  /** Sends messages whose acceptance is committed. */
  send: (messageIds: string[]) => void
  /** Ends the reservation, and frees its calls unless they were used. */
  release: () => void
}

/** Returns a reservation if a worker of this process can send `count` messages of this agent now. */
export type Reserve = (accountId: number, agentId: string, count: number) => Reservation | undefined

type Accept = (batch: Submission[]) => Promise<Outcome[]>

/**
 * Makes a function that accepts batches. Messages that a worker of this process can send now are stored with its lease, and sent without
 * NOTIFY or claim as soon as their statement has committed (messages/accept.ts). If the process dies, or never learns of the commit, a worker
 * claims them when the lease ends. Other messages are announced.
 */
export function sendingAtOnce(accept: Accept, announce: Announce, reserve: Reserve): Accept {
  return async (batch) => {
    try {
      for (const submission of batch) {
        const { accountId, agentId, recipients, window, sendAt, expiresAt } = submission
        // A message with times of its own has to be claimed: the claim compares them with the database's clock.
        submission.reserved = (window ?? sendAt ?? expiresAt) === undefined ? reserve(accountId, agentId, recipients.length) : undefined
      }
      const outcomes = await accept(batch)
      if (outcomes.some(({ is }, index) => is === 'accepted' && batch[index]?.reserved === undefined)) announce('messages')
      return outcomes
    } finally {
      for (const { reserved } of batch) reserved?.release()
    }
  }
}
