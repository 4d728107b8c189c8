import { countSeptets, septetsOf } from './gsm7.ts'

export type SmsEncoding = 'GSM7' | 'UCS2'

// An SMS has 140 octets: 160 septets or 70 UTF-16 code units. In a segment of a longer text, the header with an 8-bit reference takes six
// octets, which leaves 153 or 67.
const LIMITS = {
  GSM7: { single: 160, segment: 153 },
  UCS2: { single: 70, segment: 67 },
} as const satisfies Record<SmsEncoding, { single: number; segment: number }>

/** The header has one octet for the number of a segment. */
export const MAX_SEGMENT_NUMBER = 255

type SmsSize = {
  encoding: SmsEncoding
  /** Septets, or UTF-16 code units. */
  units: number
  segments: number
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
  if (units <= LIMITS[encoding].single) return { encoding, units, segments: 1 }
  let segments = 0
  for (let from = 0; from < text.length; from = endOfSegment(text, from, encoding)) segments += 1
  return { encoding, units, segments }
}

export type TextSegment = {
  encoding: SmsEncoding
  text: string
  concatenation?: { reference: number; total: number; number: number }
}

/**
 * Splits a text into segments of one SMS each. The phone joins segments by their reference (0 to 255), which should differ between texts in
 * transit to one phone. Throws for a text of over 255 segments: callers measure first.
 */
export function splitText(text: string, reference: number, wanted?: SmsEncoding): TextSegment[] {
  const { encoding, segments: total } = measureText(text, wanted)
  if (total > MAX_SEGMENT_NUMBER) throw new RangeError(`the text has ${total} segments; the maximum is ${MAX_SEGMENT_NUMBER}`)
  if (total === 1) return [{ encoding, text }]
  const segments: TextSegment[] = []
  for (let from = 0; from < text.length; ) {
    const to = endOfSegment(text, from, encoding)
    segments.push({ encoding, text: text.slice(from, to), concatenation: { reference, total, number: segments.length + 1 } })
    from = to
  }
  return segments
}

/** The end of the segment that begins at `from`: as late as possible without splitting an escaped character or a surrogate pair. */
function endOfSegment(text: string, from: number, encoding: SmsEncoding): number {
  const room = LIMITS[encoding].segment
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
