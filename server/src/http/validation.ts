import type { FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { ApiError, type ErrorCode, type Violation } from '../errors.ts'
import { createSchemaCompiler } from '../validation.ts'

// Enough to mend a body in one go; a body that is wrong in ten thousand places need not be answered with ten thousand sentences.
const MAX_VIOLATIONS = 50

/** Builds the validator of every route, for Fastify. */
export function buildValidator(sharedSchemas: Record<string, object>): FastifySchemaCompiler<TSchema> {
  const compile = createSchemaCompiler(Object.values(sharedSchemas))
  return ({ schema, httpPart }) => {
    const check = compile(schema)
    return (data: unknown) => {
      const value = readText(schema, httpPart, data)
      const violations = check(value)
      if (violations.length === 0) return { value }
      const code = httpPart === 'body' ? codeFor(violations) : 'RCS_INVALID_REQUEST'
      return { error: new ApiError(code, { details: violations.slice(0, MAX_VIOLATIONS) }) }
    }
  }
}

/** Parts of a body whose faults have a code of their own. Where several are at fault, the first of these is the code. */
const CODES_BY_FIELD: [field: string, code: ErrorCode][] = [['message', 'RCS_INVALID_MESSAGE']]

function codeFor(violations: Violation[]): ErrorCode {
  const fields = new Set(violations.map(({ path }) => path.split('/')[1]))
  return CODES_BY_FIELD.find(([field]) => fields.has(field))?.[1] ?? 'RCS_INVALID_REQUEST'
}

/** Paths and query strings hold only texts: those that spell a whole number become one where the schema wants it, and nothing else is bent. */
function readText(schema: TSchema, httpPart: string | undefined, data: unknown): unknown {
  if (httpPart !== 'querystring' && httpPart !== 'params') return data
  const properties = (schema as { properties?: Record<string, { type?: string }> }).properties ?? {}
  return Object.fromEntries(
    Object.entries(data as Record<string, unknown>).map(([name, value]) => {
      if (properties[name]?.type !== 'integer' || typeof value !== 'string') return [name, value]
      return [name, httpPart === 'params' ? readId(value) : readInteger(value)]
    }),
  )
}

function readInteger(text: string): number | string {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text
}

/** What can't be an id names nothing that exists, so it is not an error of form but not found: nothing ever has the id 0. */
function readId(text: string): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0
  return Number.isSafeInteger(id) ? id : 0
}
