import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'

// The deepest body the API knows has nine levels.
const MAX_DEPTH = 32
// The largest that it knows, a carousel of ten cards with all their buttons, has 500 values.
const MAX_VALUES = 1_000
// The longest that it knows has 22 characters. Names stand in the paths of all that is wrong below them, so they must not be long.
const MAX_NAME_LENGTH = 100

/** Takes JSON bodies and nothing else, and reads them strictly. */
export function acceptJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
      throw new ApiError('RCS_UNSUPPORTED_MEDIA_TYPE', {
        details: [{ path: '', reason: 'Content-Encoding must be absent: the body is taken uncompressed' }],
      })
    }
    // Many clients name a type of content on every request, also on one that has none.
    if (body.length === 0 && request.method === 'DELETE') return undefined
    return withoutNulls(parse(body))
  })
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

function parse(body: Buffer): unknown {
  if (body.length === 0) throw invalid('The body is empty; a JSON object is needed.')
  let text: string
  try {
    text = strictUtf8.decode(body)
  } catch {
    throw invalid('The body is not valid UTF-8.')
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw invalid(`The body is not valid JSON${position(error as SyntaxError)}.`)
  }
}

/** Where JSON.parse stopped, without the excerpt of the body that its message quotes. */
function position(error: SyntaxError): string {
  const found = /at position (\d+)/.exec(error.message)
  return found === null ? '' : `: it breaks at character ${Number(found[1]) + 1}`
}

/** A property that is null counts as absent. Walks without recursion, so that no depth of nesting can exhaust the stack. */
function withoutNulls(body: unknown): unknown {
  const open: { value: unknown; depth: number }[] = [{ value: body, depth: 1 }]
  let values = 0
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth } = next
    values += 1
    if (values > MAX_VALUES) throw invalid(`The body holds more than ${MAX_VALUES} values.`)
    if (typeof value !== 'object' || value === null) continue
    if (depth > MAX_DEPTH) throw invalid(`The body is nested deeper than ${MAX_DEPTH} levels.`)
    if (!Array.isArray(value)) dropNulls(value as Record<string, unknown>)
    for (const child of Object.values(value)) open.push({ value: child, depth: depth + 1 })
  }
  return body
}

function dropNulls(object: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(object)) {
    if (name.length > MAX_NAME_LENGTH) throw invalid(`The body has a property whose name is over ${MAX_NAME_LENGTH} characters long.`)
    if (value === null) delete object[name]
  }
}

function invalid(reason: string): ApiError {
  return new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '', reason }] })
}
