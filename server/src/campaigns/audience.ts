import type { Executor } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { optOutOf } from '../replies/opt-outs.ts'

/** Every member is read, together with the opt-outs of its number. Larger groups are not counted one by one. */
const MAX_COUNTED = 100_000

/** `recipients`, `optedOut`: null if the groups are too large to count. */
type Audience = { members: number; recipients: number | null; optedOut: number | null }

/**
 * Counts whom a campaign to these groups would reach if it started now. `members`: of all groups together; `recipients`: numbers, each once;
 * `optedOut`: recipients who want no campaigns from the agent. Their messages fail, and nothing is sent to them.
 */
export async function countAudience(
  db: Executor,
  accountId: number,
  agentId: string,
  groups: number[],
  maxCounted = MAX_COUNTED,
): Promise<Audience> {
  const { rows: found } = await db.query<{ number: number; members: number }>(
    'select number, members from groups where account_id = $1 and number = any ($2::int[])',
    [accountId, groups],
  )
  const missing = groups.filter((group) => !found.some(({ number }) => number === group))
  if (missing.length > 0) {
    const reason = `has ${missing.join(', ')}, which ${missing.length === 1 ? 'names no group' : 'name no groups'} of this account`
    throw new ApiError('RCS_SEGMENT_NOT_FOUND', { details: [{ path: '/segmentIds', reason }] })
  }
  const members = found.reduce((sum, group) => sum + group.members, 0)
  if (members > maxCounted) return { members, recipients: null, optedOut: null }
  const { rows } = await db.query<{ recipients: number; optedOut: number }>(
    `with people as materialized (
       select distinct phone from group_members where account_id = $1 and group_number = any ($3::int[])
     )
     select count(*)::int as recipients, count(*) filter (where o.opted_out)::int as "optedOut"
     from people left join lateral (${optOutOf('$1', '$2', 'people.phone')}) as o on true`,
    [accountId, agentId, groups],
  )
  return { members, ...(rows[0] as { recipients: number; optedOut: number }) }
}
