// Reads content that is not validated yet: a value of the wrong type counts as absent.

export type Fields = Record<string, unknown>

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

export function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
