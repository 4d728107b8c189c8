import { isDeepStrictEqual } from 'node:util'
import type { CarrierEvent, RcsCarrier, RcsMessage, RevokeResult, SendResult } from '../../src/carriers/carrier.ts'

/** What becomes of the next request to the network. */
export const ANSWERS = ['not asked', 'taken', 'taken, answer lost', 'lost', 'again', 'refused'] as const
export type Answer = (typeof ANSWERS)[number]

/** `stray`: what a receipt says about where it comes from. Only those that say the truth may move a message. */
export type Receipt = {
  kind: 'delivered' | 'read' | 'expired' | 'expiry-failed'
  stray: 'no' | 'phone' | 'carrier'
  /** How far the network's clock is off. */
  skewMs: number
}

const SOON_MS = 1_000

export type Network = ReturnType<typeof createNetwork>

/**
 * The network, which is outside of us and so the one thing that is played here: behind the carriers' seam, a ledger as RBM keeps it. The
 * first message with an id is kept, and the same id again is answered as if it were new and changes nothing.
 */
export function createNetwork(name: string) {
  const ledger = new Map<string, RcsMessage>()
  const revokeAsked = new Set<string>()
  const revokeRefused = new Set<string>()
  const changed: string[] = []
  const told = new Map<string, CarrierEvent>()
  let answer: Answer = 'taken'

  function keep(message: RcsMessage): void {
    const kept = ledger.get(message.messageId)
    if (kept === undefined) ledger.set(message.messageId, message)
    else if (!isDeepStrictEqual(withoutExpiry(message), withoutExpiry(kept))) changed.push(message.messageId)
  }

  async function send(message: RcsMessage): Promise<SendResult> {
    if (answer === 'not asked') return { is: 'not-tried', afterMs: SOON_MS }
    if (answer === 'again') return { is: 'retry', afterMs: SOON_MS, detail: 'busy' }
    if (answer === 'lost') return { is: 'unknown', afterMs: SOON_MS, detail: 'no answer' }
    if (answer === 'refused' && !ledger.has(message.messageId)) return { is: 'failed', reason: 'NOT_REACHABLE', detail: 'no RCS' }
    keep(message)
    if (answer === 'taken, answer lost') return { is: 'unknown', afterMs: SOON_MS, detail: 'no answer' }
    return { is: 'sent', carrierMessageId: message.messageId }
  }

  async function revoke({ messageId }: Pick<RcsMessage, 'messageId'>): Promise<RevokeResult> {
    if (answer === 'not asked') return { is: 'not-tried', afterMs: SOON_MS }
    if (answer === 'again') return { is: 'retry', afterMs: SOON_MS, detail: 'busy' }
    if (answer === 'lost') return { is: 'unknown', afterMs: SOON_MS, detail: 'no answer' }
    if (!ledger.has(messageId)) return { is: 'too-late' }
    if (answer === 'refused') {
      revokeRefused.add(messageId)
      return { is: 'failed', reason: 'REJECTED', detail: 'not allowed' }
    }
    revokeAsked.add(messageId)
    if (answer === 'taken, answer lost') return { is: 'unknown', afterMs: SOON_MS, detail: 'no answer' }
    return { is: 'accepted' }
  }

  const carrier: RcsCarrier = {
    name,
    longestCallMs: 26_000,
    concurrency: 16,
    messagesPerSecond: undefined,
    messagesPerSecondPerAgent: undefined,
    pausedForMs: () => 0,
    connect: async () => {},
    send,
    revoke,
    reach: async () => [],
    close: async () => {},
  }

  /** The same one again where it was told before: a network repeats itself word for word. */
  function receipt(message: RcsMessage, { kind, stray, skewMs }: Receipt): CarrierEvent {
    const { messageId, agentId, recipient } = message
    const eventId = [messageId, kind, stray, skewMs].join(' ')
    const event = told.get(eventId) ?? {
      carrier: stray === 'carrier' ? `not ${name}` : name,
      eventId,
      occurredAt: new Date(Date.now() + skewMs),
      phone: stray === 'phone' ? '+48999999999' : recipient,
      kind,
      agentId,
      messageId,
    }
    told.set(eventId, event)
    return event
  }

  return {
    carrier,
    /** By the id of the message. */
    ledger: ledger as ReadonlyMap<string, RcsMessage>,
    revokeAsked: revokeAsked as ReadonlySet<string>,
    /** Ids that were used again, for another message. */
    changed: changed as readonly string[],
    revokeRefused: revokeRefused as ReadonlySet<string>,
    answerWith: (next: Answer) => {
      answer = next
    },
    receipt,
  }
}

/** The expiry is moved to make time pass. */
function withoutExpiry({ expiresAt: _, ...message }: RcsMessage) {
  return message
}
