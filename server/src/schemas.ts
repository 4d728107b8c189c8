import { type Static, type TSchema, Type } from 'typebox'
import type { Violation } from './errors.ts'
import { endOf, isRealDate, startOf } from './time.ts'

/** For routes without query parameters: any parameter is an error, and is not dropped silently. */
export const NoQuery = Type.Object({}, { additionalProperties: false })

/** The largest id of PostgreSQL's type integer. */
export const MAX_ID = 2_147_483_647

/** For requests that need no body. An empty object is accepted, too; any field is an error. */
export const NoBody = Type.Unsafe<unknown>({ type: 'object', properties: {}, additionalProperties: false, default: {} })

/** Refers to a schema that was added under its `$id`, so that the OpenAPI document has it once. The reference has the type of the schema. */
export function refTo<Schema extends TSchema>(schema: Schema, options: { description?: string } = {}) {
  return Type.Unsafe<Static<Schema>>({ $ref: `${(schema as { $id?: string }).$id}#`, ...options })
}

/** The first or the last day (UTC) of a list or report. */
export const incomingDay = (description: string) => Type.Optional(Type.String({ format: 'date', description }))

/** A rule for two such days. */
export const daysInOrder =
  (from: string, to: string) =>
  (query: Record<string, unknown>): Violation[] => {
    const [first, last] = [query[from], query[to]]
    // Dates in this format can be compared as strings.
    const isOrdered = typeof first !== 'string' || typeof last !== 'string' || first <= last
    return isOrdered ? [] : [{ path: `/${to}`, reason: `must not be before ${from}` }]
  }

/** The start or the end of a range: a day or a time. */
export const incomingMoment = (description: string) => Type.Optional(Type.String({ format: 'date-or-timestamp', description }))

/** A rule: the end of a range is not before its start. */
export const momentsInOrder =
  (from: string, to: string) =>
  (query: Record<string, unknown>): Violation[] => {
    const [first, last] = [query[from], query[to]]
    const [start, end] = [typeof first === 'string' && startOf(first), typeof last === 'string' && endOf(last)]
    const isReversed = start && end && (isRealDate(last as string) ? end <= start : end < start)
    return isReversed ? [{ path: `/${to}`, reason: `must not be before ${from}` }] : []
  }

/** UTC with milliseconds, as JSON serializes a Date. */
export const OutgoingTime = Type.Unsafe<Date>({ type: 'string', format: 'date-time', examples: ['2026-01-31T08:00:00.000Z'] })
