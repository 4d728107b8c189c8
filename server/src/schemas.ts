import { type Static, type TSchema, Type } from 'typebox'

/** For routes that take no query parameter: one that is sent is an error, not something to drop in silence. */
export const NoQuery = Type.Object({}, { additionalProperties: false })

/** Points to a schema that was added under its `$id`, so that the OpenAPI document names it once; typed as the schema itself. */
export function refTo<Schema extends TSchema>(schema: Schema, options: { description?: string } = {}) {
  return Type.Unsafe<Static<Schema>>({ $ref: `${(schema as { $id?: string }).$id}#`, ...options })
}

/** In UTC, with milliseconds; a Date is written so. */
export const OutgoingTime = Type.Unsafe<Date>({ type: 'string', format: 'date-time', examples: ['2026-01-31T08:00:00.000Z'] })
