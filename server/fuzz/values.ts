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
  if (name === 'accountIds') return oneOf(random, [world.own.accountId, world.other.accountId])
  // A longer wait would count as a hang.
  if (name === 'wait') return wholeBetween(random, 0, 2)
  if (isChance(random, 0.2)) return oneOf(random, [minimum, maximum])
  return type === 'integer' ? wholeBetween(random, minimum, maximum) : between(random, minimum, maximum)
}

function timestampFor({ random, world }: Context): string {
  return new Date(world.now + Math.floor(between(random, 0.1, 14) * DAY_MS)).toISOString()
}

function dateFor({ random, world }: Context): string {
  return new Date(world.now - Math.floor(between(random, -1, 5) * DAY_MS)).toISOString().slice(0, 10)
}

export function phoneFor(random: Random): string {
  return `+4850${String(wholeBetween(random, 0, 9_999_999)).padStart(7, '0')}`
}

const ALPHABET = [...'abcdefghij klmnopqrstuvwxyzABCXYZ0123456789-_.,!?ąęłß€日本語🙂']

export function wordsFor(random: Random, length: number): string {
  return Array.from({ length }, () => oneOf(random, ALPHABET)).join('')
}

const phone = ({ random }: Context) => phoneFor(random)
const number = ({ random }: Context) => wholeBetween(random, 0, 99_999)

/** By the name of the property. */
const NAMED: Record<string, (context: Context) => string> = {
  recipient: phone,
  recipients: phone,
  phone,
  phoneNumber: phone,
  phoneNumbers: phone,
  testNumbers: phone,
  agentId: ({ world }) => world.agentId,
  messageId: ({ random, world }) => oneOf(random, world.own.messages),
  id: (context) => `b${number(context)}`,
  sender: () => 'MyShop',
  carrier: () => 'simulator',
  'idempotency-key': (context) => `fuzz-${number(context)}`,
  addresses: ({ random }) => oneOf(random, ['10.0.0.0/8', '192.0.2.7', '2001:db8::/32']),
  email: (context) => (isChance(context.random, 0.3) ? context.world.email : `a${number(context)}@example.com`),
  password: (context) => (isChance(context.random, 0.5) ? context.world.password : `a wrong password ${number(context)}`),
  token: ({ random, world }) => (world.links.length === 0 ? 'unknown' : oneOf(random, world.links)),
}

/** By the format of the schema. */
const FORMATS: Record<string, (context: Context) => string> = {
  timestamp: timestampFor,
  'date-time': timestampFor,
  date: dateFor,
  'date-or-timestamp': (context) => (isChance(context.random, 0.5) ? dateFor(context) : timestampFor(context)),
}

function textFor(context: Context, { format = '', minLength = 0, maxLength = 40 }: Schema, name: string): string {
  const { random } = context
  const make = FORMATS[format] ?? NAMED[name]
  if (make !== undefined) return make(context)
  if (/url$/i.test(name)) return `https://media.example.com/${number(context)}.jpg`
  const length = isChance(random, LONGEST_SHARE) ? maxLength : wholeBetween(random, minLength, Math.min(maxLength, 40))
  return wordsFor(random, length)
}
