import { type Static, type TSchema, Type } from 'typebox'
import type { Violation } from './errors.ts'

/** For routes that take no query parameter: one that is sent is an error, not something to drop in silence. */
export const NoQuery = Type.Object({}, { additionalProperties: false })

/** Points to a schema that was added under its `$id`, so that the OpenAPI document names it once; typed as the schema itself. */
export function refTo<Schema extends TSchema>(schema: Schema, options: { description?: string } = {}) {
  return Type.Unsafe<Static<Schema>>({ $ref: `${(schema as { $id?: string }).$id}#`, ...options })
}

/** A day of UTC that a list or report begins or ends with. */
export const incomingDay = (description: string) => Type.Optional(Type.String({ format: 'date', description }))

/** A rule for two of them. */
export const daysInOrder =
  (from: string, to: string) =>
  (query: Record<string, unknown>): Violation[] => {
    const [first, last] = [query[from], query[to]]
    // Dates of this form compare as texts.
    const isOrdered = typeof first !== 'string' || typeof last !== 'string' || first <= last
    return isOrdered ? [] : [{ path: `/${to}`, reason: `must not be before ${from}` }]
  }

/** In UTC, with milliseconds; a Date is written so. */
export const OutgoingTime = Type.Unsafe<Date>({ type: 'string', format: 'date-time', examples: ['2026-01-31T08:00:00.000Z'] })
