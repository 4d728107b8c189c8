import { hash } from 'node:crypto'

/** Equal for bodies that are equal as JSON: neither the order of the fields nor white space makes a difference, nor how a number is written. */
export function requestHash(body: unknown): Buffer {
  return hash('sha256', JSON.stringify(sorted(body)), 'buffer')
}

/** Every field in its place. No body is nested deeper than 32 levels. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(sorted)
  const fields = Object.keys(value).sort((a, b) => (a < b ? -1 : 1))
  // From entries, since a body may have a field `__proto__`.
  return Object.fromEntries(fields.map((name) => [name, sorted((value as Record<string, unknown>)[name])]))
}
