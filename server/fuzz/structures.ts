import { deflateSync, gzipSync } from 'node:zlib'
import { oneOf, type Random } from '../chaos/support/random.ts'
import { mutate, ODD_NUMBERS, ODD_TEXTS } from './mutations.ts'
import type { Parts } from './parts.ts'
import { wholeBetween } from './values.ts'

// Valid HTTP around something that the service does not expect: text that is barely JSON, and odd content types, encodings, paths, parameters
// and methods.

const KIB = 1024

function repeated(text: string, bytes: number): Buffer {
  return Buffer.alloc(bytes, text)
}

type BodyMaker = (random: Random, valid: Buffer) => Buffer

export const BODIES: Record<string, BodyMaker> = {
  'opening brackets': (random) => repeated(oneOf(random, ['[', '{"a":', '[[{}],', '{']), oneOf(random, [10, 1_000, 100_000, 250 * KIB])),
  'nested arrays': (random) => {
    const depth = oneOf(random, [30, 33, 1_000, 50_000])
    return Buffer.from(`${'['.repeat(depth)}${']'.repeat(depth)}`)
  },
  'many names': (random) => namesOf(oneOf(random, [10, 999, 1_000, 1_001, 24_840])),
  'many values': (random) => Buffer.from(`[${'0,'.repeat(oneOf(random, [998, 1_001, 130_000]))}0]`),
  'long name': (random) => Buffer.from(`{"${'n'.repeat(oneOf(random, [100, 101, 65_536, 260_000]))}":1}`),
  'duplicate keys': (_random, valid) => Buffer.from(valid.toString().replace('{', `${valid.toString().slice(0, -1) || '{'},`)),
  truncated: (random, valid) => valid.subarray(0, wholeBetween(random, 0, Math.max(0, valid.length - 1))),
  'trailing text': (random, valid) => Buffer.concat([valid, Buffer.from(oneOf(random, ['}', ',', 'x', '\0', '{}', '//']))]),
  'byte order mark': (_random, valid) => Buffer.concat([Buffer.from('\ufeff'), valid]),
  'invalid UTF-8': (random, valid) => Buffer.concat([valid.subarray(0, -1), Buffer.from(oneOf(random, BAD_UTF8)), valid.subarray(-1)]),
  'UTF-16': (_random, valid) => Buffer.from(valid.toString(), 'utf16le'),
  'flipped byte': (random, valid) => {
    const copy = Buffer.from(valid)
    if (copy.length > 0) copy[wholeBetween(random, 0, copy.length - 1)] = wholeBetween(random, 0, 255)
    return copy
  },
  scalar: (random) =>
    Buffer.from(oneOf(random, ['null', 'true', '0', '""', '[]', '{}', '""""', '-', 'NaN', 'undefined', "{'a':1}", ' \n'])),
  'huge number': (random) =>
    Buffer.from(`{"basic":${oneOf(random, ['1e400', '-1e400', '1'.repeat(10_000), `0.${'1'.repeat(10_000)}`, '1E-400'])}}`),
  escapes: (random) => Buffer.from(`{"name":"${oneOf(random, ['\\u0000', '\\ud800', '\\udc00\\ud800', '\\u0061', '\\x', '\\'])}"}`),
  'odd property': (random) => Buffer.from(`{"${oneOf(random, ['__proto__', 'constructor', '\\u0000', ''])}":{"a":{"prototype":1}}}`),
  'size at the limit': (random) => padded(256 * KIB + oneOf(random, [-1, 0, 1])),
  'a megabyte': (random) => padded(KIB * KIB + oneOf(random, [-1, 0, 1, 4_096])),
  empty: () => Buffer.alloc(0),
}

const BAD_UTF8: number[][] = [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xe2, 0x82], [0x80]]

function namesOf(count: number): Buffer {
  return Buffer.from(`{${Array.from({ length: count }, (_, n) => `"n${n.toString(36)}":0`).join()}}`)
}

function padded(bytes: number): Buffer {
  return Buffer.from(`{"name":"${'a'.repeat(bytes - 11)}"}`)
}

const CONTENT_TYPES = [
  '',
  'text/plain',
  'application/JSON',
  'application/json; charset=utf-16',
  'application/json;charset=',
  'application/json, application/json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/vnd.api+json',
  'json',
  ';',
  'application/json; a="',
]

type Change = (random: Random, parts: Parts) => Parts

function withHeader(parts: Parts, name: string, value: string): Parts {
  const others = parts.headers.filter(([known]) => known.toLowerCase() !== name.toLowerCase())
  return { ...parts, headers: [...others, [name, value]] }
}

function compressed(random: Random, parts: Parts): Parts {
  const [encoding, encode] = oneOf(random, ENCODINGS)
  return withHeader({ ...parts, body: encode(parts.body ?? Buffer.alloc(0)) }, 'Content-Encoding', encoding)
}

const ENCODINGS: [string, (body: Buffer) => Buffer][] = [
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['gzip', (body) => body],
  ['identity', (body) => body],
  ['br, gzip', (body) => body],
  ['x', (body) => body],
]

export const METHODS = [
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'SEARCH',
  'QUERY',
  'PURGE',
  'M-SEARCH',
]

const PATHS: ((path: string) => string)[] = [
  (path) => `${path}/`,
  (path) => path.replace('/', '//'),
  (path) => path.replace('/v1/', '/v1%2f'),
  (path) => path.replaceAll('e', '%65'),
  (path) => `${path}%00`,
  (path) => `${path}%`,
  (path) => `${path}/%2e%2e/agents`,
  (path) => path.replace('/v1', '/v1/../v1'),
  (path) => path.replace('/v1', '/V1'),
  (path) => `${path};a=b`,
  (path) => `${path}#fragment`,
  (path) => `http://elsewhere.example${path}`,
  (path) => `${path}/${'x'.repeat(8_000)}`,
  (path) => `${path}/%ff%fe`,
  (path) => `${path}\\..\\`,
  (path) => path.replace(/[^/]+$/, ''),
  () => '/',
  () => '*',
]

const CHANGES: Record<string, Change> = {
  'content type': (random, parts) => withHeader(parts, 'Content-Type', oneOf(random, CONTENT_TYPES)),
  'content encoding': compressed,
  method: (random, parts) => ({ ...parts, method: oneOf(random, METHODS), isIntact: false }),
  path: (random, parts) => ({ ...parts, path: oneOf(random, PATHS)(parts.path), isIntact: false }),
  'body on any method': (random, parts) => {
    const body = Buffer.from('{"a":1}')
    return { ...withHeader(parts, 'Content-Type', oneOf(random, ['application/json', 'text/plain'])), body, isIntact: false }
  },
}

/** A request with an odd structure: mostly of its body, if it has one. */
export function structural(random: Random, parts: Parts): { parts: Parts; note: string } {
  if (parts.body !== undefined && random() < 0.7) {
    const note = oneOf(random, Object.keys(BODIES))
    return { parts: { ...parts, body: BODIES[note]?.(random, parts.body) ?? parts.body }, note }
  }
  const note = oneOf(random, Object.keys(CHANGES))
  return { parts: CHANGES[note]?.(random, parts) ?? parts, note }
}

/** Values for a query or a path. Some do not decode to a valid text. */
const ODD_PARAMETERS = [
  ...ODD_TEXTS.map((text) => encodeURIComponent(text.toWellFormed())),
  ...ODD_NUMBERS.map(String),
  '%',
  '%zz',
  '%ff',
  '%c0%af',
  '%ed%a0%80',
  'a%00b',
  '1'.repeat(400),
  'x'.repeat(3_000),
  '0198c0de-0000-7000-8000-000000000001',
  '9007199254740993',
]

/** Cursors that look as if they came from the service. */
function forgedCursor(random: Random): string {
  const content = oneOf<unknown>(random, [[], ['x'], ['x', '2026-01-01T00:00:00.000Z', 1], {}, 'x', null, [null, null], 1e308, [[[[]]]]])
  const text = oneOf(random, [JSON.stringify(mutate(random, content).value) ?? '', '\0', '1:2', '18446744073709551616'])
  return encodeURIComponent(
    Buffer.from(text)
      .toString(oneOf(random, ['base64url', 'hex', 'utf8'] as const))
      .toWellFormed(),
  )
}

/** Changes a parameter of the query, adds one, or repeats one. */
export function oddQuery(random: Random, parts: Parts): Parts {
  const odd = () => (random() < 0.3 ? forgedCursor(random) : oneOf(random, ODD_PARAMETERS))
  const names = [
    ...parts.query.map(([name]) => name),
    'cursor',
    'limit',
    'after',
    'sort',
    'from',
    'to',
    'extra',
    '',
    '__proto__',
    'limit[]',
    '%00',
  ]
  const name = oneOf(random, names)
  const rest = random() < 0.7 ? parts.query.filter(([known]) => known !== name) : parts.query
  const many = random() < 0.05 ? Array.from({ length: 300 }, (_, n): [string, string] => [`p${n}`, '1']) : []
  return { ...parts, query: [...rest, [name, odd()], ...many] }
}

/** Replaces one id in the path by an odd value. */
export function oddPath(random: Random, parts: Parts, template: string): Parts {
  const segments = parts.path.split('/')
  const places = template.split('/').flatMap((segment, index) => (segment.startsWith('{') ? [index] : []))
  if (places.length === 0) return oddQuery(random, parts)
  const odd = oneOf(random, ODD_PARAMETERS)
  segments[oneOf(random, places)] = odd
  return { ...parts, path: segments.join('/'), owner: undefined, isIntact: /^[\w.-]+$/.test(odd) && !/^\.+$/.test(odd) }
}
