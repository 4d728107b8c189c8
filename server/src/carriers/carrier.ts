import type { MessageContent } from '../content/content.ts'

// The one seam: what the service asks of a network, and what a network tells the service. Nothing outside of carriers/ knows which
// network it is, and nothing inside knows where a message came from.

/** Why a network refused a message for good. One row each: the failures that callers read, the reports and the docs come from here. */
export const REFUSALS = {
  NOT_REACHABLE: 'The number can’t be reached by RCS: it has none, it is switched off, or the agent is not launched on its network.',
  REJECTED: 'The network refused the message.',
  INVALID_RECIPIENT: 'The network does not take the recipient’s number.',
  INVALID_SENDER: 'The network does not take the sender.',
  UNDELIVERABLE: 'The network gave the message up.',
} as const satisfies Record<string, string>
export type Refusal = keyof typeof REFUSALS

/**
 * What became of a request to a network. `detail` is the network's own words, for the sender of the message: it may quote the message, so
 * it never reaches a log.
 */
export type Outcome =
  /** The network has it. `carrierMessageId` is what its receipts will call it. */
  | { is: 'sent'; carrierMessageId: string }
  /** Not now and not later. */
  | { is: 'refused'; reason: Refusal; detail: string }
  /** Nothing was asked: the network is given time to recover. */
  | { is: 'not-asked'; afterMs: number }
  /** It did not happen. */
  | { is: 'again'; afterMs: number; detail: string }
  /** It may have happened: the answer was lost. By RCS it is safe to repeat, since our id is the network's; an SMS is never repeated. */
  | { is: 'unknown'; afterMs: number; detail: string }
  /** It was not sent, since by this machine's clock it has expired; whether it has is for the database to say. Of an SMS only: RCS messages
   *  carry their expiry to the network. */
  | { is: 'expired' }

export type RevokeOutcome =
  /** The network took the request. Whether the message is gone, only the events that follow tell. */
  | { is: 'asked' }
  /** It is delivered, or expired, or was never there. */
  | { is: 'too-late' }
  | Extract<Outcome, { is: 'refused' | 'not-asked' | 'again' | 'unknown' }>

/** What a message is for. Networks allow each only from agents that are launched for it, and some of them only at certain hours. */
export type Traffic = 'AUTHENTICATION' | 'TRANSACTION' | 'PROMOTION' | 'SERVICEREQUEST' | 'ACKNOWLEDGEMENT'

export type RcsMessage = {
  /** A UUID, and the network's id as well: it ignores a second message with the same one. */
  messageId: string
  agentId: string
  /** `+` and digits. */
  recipient: string
  content: MessageContent
  traffic: Traffic
  expiresAt: Date
}

/** Whether a number can be reached, as known at `checkedAt`. Undefined: the network did not say. */
export type Reach = { recipient: string; reachable: boolean | undefined; checkedAt: Date }

export type RcsCarrier = {
  name: string
  /** No call takes longer. Whoever leases a message for sending must hold it longer than this. */
  longestCallMs: number
  /** How many calls it makes at once; further ones wait for their turn, which counts into the time above. */
  concurrency: number
  /** How many messages the network takes; for whoever paces them. */
  messagesPerSecond: number | undefined
  messagesPerSecondPerAgent: number | undefined
  /** For how long messages of this agent would only be told to come again, at the least: they need not be claimed meanwhile. */
  pausedForMs: (agentId: string) => number
  /** Gets what the first message would have to wait for, and says in the log whether the network can be used. */
  connect: () => Promise<void>
  send: (message: RcsMessage) => Promise<Outcome>
  /** Asks the network to forget a message that is not delivered yet. */
  revoke: (message: Pick<RcsMessage, 'messageId' | 'agentId' | 'recipient'>) => Promise<RevokeOutcome>
  /** In the order asked. Answers from memory where it knows one no older than `maxAgeMs`. */
  reach: (agentId: string, recipients: string[], maxAgeMs: number) => Promise<Reach[]>
  close: () => Promise<void>
}

/** One SMS as it goes over the air. A longer text is several of them, which the phone puts together again. */
export type SmsPart = {
  /** A name of up to 11 characters with a letter in it, or digits. */
  sender: string
  /** `+` and digits. */
  recipient: string
  encoding: 'GSM7' | 'UCS2'
  text: string
  /** Where it is one of several: the same reference (0 to 255) in all of them, numbered from 1. */
  concatenation?: { reference: number; total: number; number: number }
  expiresAt: Date
}

export type SmsCarrier = {
  name: string
  longestCallMs: number
  concurrency: number
  messagesPerSecond: number | undefined
  pausedForMs: () => number
  submit: (part: SmsPart) => Promise<Outcome>
  close: () => Promise<void>
}

/** Something that a network reports: a receipt, or what the recipient did. It may come first, twice, late, out of order or never. */
export type CarrierEvent = {
  /** The carrier's name. */
  carrier: string
  /** The same where the network repeats itself; unique among the events of one carrier. But what is written by SMS has no id: repeated, it is another. */
  eventId: string
  occurredAt: Date
  /** The recipient of our messages, `+` and digits; empty where the event is not about one. */
  phone: string
} & CarrierEventKind

export type CarrierEventKind =
  /** `expired`: the network has revoked it at its expiry. `expiry-failed`: it could not, so the message may yet be delivered. */
  | { kind: 'delivered' | 'read' | 'expired' | 'expiry-failed'; agentId: string; messageId: string }
  | { kind: 'tapped'; agentId: string; messageId: string; buttonId: string; text: string | undefined }
  /** A reply by RCS has the agent it was written to; one by SMS the number. */
  | { kind: 'wrote'; agentId?: string; number?: string; text: string }
  | { kind: 'shared-location'; agentId: string; latitude: number; longitude: number }
  | { kind: 'sent-file'; agentId: string; url: string; mimeType: string; name: string | undefined }
  | { kind: 'subscribed' | 'unsubscribed'; agentId: string }
  | { kind: 'typing'; agentId: string }
  | { kind: 'agent-launch'; agentId: string; state: string }
  /**
   * `carrierMessageIds`: the id as it came and, since some networks write it in hexadecimal in one place and in decimal in the other, as it
   * may have been meant. The first that is an SMS to this phone tells which one it was.
   */
  | { kind: 'sms-delivered' | 'sms-failed' | 'sms-underway'; carrierMessageIds: string[]; detail: string }
  /** Of a kind that we don't know. Networks add some without notice. */
  | { kind: 'unknown'; description: string }

/** Returns once the events are safe; only then is the network told that they have arrived. */
export type OnEvents = (events: CarrierEvent[]) => Promise<void>
