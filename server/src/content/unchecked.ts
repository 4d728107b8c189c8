// Reading content that is not known to be right: what has another type than it should counts as absent.

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
