import type { FastifyInstance, FastifyRequest, FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { ApiError, type ErrorCode, type Violation } from '../errors.ts'
import { type Check, createSchemaCompiler, type Prepared } from '../validation.ts'

// Enough to fix a body in one go. A body with ten thousand mistakes does not need ten thousand sentences in the response.
const MAX_VIOLATIONS = 50

/** Builds the validators of all routes, for Fastify. */
export function buildValidator(sharedSchemas: Record<string, object>): FastifySchemaCompiler<TSchema> {
  const compile = createSchemaCompiler(Object.values(sharedSchemas))
  return ({ schema, httpPart }) => {
    // Compiled with the first request: compiling all took two thirds of the time of a start, and most processes use only a few.
    let check: Check | undefined
    return (data: unknown) => {
      check ??= compile(schema)
      const given = httpPart === 'body' ? (data ?? defaultOf(schema)) : readText(schema, httpPart, data)
      const { checked, value, missing, explain } = prepared(schema, given)
      const violations = explain(check(checked))
      if (violations.length === 0 && missing.length === 0) return { value }
      const code = violations.length === 0 ? 'RCS_MISSING_VARIABLE' : codeFor(schema, httpPart, violations)
      return { error: new ApiError(code, { details: limited([...violations, ...missing]) }) }
    }
  }
}

function prepared(schema: TSchema & { prepare?: (body: unknown) => Prepared }, value: unknown): Prepared {
  return schema.prepare?.(value) ?? { checked: value, value, missing: [], explain: (violations) => violations }
}

/** Checks the query before the body. Fastify stops at a wrong body, so the response would not name an unknown query parameter. */
export function checkQueryFirst(app: FastifyInstance): void {
  // Comes after the route's own preValidation hooks, such as the check for a module.
  app.addHook('onRoute', (route) => {
    route.preValidation = [route.preValidation ?? [], checkQuery].flat()
  })
}

async function checkQuery(request: FastifyRequest): Promise<void> {
  const check = request.getValidationFunction('querystring') as ((query: unknown) => { error?: ApiError }) | undefined
  const error = check?.(request.query).error
  if (error !== undefined) throw error
}

/** Limits the number of violations. Violations of a list as a whole come before violations of its items. */
function limited(violations: Violation[]): Violation[] {
  if (violations.length <= MAX_VIOLATIONS) return violations
  const byDepth = Map.groupBy(violations, ({ path }) => path.split('/').length)
  return [...byDepth.keys()]
    .sort((a, b) => a - b)
    .flatMap((depth) => byDepth.get(depth) ?? [])
    .slice(0, MAX_VIOLATIONS)
}

/** Fields of a body whose violations have a code of their own. If several fields are wrong, the first one in this list decides. */
const CODES_BY_FIELD: [field: string, code: ErrorCode][] = [
  ['message', 'RCS_INVALID_MESSAGE'],
  ['recipient', 'RCS_INVALID_RECIPIENT'],
  ['recipients', 'RCS_INVALID_RECIPIENT'],
  ['smsFallback', 'RCS_INVALID_SMS_FALLBACK'],
  ['smsFallbackAfterExpiry', 'RCS_INVALID_SMS_FALLBACK'],
]

/** Parameters of paths and queries that hold a phone number. */
const NUMBER_PARAMETERS = ['phone', 'recipient']

function codeFor(schema: TSchema, httpPart: string | undefined, violations: Violation[]): ErrorCode {
  // The guard checks the credentials.
  if (httpPart === 'headers' && 'idempotency-key' in propertiesOf(schema)) return 'RCS_IDEMPOTENCY_KEY_REQUIRED'
  if (httpPart === 'querystring' && isOnlyCursor(schema, violations)) return 'RCS_INVALID_CURSOR'
  const numbers = NUMBER_PARAMETERS.filter((name) => name in propertiesOf(schema)).map((name) => `/${name}`)
  if (httpPart !== 'body' && violations.every(({ path }) => numbers.includes(path))) return 'RCS_INVALID_RECIPIENT'
  if (httpPart !== 'body') return 'RCS_INVALID_REQUEST'
  // Only for bodies that have such a field: elsewhere the field is unknown.
  const parts = CODES_BY_FIELD.filter(([field]) => field in propertiesOf(schema))
  return parts.find(([field]) => violations.some(({ path }) => isWithin(path, field)))?.[1] ?? 'RCS_INVALID_REQUEST'
}

/** The parameters of lists and of the event feed that hold a cursor. A text that can't be one gets the same code as any other wrong cursor. */
const CURSOR_PARAMETERS = ['cursor', 'after']

function isOnlyCursor(schema: TSchema, violations: Violation[]): boolean {
  const names = CURSOR_PARAMETERS.filter((name) => name in propertiesOf(schema))
  return violations.every(({ path }) => names.some((name) => path === `/${name}`))
}

function isWithin(path: string, field: string): boolean {
  return path.startsWith(field, 1) && (path.length === field.length + 1 || path[field.length + 1] === '/')
}

/** What a body that was left out stands for; undefined if a body is required. */
function defaultOf(schema: TSchema): unknown {
  return (schema as { default?: unknown }).default
}

function propertiesOf(schema: TSchema): Record<string, { type?: string }> {
  return (schema as { properties?: Record<string, { type?: string }> }).properties ?? {}
}

/** Paths and query strings hold only text. Converts text to an integer or a boolean if the schema requires one and the text spells one. */
function readText(schema: TSchema, httpPart: string | undefined, data: unknown): unknown {
  if (httpPart !== 'querystring' && httpPart !== 'params') return data
  const properties = propertiesOf(schema)
  return Object.fromEntries(
    Object.entries(data as Record<string, unknown>).map(([name, value]) => {
      const type = properties[name]?.type
      if (typeof value !== 'string') return [name, value]
      if (type === 'boolean') return [name, BOOLEANS.get(value) ?? value]
      if (type !== 'integer') return [name, value]
      return [name, httpPart === 'params' ? readId(value) : readInteger(value)]
    }),
  )
}

const BOOLEANS = new Map([
  ['true', true],
  ['false', false],
])

function readInteger(text: string): number | string {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text
}

/** Text that can't be an id becomes 0, which no row has: the caller gets 404 rather than 400. */
function readId(text: string): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0
  return Number.isSafeInteger(id) ? id : 0
}
