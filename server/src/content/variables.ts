import { Type } from 'typebox'
import type { Violation } from '../errors.ts'
import { escapePointer } from '../validation.ts'

// Variables in content: `{{name}}`, or `{{name|default}}`. `\{{` is a literal `{{`. Substitution is one pass over the text that the caller wrote,
// so a value never introduces a placeholder.

export type Variables = Readonly<Record<string, string>>

const NAME = '[A-Za-z][A-Za-z0-9_]{0,63}'
const WHOLE_NAME = new RegExp(`^${NAME}$`)
const MAX_VARIABLES = 50
const VALUE_MAX_LENGTH = 1_000

/** A default has no braces. So the search stops at the next brace, and its time grows with the length of the text, whatever the text is. */
const PLACEHOLDER = new RegExp(String.raw`\\\{\{|\{\{(?<name>${NAME})(?:\|(?<byDefault>[^{}]*))?\}\}`, 'g')

/** What a content may grow to. A valid one is smaller; without a limit, 256 KiB of placeholders would become 200 MB of values. */
const RENDERED_MAX_LENGTH = 256 * 1024

/** A value for a variable that has none, so that the rules of the field can be checked all the same. */
const SAMPLE = 'x'
/** Fields that have variables, and whose whole text follows a pattern: here the sample replaces all of it. */
const SAMPLES = new Map([
  ['phoneNumbers', '+48500100200'],
  ['email', 'a@example.com'],
])
/** The fields whose texts may have variables, by their names in content and in buttons. */
const TEXTS = new Set([...SAMPLES.keys(), 'content', 'title', 'text', 'payload', 'description', 'name', 'organization'])
const ADDRESSES = new Set(['url', 'imageUrl', 'fileUrl', 'videoUrl', 'audioUrl', 'thumbnailUrl'])

/** Scheme and host of an address, up to the first character after which a value can no longer change them. */
const ORIGIN = /^[^/?#]*:\/\/[^/?#]*[/?#]/

/** A field with variables. `names`: in order, each once. `required`: those without a default. `literal`: the text without its placeholders. */
export type VariableField = { path: string; names: string[]; required: string[]; literal: string }

/**
 * A content with its values. `fields`: those with variables. `missing`: the variables without a value or a default, which have a sample in
 * `content`. `explain`: adds violations of rules about variables to those of `content`, and names the variables in these.
 */
export type Rendered = {
  content: unknown
  fields: VariableField[]
  missing: Violation[]
  explain: (violations: Violation[]) => Violation[]
}

/** Whether a content may have variables. Most have none, and are not searched further: that would take ten times as long. */
function mayHaveVariables(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('{{')
  if (typeof value !== 'object' || value === null) return false
  for (const name in value) if (mayHaveVariables(value[name as keyof typeof value])) return true
  return false
}

/** A rule for the variables of a request. */
function variableRules(variables: Record<string, unknown>): Violation[] {
  const wrong = Object.keys(variables).filter((name) => !WHOLE_NAME.test(name))
  const reason = 'must begin with a letter (A to Z, a to z), and have up to 63 more letters, digits or `_`'
  return wrong.map((name) => ({ path: `/${escapePointer(name)}`, reason }))
}

export const Variables = Type.Optional(
  Type.Unsafe<Variables>({
    type: 'object',
    additionalProperties: { type: 'string', maxLength: VALUE_MAX_LENGTH },
    maxProperties: MAX_VARIABLES,
    description:
      'The values of the variables in the content and the SMS. `{{name}}` in a text or an address becomes the value of `name`, and `{{name|there}}` becomes `there` without one; `\\{{` stands for `{{`. A name is a letter and up to 63 letters, digits or `_`. In addresses, values are percent-encoded.',
    examples: [{ name: 'Anna', order: '1001' }],
    rules: variableRules,
  }),
)

/** The variables of a request that is not validated yet; undefined if they break a rule. */
export function variablesOf(given: unknown = {}): Variables | undefined {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return undefined
  const entries = Object.entries(given)
  const isValid = entries.length <= MAX_VARIABLES && entries.every(([name, value]) => WHOLE_NAME.test(name) && isValue(value))
  return isValid ? (Object.fromEntries(entries) as Variables) : undefined
}

const isValue = (value: unknown) => typeof value === 'string' && value.length <= 2 * VALUE_MAX_LENGTH && isStorable(value)

/** Other texts are refused as they are. Encoded in an address, a wrong character of a default would not be found. */
const isStorable = (text: string) => text.isWellFormed() && !text.includes('\0')

/**
 * Puts values into all texts and addresses of a content, which may be invalid: what is no text is left as it is. Without variables, `content` is
 * the same object. If `values` is undefined, the values come later, and none is missing. `path` is the path of the content.
 */
export function renderContent(content: unknown, values: Variables | undefined, path = ''): Rendered {
  if (!mayHaveVariables(content)) return { content, fields: [], missing: [], explain: (violations) => violations }
  const found: Found = { fields: [], violations: [], missing: [], lengthLeft: RENDERED_MAX_LENGTH }
  const rendered = walk({ value: content, field: '', path }, values, found)
  const { fields, violations, missing, lengthLeft } = found
  if (lengthLeft < 0) violations.push({ path, reason: 'is over 256 KiB with the values of its variables' })
  const explain = (ofContent: Violation[]) => [...violations, ...namingVariables(ofContent, fields)]
  return { content: rendered, fields, missing: values === undefined ? [] : missing, explain }
}

type Found = { fields: VariableField[]; violations: Violation[]; missing: Violation[]; lengthLeft: number }
type Part = { value: unknown; field: string; path: string }

function walk({ value, field, path }: Part, values: Variables | undefined, found: Found): unknown {
  if (typeof value === 'string') return value.includes('{{') ? textAt({ text: value, field, path }, values, found) : value
  if (typeof value !== 'object' || value === null) return value
  const isList = Array.isArray(value)
  // The items of a list are texts of the field that has the list.
  const entries = Object.entries(value).map(([name, item]) => {
    const part = { value: item, field: isList ? field : name, path: `${path}/${escapePointer(name)}` }
    return [name, walk(part, values, found)] as const
  })
  if (entries.every(([name, item]) => item === value[name as keyof typeof value])) return value
  return isList ? entries.map(([, item]) => item) : Object.fromEntries(entries)
}

function textAt({ text, field, path }: { text: string; field: string; path: string }, values: Variables | undefined, found: Found): string {
  const isAddress = ADDRESSES.has(field)
  if ((!isAddress && !TEXTS.has(field)) || !isStorable(text)) return text
  const { names, ...about } = aboutVariables(text)
  if (names.length > 0) found.fields.push({ path, names, ...about })
  if (isAddress && hasVariableOrigin(text)) {
    found.violations.push({ path, reason: 'must have its scheme and host before the first variable, with a / after the host' })
    return text
  }
  const missing = new Set<string>()
  const rendered = put(text, (name, byDefault) => {
    const value = valueNamed(name, values) ?? byDefault
    if (value === undefined) missing.add(name)
    else found.lengthLeft -= value.length
    if (value === undefined || found.lengthLeft < 0) return SAMPLE
    return isAddress ? encodeURIComponent(value) : value
  })
  for (const name of missing) found.missing.push({ path, reason: `has the variable ${name}, which has no value and no default` })
  return missing.size > 0 ? (SAMPLES.get(field) ?? rendered) : rendered
}

/** The values come from outside, and a name may be that of something that every object has. */
function valueNamed(name: string, values: Variables = {}): string | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined
}

/** Replaces each placeholder of a text. */
function put(text: string, replace: (name: string, byDefault: string | undefined) => string): string {
  return text.replace(PLACEHOLDER, (match, name?: string, byDefault?: string) =>
    name === undefined ? match.slice(1) : replace(name, byDefault),
  )
}

function aboutVariables(text: string): Omit<VariableField, 'path'> {
  const names = new Set<string>()
  const required = new Set<string>()
  const literal = put(text, (name, byDefault) => {
    names.add(name)
    if (byDefault === undefined) required.add(name)
    return ''
  })
  return { names: [...names], required: [...required], literal }
}

/** Whether a value could change the scheme or the host of an address. */
function hasVariableOrigin(address: string): boolean {
  const [origin] = ORIGIN.exec(address) ?? [address]
  return aboutVariables(origin).names.length > 0
}

/** Says in violations of fields with variables which variables these are: their values may be too long, and not what the caller wrote. */
function namingVariables(violations: Violation[], fields: VariableField[]): Violation[] {
  const named = new Map(fields.map(({ path, names }) => [path, names]))
  return violations.map(({ path, reason }) => {
    const names = named.get(path)
    return names === undefined
      ? { path, reason }
      : { path, reason: `${reason}; it has the variable${names.length > 1 ? 's' : ''} ${names.join(', ')}` }
  })
}
