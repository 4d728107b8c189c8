import { askAll } from '../../app/api.ts'

/** A group, as the API calls it. */
export type Segment = { segmentId: number; name?: string; members: number; createdAt: string; updatedAt: string }

export type Member = {
  phone: string
  consents: number[]
  controlGroup: boolean
  status: 'active' | 'inactive'
  timeZone?: string
  attributes?: Record<string, string>
}

export const listOf = (accountId: number) => `/accounts/${accountId}/segments`
export const pathOf = (accountId: number, segmentId: number, more = '') => `${listOf(accountId)}/${segmentId}${more}`

/**
 * The number of a new group: the first one behind those of all groups. A request that makes a group would change one that exists, so the
 * numbers are read just before. `tried`: of an attempt whose response was lost. It is used again, unless it now belongs to another group.
 */
export async function newNumber(accountId: number, name: string, tried?: number): Promise<number> {
  const groups = await askAll<Segment>(listOf(accountId))
  const found = groups.find(({ segmentId }) => segmentId === tried)
  if (tried !== undefined && (found === undefined || (found.name ?? name) === name)) return tried
  return Math.max(0, ...groups.map(({ segmentId }) => segmentId)) + 1
}
