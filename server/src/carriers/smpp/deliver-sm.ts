import { hash, randomUUID } from 'node:crypto'
import { decodeGsm7 } from '../../sms/gsm7.ts'
import type { CarrierEvent } from '../carrier.ts'
import { storableText } from '../storable-text.ts'
import { MAX_ID_LENGTH, readingsOf } from './message-ids.ts'
import { type PduOf, type ShortMessage, TLV, type Tlvs } from './pdu.ts'

type DeliverSm = PduOf<'deliver_sm'>
type SmsEventKind = 'sms-delivered' | 'sms-failed' | 'sms-underway'

const HAS_HEADER = 0x40
const MESSAGE_TYPE = 0x3c
const RECEIPT = 0x04
const INTERMEDIATE = 0x20

// The state is a number in the optional field and a word in the text. The specification calls ACCEPTD final, but networks send it when they
// accept a message, and another receipt later. UNKNOWN means that the network lost track of the message: not a failure, so nothing changes.
const STATES: readonly (readonly [number: number, word: string, kind: SmsEventKind])[] = [
  [0, 'SCHEDULED', 'sms-underway'],
  [1, 'ENROUTE', 'sms-underway'],
  [2, 'DELIVRD', 'sms-delivered'],
  [3, 'EXPIRED', 'sms-failed'],
  [4, 'DELETED', 'sms-failed'],
  [5, 'UNDELIV', 'sms-failed'],
  [6, 'ACCEPTD', 'sms-underway'],
  [7, 'UNKNOWN', 'sms-underway'],
  [8, 'REJECTD', 'sms-failed'],
  [9, 'SKIPPED', 'sms-failed'],
]
const WORDS_BY_NUMBER = new Map(STATES.map(([number, word]) => [number, word]))
const KINDS_BY_WORD = new Map(STATES.map(([, word, kind]) => [word, kind]))
// Full spellings, which some networks use in the text.
for (const [word, kind] of [
  ['DELIVERED', 'sms-delivered'],
  ['UNDELIVERABLE', 'sms-failed'],
  ['UNDELIVERED', 'sms-failed'],
  ['REJECTED', 'sms-failed'],
  ['FAILED', 'sms-failed'],
  ['ACCEPTED', 'sms-underway'],
] as const) {
  KINDS_BY_WORD.set(word, kind)
}

/** Turns a deliver_sm into an event: a receipt or a reply. Every PDU becomes an event, so that it can always be acknowledged. */
export function eventOf(pdu: DeliverSm, carrier: string): CarrierEvent {
  const phone = internationalNumber(pdu.source)
  // The dates in a receipt's text have an unknown time zone, so an event's time is when it arrives.
  const common = { carrier, phone, occurredAt: new Date() }
  const octets = messageOctets(pdu)
  const type = pdu.esmClass & MESSAGE_TYPE
  const fields = parseReceiptText(receiptText(pdu.dataCoding, octets))
  const marked = type === RECEIPT || type === INTERMEDIATE
  if (!marked && !looksLikeReceipt(pdu.tlvs, fields)) {
    const senderNumber = pdu.destination.replace(/^\+/, '')
    return {
      ...common,
      eventId: `reply-${randomUUID()}`,
      kind: 'wrote',
      senderNumber,
      text: storableText(decodeText(pdu.dataCoding, octets)),
    }
  }
  const eventId = `receipt-${fingerprint(pdu, octets)}`
  const carrierMessageIds = receiptedIds(pdu.tlvs, fields)
  if (carrierMessageIds.length === 0) return { ...common, eventId, kind: 'unknown', description: 'an SMS receipt without an id' }
  const word = stateWord(pdu.tlvs, fields)
  const kind = type === INTERMEDIATE ? 'sms-underway' : (KINDS_BY_WORD.get(word) ?? 'sms-underway')
  return { ...common, eventId, kind, carrierMessageIds, detail: describeState(word, pdu.tlvs, fields) }
}

/** Some networks send receipts as ordinary messages. A phone that forges one can only affect messages to itself. */
function looksLikeReceipt(tlvs: Tlvs, fields: ReceiptFields): boolean {
  if (tlvs.has(TLV.receiptedMessageId) && tlvs.has(TLV.messageState)) return true
  return fields.first === 'id' && fields.values.get('id') !== '' && KINDS_BY_WORD.has(fields.values.get('stat')?.toUpperCase() ?? '')
}

function receiptedIds(tlvs: Tlvs, { values }: ReceiptFields): string[] {
  const ids = [cString(tlvs.get(TLV.receiptedMessageId)), values.get('id') ?? ''].filter((id) => id !== '' && id.length <= MAX_ID_LENGTH)
  return [...new Set([...ids, ...ids.flatMap(readingsOf)])]
}

function stateWord(tlvs: Tlvs, { values }: ReceiptFields): string {
  const word = WORDS_BY_NUMBER.get(tlvs.get(TLV.messageState)?.[0] ?? Number.NaN)
  return word ?? values.get('stat')?.toUpperCase() ?? ''
}

/** `DELIVRD`, `UNDELIV, error 027`, `UNDELIV, network error 3:1027`. */
function describeState(word: string, tlvs: Tlvs, { values }: ReceiptFields): string {
  const parts = [word || 'no state']
  const error = values.get('err') ?? ''
  if (error !== '' && !/^0+$/.test(error)) parts.push(`error ${error}`)
  const networkError = tlvs.get(TLV.networkErrorCode)
  if (networkError?.length === 3) parts.push(`network error ${networkError[0]}:${networkError.readUInt16BE(1)}`)
  return parts.join(', ')
}

type ReceiptFields = { first: string; values: Map<string, string> }
const FIELD = /(?<![^\s,;])(id|sub|dlvrd|submit[ _]?date|done[ _]?date|stat|err|text):/gi

/** Each field may be missing, empty or in capitals. `text` is the last field and free text: ignore anything in it that looks like a field. */
function parseReceiptText(text: string): ReceiptFields {
  const values = new Map<string, string>()
  let first = ''
  let name = ''
  let from = 0
  for (const match of text.matchAll(FIELD)) {
    if (name === '') first = match.index === text.search(/\S/) ? (match[1] as string).toLowerCase() : ''
    else keepFirst(values, name, text.slice(from, match.index))
    name = (match[1] as string).toLowerCase()
    from = match.index + match[0].length
    if (name === 'text') return { first, values }
  }
  if (name !== '') keepFirst(values, name, text.slice(from))
  return { first, values }
}

/** A value is one word, possibly quoted. What follows it may be a field that only this network uses. */
function keepFirst(values: Map<string, string>, name: string, value: string): void {
  if (!values.has(name)) values.set(name, (value.trim().split(/[\s,;]/, 1)[0] as string).replaceAll('"', ''))
}

/** Reads a receipt as UTF-16 or Latin-1, never as GSM-7: ids have characters such as `_`, which have another code in GSM-7. */
function receiptText(dataCoding: number, octets: Buffer): string {
  const text = dataCoding === 8 ? decodeText(dataCoding, octets) : octets.toString('latin1')
  // Some networks end the text with a NUL, as in a C-octet string.
  return storableText(text.split('\0', 1)[0] as string)
}

/** The message without its header. Read from message_payload if short_message is empty. */
function messageOctets({ shortMessage, tlvs, esmClass }: ShortMessage & { tlvs: Tlvs }): Buffer {
  const octets = shortMessage.length > 0 ? shortMessage : (tlvs.get(TLV.messagePayload) ?? shortMessage)
  const headerOctets = (esmClass & HAS_HEADER) === 0 || octets.length === 0 ? 0 : 1 + (octets[0] as number)
  return octets.subarray(headerOctets)
}

function decodeText(dataCoding: number, octets: Buffer): string {
  if (dataCoding === 8) {
    return Buffer.from(octets.subarray(0, octets.length & ~1))
      .swap16()
      .toString('utf16le')
  }
  if (dataCoding === 1 || dataCoding === 3) return octets.toString('latin1')
  return decodeGsm7(octets)
}

/** `+` and digits; empty if the address is not a number. No country code begins with a zero: 00 is the prefix for international calls. */
function internationalNumber(address: string): string {
  const digits = /^(?:\+|00)?([0-9]+)$/.exec(address)?.[1]
  return digits === undefined ? '' : `+${digits}`
}

/**
 * Identifies a receipt: a repeated receipt has the same fingerprint. It covers the whole receipt with its dates, because networks reuse ids. A
 * receipt that is mistaken for an old one would be lost, but processing a receipt twice does no harm.
 */
function fingerprint(pdu: DeliverSm, octets: Buffer): string {
  const tlvs = [TLV.receiptedMessageId, TLV.messageState, TLV.networkErrorCode].map((tag) => pdu.tlvs.get(tag)?.toString('latin1') ?? null)
  return hash('sha256', JSON.stringify([pdu.source, pdu.destination, pdu.esmClass, octets.toString('latin1'), tlvs]), 'base64url')
}

/** Reads a C-octet string. Some networks omit the final NUL. */
function cString(octets: Buffer | undefined): string {
  return octets?.toString('latin1').split('\0', 1)[0] ?? ''
}
