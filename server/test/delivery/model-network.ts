import { isDeepStrictEqual } from 'node:util'
import type { CarrierEvent, RcsCarrier, RcsMessage } from '../../src/carriers/carrier.ts'

/** What happens to the next request to the network. */
export const RESPONSES = ['not asked', 'accepted', 'accepted, response lost', 'lost', 'again', 'refused'] as const
export type Response = (typeof RESPONSES)[number]

/** `stray`: the field of the receipt that does not match the message. Such a receipt must not move it. */
export type Receipt = {
  kind: 'delivered' | 'read' | 'expired' | 'expiry-failed'
  stray: 'no' | 'phone' | 'carrier'
  /** The error of the network's clock. */
  skewMs: number
}

const SOON_MS = 1_000
const UNKNOWN = { is: 'unknown', afterMs: SOON_MS, detail: 'no response' } as const

export type Network = ReturnType<typeof createNetwork>

/**
 * The network, the only part that is simulated here: a ledger like that of RBM. It stores the first message with an id, and responds to the
 * same id again as if it were new, without an effect.
 */
export function createNetwork(name: string) {
  const ledger = new Map<string, RcsMessage>()
  const revokeAsked = new Set<string>()
  const revokeRefused = new Set<string>()
  const changed: string[] = []
  const sentReceipts = new Map<string, CarrierEvent>()
  let response: Response = 'accepted'

  function keep(message: RcsMessage): void {
    const kept = ledger.get(message.messageId)
    if (kept === undefined) ledger.set(message.messageId, message)
    else if (!isDeepStrictEqual(withoutExpiry(message), withoutExpiry(kept))) changed.push(message.messageId)
  }

  /** The response if the request does not reach the ledger. */
  function failure() {
    if (response === 'not asked') return { is: 'not-tried', afterMs: SOON_MS } as const
    if (response === 'again') return { is: 'retry', afterMs: SOON_MS, detail: 'busy' } as const
    if (response === 'lost') return UNKNOWN
    return undefined
  }

  const send: RcsCarrier['send'] = async (message) => {
    const failed = failure()
    if (failed !== undefined) return failed
    if (response === 'refused' && !ledger.has(message.messageId)) return { is: 'failed', reason: 'NOT_REACHABLE', detail: 'no RCS' }
    keep(message)
    return response === 'accepted, response lost' ? UNKNOWN : { is: 'sent', carrierMessageId: message.messageId }
  }

  const revoke: RcsCarrier['revoke'] = async ({ messageId }) => {
    const failed = failure()
    if (failed !== undefined) return failed
    if (!ledger.has(messageId)) return { is: 'too-late' }
    if (response === 'refused') {
      revokeRefused.add(messageId)
      return { is: 'failed', reason: 'REJECTED', detail: 'not allowed' }
    }
    revokeAsked.add(messageId)
    return response === 'accepted, response lost' ? UNKNOWN : { is: 'accepted' }
  }

  const carrier: RcsCarrier = {
    name,
    longestCallMs: 26_000,
    concurrency: 16,
    messagesPerSecond: undefined,
    messagesPerSecondPerAgent: undefined,
    pausedForMs: () => 0,
    health: () => ({ circuit: 'closed', sessions: null }),
    connect: async () => {},
    send,
    revoke,
    reach: async () => [],
    close: async () => {},
  }

  /** Returns the same receipt again if there was one before: a network repeats receipts unchanged. */
  function receipt(message: RcsMessage, { kind, stray, skewMs }: Receipt): CarrierEvent {
    const { messageId, agentId, recipient } = message
    const eventId = [messageId, kind, stray, skewMs].join(' ')
    const event = sentReceipts.get(eventId) ?? {
      carrier: stray === 'carrier' ? `not ${name}` : name,
      eventId,
      occurredAt: new Date(Date.now() + skewMs),
      phone: stray === 'phone' ? '+48999999999' : recipient,
      kind,
      agentId,
      messageId,
    }
    sentReceipts.set(eventId, event)
    return event
  }

  return {
    carrier,
    /** By the id of the message. */
    ledger: ledger as ReadonlyMap<string, RcsMessage>,
    revokeAsked: revokeAsked as ReadonlySet<string>,
    /** Ids that were used again for another message. */
    changed: changed as readonly string[],
    revokeRefused: revokeRefused as ReadonlySet<string>,
    respondWith: (next: Response) => {
      response = next
    },
    receipt,
  }
}

/** Tests move the expiry instead of waiting. */
function withoutExpiry({ expiresAt: _, ...message }: RcsMessage) {
  return message
}
