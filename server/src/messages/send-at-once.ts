import type { Outcome, Submission } from './accept.ts'
import type { Announce } from './announce.ts'

/** Calls that a worker of this process keeps free for new messages. Their queue entries are inserted with this lease. */
export type Reservation = {
  lease: string
  leaseMs: number
  /** Sends the messages that were accepted. Called once, with no ids if none was; that frees the calls. */
  send: (messageIds: string[]) => void
}

/** Returns a reservation if this process can send so many messages of this agent now. */
export type Reserve = (accountId: number, agentId: string, count: number) => Reservation | undefined

type Accept = (batch: Submission[]) => Promise<Outcome[]>

/**
 * Accepts batches. Messages that a worker of this process can send now are leased to it as they are stored, and sent after the commit:
 * nobody has to be told of them, and nobody has to claim them. If the process dies, the lease ends like any other. All other messages
 * are announced.
 */
export function sendingAtOnce(accept: Accept, announce: Announce, reserve: Reserve): Accept {
  return async (batch) => {
    for (const submission of batch) submission.reserved = reservationFor(submission, reserve)
    let outcomes: Outcome[] = []
    try {
      outcomes = await accept(batch)
    } finally {
      batch.forEach(({ reserved }, index) => {
        reserved?.send(acceptedIds(outcomes[index]))
      })
    }
    if (outcomes.some(({ is }, index) => is === 'accepted' && batch[index]?.reserved === undefined)) announce('messages')
    return outcomes
  }
}

function acceptedIds(outcome: Outcome | undefined): string[] {
  return outcome?.is === 'accepted' ? outcome.messageIds : []
}

/** A message with an expiry of its own is claimed: a claim compares the expiry with the database's clock. */
function reservationFor({ accountId, agentId, recipients, expiresAt }: Submission, reserve: Reserve): Reservation | undefined {
  return expiresAt === undefined ? reserve(accountId, agentId, recipients.length) : undefined
}
