import type { Message, Pdu } from 'smpp'
import { STATUS } from './status.ts'

export type Part = { reference: number; total: number; number: number }

/** A submit_sm that is right. */
export type Submission = {
  phone: string
  sender: string
  text: string
  part: Part | undefined
  expiresAt: number | null
  registered: number
  /** What the receipt turns round. */
  addresses: { source: Address; destination: Address }
}
export type Address = { addr: string; ton: number; npi: number }

const LONGEST_SHORT_MESSAGE = 254
const LONGEST_ADDRESS = 20
const TON_ALPHANUMERIC = 5
const UDH_PRESENT = 0x40
// What goes over the air in one SMS.
const AIR_OCTETS = 140
const AIR_SEPTETS = 160

const NAME = /^(?=.*[A-Za-z])[A-Za-z0-9 \-_.&+]{1,11}$/
const KNOWN_CODINGS = new Set([0, 1, 3, 4, 8])
const KNOWN_TONS = new Set([0, 1, 2, 3, 4, 5, 6])
const KNOWN_NPIS = new Set([0, 1, 3, 4, 6, 8, 9, 10, 14, 18])

/** What it says, or the command_status that refuses it. */
export function readSubmission(pdu: Pdu): Submission | number {
  const { short_message: shortMessage, data_coding: dataCoding = 0, esm_class: esmClass = 0 } = pdu
  // The package leaves out what a PDU that was cut short does not have; short_message is the last.
  if (shortMessage === undefined) return STATUS.INVCMDLEN
  const source = address(pdu.source_addr, pdu.source_addr_ton, pdu.source_addr_npi)
  const destination = address(pdu.destination_addr, pdu.dest_addr_ton, pdu.dest_addr_npi)
  const wrong = sourceProblem(source) ?? destinationProblem(destination) ?? lengthProblem(pdu)
  if (wrong !== undefined) return wrong
  if (!KNOWN_CODINGS.has(dataCoding)) return STATUS.SUBMITFAIL
  const body = bodyOf(shortMessage, pdu.message_payload)
  if ((esmClass & UDH_PRESENT) !== 0 && body.udh === undefined) return STATUS.INVESMCLASS
  const part = partOf(pdu, body)
  if (part === 'wrong') return STATUS.INVESMCLASS
  const expiresAt = expiryOf(pdu.validity_period)
  if (expiresAt === undefined) return STATUS.INVEXPIRY
  return {
    phone: `+${destination.addr}`,
    sender: source.addr,
    text: typeof body.message === 'string' ? body.message : body.message.toString('hex'),
    part,
    expiresAt,
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

function lengthProblem({ short_message, message_payload, data_coding = 0, esm_class = 0 }: Pdu): number | undefined {
  const octets = short_message?.octets ?? 0
  const payload = message_payload?.octets ?? 0
  if (octets > LONGEST_SHORT_MESSAGE || (octets > 0 && payload > 0)) return STATUS.INVMSGLEN
  if (octets === 0 || (esm_class & UDH_PRESENT) === 0) return undefined
  // A part that has its header already goes out as it is, so it must fit. GSM letters come one in an octet and go seven bits each.
  const header = headerOctets(short_message)
  const packed = data_coding === 0 || data_coding === 1
  const fits = packed ? Math.ceil((header * 8) / 7) + (octets - header) <= AIR_SEPTETS : octets <= AIR_OCTETS
  return fits ? undefined : STATUS.INVMSGLEN
}

const headerOctets = (message: Message | undefined): number =>
  message?.udh === undefined ? 0 : 1 + message.udh.reduce((sum, element) => sum + element.length, 0)

/** By the header of the message, with a reference of one octet or two, or by the three TLVs. */
function partOf(pdu: Pdu, body: Message): Part | undefined | 'wrong' {
  let part: Part | undefined
  for (const element of body.udh ?? []) {
    if (element[0] === 0x00 && element.length === 5) {
      part = { reference: element.readUInt8(2), total: element.readUInt8(3), number: element.readUInt8(4) }
    }
    if (element[0] === 0x08 && element.length === 6) {
      part = { reference: element.readUInt16BE(2), total: element.readUInt8(4), number: element.readUInt8(5) }
    }
  }
  if (pdu.sar_msg_ref_num !== undefined) {
    part = { reference: pdu.sar_msg_ref_num, total: pdu.sar_total_segments ?? 0, number: pdu.sar_segment_seqnum ?? 0 }
  }
  if (part !== undefined && (part.number < 1 || part.number > part.total)) return 'wrong'
  return part
}

/** Undefined where it can't be read or has passed. */
function expiryOf(validity: Date | string | undefined): number | null | undefined {
  if (validity === undefined || validity === '') return null
  const at = validity instanceof Date ? validity.getTime() : Number.NaN
  return at > Date.now() ? at : undefined
}
