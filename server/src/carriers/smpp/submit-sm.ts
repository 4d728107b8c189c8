import { encodeGsm7 } from '../../sms/gsm7.ts'
import type { SendResult, SmsSegment } from '../carrier.ts'
import { NO_TLVS, type PduOf } from './pdu.ts'

type Failed = Extract<SendResult, { is: 'failed' }>

// Type of number and numbering plan. A short code is sent as network specific (3); some networks use abbreviated (6), but that is rarer.
const ALPHANUMERIC = [5, 0] as const
const INTERNATIONAL = [1, 1] as const
const SHORT_CODE = [3, 0] as const
const LONGEST_SHORT_CODE = 6

const DATA_CODING = { GSM7: 0, UCS2: 8 } as const
const HAS_HEADER = 0x40
const FINAL_RECEIPT = 1

// GSM-7 counts unpacked septets, one per octet; UCS-2 counts octets. The header of a segment has six octets, the room of seven septets.
const MAX_OCTETS = { GSM7: 160, UCS2: 140 } as const
const MAX_OCTETS_OF_A_SEGMENT = { GSM7: 153, UCS2: 134 } as const
// A C-octet string of 21 octets including the NUL.
const SENDER = /^[\u0020-\u007e]{1,20}$/
const RECIPIENT = /^\+[0-9]{3,20}$/

/** Returns the submit_sm for a segment, with its sequence number still unset, or why no network would accept it. */
export function submitSm(segment: SmsSegment): PduOf<'submit_sm'> | Failed {
  if (!SENDER.test(segment.sender)) return failed('INVALID_SENDER', 'The sender is not valid for an SMS.')
  if (!RECIPIENT.test(segment.recipient)) return failed('INVALID_RECIPIENT', 'The recipient is not a phone number.')
  const text = octetsOf(segment)
  if (text === undefined) return failed('REJECTED', 'The text has characters that its encoding cannot represent.')
  const { concatenation } = segment
  const maxOctets = concatenation === undefined ? MAX_OCTETS : MAX_OCTETS_OF_A_SEGMENT
  if (text.length > maxOctets[segment.encoding]) return failed('REJECTED', 'The text is longer than an SMS.')
  const shortMessage = concatenation === undefined ? text : Buffer.concat([segmentHeader(concatenation), text])
  const [sourceTon, sourceNpi] = addressType(segment.sender)
  const [destinationTon, destinationNpi] = INTERNATIONAL
  return {
    command: 'submit_sm',
    status: 0,
    sequence: 0,
    tlvs: NO_TLVS,
    serviceType: '',
    sourceTon,
    sourceNpi,
    source: segment.sender.replace(/^\+(?=[0-9]+$)/, ''),
    destinationTon,
    destinationNpi,
    destination: segment.recipient.slice(1),
    esmClass: concatenation === undefined ? 0 : HAS_HEADER,
    protocolId: 0,
    priority: 0,
    scheduleTime: '',
    validityPeriod: absoluteTime(segment.expiresAt),
    registeredDelivery: FINAL_RECEIPT,
    replaceIfPresent: 0,
    dataCoding: DATA_CODING[segment.encoding],
    defaultMessageId: 0,
    shortMessage,
  }
}

function failed(reason: Failed['reason'], detail: string): Failed {
  return { is: 'failed', reason, detail }
}

function addressType(sender: string): readonly [ton: number, npi: number] {
  if (!/^\+?[0-9]+$/.test(sender)) return ALPHANUMERIC
  return sender.length <= LONGEST_SHORT_CODE && !sender.startsWith('+') ? SHORT_CODE : INTERNATIONAL
}

/** Information element 00 (concatenated short message, 8-bit reference), 3 octets long. */
function segmentHeader({ reference, total, number }: NonNullable<SmsSegment['concatenation']>): Buffer {
  return Buffer.from([5, 0, 3, reference, total, number])
}

/** `YYMMDDhhmmsst00+`: t is tenths of a second, 00+ is UTC. */
function absoluteTime(time: Date): string {
  const iso = time.toISOString()
  return `${iso.slice(2, 19).replace(/[-T:]/g, '')}${iso.charAt(20)}00+`
}

/** The text as octets; undefined if its encoding cannot represent it. */
function octetsOf({ encoding, text }: SmsSegment): Buffer | undefined {
  if (encoding === 'UCS2') return Buffer.from(text, 'utf16le').swap16()
  const octets = encodeGsm7(text)
  return octets && Buffer.from(octets.buffer, 0, octets.length)
}
