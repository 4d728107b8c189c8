import { type Static, type TObject, Type } from 'typebox'
import type { Violation } from '../errors.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { isPublicHost } from '../public-host.ts'
import { lengthOf } from '../text-length.ts'
import { escapePointer } from '../validation.ts'
import type { Fields } from './untrusted.ts'
import { encodedUrl } from './urls.ts'

// Fields that several types of content and buttons share.

const URL_MAX_LENGTH = 2048

/** A union of objects discriminated by `type`, so that errors refer to the schema of the given type. */
export function oneOfTypes<Kinds extends TObject[]>(kinds: [...Kinds], options: { $id: string; rules?: (value: Fields) => Violation[] }) {
  const types = new Set<unknown>(kinds.map(({ properties }) => (properties.type as unknown as { const: string }).const))
  const names = new Set(kinds.flatMap(({ properties }) => Object.keys(properties)))
  function rules(value: Fields): Violation[] {
    // If the type is known, its own schema reports unknown fields.
    const unknown = types.has(value.type) ? [] : Object.keys(value).filter((name) => !names.has(name))
    return [
      ...unknown.map((name) => ({ path: `/${escapePointer(name)}`, reason: 'is not known here; is it misspelt?' })),
      ...(options.rules?.(value) ?? []),
    ]
  }
  return Type.Unsafe<Static<Kinds[number]>>({ type: 'object', discriminator: { propertyName: 'type' }, oneOf: kinds, ...options, rules })
}

export function WebUrl(description: string) {
  return Type.String({ maxLength: URL_MAX_LENGTH, description: `${description} \`http:\` or \`https:\`.`, rules: webUrlRules })
}

function webUrlRules(text: string): Violation[] {
  const url = parseUrl(text, ['http:', 'https:'])
  return url === undefined ? invalid('must be an http or https address, such as https://example.com/a') : encodedLengthRules(text)
}

/** The URL of a file that the network fetches. Herald does not check whether the file exists: accepting a message makes no network call. */
export function MediaUrl(description: string) {
  return Type.String({ maxLength: URL_MAX_LENGTH, description: `${description} \`https:\`, at a public host.`, rules: mediaUrlRules })
}

function mediaUrlRules(text: string): Violation[] {
  const url = parseUrl(text, ['https:'])
  if (url === undefined) return invalid('must be an https address, such as https://example.com/a.jpg')
  return [
    ...(authorityOf(text).includes('@') ? invalid('must not contain credentials') : []),
    ...(isPublicHost(url.hostname) && url.port !== '0'
      ? []
      : invalid('must be at a public host: no private or reserved address, no local name')),
    ...encodedLengthRules(text),
  ]
}

/**
 * URL.parse alone would accept more: it skips spaces and line breaks, turns `\` into `/`, and does not need `//`. Its cost also grows with
 * the square of the length of a host label: 5,000 letters took 66 ms. A real label has at most 63 characters.
 */
function parseUrl(text: string, protocols: string[]): URL | undefined {
  if (!/^https?:\/\/[^\s\\/?#\p{Cc}][^\s\\\p{Cc}]*$/iu.test(text) || !mayBeHost(authorityOf(text))) return undefined
  const url = URL.parse(text)
  return url !== null && protocols.includes(url.protocol) ? url : undefined
}

const HOST_MAX_LENGTH = 253
const LABEL_MAX_LENGTH = 63
// Each non-ASCII character takes two or three ASCII characters in punycode.
const MAX_NON_ASCII = 100

/** Whether an authority may be a host with an optional port. Runs before the URL is parsed, and counts an escape as one character. */
function mayBeHost(authority: string): boolean {
  const host = authority.slice(authority.lastIndexOf('@') + 1).replaceAll(/%[0-9a-f]{2}/gi, 'ą')
  if (host.length > HOST_MAX_LENGTH + ':65535'.length || host.replaceAll(/[!-~]/g, '').length > MAX_NON_ASCII) return false
  return host.split(/[.:。．｡]/).every((label) => label.length <= LABEL_MAX_LENGTH)
}

function authorityOf(text: string): string {
  return /^[a-z]+:\/\/([^/?#]*)/i.exec(text)?.[1] ?? ''
}

/** Limits the URL as the network gets it. Percent-encoding never shortens a URL: it has at least one character for each byte after the host. */
function encodedLengthRules(text: string): Violation[] {
  // Too long even without encoding: the schema reports that.
  if (lengthOf(text) > URL_MAX_LENGTH) return []
  const minLength = Buffer.byteLength(text.slice('https://'.length + authorityOf(text).length))
  if (minLength <= URL_MAX_LENGTH && encodedUrl(text).length <= URL_MAX_LENGTH) return []
  return invalid(`must have at most ${URL_MAX_LENGTH} characters after percent-encoding`)
}

export const PhoneNumber = Type.String({
  description: 'An international number: `+` and digits, or digits that begin with the country code.',
  examples: ['+48500100200'],
  rules: phoneRules(normalisePhoneNumber),
})

/** `normalise`: returns undefined if the text is not a phone number. */
export function phoneRules(normalise: (text: string) => string | undefined) {
  return (text: string): Violation[] =>
    normalise(text) === undefined ? invalid('must be an international phone number, such as +48500100200') : []
}

/** A list of different phone numbers. */
export function PhoneNumbers(maxItems: number) {
  return Type.Array(PhoneNumber, {
    minItems: 1,
    maxItems,
    description: 'Without duplicates.',
    rules: (phones: unknown[]) => (phones.length > maxItems ? [] : noPhoneTwice(phones)),
  })
}

/** Compares normalised phones, so that different spellings of one phone are found. */
function noPhoneTwice(phones: unknown[]): Violation[] {
  const normalised = phones.map((phone) => (typeof phone === 'string' ? normalisePhoneNumber(phone) : undefined))
  return normalised.flatMap((phone, index) => {
    const first = normalised.indexOf(phone)
    return phone !== undefined && first < index ? [{ path: `/${index}`, reason: `is the same number as /recipients/${first}` }] : []
  })
}

export const EmailAddress = Type.String({ maxLength: 254, pattern: '^[^\\s@]+@[^\\s@.]+(\\.[^\\s@.]+)+$', description: 'an email address' })

export const Latitude = Type.Number({ minimum: -90, maximum: 90 })
export const Longitude = Type.Number({ minimum: -180, maximum: 180 })
export const LocationLabel = Type.String({ maxLength: 100, description: 'The name of the place.' })

/** Makes a violation of the value as a whole. */
export function invalid(reason: string): Violation[] {
  return [{ path: '', reason }]
}
