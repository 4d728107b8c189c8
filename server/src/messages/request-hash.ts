import { hash } from 'node:crypto'

/** Equal for bodies that are equal as JSON. The order of the fields, white space and the notation of numbers make no difference. */
export function requestHash(body: unknown): Buffer {
  return hash('sha256', JSON.stringify(sorted(body)), 'buffer')
}

/** Sorts the fields of every object. The recursion is safe, since no body is nested deeper than 32 levels. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(sorted)
  const fields = Object.keys(value).sort((a, b) => (a < b ? -1 : 1))
  // An assignment would set the prototype if a body has a field `__proto__`; fromEntries makes it a field.
  return Object.fromEntries(fields.map((name) => [name, sorted((value as Record<string, unknown>)[name])]))
}
