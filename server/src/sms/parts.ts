import { countSeptets, septetsOf } from './gsm7.ts'

export type SmsEncoding = 'GSM7' | 'UCS2'

// An SMS has 140 octets: 160 septets or 70 UTF-16 code units. In a part of a longer text, the header with an 8-bit reference takes six
// octets, which leaves 153 or 67.
const LIMITS = {
  GSM7: { single: 160, part: 153 },
  UCS2: { single: 70, part: 67 },
} as const satisfies Record<SmsEncoding, { single: number; part: number }>

/** The header has one octet for the number of a part. */
export const MAX_PARTS = 255

type SmsSize = {
  encoding: SmsEncoding
  /** Septets, or UTF-16 code units. */
  units: number
  parts: number
}

/**
 * Measures a text without splitting it. An empty text is one SMS. Without `wanted`, the encoding is GSM-7 if the text fits it. Throws if
 * `wanted` is GSM-7 and the text does not fit: callers check that first, so it would be a fault in Herald.
 */
export function measureText(text: string, wanted?: SmsEncoding): SmsSize {
  const septets = wanted === 'UCS2' ? undefined : countSeptets(text)
  if (wanted === 'GSM7' && septets === undefined) throw new RangeError('the text has characters that GSM-7 does not have')
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
 * Splits a text into parts of one SMS each. The phone joins parts by their reference (0 to 255), which should differ between texts in
 * transit to one phone. Throws for a text of over 255 parts: callers measure first.
 */
export function splitText(text: string, reference: number, wanted?: SmsEncoding): TextPart[] {
  const { encoding, parts: total } = measureText(text, wanted)
  if (total > MAX_PARTS) throw new RangeError(`the text has ${total} parts; the maximum is ${MAX_PARTS}`)
  if (total === 1) return [{ encoding, text }]
  const parts: TextPart[] = []
  for (let from = 0; from < text.length; ) {
    const to = endOfPart(text, from, encoding)
    parts.push({ encoding, text: text.slice(from, to), concatenation: { reference, total, number: parts.length + 1 } })
    from = to
  }
  return parts
}

/** The end of the part that begins at `from`: as late as possible without splitting an escaped character or a surrogate pair. */
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
