import { Ajv, type AnySchema, type ErrorObject } from 'ajv'
import type { FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { ApiError, type Violation } from '../errors.ts'

// Enough to mend a body in one go; a body that is wrong in ten thousand places need not be answered with ten thousand sentences.
const MAX_VIOLATIONS = 50

/**
 * Builds the validator of every route. Nothing is coerced, filled in or dropped: what the caller sent is what is judged. ajv counts
 * lengths in code points, as the contract does (TypeBox's own validator counts graphemes).
 */
export function buildValidator(sharedSchemas: Record<string, unknown>): FastifySchemaCompiler<TSchema> {
  const ajv = new Ajv({ allErrors: true, verbose: true, strict: true, allowUnionTypes: true, discriminator: true, validateFormats: false })
  for (const schema of Object.values(sharedSchemas)) ajv.addSchema(schema as AnySchema)

  return ({ schema, httpPart }) => {
    const validate = ajv.compile(schema)
    const readsText = httpPart === 'querystring' || httpPart === 'params'
    return (data: unknown) => {
      const value = readsText ? withIntegers(schema, data as Record<string, unknown>) : data
      const violations = unstorableTexts(value)
      if (!validate(value)) violations.push(...telling(validate.errors ?? []).map(toViolation))
      if (violations.length === 0) return { value }
      return { error: new ApiError('RCS_INVALID_REQUEST', { details: unique(violations).slice(0, MAX_VIOLATIONS) }) }
    }
  }
}

/** A query string holds only texts: those that spell a whole number become one where the schema wants it, and nothing else is bent. */
function withIntegers(schema: TSchema, data: Record<string, unknown>): Record<string, unknown> {
  const properties = (schema as { properties?: Record<string, { type?: string }> }).properties ?? {}
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => {
      const isInteger = properties[name]?.type === 'integer' && typeof value === 'string' && /^-?\d{1,15}$/.test(value)
      return [name, isInteger ? Number(value) : value]
    }),
  )
}

/** Texts that PostgreSQL can't store: they would otherwise fail far from where they came in. */
function unstorableTexts(body: unknown): Violation[] {
  const violations: Violation[] = []
  const open = [{ value: body, path: '' }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, path } = next
    if (typeof value === 'string') {
      if (value.includes('\0')) violations.push({ path, reason: 'must not contain the character NUL' })
      if (!value.isWellFormed()) violations.push({ path, reason: 'must not contain half of a surrogate pair' })
    } else if (typeof value === 'object' && value !== null) {
      for (const [name, child] of Object.entries(value)) open.push({ value: child, path: `${path}/${escapePointer(name)}` })
    }
  }
  return violations
}

function escapePointer(name: string): string {
  return name.toWellFormed().replaceAll('\0', '\uFFFD').replaceAll('~', '~0').replaceAll('/', '~1')
}

const TYPE_NAMES: Record<string, string> = {
  array: 'a list',
  boolean: 'true or false',
  integer: 'a whole number',
  number: 'a number',
  object: 'an object',
  string: 'a text',
}

/** Where only certain values are right, that the type is wrong too goes without saying. */
function telling(errors: ErrorObject[]): ErrorObject[] {
  const named = new Set(errors.filter(({ keyword }) => keyword === 'const' || keyword === 'enum').map(({ instancePath }) => instancePath))
  return errors.filter(({ keyword, instancePath }) => keyword !== 'type' || !named.has(instancePath))
}

/** What ajv says, in plain words and at the place that has to change. */
function toViolation({ keyword, instancePath: path, params, parentSchema, message }: ErrorObject): Violation {
  switch (keyword) {
    case 'additionalProperties':
      return { path: `${path}/${escapePointer(params.additionalProperty)}`, reason: 'is not known here; is it misspelt?' }
    case 'required':
      return { path: `${path}/${escapePointer(params.missingProperty)}`, reason: 'is required' }
    case 'type':
      return {
        path,
        reason: `must be ${[params.type]
          .flat()
          .map((type: string) => TYPE_NAMES[type])
          .join(' or ')}`,
      }
    case 'const':
      return { path, reason: `must be ${JSON.stringify(params.allowedValue)}` }
    case 'enum':
      return { path, reason: `must be one of ${params.allowedValues.join(', ')}` }
    case 'minLength':
      return { path, reason: params.limit === 1 ? 'must not be empty' : `must have at least ${params.limit} characters` }
    case 'maxLength':
      return { path, reason: `must have at most ${params.limit} characters` }
    case 'minimum':
    case 'maximum':
      return { path, reason: `must be ${keyword === 'minimum' ? 'at least' : 'at most'} ${params.limit}` }
    case 'minItems':
    case 'maxItems':
      return { path, reason: `must have ${keyword === 'minItems' ? 'at least' : 'at most'} ${params.limit} items` }
    case 'minProperties':
      return { path, reason: `must have at least ${params.limit} of ${Object.keys(parentSchema?.properties ?? {}).join(', ')}` }
    default:
      return { path, reason: message ?? 'is invalid' }
  }
}

function unique(violations: Violation[]): Violation[] {
  return [...new Map(violations.map((violation) => [`${violation.path} ${violation.reason}`, violation])).values()]
}
