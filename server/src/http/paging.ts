import { createHash } from 'node:crypto'
import { ApiError } from '../errors.ts'
import { structureProblem } from '../json-structure.ts'

export const DEFAULT_LIMIT = 50
export const MAX_LIMIT = 200

/** A page ends early once its items reach this size, but has at least one item. 200 of the largest templates would be a response of 50 MB. */
export const PAGE_MAX_BYTES = 1024 * 1024

/** The column and the type of a field that a list can be sorted by. A cursor holds values of that type. */
type SortField = {
  column: string
  type: 'timestamptz' | 'text' | 'bigint' | 'uuid'
  /** The field of an item that has the value of the column, if it is not the field itself. */
  valueIn?: string
  /** Used only to break ties; callers can't sort by it. */
  hidden?: true
}

/**
 * A list with keyset paging: a page begins after the last item of the page before, whatever was added or removed meanwhile, and costs the same
 * at any depth. `id` is a unique field, which breaks ties.
 */
export type ListDefinition<Name extends string> = { fields: Record<Name, SortField>; id: Name; defaultSort: Name | `-${Name}` }

export type PageQuery = { limit?: number; cursor?: string; sort?: string }

export type Page = {
  limit: number
  /** A condition for the `where` clause; true on the first page. Its parameters are `values`, from $`firstParameter` on. */
  condition: string
  values: unknown[]
  orderBy: string
  /** One row more than the limit, to see whether another page follows. */
  fetch: number
  /**
   * Makes the body of the response. `found`: how many rows the statement found, if it did not return all of them. `lastRead`: the row to
   * continue after, if the statement stopped before it found enough.
   */
  toBody: <Item extends Record<string, unknown>>(rows: Item[], found?: number, lastRead?: Record<string, unknown>) => PageOf<Item>
}

/** The body of the response to a list. */
export type PageOf<Item> = { items: Item[]; nextCursor: string | null }

/**
 * Limits the rows of a statement to PAGE_MAX_BYTES in SQL, so that the database never sends further rows. `size` is an expression for the bytes
 * of a row; `found` is the number of rows before the limit.
 */
export const withinPageBytes = (statement: string, size: string) => `
  select * from (
    select page.*, count(*) over () as found, sum(${size}) over (rows between unbounded preceding and 1 preceding) as "bytesBefore"
    from (${statement}) as page
  ) as sized
  where coalesce("bytesBefore", 0) < ${PAGE_MAX_BYTES}`

/**
 * Reads the query of a list. A cursor is valid only for the list, the sort and the filters that it was made with. `of`: what the list belongs to,
 * if not to the account as a whole.
 */
export function readPage<Name extends string>(
  list: ListDefinition<Name>,
  query: PageQuery,
  firstParameter: number,
  of: number | string = '',
): Page {
  const { limit = DEFAULT_LIMIT, cursor, sort = list.defaultSort, ...filters } = query
  const { names, columns, descending, orderBy } = orderOf(list, sort)
  const belongsTo = createHash('sha256')
    .update(JSON.stringify([Object.keys(list.fields), of, sort, Object.entries(filters).sort()]))
    .digest('base64url')
    .slice(0, 10)

  const after =
    cursor === undefined
      ? undefined
      : decodeCursor(
          cursor,
          belongsTo,
          names.map((field) => list.fields[field]),
        )
  const parameters = names.map((field, index) => `$${firstParameter + index}::${list.fields[field].type}`)
  return {
    limit,
    condition: after === undefined ? 'true' : `(${columns.join(', ')}) ${descending ? '<' : '>'} (${parameters.join(', ')})`,
    values: after ?? [],
    orderBy,
    fetch: limit + 1,
    toBody: (rows, found = rows.length, lastRead) => {
      const items = rows.slice(0, limit)
      const last: Record<string, unknown> | undefined = found > items.length ? items.at(-1) : lastRead
      const nextCursor =
        last === undefined ? null : encodeCursor([belongsTo, ...names.map((field) => last[list.fields[field].valueIn ?? field])])
      return { items, nextCursor }
    },
  }
}

function orderOf<Name extends string>(list: ListDefinition<Name>, sort: string) {
  const descending = sort.startsWith('-')
  const name = sort.replace(/^-/, '') as Name
  const names = name === list.id ? [name] : [name, list.id]
  const columns = names.map((field) => list.fields[field].column)
  return { names, columns, descending, orderBy: columns.map((column) => `${column} ${descending ? 'desc' : 'asc'}`).join(', ') }
}

/** What a statement of a list reads: a page, or everything if `fetch` is null. */
export type PageRead = Pick<Page, 'condition' | 'values' | 'orderBy'> & { fetch: number | null }

/** All rows of a list in its default order, for commands and checks. */
export function wholeList<Name extends string>(list: ListDefinition<Name>): PageRead {
  return { condition: 'true', values: [], orderBy: orderOf(list, list.defaultSort).orderBy, fetch: null }
}

function encodeCursor(parts: unknown[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

// A cursor comes from the caller, so its values are validated like any other input before they reach a query.
const IS_VALUE: Record<SortField['type'], (value: unknown) => boolean> = {
  timestamptz: (value) => typeof value === 'string' && /^(?!0000)\d{4}-/.test(value) && isRealTime(value),
  text: (value) => typeof value === 'string' && value.isWellFormed() && !value.includes('\0'),
  bigint: (value) => Number.isSafeInteger(value),
  uuid: (value) => typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value),
}

/** Date.parse reads the 30th of February as the 2nd of March; PostgreSQL rejects it. */
function isRealTime(value: string): boolean {
  const time = new Date(value)
  return !Number.isNaN(time.getTime()) && time.toISOString() === value
}

function decodeCursor(cursor: string, belongsTo: string, fields: SortField[]): unknown[] {
  const [list, ...values] = parseCursor(cursor)
  if (list === undefined) throw invalidCursor('is not a cursor of this list')
  if (list !== belongsTo) throw invalidCursor('belongs to another list, or to another sort or other filters; start again without a cursor')
  if (values.length !== fields.length || !fields.every(({ type }, index) => IS_VALUE[type](values[index]))) {
    throw invalidCursor('is not a cursor of this list')
  }
  return values
}

function parseCursor(cursor: string): unknown[] {
  try {
    const text = Buffer.from(cursor, 'base64url')
    const parts: unknown = structureProblem(text) === undefined ? JSON.parse(text.toString('utf8')) : []
    return Array.isArray(parts) ? parts : []
  } catch {
    return []
  }
}

export function invalidCursor(reason: string): ApiError {
  return new ApiError('RCS_INVALID_CURSOR', { details: [{ path: '/cursor', reason }] })
}
