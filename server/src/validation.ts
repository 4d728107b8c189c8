import { Ajv, type AnySchema, type AnySchemaObject, type ErrorObject, type FuncKeywordDefinition } from 'ajv'
import type { Violation } from './errors.ts'
import { lengthOf } from './text-length.ts'
import { isRealDate, parseTimestamp } from './time.ts'

/** A rule that a schema can't express. Its value has the schema's `type`, but the fields of the value may have any type. */
export type Rule = (value: never) => Violation[]

export type Check = (value: unknown) => Violation[]

/**
 * What `prepare` of a body's schema makes of the body. `checked`: what has to follow the rules. `value`: what the route gets. `missing`: values
 * of variables. `explain`: adds to the violations of `checked` what they have to do with the preparation.
 */
export type Prepared = { checked: unknown; value: unknown; missing: Violation[]; explain: (violations: Violation[]) => Violation[] }

// `words` follows "must be".
const FORMATS: Record<string, { words: string; validate: (text: string) => boolean }> = {
  date: { words: 'a date, such as 2026-01-31', validate: isRealDate },
  // All of ISO 8601. Unlike in `date-time`, which is RFC 3339, seconds and the colon of an offset are optional.
  timestamp: {
    words: 'a time with its zone, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00',
    validate: (text) => parseTimestamp(text) !== undefined,
  },
  'date-or-timestamp': {
    words: 'a date, such as 2026-01-31, or a time with its zone, such as 2026-01-31T08:00:00Z',
    validate: (text) => isRealDate(text) || parseTimestamp(text) !== undefined,
  },
}

/**
 * Compiles schemas into checks that return every violation, not only the first. Checks coerce, add and drop nothing: they see exactly what the
 * caller sent. Lengths are in code points, as in the contract (TypeBox's own validator counts graphemes).
 *
 * Besides JSON Schema's keywords there is `rules`: a function that checks what the schema can't express. Its paths are relative to its value.
 */
export function createSchemaCompiler(sharedSchemas: object[]): (schema: object) => Check {
  const ajv = new Ajv({
    allErrors: true,
    verbose: true,
    strict: true,
    allowUnionTypes: true,
    discriminator: true,
    // A shared schema is compiled once, not again wherever it is used. ajv's optimizer made no check measurably faster. Together, the two saved
    // 420 ms of every start.
    inlineRefs: false,
    code: { optimize: false },
    // The schemas are Herald's own, and a test validates the OpenAPI document. Compiling the meta-schema took another 280 ms.
    meta: false,
    validateSchema: false,
  })
  ajv.addKeyword({ keyword: 'rules', errors: 'full', validate: applyRules })
  // For http/validation.ts.
  ajv.addKeyword({ keyword: 'prepare' })
  for (const keyword of TEXT_KEYWORDS) {
    ajv.removeKeyword(keyword.keyword)
    ajv.addKeyword({ type: 'string', ...keyword })
  }
  for (const [name, { validate }] of Object.entries(FORMATS)) ajv.addFormat(name, validate)
  // Used in responses only, which are not validated.
  ajv.addFormat('date-time', true)
  for (const schema of sharedSchemas) ajv.addSchema(schema as AnySchema)

  return (schema) => {
    const validate = ajv.compile(schema as AnySchema)
    return (value) => {
      const { isStorable, hasLongList } = survey(value)
      const violations = isStorable ? [] : unstorableTexts(value)
      // A body that passes with its lists shortened is checked again as a whole.
      const isValid = (!hasLongList || validate(withShortLists(value))) && validate(value)
      if (!isValid) violations.push(...withoutRedundant(validate.errors ?? []).map(toViolation))
      return violations
    }
  }
}

// These replace ajv's own keywords, which count every character of a text and match a pattern against all of it, however long it is. That was
// most of the cost of refusing a long text. A character has one or two UTF-16 units, so most texts need no counting.
const TEXT_KEYWORDS: (FuncKeywordDefinition & { keyword: string })[] = [
  {
    keyword: 'minLength',
    validate: (limit: number, text: string) => text.length >= 2 * limit || lengthOf(text) >= limit,
  },
  {
    keyword: 'maxLength',
    validate: (limit: number, text: string) => text.length <= limit || (!isFarTooLong(text, limit) && lengthOf(text) <= limit),
  },
  {
    keyword: 'pattern',
    compile: (pattern: string, schema: AnySchemaObject) => {
      const expression = new RegExp(pattern, 'u')
      return (text: string) => isFarTooLong(text, schema.maxLength) || expression.test(text)
    },
  },
]

/** Whether a text is refused without counting its characters. Other checks skip such a text, since they could take long. */
function isFarTooLong(text: string, maxLength = Number.POSITIVE_INFINITY): boolean {
  return text.length > 2 * maxLength
}

type Place = { instancePath: string }
type RulesKeyword = { (rule: Rule, value: unknown, schema?: { type?: string; maxLength?: number }, at?: Place): boolean; errors?: object[] }

const applyRules: RulesKeyword = (rule, value, schema, at) => {
  // The value has the wrong type, which the schema reports.
  if (typeOf(value) !== (schema?.type === 'integer' ? 'number' : schema?.type)) return true
  if (typeof value === 'string' && isFarTooLong(value, schema?.maxLength)) return true
  const violations = rule(value as never)
  applyRules.errors = violations.map(({ path, reason }) => ({
    keyword: 'rules',
    instancePath: `${at?.instancePath ?? ''}${path}`,
    message: reason,
    params: {},
  }))
  return violations.length === 0
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

// Of a longer list, only the first items are checked at first: ajv's cost grows with the square of their number, and 87,000 cards took it 15 s.
// Only the recipients of a look-up may be more, and are then checked again as a whole.
const MAX_ITEMS_CHECKED = 20

/** Visits every value once: most bodies need no second pass. PostgreSQL can't store some texts, and would fail much later. */
function survey(body: unknown): { isStorable: boolean; hasLongList: boolean } {
  let isStorable = true
  let hasLongList = false
  const open = [body]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value === 'string') isStorable &&= !value.includes('\0') && value.isWellFormed()
    else if (typeof value === 'object' && value !== null) {
      if (isLongList(value)) hasLongList = true
      for (const child of Object.values(value)) open.push(child)
    }
  }
  return { isStorable, hasLongList }
}

/** Lists of numbers may be long: numbers have no rules, and campaigns name up to 100 groups. */
function isLongList(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length > MAX_ITEMS_CHECKED && typeof value[0] !== 'number'
}

function withShortLists(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return (isLongList(value) ? value.slice(0, MAX_ITEMS_CHECKED + 1) : value).map(withShortLists)
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, withShortLists(child)]))
}

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

export function escapePointer(name: string): string {
  return name.toWellFormed().replaceAll('\0', '\uFFFD').replaceAll('~', '~0').replaceAll('/', '~1')
}

const TYPE_NAMES: Record<string, string> = {
  array: 'an array',
  boolean: 'true or false',
  integer: 'a whole number',
  number: 'a number',
  object: 'an object',
  string: 'a string',
}

/**
 * Drops the error of a wrong type if another error names the allowed values. Of a field that may be null, only the errors of its other schema
 * remain: `anyOf` says nothing more, and a caller seldom means null.
 */
function withoutRedundant(errors: ErrorObject[]): ErrorObject[] {
  const named = new Set(errors.filter(({ keyword }) => keyword === 'const' || keyword === 'enum').map(({ instancePath }) => instancePath))
  return errors.filter(
    ({ keyword, instancePath, params }) =>
      keyword !== 'anyOf' && (keyword !== 'type' || !(params.type === 'null' || named.has(instancePath))),
  )
}

/** Turns an error of ajv into plain words, with the path of the value that must change. */
function toViolation(error: ErrorObject): Violation {
  const { keyword, instancePath: path, params } = error
  switch (keyword) {
    case 'additionalProperties':
      return { path: `${path}/${escapePointer(params.additionalProperty)}`, reason: unknownField(error) }
    case 'required':
      return { path: `${path}/${escapePointer(params.missingProperty)}`, reason: 'is required' }
    case 'discriminator':
      return {
        path: `${path}/${params.tag}`,
        reason: params.tagValue === undefined ? 'is required' : `must be one of ${kindsOf(error).join(', ')}`,
      }
    default:
      return { path, reason: reasonOf(error) }
  }
}

/** The field may be valid for another type, so the reason names the type of this object. */
function unknownField({ parentSchema }: ErrorObject): string {
  const type = parentSchema?.properties?.type?.const
  return type === undefined ? 'is not known here; is it misspelt?' : `is not a field of type ${type}; is it misspelt?`
}

function kindsOf({ parentSchema, params }: ErrorObject): string[] {
  return parentSchema?.oneOf.map((kind: { properties: Record<string, { const: string }> }) => kind.properties[params.tag]?.const)
}

function reasonOf({ keyword, schema: limit, params, parentSchema, message }: ErrorObject): string {
  switch (keyword) {
    case 'type':
      return `must be ${[params.type]
        .flat()
        .map((type: string) => TYPE_NAMES[type])
        .join(' or ')}`
    case 'const':
      return `must be ${JSON.stringify(params.allowedValue)}`
    case 'enum':
      return `must be one of ${params.allowedValues.join(', ')}`
    case 'format':
      return `must be ${FORMATS[params.format]?.words}`
    case 'pattern':
      // The description of a text with a pattern says in words what the pattern allows.
      return `must be ${parentSchema?.description}`
    case 'minLength':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} characters`
    case 'maxLength':
      return limit === 0 ? 'must be empty or absent' : `must have at most ${limit} characters`
    case 'maxProperties':
      return params.limit === 0 ? 'must be empty or absent' : `must have at most ${params.limit} fields`
    case 'minimum':
    case 'maximum':
      return `must be ${keyword === 'minimum' ? 'at least' : 'at most'} ${params.limit}`
    case 'minItems':
    case 'maxItems':
      return `must have ${keyword === 'minItems' ? 'at least' : 'at most'} ${params.limit} item${params.limit === 1 ? '' : 's'}`
    case 'minProperties':
      return `must have at least ${params.limit} of ${Object.keys(parentSchema?.properties ?? {}).join(', ')}`
    default:
      return message ?? 'is invalid'
  }
}
