import { createHash } from 'node:crypto'

/** Equal for bodies that are equal as JSON: neither the order of the fields nor white space makes a difference, nor how a number is written. */
export function requestHash(body: unknown): Buffer {
  return createHash('sha256').update(canonicalJson(body)).digest()
}

function canonicalJson(body: unknown): string {
  return JSON.stringify(body, (_name, value: unknown) => (isPlainObject(value) ? sorted(value) : value))
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** From entries, since a body may have a field `__proto__`. */
function sorted(object: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))
}
