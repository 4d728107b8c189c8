import { Type } from 'typebox'
import type { Violation } from '../errors.ts'
import { lengthOf } from '../text-length.ts'
import { escapePointer } from '../validation.ts'

// Variables in content: `{{name}}`, or `{{name|default}}`. `\{{` is a literal `{{`. Substitution is one pass over the text that the caller wrote,
// so a value never introduces a placeholder.

export type Variables = Readonly<Record<string, string>>

const NAME = '[A-Za-z][A-Za-z0-9_]{0,63}'
const WHOLE_NAME = new RegExp(`^${NAME}$`)
const MAX_VARIABLES = 50
export const VALUE_MAX_LENGTH = 1_000

/** A default has no braces. So the search stops at the next brace, and its time grows with the length of the text, whatever the text is. */
const PLACEHOLDER = new RegExp(String.raw`\\\{\{|\{\{(${NAME})(?:\|([^{}]*))?\}\}`, 'g')

/** In inline content and its SMS together. Each costs time, and 256 KiB of them would become 50 MB of values. */
const MAX_PLACEHOLDERS = 200

/** Fields whose whole text follows a pattern. If a value is missing, this sample replaces all of the text. */
const SAMPLES = new Map([
  ['phoneNumbers', '+48500100200'],
  ['email', 'a@example.com'],
])
/** Replaces a missing value if the text has no other characters, so that it is not empty. */
const SAMPLE = 'x'
/** The fields whose texts may have variables, by their names in content and in buttons. */
const TEXTS = new Set([...SAMPLES.keys(), 'content', 'title', 'text', 'payload', 'description', 'name', 'organization'])
const ADDRESSES = new Set(['url', 'imageUrl', 'fileUrl', 'videoUrl', 'audioUrl', 'thumbnailUrl'])

/** Scheme and host of an address, and the character after which a value can no longer change them. */
const ORIGIN = /^[^/?#]*:\/\/[^/?#]*[/?#]/

/** A field with variables. `names`: in order, each once. `required`: those without a default. `literal`: the text without its placeholders. */
export type VariableField = { path: string; names: string[]; required: string[]; literal: string }

/**
 * A content with its values. `fields`: those with variables. `missing`: the variables without a value or a default; a sample stands for them in
 * `content`. `explain`: adds violations of rules about variables to those of `content`, and names the variables in these.
 */
export type Rendered = {
  content: unknown
  fields: VariableField[]
  missing: Violation[]
  explain: (violations: Violation[]) => Violation[]
}

/** Whether a content may have variables. Most have none, and are not searched further: that would take ten times as long. */
export function mayHaveVariables(value: unknown): boolean {
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

const isValue = (value: unknown) => typeof value === 'string' && lengthOf(value) <= VALUE_MAX_LENGTH && isStorable(value)

/** Other texts are not rendered, so that the schema refuses them: percent-encoding would hide the wrong character. */
const isStorable = (text: string) => text.isWellFormed() && !text.includes('\0')

/**
 * Puts values into all texts and addresses of a content, which may be invalid: what is no text is left as it is. Without variables, `content` is
 * the same object. If `values` is undefined, the values come later, and none is missing. `path` is the path of the content.
 */
export function renderContent(content: unknown, values: Variables | undefined, path = ''): Rendered {
  if (!mayHaveVariables(content)) return { content, fields: [], missing: [], explain: (violations) => violations }
  const found: Found = { fields: [], violations: [], missing: [], placeholdersLeft: MAX_PLACEHOLDERS }
  const rendered = walk({ value: content, field: '', path }, values, found)
  const { fields, violations, missing, placeholdersLeft } = found
  if (placeholdersLeft < 0) violations.push({ path, reason: `must have at most ${MAX_PLACEHOLDERS} occurrences of {{name}} and \\{{` })
  const explain = (ofContent: Violation[]) => [...violations, ...namingVariables(ofContent, found)]
  return { content: rendered, fields, missing: values === undefined ? [] : missing, explain }
}

/** The names of all variables in a content, each once. */
export function namesIn(content: unknown): string[] {
  return [...new Set(renderContent(content, undefined).fields.flatMap(({ names }) => names))]
}

type Found = { fields: VariableField[]; violations: Violation[]; missing: Violation[]; placeholdersLeft: number }
type Part<Value> = { value: Value; field: string; path: string }

function walk({ value, field, path }: Part<unknown>, values: Variables | undefined, found: Found): unknown {
  if (typeof value === 'string') return value.includes('{{') ? textAt({ value, field, path }, values, found) : value
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

function textAt({ value: text, field, path }: Part<string>, values: Variables | undefined, found: Found): string {
  const isAddress = ADDRESSES.has(field)
  if ((!isAddress && !TEXTS.has(field)) || !isStorable(text)) return text
  const placeholders = placeholdersIn(text, found.placeholdersLeft)
  found.placeholdersLeft -= placeholders.length
  if (found.placeholdersLeft < 0) return text
  const about = aboutField(path, text, placeholders)
  if (about.names.length > 0) found.fields.push(about)
  if (isAddress && !hasFixedOrigin(text, placeholders)) {
    found.violations.push({ path, reason: 'must have its scheme and host before the first variable, and /, ? or # after the host' })
    return text
  }
  const sample = about.literal === '' ? SAMPLE : ''
  const missing = new Set<string>()
  const rendered = put(text, placeholders, ({ name, byDefault }) => {
    const value = valueNamed(name, values) ?? byDefault
    if (value === undefined) missing.add(name)
    return isAddress ? encodeURIComponent(value ?? sample) : (value ?? sample)
  })
  for (const name of missing) found.missing.push({ path, reason: `has the variable ${name}, which has no value and no default` })
  return missing.size > 0 ? (SAMPLES.get(field) ?? rendered) : rendered
}

/** A name may be that of an inherited property, such as `constructor`. */
function valueNamed(name: string, values: Variables = {}): string | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined
}

type Variable = { name: string; byDefault: string | undefined }
/** Without a variable, it is `\{{`. */
type Placeholder = { from: number; to: number; variable?: Variable }

/** The placeholders of a text, in order; one more than `limit`, if there are more. */
function placeholdersIn(text: string, limit: number): Placeholder[] {
  const placeholders: Placeholder[] = []
  PLACEHOLDER.lastIndex = 0
  for (let match = PLACEHOLDER.exec(text); match !== null; match = PLACEHOLDER.exec(text)) {
    const [all, name, byDefault] = match
    const to = match.index + all.length
    placeholders.push({ from: match.index, to, ...(name !== undefined && { variable: { name, byDefault } }) })
    if (placeholders.length > limit) break
  }
  return placeholders
}

function put(text: string, placeholders: Placeholder[], valueFor: (variable: Variable) => string): string {
  let at = 0
  let result = ''
  for (const { from, to, variable } of placeholders) {
    result += text.slice(at, from) + (variable === undefined ? '{{' : valueFor(variable))
    at = to
  }
  return result + text.slice(at)
}

function aboutField(path: string, text: string, placeholders: Placeholder[]): VariableField {
  const variables = placeholders.flatMap(({ variable = [] }) => variable)
  const names = new Set(variables.map(({ name }) => name))
  const required = new Set(variables.flatMap(({ name, byDefault }) => (byDefault === undefined ? [name] : [])))
  return { path, names: [...names], required: [...required], literal: put(text, placeholders, () => '') }
}

/** Whether no value can change the scheme or the host of an address. A default may have any characters, so only what stands before counts. */
function hasFixedOrigin(address: string, placeholders: Placeholder[]): boolean {
  const first = placeholders.find(({ variable }) => variable !== undefined)
  return first === undefined || ORIGIN.test(address.slice(0, first.from))
}

const MAX_NAMED = 10

/**
 * Adds the names of a field's variables to its violations, since the values may be the cause. A field that breaks a rule about variables has no
 * other violations.
 */
function namingVariables(ofContent: Violation[], { fields, violations }: Found): Violation[] {
  const refused = new Set(violations.map(({ path }) => path))
  const names = namesByPath(fields)
  return ofContent
    .filter(({ path }) => !refused.has(path))
    .map(({ path, reason }) => {
      const [...all] = names.get(path) ?? []
      if (all.length === 0) return { path, reason }
      const more = all.length > MAX_NAMED ? ` and ${all.length - MAX_NAMED} more` : ''
      const named = all.slice(0, MAX_NAMED).join(', ')
      return { path, reason: `${reason}, with the ${all.length > 1 ? 'values of the variables' : 'value of the variable'} ${named}${more}` }
    })
}

/** The names of the variables of each field, and of each object that has the field: a contact is too long as a whole. */
function namesByPath(fields: VariableField[]): Map<string, Set<string>> {
  const result = new Map<string, Set<string>>()
  for (const { path, names } of fields) {
    for (let at = path; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
      // The number of items in a list does not depend on variables.
      if (at === path || !/\/(buttons|cards|phoneNumbers)$/.test(at)) result.set(at, (result.get(at) ?? new Set()).union(new Set(names)))
    }
  }
  return result
}
