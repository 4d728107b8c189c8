import type { Message, Pdu } from 'smpp'
import type { SmsSegment } from '../phones/messages.ts'
import { STATUS } from './status.ts'
import { timeOf } from './times.ts'

/** A valid submit_sm. */
export type Submission = {
  phone: string
  sender: string
  text: string
  segment: SmsSegment | undefined
  expiresAt: number | null
  /** The requested time of delivery, if it is not at once. */
  scheduledAt: number | null
  registered: number
  /** The addresses, which the receipt swaps. */
  addresses: { source: Address; destination: Address }
}
export type Address = { addr: string; ton: number; npi: number }

const LONGEST_SHORT_MESSAGE = 254
const LONGEST_ADDRESS = 20
const TON_ALPHANUMERIC = 5
const UDH_PRESENT = 0x40
// Receipts and acknowledgements, which only the SMSC sends.
const MESSAGE_TYPE_BITS = 0x3c
const UCS2 = 8
// The elements of a header that number the segments of a message.
const ONE_OCTET_REFERENCE = 0x00
const TWO_OCTET_REFERENCE = 0x08
// The size of one SMS.
const AIR_OCTETS = 140
const AIR_SEPTETS = 160

const NAME = /^(?=.*[A-Za-z])[A-Za-z0-9 \-_.&+]{1,11}$/
const KNOWN_CODINGS = new Set([0, 1, 3, 4, 8])
const KNOWN_TONS = new Set([0, 1, 2, 3, 4, 5, 6])
const KNOWN_NPIS = new Set([0, 1, 3, 4, 6, 8, 9, 10, 14, 18])

/** The submission, or the command_status that refuses it. */
export function readSubmission(pdu: Pdu): Submission | number {
  const { short_message: shortMessage, data_coding: dataCoding = 0, esm_class: esmClass = 0 } = pdu
  // The package omits the missing fields of a truncated PDU; short_message is the last field.
  if (shortMessage === undefined) return STATUS.INVCMDLEN
  const source = address(pdu.source_addr, pdu.source_addr_ton, pdu.source_addr_npi)
  const destination = address(pdu.destination_addr, pdu.dest_addr_ton, pdu.dest_addr_npi)
  const body = bodyOf(shortMessage, pdu.message_payload)
  const wrong = sourceProblem(source) ?? destinationProblem(destination) ?? headerProblem(esmClass, body) ?? lengthProblem(pdu, body)
  if (wrong !== undefined) return wrong
  if (!KNOWN_CODINGS.has(dataCoding)) return STATUS.SUBMITFAIL
  const segment = segmentOf(pdu, body)
  if (segment === 'wrong') return STATUS.INVESMCLASS
  const scheduledAt = futureTime(pdu.schedule_delivery_time)
  if (scheduledAt === undefined) return STATUS.INVSCHED
  const expiresAt = futureTime(pdu.validity_period)
  if (expiresAt === undefined) return STATUS.INVEXPIRY
  return {
    phone: `+${destination.addr}`,
    sender: source.addr,
    text: typeof body.message === 'string' ? body.message : body.message.toString('hex'),
    segment,
    expiresAt,
    scheduledAt,
    registered: pdu.registered_delivery ?? 0,
    addresses: { source, destination },
  }
}

const bodyOf = (short: Message, payload = short): Message => (short.octets ? short : payload)

const address = (addr = '', ton = 0, npi = 0): Address => ({ addr, ton, npi })

function sourceProblem({ addr, ton, npi }: Address): number | undefined {
  if (!KNOWN_TONS.has(ton)) return STATUS.INVSRCTON
  if (!KNOWN_NPIS.has(npi)) return STATUS.INVSRCNPI
  const right = ton === TON_ALPHANUMERIC ? NAME.test(addr) : /^\d+$/.test(addr) && addr.length <= LONGEST_ADDRESS
  return right ? undefined : STATUS.INVSRCADR
}

function destinationProblem({ addr, ton, npi }: Address): number | undefined {
  if (!KNOWN_TONS.has(ton) || ton === TON_ALPHANUMERIC) return STATUS.INVDSTTON
  if (!KNOWN_NPIS.has(npi)) return STATUS.INVDSTNPI
  return /^[1-9]\d{6,14}$/.test(addr) ? undefined : STATUS.INVDSTADR
}

function headerProblem(esmClass: number, body: Message): number | undefined {
  const lacksHeader = (esmClass & UDH_PRESENT) !== 0 && body.udh === undefined
  return (esmClass & MESSAGE_TYPE_BITS) !== 0 || lacksHeader || body.udh?.some(isWrongElement) ? STATUS.INVESMCLASS : undefined
}

/** An element that numbers segments and has a wrong length. An element has its type, its length and that many octets. */
const isWrongElement = (element: Buffer): boolean =>
  (element[0] === ONE_OCTET_REFERENCE && element.length !== 5) || (element[0] === TWO_OCTET_REFERENCE && element.length !== 6)

function lengthProblem(pdu: Pdu, body: Message): number | undefined {
  const { short_message: short, message_payload: payload, data_coding: dataCoding = 0 } = pdu
  if ((short?.octets ?? 0) > LONGEST_SHORT_MESSAGE || (short?.octets && payload?.octets)) return STATUS.INVMSGLEN
  const octets = body.octets ?? 0
  const header = headerOctets(body)
  if (dataCoding === UCS2 && (octets - header) % 2 !== 0) return STATUS.INVMSGLEN
  if (header === 0 && pdu.sar_msg_ref_num === undefined) return undefined
  // A segment is sent as it is, so it must fit. Each GSM character takes an octet here and seven bits over the air.
  const packed = dataCoding === 0 || dataCoding === 1
  const fits = packed ? Math.ceil((header * 8) / 7) + (octets - header) <= AIR_SEPTETS : octets <= AIR_OCTETS
  return fits ? undefined : STATUS.INVMSGLEN
}

const headerOctets = ({ udh }: Message): number => (udh === undefined ? 0 : 1 + udh.reduce((sum, element) => sum + element.length, 0))

/** From the header of the message, with a reference of one octet or two, or from the three TLVs. */
function segmentOf(pdu: Pdu, body: Message): SmsSegment | undefined | 'wrong' {
  let segment: SmsSegment | undefined
  for (const element of body.udh ?? []) {
    if (element[0] === ONE_OCTET_REFERENCE) {
      segment = { reference: element.readUInt8(2), total: element.readUInt8(3), number: element.readUInt8(4) }
    }
    if (element[0] === TWO_OCTET_REFERENCE) {
      segment = { reference: element.readUInt16BE(2), total: element.readUInt8(4), number: element.readUInt8(5) }
    }
  }
  if (pdu.sar_msg_ref_num !== undefined) {
    segment = { reference: pdu.sar_msg_ref_num, total: pdu.sar_total_segments ?? 0, number: pdu.sar_segment_seqnum ?? 0 }
  }
  if (segment !== undefined && (segment.number < 1 || segment.number > segment.total)) return 'wrong'
  return segment
}

/** Null if there is none; undefined if it is invalid or in the past. */
function futureTime(text: string | undefined): number | null | undefined {
  if (text === undefined || text === '') return null
  const at = timeOf(text)
  return at !== undefined && at > Date.now() ? at : undefined
}
