import { oneOf, type Random } from '../chaos/support/random.ts'
import { isChance, wholeBetween } from './values.ts'

// Bytes that are not HTTP, or not quite: what no HTTP client sends.

/** A request as its first line, its header lines and its body. */
export type Lines = { start: string; headers: string[]; body: Buffer }

type Change = (random: Random, lines: Lines) => Lines | Buffer

function without(lines: Lines, ...names: string[]): Lines {
  const isNamed = (line: string) => names.some((name) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))
  return { ...lines, headers: lines.headers.filter((line) => !isNamed(line)) }
}

function plus(lines: Lines, ...headers: string[]): Lines {
  return { ...lines, headers: [...lines.headers, ...headers] }
}

function chunked(random: Random, body: Buffer): Buffer {
  const chunks: Buffer[] = []
  for (let at = 0; at < body.length; ) {
    const size = wholeBetween(random, 1, Math.max(1, body.length / 2))
    const piece = body.subarray(at, at + size)
    chunks.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'))
    at += size
  }
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])
}

const BAD_CHUNKS = [
  'zz\r\nabc\r\n0\r\n\r\n',
  '-1\r\n',
  'ffffffffffffffffff\r\n',
  '5;a=b\r\nhello\r\n0\r\n\r\n',
  '3\r\nabcdef\r\n0\r\n\r\n',
  '0\r\nTrailer: x\r\n\r\n',
]
const BAD_LENGTHS = ['-1', '1e3', '0x10', '', ' ', '99999999999999999999', '1, 1', '1,2', '+5', '5 5']
const BAD_HEADERS = [
  'X-Nul: a\0b',
  'X Y: 1',
  ': 1',
  'X-Fold: a\r\n b',
  'X-Bell: \u0007',
  'X-Bytes: \xff\xfe',
  'NoColon',
  'X-Cr: a\rb',
  'X-Lf: a\nb',
]
const BAD_STARTS = [
  'GET / HTTP/9.9',
  'GET /',
  'GET  / HTTP/1.1',
  'get / http/1.1',
  '\0\0\0',
  'GET / HTTP/1.1 extra',
  'PRI * HTTP/2.0',
  'CONNECT example.com:443 HTTP/1.1',
  'OPTIONS * HTTP/1.1',
  'GET http:// HTTP/1.1',
  'FOO /v1/agents HTTP/1.1',
]
const TLS_HELLO = Buffer.from('16030100a5010000a10303', 'hex')

/** Each takes a valid request, and breaks one thing about it. */
const CHANGES: Record<string, Change> = {
  'chunked body': (random, lines) =>
    plus({ ...without(lines, 'content-length'), body: chunked(random, lines.body) }, 'Transfer-Encoding: chunked'),
  'bad chunks': (random, lines) =>
    plus({ ...without(lines, 'content-length'), body: Buffer.from(oneOf(random, BAD_CHUNKS)) }, 'Transfer-Encoding: chunked'),
  'length and chunks': (random, lines) => plus({ ...lines, body: chunked(random, lines.body) }, 'Transfer-Encoding: chunked'),
  'odd transfer encoding': (random, lines) =>
    plus(
      without(lines, 'content-length'),
      `Transfer-Encoding: ${oneOf(random, ['gzip', 'identity', 'chunked, chunked', 'xchunked', ' chunked'])}`,
    ),
  'length too long': (random, lines) =>
    plus(without(lines, 'content-length'), `Content-Length: ${lines.body.length + wholeBetween(random, 1, 5_000)}`),
  'length too short': (random, lines) =>
    plus(without(lines, 'content-length'), `Content-Length: ${wholeBetween(random, 0, Math.max(0, lines.body.length - 1))}`),
  'bad length': (random, lines) => plus(without(lines, 'content-length'), `Content-Length: ${oneOf(random, BAD_LENGTHS)}`),
  'two lengths': (_random, lines) => plus(lines, `Content-Length: ${lines.body.length + 1}`),
  'no host': (_random, lines) => without(lines, 'host'),
  'repeated header': (random, lines) => {
    const repeated = oneOf(random, lines.headers)
    return plus(lines, isChance(random, 0.5) ? repeated : `${repeated.split(':')[0]}: other`)
  },
  'two authorizations': (_random, lines) => plus(lines, 'Authorization: Bearer hk_x:hs_x'),
  'two idempotency keys': (_random, lines) => plus(lines, 'Idempotency-Key: one', 'Idempotency-Key: two'),
  'bad header': (random, lines) => plus(lines, oneOf(random, BAD_HEADERS)),
  'large header': (random, lines) => plus(lines, `X-Large: ${'x'.repeat(oneOf(random, [8_000, 16_000, 17_000, 100_000]))}`),
  'many headers': (random, lines) => plus(lines, ...Array.from({ length: oneOf(random, [100, 1_000, 2_500]) }, (_, n) => `X-${n}: ${n}`)),
  'bad first line': (random, lines) => ({ ...lines, start: oneOf(random, BAD_STARTS) }),
  'HTTP/1.0': (_random, lines) => ({ ...lines, start: lines.start.replace('HTTP/1.1', 'HTTP/1.0') }),
  expectation: (random, lines) => plus(lines, `Expect: ${oneOf(random, ['100-continue', 'miracles'])}`),
  upgrade: (random, lines) => plus(lines, 'Connection: Upgrade', `Upgrade: ${oneOf(random, ['websocket', 'h2c', 'TLS/1.2'])}`),
  forwarded: (random, lines) =>
    plus(lines, `X-Forwarded-For: ${oneOf(random, ['1.2.3.4', '::1', 'x'.repeat(500), ',,,'])}`, 'Forwarded: for=x'),
  TLS: () => TLS_HELLO,
  noise: (random) => Buffer.from(Array.from({ length: wholeBetween(random, 1, 500) }, () => wholeBetween(random, 0, 255))),
  'bare line feeds': (_random, lines) => Buffer.from(bytesOf(lines).toString('latin1').replaceAll('\r\n', '\n'), 'latin1'),
  'cut off': (random, lines) => {
    const bytes = bytesOf(lines)
    return bytes.subarray(0, wholeBetween(random, 1, bytes.length))
  },
  pipelined: (_random, lines) => Buffer.concat([bytesOf(lines), bytesOf(lines)]),
}

export function bytesOf({ start, headers, body }: Lines): Buffer {
  return Buffer.concat([Buffer.from(`${[start, ...headers].join('\r\n')}\r\n\r\n`, 'latin1'), body])
}

/** After these the service would wait for the rest of the request, so the client closes its side. */
const INCOMPLETE = new Set([
  'bad chunks',
  'odd transfer encoding',
  'length too long',
  'bad length',
  'bad first line',
  'TLS',
  'noise',
  'bare line feeds',
  'cut off',
])

export function broken(random: Random, lines: Lines): { bytes: Buffer; note: string; isIncomplete: boolean } {
  const note = oneOf(random, Object.keys(CHANGES))
  const changed = CHANGES[note]?.(random, lines) ?? lines
  return { bytes: Buffer.isBuffer(changed) ? changed : bytesOf(changed), note, isIncomplete: INCOMPLETE.has(note) }
}
