import { type TProperties, type TSchema, Type } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import type { Rule } from '../validation.ts'
import { errorResponses } from './error-responses.ts'
import { DEFAULT_LIMIT, type ListDefinition, MAX_LIMIT } from './paging.ts'

// Apart from paging.ts, since commands read lists too, and loading TypeBox would double the time that they take to start.

/** The query parameters of a list: `limit`, `cursor`, `sort`, and its own filters. */
export function listQuery<Name extends string, Filters extends TProperties>(
  list: ListDefinition<Name>,
  filters: Filters,
  options: { rules?: Rule } = {},
) {
  const offered = Object.keys(list.fields).filter((name) => !list.fields[name as Name].hidden)
  const sorts = offered.flatMap((name) => [name, `-${name}`])
  return Type.Object(
    {
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT })),
      cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 2048, description: '`nextCursor` of the previous page.' })),
      sort: Type.Optional(Type.Enum(sorts, { default: list.defaultSort, description: 'A leading `-` sorts descending.' })),
      ...filters,
    },
    { additionalProperties: false, ...options },
  )
}

/** The responses of a list, and of its errors: the given codes, and those that every list can return. */
export function listResponses<Item extends TSchema>(item: Item, description: string, ...codes: ErrorCode[]) {
  const properties = { items: Type.Array(item), nextCursor: Type.Union([Type.String(), Type.Null()]) }
  return { 200: Type.Object(properties, { additionalProperties: false, description }), ...errorResponses(...codes, 'RCS_INVALID_CURSOR') }
}
