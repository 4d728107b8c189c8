import type { FastifyInstance, FastifyRequest, FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { ApiError, type ErrorCode, type Violation } from '../errors.ts'
import { type Check, createSchemaCompiler } from '../validation.ts'

// Enough to mend a body in one go; a body that is wrong in ten thousand places need not be answered with ten thousand sentences.
const MAX_VIOLATIONS = 50

/** Builds the validator of every route, for Fastify. */
export function buildValidator(sharedSchemas: Record<string, object>): FastifySchemaCompiler<TSchema> {
  const compile = createSchemaCompiler(Object.values(sharedSchemas))
  return ({ schema, httpPart }) => {
    // With the first request: compiling all of them took two thirds of the time of a start, and most starts are for a few of them.
    let check: Check | undefined
    return (data: unknown) => {
      check ??= compile(schema)
      const value = readText(schema, httpPart, data)
      const violations = check(value)
      if (violations.length === 0) return { value }
      return { error: new ApiError(codeFor(schema, httpPart, violations), { details: mostTelling(violations) }) }
    }
  }
}

/** Fastify would not look at the query of a request whose body is wrong, and a parameter that nobody knows would go unnamed. */
export function checkQueryFirst(app: FastifyInstance): void {
  // After what a route asks before it looks at the request at all, such as for a module.
  app.addHook('onRoute', (route) => {
    route.preValidation = [route.preValidation ?? [], checkQuery].flat()
  })
}

async function checkQuery(request: FastifyRequest): Promise<void> {
  const check = request.getValidationFunction('querystring') as ((query: unknown) => { error?: ApiError }) | undefined
  const error = check?.(request.query).error
  if (error !== undefined) throw error
}

/** Where not all can be named, what is wrong with a list as a whole comes before what is wrong with each of its items. */
function mostTelling(violations: Violation[]): Violation[] {
  if (violations.length <= MAX_VIOLATIONS) return violations
  const byDepth = Map.groupBy(violations, ({ path }) => path.split('/').length)
  return [...byDepth.keys()]
    .sort((a, b) => a - b)
    .flatMap((depth) => byDepth.get(depth) ?? [])
    .slice(0, MAX_VIOLATIONS)
}

/** Parts of a body whose faults have a code of their own. Where several are at fault, the first of these is the code. */
const CODES_BY_FIELD: [field: string, code: ErrorCode][] = [
  ['message', 'RCS_INVALID_MESSAGE'],
  ['recipient', 'RCS_INVALID_RECIPIENT'],
  ['recipients', 'RCS_INVALID_RECIPIENT'],
  ['smsFallback', 'RCS_INVALID_SMS_FALLBACK'],
  ['smsFallbackAfterExpiry', 'RCS_INVALID_SMS_FALLBACK'],
]

function codeFor(schema: TSchema, httpPart: string | undefined, violations: Violation[]): ErrorCode {
  // The one header that the API asks for, beside those that the guard judges.
  if (httpPart === 'headers') return 'RCS_IDEMPOTENCY_KEY_REQUIRED'
  if (httpPart !== 'body') return 'RCS_INVALID_REQUEST'
  // Only for bodies that have such a part: elsewhere the field is unknown.
  const parts = CODES_BY_FIELD.filter(([field]) => field in propertiesOf(schema))
  return parts.find(([field]) => violations.some(({ path }) => isWithin(path, field)))?.[1] ?? 'RCS_INVALID_REQUEST'
}

function isWithin(path: string, field: string): boolean {
  return path.startsWith(field, 1) && (path.length === field.length + 1 || path[field.length + 1] === '/')
}

function propertiesOf(schema: TSchema): Record<string, { type?: string }> {
  return (schema as { properties?: Record<string, { type?: string }> }).properties ?? {}
}

/** Paths and query strings hold only texts: those that spell a whole number, `true` or `false` become that where the schema wants it. */
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

/** What can't be an id names nothing that exists, so it is not an error of form but not found: nothing ever has the id 0. */
function readId(text: string): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0
  return Number.isSafeInteger(id) ? id : 0
}
