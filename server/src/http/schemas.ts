import { type Static, type TObject, Type } from 'typebox'

/** For routes that take no query parameter: one that is sent is an error, not something to drop in silence. */
export const NoQuery = Type.Object({}, { additionalProperties: false })

/** Points to a schema that was added under its `$id`, so that the OpenAPI document names it once; typed as the schema itself. */
export function refTo<Schema extends TObject>(schema: Schema, options: { description?: string } = {}) {
  return Type.Unsafe<Static<Schema>>({ $ref: `${(schema as { $id?: string }).$id}#`, ...options })
}
