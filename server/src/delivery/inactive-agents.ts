import { byMonth } from '../db/partitions.ts'
import type { Executor } from '../db/pool.ts'
import { PRIORITIES } from '../messages/states.ts'
import { failWaiting, NOT_UNDER_WAY } from './fail.ts'
import { FAILURES } from './failures.ts'
import { LANES } from './lanes.ts'
import { scheduleFailed } from './sms/schedule.ts'

const MOST_AT_ONCE = 1_000

/**
 * Gives up what was accepted for agents that have been deactivated since. What is being sent at this moment is left to its outcome; if that
 * is to try again, the next round takes it. Returns whether there may be more.
 */
export async function failInactive(db: Executor): Promise<{ failed: number; mayBeMore: boolean }> {
  const { rows } = await db.query<{ messageId: string }>({ name: 'find-inactive', text: FIND, values: [MOST_AT_ONCE] })
  let failed = 0
  for (const [messages, ofMonth] of byMonth(rows, ({ messageId }) => messageId)) {
    const ids = ofMonth.map(({ messageId }) => messageId)
    const { rowCount } = await db.query({
      name: `fail-inactive ${messages}`,
      text: failWaiting(messages, 'AGENT_INACTIVE', INACTIVE, scheduleFailed),
      values: [ids, FAILURES.AGENT_INACTIVE],
    })
    failed += rowCount ?? 0
  }
  return { failed, mayBeMore: failed > 0 && rows.length >= MOST_AT_ONCE }
}

const FIND = `
  with recursive ${LANES}
  select q.message_id as "messageId"
  from lane l join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id, lateral (
    select message_id from queue q
    where q.account_id = l.account_id and q.agent_id = l.agent_id and q.priority = l.priority and q.campaign_id = l.campaign_id and ${NOT_UNDER_WAY}
    order by due_at limit $1
  ) as q
  where not s.active and l.priority <> ${PRIORITIES.revoke}
  limit $1`

const INACTIVE = 'join agent_assignments s on s.account_id = q.account_id and s.agent_id = q.agent_id and not s.active'
