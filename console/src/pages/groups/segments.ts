import { type ApiProblem, ask, askAll } from '../../app/api.ts'

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

/** `segmentId`: undefined as long as the group has no number. */
export type Target = { accountId: number; segmentId?: number }

/**
 * Creates a group, and notes its number: the first one behind those of all groups that nobody else takes meanwhile. If the target has a number
 * and a group of this name already, the response to an earlier attempt was lost.
 */
export async function newGroup(target: Target, name: string): Promise<void> {
  const groups = await askAll<Segment>(listOf(target.accountId))
  if (groups.some((group) => group.segmentId === target.segmentId && group.name === name)) return
  for (let number = Math.max(0, ...groups.map(({ segmentId }) => segmentId)) + 1; ; number += 1) {
    target.segmentId = number
    try {
      return await ask(pathOf(target.accountId, number), { method: 'PUT', body: { name }, headers: { 'if-none-match': '*' } })
    } catch (error) {
      if ((error as ApiProblem).code !== 'RCS_SEGMENT_EXISTS') throw error
    }
  }
}
