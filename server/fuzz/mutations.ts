import { oneOf, type Random } from '../chaos/support/random.ts'
import { wholeBetween } from './values.ts'

// Values that a schema does not allow, or barely allows: each mutation changes one place of a JSON value.

export const ODD_TEXTS: string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'x\udfff',
  '\u202e\u2066evil',
  '\ufeff',
  '\r\nX-Injected: 1',
  "'; drop table messages; --",
  '{{name}}',
  '\\{{',
  '%00%ff',
  '../../etc/passwd',
  '#{7*7}',
  '=1+1',
  '\u001b[2J',
  'é'.normalize('NFD').repeat(50),
  '🙂'.repeat(100),
  'NaN',
  'null',
  'true',
  '1e400',
  '-0',
  '0x10',
  '2026-02-30T10:00:00Z',
  '2026-01-01T10:00:00',
  '9999-12-31T23:59:59.999Z',
  '0000-01-01T00:00:00Z',
  '+275760-09-13T00:00:00.000Z',
  '2026-01-01T10:00:00+99:99',
  '2026-12-31T23:59:60Z',
  '0000-00-00',
  '2026-02-30',
  '275760-09-14',
  'https://127.0.0.1/',
  'https://[::1]/',
  'https://0x7f.1/',
  'https://user:pass@example.com/',
  'javascript:alert(1)',
  'https://例え.テスト/ü?q=ü',
  'https://example.com:99999/',
  'https://',
  '+0000000000',
  '+',
  '٤٨٥٠٠١٠٠٢٠٠',
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
]

export const ODD_NUMBERS: number[] = [
  0,
  -0,
  -1,
  0.1,
  1e21,
  1e308,
  -1e308,
  5e-324,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 53,
  2 ** 53 + 2,
  2 ** 63,
  Number.MAX_SAFE_INTEGER,
  Number.MIN_SAFE_INTEGER,
]

const LENGTHS = [1, 25, 26, 64, 65, 100, 101, 160, 161, 200, 201, 255, 256, 1_000, 1_001, 2_000, 2_048, 2_049, 3_072, 3_073, 20_000]
const ODD_NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '', ' ', '\0', 'a/b', 'a~b', '$ref', '\ud800']

type Change = (random: Random, value: unknown) => unknown

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let n = 0; n < depth; n++) value = n % 2 === 0 ? [value] : { a: value }
  return value
}

/** Replace a value by another. */
const REPLACEMENTS: Record<string, Change> = {
  'odd text': (random) => oneOf(random, ODD_TEXTS),
  'odd number': (random) => oneOf(random, ODD_NUMBERS),
  'other type': (random, value) => oneOf(random, [null, true, 1, 'text', [], {}, [value], { value }, JSON.stringify(value)]),
  null: () => null,
  'boundary length': (random) => oneOf(random, ['a', 'ą', '🙂', '\u0301']).repeat(oneOf(random, LENGTHS)),
  'deep nesting': (random) => nested(oneOf(random, [5, 31, 32, 33, 1_000])),
  // Thousands of copies of a large value would take tens of megabytes.
  'long array': (random, value) => {
    const item = typeof value === 'object' ? 1 : value
    return Array.from({ length: oneOf(random, [12, 101, 999, 1_000, 1_001, 5_000]) }, () => item)
  },
}

/** Change an object or array in place. */
const ADDITIONS: Record<string, (random: Random, target: Record<string, unknown>) => void> = {
  'missing property': (random, target) => {
    const names = Object.keys(target)
    if (names.length > 0) delete target[oneOf(random, names)]
  },
  'extra property': (random, target) => define(target, `extra${wholeBetween(random, 0, 99)}`, 1),
  'odd name': (random, target) => define(target, oneOf(random, ODD_NAMES), oneOf(random, [1, {}, [], 'x', null])),
  'long name': (random, target) => define(target, 'n'.repeat(oneOf(random, [99, 100, 101, 10_000])), 1),
  'many names': (random, target) => {
    const count = oneOf(random, [50, 999, 1_001, 5_000])
    for (let n = 0; n < count; n++) define(target, `name${n}`, n)
  },
}

/** Makes even `__proto__` a property of the object itself, which JSON.stringify writes. */
function define(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true })
}

type Place = { parent: Record<string, unknown>; key: string }

function placesIn(value: unknown, places: Place[] = []): Place[] {
  if (typeof value !== 'object' || value === null) return places
  for (const key of Object.keys(value)) {
    places.push({ parent: value as Record<string, unknown>, key })
    placesIn((value as Record<string, unknown>)[key], places)
  }
  return places
}

/** Changes `value` in one place, and returns it with the name of the change. */
export function mutate(random: Random, value: unknown): { value: unknown; note: string } {
  const root = { value }
  const places = placesIn(root)
  const { parent, key } = oneOf(random, places)
  const chosen = parent[key]
  const isContainer = typeof chosen === 'object' && chosen !== null
  if (isContainer && random() < 0.6) {
    const note = oneOf(random, Object.keys(ADDITIONS))
    ADDITIONS[note]?.(random, chosen as Record<string, unknown>)
    return { value: root.value, note }
  }
  const note = oneOf(random, Object.keys(REPLACEMENTS))
  define(parent, key, REPLACEMENTS[note]?.(random, chosen))
  return { value: root.value, note: `${note} at ${key}` }
}
