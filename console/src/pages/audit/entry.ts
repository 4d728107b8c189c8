/** An entry of the audit log. */
export type Entry = {
  entryId: number
  at: string
  actor: { kind: 'person' | 'token' | 'command'; id: number | null; name: string }
  address: string | null
  requestId: string | null
  accountId: number | null
  /** The operation of the admin API. */
  action: string
  subject: string | null
  before: unknown
  after: unknown
}

/** The filters of the log. They have the same names in the address and in the API. */
const FILTERS = ['actor', 'action', 'subject', 'from', 'to'] as const
export type Filters = Partial<Record<(typeof FILTERS)[number], string>>

export const filtersOf = (query: URLSearchParams): Filters =>
  Object.fromEntries(FILTERS.flatMap((name) => (query.get(name) ? [[name, query.get(name) as string]] : [])))

export const noFilters = Object.fromEntries(FILTERS.map((name) => [name, undefined]))

export function queryOf(filters: Filters): string {
  const query = new URLSearchParams(filters).toString()
  return query === '' ? '' : `?${query}`
}

/** The operation that a text means: `Set person role` is `setPersonRole`, as is `setPersonRole` itself. */
export function operationOf(text: string): string {
  const [first = '', ...rest] = text.trim().split(/\s+/)
  const joined = rest.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
  return [first.slice(0, 1).toLowerCase() + first.slice(1), ...joined].join('')
}

/** A value that changed, or that one of the states does not have. */
export type FieldChange = { name: string; before: unknown; after: unknown }

/** The fields that differ. A state that is no object, such as a list, is one field without a name. */
export function changesOf({ before, after }: Pick<Entry, 'before' | 'after'>): FieldChange[] {
  if (before === null && after === null) return []
  if (!isState(before) || !isState(after)) return [{ name: '', before: before ?? undefined, after: after ?? undefined }]
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  const fields = names.map((name) => ({ name, before: before?.[name], after: after?.[name] }))
  return fields.filter((field) => JSON.stringify(field.before) !== JSON.stringify(field.after))
}

const isState = (state: unknown): state is Record<string, unknown> | null => typeof state === 'object' && !Array.isArray(state)
