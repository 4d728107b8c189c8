import type { FieldViolation } from '../http/responses.ts'

/** Checks a value, and adds its violations. The checks below are combined into the check of a message. */
export type Check = (value: unknown, path: string, violations: FieldViolation[]) => void
type Fields = Record<string, unknown>

function violate(violations: FieldViolation[], field: string, description: string): void {
  violations.push({ field, description })
}

/** Lengths count code points: an emoji has one or a few, however many UTF-16 units it has. */
function codePoints(text: string): number {
  let count = text.length
  for (let index = 0; index < text.length; index++) if ((text.charCodeAt(index) & 0xfc00) === 0xd800) count--
  return count
}

export function text(max: number, rule?: { test: (value: string) => boolean; says: string }): Check {
  return (value, path, violations) => {
    if (typeof value !== 'string') violate(violations, path, `Invalid value at '${path}' (TYPE_STRING).`)
    else if (!value.isWellFormed()) violate(violations, path, `${path} is not valid UTF-8.`)
    else if (value === '') violate(violations, path, `${path} must not be empty.`)
    // A string has at most as many code points as units, so most need no counting.
    else if (value.length > max && codePoints(value) > max) violate(violations, path, `${path} must not be longer than ${max} characters.`)
    else if (rule !== undefined && !rule.test(value)) violate(violations, path, `${path} must be ${rule.says}.`)
  }
}

// The characters of RFC 3986 and nothing else; a percent sign only before two hexadecimal digits.
const URI = /^(?!https?:)[a-z][a-z0-9+.-]*:(?:[\w\-.~:/?#[\]@!$&'()*+,;=]|%[0-9a-f]{2})+$/i
// The same with a host: URL would read https:///x as the host x.
const WEB_ADDRESS = /^https?:\/\/(?![/?#:@])(?:[\w\-.~:/?#[\]@!$&'()*+,;=]|%[0-9a-f]{2})+$/i
const isWebAddress = (value: string): boolean => WEB_ADDRESS.test(value) && URL.canParse(value)
const isUri = (value: string): boolean => isWebAddress(value) || (URI.test(value) && URL.canParse(value))
export const uri = (max: number): Check => text(max, { test: isUri, says: 'a URI as in RFC 3986' })
export const webAddress: Check = text(Number.POSITIVE_INFINITY, { test: isWebAddress, says: 'an http or https URL' })

const TIMESTAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/
/** Returns the milliseconds of an RFC 3339 timestamp; undefined if it is invalid. */
export function timestampMs(value: unknown): number | undefined {
  const match = typeof value === 'string' ? TIMESTAMP.exec(value) : null
  if (match === null || !exists(match[1] ?? '')) return undefined
  const ms = Date.parse(`${match[1]}${(match[2] ?? '').slice(0, 4)}${match[3]}`)
  return Number.isNaN(ms) ? undefined : ms
}
/** Whether a time exists. Date reads 30 February as 2 March and 24:00 as the next day, so the day of the month differs. */
function exists(time: string): boolean {
  return new Date(`${time}Z`).getUTCDate() === Number(time.slice(8, 10))
}
export const timestamp: Check = (value, path, violations) => {
  if (timestampMs(value) === undefined)
    violate(violations, path, `Invalid value at '${path}' (type.googleapis.com/google.protobuf.Timestamp).`)
}

export function choice(...names: string[]): Check {
  const known = new Set<unknown>(names)
  return (value, path, violations) => {
    if (!known.has(value)) violate(violations, path, `Invalid value at '${path}': it must be one of ${names.join(', ')}.`)
  }
}

export const flag: Check = (value, path, violations) => {
  if (typeof value !== 'boolean') violate(violations, path, `Invalid value at '${path}' (TYPE_BOOL).`)
}

export function between(min: number, max: number): Check {
  return (value, path, violations) => {
    if (typeof value !== 'number' || value < min || value > max)
      violate(violations, path, `${path} must be a number from ${min} to ${max}.`)
  }
}

export function list(item: Check, min: number, max: number): Check {
  return (value, path, violations) => {
    if (!Array.isArray(value)) violate(violations, path, `Invalid value at '${path}': it must be a list.`)
    else if (value.length < min) violate(violations, path, `${path} must have at least ${min} elements.`)
    else if (value.length > max) violate(violations, path, `${path} must not have more than ${max} elements.`)
    else for (let index = 0; index < value.length; index++) item(value[index], `${path}[${index}]`, violations)
  }
}

type Shape = {
  required?: string[]
  /** Exactly one of these must be present. */
  one?: string[]
  /** A further rule, for an object whose fields are valid. */
  rule?: (fields: Fields, path: string, violations: FieldViolation[]) => void
}

/** Requires an object with these fields and no other fields. A null counts as absent, as in all JSON of protocol buffers. */
export function record(fields: Record<string, Check>, { required = [], one = [], rule }: Shape = {}): Check {
  const checks = new Map(Object.entries(fields))
  const needed = required.map((name) => (given: Fields, path: string, violations: FieldViolation[]) => {
    if (!isPresent(given, name)) violate(violations, join(path, name), `${join(path, name)} is required.`)
  })
  return (value, path, violations) => {
    if (!isFields(value)) {
      violate(violations, path, `Invalid value at '${path}': it must be an object.`)
      return
    }
    const before = violations.length
    checkFields(checks, value, path, violations)
    for (const need of needed) need(value, path, violations)
    if (one.length > 0) checkOne(value, one, path, violations)
    if (rule !== undefined && violations.length === before) rule(value, path, violations)
  }
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

function checkFields(checks: Map<string, Check>, given: Fields, path: string, violations: FieldViolation[]): void {
  for (const name of Object.keys(given)) {
    const check = checks.get(name)
    if (check === undefined) violate(violations, path, unknownName(name, path))
    else if (given[name] !== null) check(given[name], join(path, name), violations)
  }
}

function checkOne(given: Fields, names: string[], path: string, violations: FieldViolation[]): void {
  const present = names.filter((name) => isPresent(given, name))
  if (present.length !== 1) violate(violations, path, `${path || 'The message'} must have exactly one of ${names.join(', ')}.`)
}

export const isPresent = (fields: Fields, name: string): boolean => fields[name] !== undefined && fields[name] !== null

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

const unknownName = (name: string, path: string): string =>
  `Invalid JSON payload received. Unknown name "${name}"${path === '' ? '' : ` at '${path}'`}: Cannot find field.`
