import type { Faults } from '../faults.ts'
import type { Message } from '../phones/messages.ts'
import type { SmsEnd } from '../phones/steps.ts'
import type { Address } from './submission.ts'

const STATES: Record<SmsEnd | 'ENROUTE', number> = { ENROUTE: 1, DELIVRD: 2, EXPIRED: 3, UNDELIV: 5 }

/** The fields of a message for its receipts. `beginning`: the first characters of its text. */
export type ReceiptNotes = { number: number; registered: number; beginning: string; addresses: { source: Address; destination: Address } }

/** Whether the sender requested a receipt for this result: 1 always, 2 for failures only, 3 for successes only. */
export function wantsReceipt(registered: number, end: SmsEnd): boolean {
  const wish = registered & 0x03
  return wish === 1 || (wish === 2 && end !== 'DELIVRD') || (wish === 3 && end === 'DELIVRD')
}

export const wantsIntermediate = (registered: number): boolean => (registered & 0x10) !== 0

/** Returns the fields of the deliver_sm. */
export function receiptPdu(message: Message, end: SmsEnd | 'ENROUTE', faults: Faults): Record<string, unknown> {
  const { number, addresses } = message.smpp as ReceiptNotes
  const id = faults.strikes('smpp.hexInReceipt') ? number.toString(16).toUpperCase() : String(number)
  const tlvs = faults.strikes('smpp.receiptWithoutTlvs') ? {} : { receipted_message_id: id, message_state: STATES[end] }
  return {
    ...withSwappedAddresses(addresses),
    esm_class: end === 'ENROUTE' ? 0x20 : 0x04,
    data_coding: 0,
    short_message: receiptText(message, id, end, faults.strikes('smpp.receiptSpelling')?.spelling),
    ...tlvs,
  }
}

function withSwappedAddresses({ source, destination }: { source: Address; destination: Address }): Record<string, unknown> {
  return {
    source_addr_ton: destination.ton,
    source_addr_npi: destination.npi,
    source_addr: destination.addr,
    dest_addr_ton: source.ton,
    dest_addr_npi: source.npi,
    destination_addr: source.addr,
  }
}

/** No standard defines the spelling; networks differ in the ways of the fault receiptSpelling. */
function receiptText(message: Message, id: string, end: string, spelling: string | undefined): string {
  const digits = spelling === 'seconds' ? 12 : 10
  const submitted = compactTime(message.acceptedAt, digits)
  const done = compactTime(Date.now(), digits)
  const delivered = end === 'DELIVRD' ? '001' : '000'
  const error = end === 'UNDELIV' ? '001' : '000'
  const beginning = message.smpp?.beginning.replace(/[^ -~]/g, '?') ?? ''
  if (spelling === 'brief') return `id:${id} stat:${end}`
  if (spelling === 'padded') {
    return `id:${id.padEnd(12)} sub:001 dlvrd:${delivered}  submit date:${submitted}  done date:${done}  stat:${end}  err:${error}  text:${beginning}`
  }
  const text = `id:${id} sub:001 dlvrd:${delivered} submit date:${submitted} done date:${done} stat:${end} err:${error} text:${beginning}`
  if (spelling === 'capital-text') return text.replace(' text:', ' Text:')
  return spelling === 'lower-case' ? text.replace(`stat:${end}`, `stat:${end.toLowerCase()}`) : text
}

/** Returns YYMMDDhhmm or, with 12 digits, YYMMDDhhmmss. */
const compactTime = (ms: number, digits: number): string =>
  new Date(ms)
    .toISOString()
    .replace(/\D/g, '')
    .slice(2, 2 + digits)
