import { countSeptets, septetsOf } from './gsm7.ts'

export type SmsEncoding = 'GSM7' | 'UCS2'

// An SMS has 140 octets: 160 septets or 70 UTF-16 code units. A part of a longer text gives six octets to the header that says which part
// it is, with a reference of 8 bits: 153 or 67 are left.
const LIMITS = {
  GSM7: { single: 160, part: 153 },
  UCS2: { single: 70, part: 67 },
} as const satisfies Record<SmsEncoding, { single: number; part: number }>

/** The header numbers the parts with one octet. */
export const MAX_PARTS = 255

export type SmsSize = {
  encoding: SmsEncoding
  /** Septets, or UTF-16 code units. */
  units: number
  parts: number
}

/**
 * How a text would be sent, without splitting it. An empty text is one SMS. Without a wanted encoding it is GSM-7 where the text fits that.
 * Whoever wants GSM-7 knows that the text fits: one that does not is a mistake of ours, not of a caller.
 */
export function measureText(text: string, wanted?: SmsEncoding): SmsSize {
  const septets = wanted === 'UCS2' ? undefined : countSeptets(text)
  if (wanted === 'GSM7' && septets === undefined) throw new RangeError("a text with characters that GSM-7 lacks can't be sent in it")
  const encoding = septets === undefined ? 'UCS2' : 'GSM7'
  const units = septets ?? text.length
  if (units <= LIMITS[encoding].single) return { encoding, units, parts: 1 }
  let parts = 0
  for (let from = 0; from < text.length; from = endOfPart(text, from, encoding)) parts += 1
  return { encoding, units, parts }
}

export type TextPart = {
  encoding: SmsEncoding
  text: string
  concatenation?: { reference: number; total: number; number: number }
}

/**
 * Splits a text into what goes into an SMS each. The reference (0 to 255) ties the parts together at the phone: it should differ between
 * texts that are on their way to one phone at once. A text of over 255 parts can't be sent: whoever takes texts from outside measures first.
 */
export function splitText(text: string, reference: number, wanted?: SmsEncoding): TextPart[] {
  const { encoding, parts: total } = measureText(text, wanted)
  if (total > MAX_PARTS) throw new RangeError(`a text of ${total} parts can't be sent: ${MAX_PARTS} are the most`)
  if (total === 1) return [{ encoding, text }]
  const parts: TextPart[] = []
  for (let from = 0; from < text.length; ) {
    const to = endOfPart(text, from, encoding)
    parts.push({ encoding, text: text.slice(from, to), concatenation: { reference, total, number: parts.length + 1 } })
    from = to
  }
  return parts
}

/** Where the part that begins at `from` ends: as late as it can, with neither an escaped character nor a surrogate pair cut in two. */
function endOfPart(text: string, from: number, encoding: SmsEncoding): number {
  const room = LIMITS[encoding].part
  if (encoding === 'UCS2') {
    const to = from + room
    return to < text.length && isPair(text.charCodeAt(to - 1), text.charCodeAt(to)) ? to - 1 : Math.min(to, text.length)
  }
  let to = from
  for (let septets = 0; to < text.length; to += 1) {
    septets += septetsOf(text.charCodeAt(to))
    if (septets > room) break
  }
  return to
}

function isPair(first: number, second: number): boolean {
  return (first & 0xfc00) === 0xd800 && (second & 0xfc00) === 0xdc00
}
