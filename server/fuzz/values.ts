import { between, oneOf, type Random } from '../chaos/support/random.ts'
import { type ApiDocument, resolve, type Schema } from './document.ts'
import type { World } from './world.ts'

// Values that a schema allows, and meaningful ones where the schema is not enough: phone numbers, addresses, ids.

export type Context = { random: Random; document: ApiDocument; world: World }

const DAY_MS = 86_400_000
const OPTIONAL_SHARE = 0.3
const LONGEST_SHARE = 0.05

export function wholeBetween(random: Random, least: number, most: number): number {
  return Math.floor(between(random, least, most + 1))
}

export function isChance(random: Random, share: number): boolean {
  return random() < share
}

/** `name`: of the property, of the array or of the parameter. */
export function valueFor(context: Context, schema: Schema, name: string): unknown {
  const { random, document } = context
  const resolved = resolve(document, schema)
  const { examples, oneOf: variants = resolved.anyOf, enum: choices } = resolved
  if (examples !== undefined && isChance(random, OPTIONAL_SHARE)) return structuredClone(oneOf(random, examples))
  if (variants !== undefined) return valueFor(context, oneOf(random, variants), name)
  if (choices !== undefined) return oneOf(random, choices)
  switch (resolved.type) {
    case 'object':
      return objectFor(context, resolved)
    case 'array': {
      const { minItems = 0, maxItems = 5, items = {} } = resolved
      const length = wholeBetween(random, minItems, Math.min(maxItems, minItems + 3))
      return Array.from({ length }, () => valueFor(context, items, name))
    }
    case 'integer':
    case 'number':
      return numberFor(context, resolved, name)
    case 'boolean':
      return isChance(random, 0.5)
    case 'null':
      return null
    default:
      return textFor(context, resolved, name)
  }
}

function objectFor(context: Context, { properties = {}, required = [] }: Schema): Record<string, unknown> {
  const { random } = context
  // The schema can't say that a message has exactly one of the two.
  const isMessage = 'templateId' in properties && 'inline' in properties
  const chosen = isMessage ? [oneOf(random, ['templateId', 'inline'])] : required
  const names = Object.keys(properties).filter((name) => chosen.includes(name) || (!isMessage && isChance(random, OPTIONAL_SHARE)))
  return Object.fromEntries(names.map((name) => [name, valueFor(context, properties[name] as Schema, name)]))
}

function numberFor({ random, world }: Context, { type, minimum = 0, maximum = 1_000 }: Schema, name: string): number {
  if (name === 'templateId' && world.own.templates.length > 0) return oneOf(random, world.own.templates)
  if (name === 'segmentIds') return oneOf(random, world.groups)
  if (isChance(random, 0.2)) return oneOf(random, [minimum, maximum])
  return type === 'integer' ? wholeBetween(random, minimum, maximum) : between(random, minimum, maximum)
}

export function timestampFor({ random, world }: Context): string {
  return new Date(world.now + Math.floor(between(random, 0.1, 14) * DAY_MS)).toISOString()
}

export function dateFor({ random, world }: Context): string {
  return new Date(world.now - Math.floor(between(random, -1, 5) * DAY_MS)).toISOString().slice(0, 10)
}

export function phoneFor(random: Random): string {
  return `+4850${String(wholeBetween(random, 0, 9_999_999)).padStart(7, '0')}`
}

const ALPHABET = [...'abcdefghij klmnopqrstuvwxyzABCXYZ0123456789-_.,!?ąęłß€日本語🙂']

export function wordsFor(random: Random, length: number): string {
  return Array.from({ length }, () => oneOf(random, ALPHABET)).join('')
}

const PHONES = new Set(['recipient', 'recipients', 'phoneNumber', 'phoneNumbers', 'testNumbers'])

function textFor(context: Context, { format, minLength = 0, maxLength = 40 }: Schema, name: string): string {
  const { random, world } = context
  const number = wholeBetween(random, 0, 99_999)
  if (format === 'timestamp' || format === 'date-time') return timestampFor(context)
  if (format === 'date') return dateFor(context)
  if (format === 'date-or-timestamp') return context.random() < 0.5 ? dateFor(context) : timestampFor(context)
  if (PHONES.has(name)) return phoneFor(random)
  if (name === 'agentId') return world.agentId
  if (name === 'id') return `b${number}`
  if (name === 'sender') return 'MyShop'
  if (name === 'email') return `a${number}@example.com`
  if (name === 'idempotency-key') return `fuzz-${number}`
  if (/url$/i.test(name)) return `https://media.example.com/${number}.jpg`
  const length = isChance(random, LONGEST_SHARE) ? maxLength : wholeBetween(random, minLength, Math.min(maxLength, 40))
  return wordsFor(random, length)
}
