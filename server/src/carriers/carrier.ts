import type { MessageContent } from '../content/content.ts'
import type { Refusal } from './errors.ts'

// The interface between Herald and a network: the calls that Herald makes, and the events that the network reports. Code outside carriers/ does
// not know which network it talks to; code inside does not know where a message came from.

/**
 * The result of a send. `detail` is the network's own text, for the sender of the message. It may quote the message, so it is never logged.
 */
export type SendResult =
  /** The network accepted it. Its receipts will refer to it by `carrierMessageId`. */
  | { is: 'sent'; carrierMessageId: string }
  /** The network refused it permanently. `hasNoRcs`: because of the number, and not because it denies the agent. */
  | { is: 'failed'; reason: Refusal; detail: string; hasNoRcs?: true }
  /** The network did not accept it; try again. */
  | { is: 'retry'; afterMs: number; detail: string }
  /**
   * The response was lost, so the network may have accepted it. An RCS message is safe to resend, since the network ignores a second
   * message with the same id. An SMS is never resent.
   */
  | { is: 'unknown'; afterMs: number; detail: string }
  /** No request was made: the carrier pauses requests after failures. */
  | { is: 'not-tried'; afterMs: number }
  /**
   * For SMS only. It was not sent, because it has expired by this machine's clock; the database decides whether it really has. RCS messages
   * carry their expiry to the network.
   */
  | { is: 'expired' }

/** The result of a request to revoke a message. */
export type RevokeResult =
  /** The network accepted the request. Only later events show whether it revoked the message. */
  | { is: 'accepted' }
  /** The message is already delivered or expired, or the network does not know it. */
  | { is: 'too-late' }
  | Exclude<SendResult, { is: 'sent' | 'expired' }>

/** The purpose of a message. A network allows a purpose only to agents launched for it, and some purposes only at certain hours. */
export type Traffic = 'AUTHENTICATION' | 'TRANSACTION' | 'PROMOTION' | 'SERVICEREQUEST' | 'ACKNOWLEDGEMENT'

export type RcsMessage = {
  /** A UUID. It is also the network's id: the network ignores a second message with the same one. */
  messageId: string
  agentId: string
  /** `+` and digits. */
  recipient: string
  content: MessageContent
  traffic: Traffic
  expiresAt: Date
}

/**
 * Whether a number can be reached by RCS, and with which features, as of `checkedAt`. Undefined: the network did not say. `isDenied`: it is not
 * reachable because the network denies the agent, which says nothing about the number.
 */
export type Reach = { recipient: string; reachable: boolean | undefined; features: string[] | undefined; checkedAt: Date; isDenied?: true }

/**
 * How well a network can be used now. `circuit`: open if requests are paused after failures, for at least one agent, and none has succeeded since.
 * `sessions`: connections that are bound, for SMPP; null for a network without sessions.
 */
export type CarrierHealth = { circuit: 'closed' | 'open'; sessions: number | null }

export type RcsCarrier = {
  name: string
  /** The longest that one call can take. A lease on a message must be longer. */
  longestCallMs: number
  /** The maximum number of concurrent calls. Further calls wait, and the wait counts towards `longestCallMs`. */
  concurrency: number
  /** The network's rate limits, which the worker keeps. */
  messagesPerSecond: number | undefined
  messagesPerSecondPerAgent: number | undefined
  /** The minimum time until a message of this agent can be sent. A claim before that would only postpone messages. */
  pausedForMs: (agentId: string) => number
  /** Gets an access token ahead of the first message, and logs whether the network can be used. */
  connect: () => Promise<void>
  health: () => CarrierHealth
  send: (message: RcsMessage) => Promise<SendResult>
  /** Asks the network to revoke a message that is not delivered yet. */
  revoke: (message: Pick<RcsMessage, 'messageId' | 'agentId' | 'recipient'>) => Promise<RevokeResult>
  /**
   * Returns results in the order of `recipients`. Uses a cached result if it is at most `maxAgeMs` old. After `timeoutMs` it returns the results
   * that it has, and caches the others when they come. Never throws.
   */
  reach: (agentId: string, recipients: string[], maxAgeMs: number, timeoutMs?: number) => Promise<Reach[]>
  close: () => Promise<void>
}

/** One SMS as sent over the air. A longer text is sent as several segments, which the phone joins. */
export type SmsSegment = {
  /** A name of up to 11 characters with at least one letter, or digits. */
  sender: string
  /** `+` and digits. */
  recipient: string
  encoding: 'GSM7' | 'UCS2'
  text: string
  /** Set if the text has several segments: all have the same reference (0 to 255), and are numbered from 1. */
  concatenation?: { reference: number; total: number; number: number }
  expiresAt: Date
}

export type SmsCarrier = {
  name: string
  longestCallMs: number
  concurrency: number
  messagesPerSecond: number | undefined
  pausedForMs: () => number
  health: () => CarrierHealth
  submit: (segment: SmsSegment) => Promise<SendResult>
  close: () => Promise<void>
}

/**
 * A report from a network: a receipt, or an action of the recipient. Events may arrive before the send result, twice, late, out of order or
 * never.
 */
export type CarrierEvent = {
  /** The carrier's name. */
  carrier: string
  /**
   * Unique per carrier, and the same when the network repeats an event. An SMS reply has no id of its own, so a repeated one counts as
   * another.
   */
  eventId: string
  occurredAt: Date
  /** The recipient's number, `+` and digits; empty if the event is not about a recipient. */
  phone: string
} & CarrierEventKind

export type CarrierEventKind =
  /** `expired`: the network revoked the message at its expiry. `expiry-failed`: it could not, so the message may still be delivered. */
  | { kind: 'delivered' | 'read' | 'expired' | 'expiry-failed'; agentId: string; messageId: string }
  | { kind: 'tapped'; agentId: string; messageId: string; buttonId: string; text: string | undefined }
  /** An RCS reply has the agent that it was sent to; an SMS reply has the number that our SMS was sent from. */
  | { kind: 'wrote'; agentId?: string; senderNumber?: string; text: string }
  | { kind: 'shared-location'; agentId: string; latitude: number; longitude: number }
  | { kind: 'sent-file'; agentId: string; url: string; mimeType: string; name: string | undefined }
  | { kind: 'subscribed' | 'unsubscribed'; agentId: string }
  | { kind: 'typing'; agentId: string }
  | { kind: 'agent-launch'; agentId: string; state: string }
  /**
   * `carrierMessageIds`: the id as received, then its other readings, since some networks write it in hexadecimal in one place and in
   * decimal in another. The first one that belongs to an SMS to this phone identifies the SMS.
   */
  | { kind: 'sms-delivered' | 'sms-failed' | 'sms-underway'; carrierMessageIds: string[]; detail: string }
  /** An event of an unknown kind. Networks add kinds without notice. */
  | { kind: 'unknown'; description: string }

/** Resolves once the events are committed. Only then does the carrier acknowledge them to the network. */
export type OnEvents = (events: CarrierEvent[]) => Promise<void>
