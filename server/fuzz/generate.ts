import { oneOf, type Random, streamOf } from '../chaos/support/random.ts'
import { addressFor, type Credentials, credentialsFor, headersFor } from './credentials.ts'
import type { Operation } from './document.ts'
import { mutate, ODD_TEXTS } from './mutations.ts'
import { bodyFor, eventFor, type Parts, validParts, withBody, withEvent } from './parts.ts'
import type { Owner } from './path.ts'
import { broken, bytesOf } from './raw.ts'
import { oddPath, oddQuery, structural } from './structures.ts'
import { type Context, isChance, wholeBetween } from './values.ts'
import type { World } from './world.ts'

// Generates request number n of a seed. Operations and kinds alternate; everything else comes from a random stream of the number, so a request
// does not depend on earlier ones.

export const KINDS = ['valid', 'mutated', 'structural', 'raw'] as const
export type Kind = (typeof KINDS)[number]

export type FuzzRequest = {
  number: number
  operation: Operation
  kind: Kind
  credentials: Credentials
  /** What was changed, in words. */
  note: string
  bytes: Buffer
  method: string
  isIntact: boolean
  owner: Owner | undefined
  /** The client's address, if not the usual one. */
  address: string | undefined
  /** Needs a connection of its own, which the service may close instead of responding. */
  isRaw: boolean
  /** The client closes its side after sending it. */
  isIncomplete: boolean
}

/** Node rejects a longer head with 431 on every route. */
const MAX_HEAD_BYTES = 16 * 1024

export type Generator = (number: number) => FuzzRequest

export function createGenerator(seed: number, operations: Operation[], world: World): Generator {
  return (number) => {
    const operation = operations[number % operations.length] as Operation
    const kind = KINDS[Math.floor(number / operations.length) % KINDS.length] as Kind
    const random = streamOf(seed, `request ${number}`)
    const context: Context = { random, document: operation.document, world }
    const credentials = credentialsFor(random, operation)
    const { parts, note } = partsOf(context, operation, kind)
    const headers = [...headersFor(context, operation, credentials), ...parts.headers]
    const { bytes, brokenBy, isIncomplete } = write(random, { ...parts, headers }, kind)
    return {
      number,
      operation,
      kind,
      credentials,
      note: [note, brokenBy].filter(Boolean).join(', '),
      bytes,
      method: parts.method,
      owner: parts.owner,
      isIntact: parts.isIntact && kind !== 'raw' && bytes.indexOf('\r\n\r\n') < MAX_HEAD_BYTES,
      address: addressFor(random, operation, credentials),
      isRaw: kind === 'raw',
      isIncomplete,
    }
  }
}

function partsOf(context: Context, operation: Operation, kind: Kind): { parts: Parts; note: string } {
  const parts = validParts(context, operation)
  if (kind === 'mutated') return mutated(context, operation, parts)
  if (kind === 'structural') return structural(context.random, parts)
  return { parts, note: '' }
}

/** Changes what the schemas describe: the body if there is one, else the query, the path or a header. */
function mutated(context: Context, operation: Operation, parts: Parts): { parts: Parts; note: string } {
  const { random } = context
  if (parts.body !== undefined && isChance(random, 0.75)) return mutatedBody(context, operation, parts)
  if (parts.headers.length > 0 && isChance(random, 0.3)) return oddHeader(random, parts)
  if (isChance(random, 0.4)) return { parts: oddPath(random, parts, operation.path), note: 'odd path' }
  return { parts: oddQuery(random, parts), note: 'odd query' }
}

const MAX_MUTATIONS = 3

function mutatedBody(context: Context, operation: Operation, parts: Parts): { parts: Parts; note: string } {
  const { random } = context
  const isEvent = operation.id === 'carrierWebhook'
  let value: unknown = isEvent ? eventFor(context) : bodyFor(context, operation)
  const notes: string[] = []
  for (let n = wholeBetween(random, 1, MAX_MUTATIONS); n > 0; n--) {
    const change = mutate(random, value)
    value = change.value
    notes.push(change.note)
  }
  const bare = { ...parts, headers: parts.headers.filter(([name]) => name !== 'Content-Type' && name !== 'X-Goog-Signature') }
  return { parts: isEvent ? withEvent(context, bare, value) : withBody(bare, value), note: notes.join(', ') }
}

function oddHeader(random: Random, parts: Parts): { parts: Parts; note: string } {
  const [name] = oneOf(random, parts.headers)
  const value = oneOf(random, [
    '',
    ' ',
    'x'.repeat(256),
    'x'.repeat(8_000),
    'é\xff',
    ...ODD_TEXTS.filter((text) => /^[\t\x20-\x7e]*$/.test(text)),
  ])
  const headers = parts.headers.map((header): [string, string] => (header[0] === name ? [name, value] : header))
  return { parts: { ...parts, headers }, note: `odd header ${name}` }
}

function write(random: Random, { method, path, query, headers, body }: Parts, kind: Kind) {
  const target = query.length === 0 ? path : `${path}?${query.map(([name, value]) => `${name}=${value}`).join('&')}`
  const lines = {
    start: `${method} ${target} HTTP/1.1`,
    headers: ['Host: localhost', ...headers.map(([name, value]) => `${name}: ${value}`)],
    body: body ?? Buffer.alloc(0),
  }
  if (body !== undefined) lines.headers.push(`Content-Length: ${body.length}`)
  if (kind !== 'raw') return { bytes: bytesOf(lines), brokenBy: '', isIncomplete: false }
  const { bytes, note, isIncomplete } = broken(random, lines)
  return { bytes, brokenBy: note, isIncomplete }
}
