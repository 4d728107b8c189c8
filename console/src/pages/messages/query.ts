/** The filters of the list. They have the same names in the address and in the API. */
export const FILTERS = ['recipient', 'clientReferenceId', 'agentId', 'status', 'campaignId', 'test', 'acceptedFrom', 'acceptedTo'] as const

type Filter = (typeof FILTERS)[number]
export type Filters = Partial<Record<Filter, string>>

export const filtersOf = (query: URLSearchParams): Filters =>
  Object.fromEntries(FILTERS.flatMap((name) => (query.get(name) ? [[name, query.get(name) as string]] : [])))

/** The query of the API, which is the same in /v1 and /admin/v1. */
export function queryOf(filters: Filters, cursor?: string | null): string {
  const query = new URLSearchParams({ ...filters, ...(cursor && { cursor }) }).toString()
  return query === '' ? '' : `?${query}`
}

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const NUMBER = /^\+?[\d ()-]{7,20}$/

type Meanings = { messageId?: string; recipient?: string; campaignId?: string; clientReferenceId?: string }

/** All that a text can mean, the likeliest first. A reference may look like an id, or like a number. */
export function meaningsOf(text: string): Meanings {
  const wanted = text.trim()
  if (wanted === '') return {}
  return {
    ...(ID.test(wanted) && { messageId: wanted, campaignId: wanted }),
    ...(NUMBER.test(wanted) && { recipient: wanted.startsWith('+') ? `+${wanted.replace(/\D/g, '')}` : wanted }),
    clientReferenceId: wanted,
  }
}
