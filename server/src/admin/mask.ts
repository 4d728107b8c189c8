import { maskParts, maskWithPlus } from '../audit/mask.ts'

/** A digit of any script. */
const DIGIT = String.raw`\p{N}`
/**
 * What people write between the digits of a number: any sign but those between values. In an address, %20 stands for a space; in JSON inside a text,
 * \n for a line break. A plus sign begins a number, unless it stands for a space before a few digits. A time has colons, and a list has commas.
 */
const SIGN = String.raw`%[\da-fA-F]{2}|\\(?:[nrt]|u[\da-fA-F]{4})|\+(?!${DIGIT}{5})|[^\p{L}\p{N}+%,:;=&?@#"<>{}$€£]`
const BETWEEN = `(?:${SIGN}){0,3}`
const END = `(?!${BETWEEN}${DIGIT})`
const OPTIONAL_TIME = String.raw`(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?`

const OCTET = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`

/** Digits that are no phone number. A number can't look like them, unless it has at most eight digits. */
const OTHERS = [
  // The host and port of an address, but not a number in place of a name.
  String.raw`https?:\/\/(?![a-z\d.-]*(?<![a-z\d-])[\d-]{7,}(?![a-z\d-])|[\d.-]+(?![a-z\d.-]))[a-z\d.-]+(?::\d{1,5}(?!\d))?`,
  String.raw`https?:\/\/(?:${OCTET}\.){3}${OCTET}(?::\d{1,5}(?!\d))?(?=[/?#\s]|$)`,
  // A UUID.
  '[\\da-fA-F]{8}(?:-[\\da-fA-F]{4}){3}-[\\da-fA-F]{12}',
  // A time or date.
  String.raw`(?<![+\d]|%2[bB])(?:19|20)\d\d-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])${OPTIONAL_TIME}${END}`,
  String.raw`(?<![+\d]|%2[bB])(?:0?[1-9]|[12]\d|3[01])(?<dot>[./-])(?:0?[1-9]|[12]\d|3[01])\k<dot>(?:19|20)\d\d${END}`,
  // A coordinate, and an amount.
  String.raw`(?<![+\d]|%2[bB])(?:\d{1,2}\.\d{4,6}|1[0-7]\d\.\d{4,5})${END}`,
  String.raw`(?<!\d)\d[\d\s]{0,4}\.\d\d?${END}`,
  String.raw`(?<![+\d]|%2[bB])\d{1,3}\s?\d{3}\.\d\d${END}`,
  // An escape, whose digits belong to no number.
  String.raw`%[\da-fA-F]{2}|\\u[\da-fA-F]{4}`,
]

/**
 * A phone number. With a plus sign, the shortest have six digits; without one, seven. Eleven or more digits in a row are a whole number, so a date
 * after them stays as it is. After a number with separators, the mask may include digits that follow.
 *
 * No part of the pattern can match the same text in two ways, so the time grows with the length of the text only.
 */
const NUMBERS = [
  `${DIGIT}{11,}`,
  String.raw`(?<=(?:[+\uFF0B\uFE62]|%2[bB])[\s(]{0,2})${DIGIT}(?:${BETWEEN}${DIGIT}){5,}`,
  `${DIGIT}(?:${BETWEEN}${DIGIT}){6,}`,
]
/** A digit of a number, or an escape. */
const PART = new RegExp(String.raw`%[\da-fA-F]{2}|\\u[\da-fA-F]{4}|${DIGIT}`, 'gu')
const PHONE_NUMBER = new RegExp(`(?<other>${OTHERS.join('|')})|${NUMBERS.join('|')}`, 'gu')

/** Fields that only Herald fills, never with a number. */
const GENERATED = new Set(['phoneId', 'attemptId', 'integrationKey', 'requestId', 'nextCursor', 'webhook-timestamp'])
/** Fields with ids, cursors and addresses. A value that does not look like one is masked: callers choose some of them. */
const OPAQUE = new Set(['agentId', 'agentIds', 'after', 'address', 'addresses'])
/** The addresses of media. Paths of media servers are full of digits. */
const MEDIA = new Set(['imageUrl', 'audioUrl', 'videoUrl', 'fileUrl', 'thumbnailUrl'])

function isOpaque(text: string, name: string): boolean {
  if (GENERATED.has(name)) return true
  if (!OPAQUE.has(name)) return false
  return /^(?:\d{1,3}\.){3}\d{1,3}(?:\/\d\d?)?$/.test(text) || (/[a-z]/i.test(text) && /^[\w.@:-]+$/.test(text))
}

function maskField(text: string, name: string): string {
  // Ids, and numbers as Herald stores them.
  if (name === 'subject') return text.replace(/(?<=\+)\d{6,15}/g, (number) => maskParts(number, PART))
  // Another address would show no picture.
  if (MEDIA.has(name)) return maskWithPlus(text)
  return isOpaque(text, name) ? text : maskText(text)
}

/** Hides all but the first two and the last two digits. */
export function maskText(text: string): string {
  return text.replace(PHONE_NUMBER, (found: string, other: string | undefined) => other ?? maskParts(found, PART))
}

/** A response with all phone numbers masked. Large ones are bytes by now (http/unread.ts). Viewers get no exports, so a stream stays as it is. */
export function maskBody(body: unknown): unknown {
  if (typeof body === 'string') return maskJson(body)
  return Buffer.isBuffer(body) ? Buffer.from(maskJson(body.toString())) : body
}

/** Masks the texts of JSON, since a number in its texts may have escapes. JSON numbers are amounts and ids. A body that is no JSON is one text. */
export function maskJson(json: string): string {
  try {
    return JSON.stringify(maskNumbers(JSON.parse(json)))
  } catch {
    return maskText(json)
  }
}

/** The same value with all phone numbers masked. Dates stay as they are. `name`: of the field; callers choose the names of attributes. */
export function maskNumbers(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return maskField(value, name)
  if (Array.isArray(value)) return value.map((inner) => maskNumbers(inner, name))
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => [maskText(field), maskNumbers(inner, name === 'attributes' ? '' : field)]),
  )
}
