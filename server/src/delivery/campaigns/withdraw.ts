import { byMonth } from '../../db/partitions.ts'
import type { Executor } from '../../db/pool.ts'
import { PRIORITIES } from '../../messages/states.ts'
import { failWaiting, NOT_UNDER_WAY } from '../fail.ts'
import { FAILURES } from '../failures.ts'
import { skipCancelled } from '../sms/schedule.ts'

const MOST_AT_ONCE = 1_000

/** Withdraws what cancelled campaigns have not handed over. What is being sent at this moment is left to its outcome. */
export async function withdrawCancelled(db: Executor): Promise<{ withdrawn: number; mayBeMore: boolean }> {
  const { rows } = await db.query<{ messageId: string }>({ name: 'find-cancelled', text: FIND, values: [MOST_AT_ONCE] })
  let withdrawn = 0
  for (const [messages, ofMonth] of byMonth(rows, ({ messageId }) => messageId)) {
    const ids = ofMonth.map(({ messageId }) => messageId)
    const text = failWaiting(messages, 'CAMPAIGN_CANCELLED', CANCELLED, skipCancelled)
    const { rowCount } = await db.query({ name: `withdraw ${messages}`, text, values: [ids, FAILURES.CAMPAIGN_CANCELLED] })
    withdrawn += rowCount ?? 0
  }
  const { rowCount: hurried } = await db.query({ name: 'hurry-cancelled-sms', text: HURRY_SMS, values: [MOST_AT_ONCE] })
  if (rows.length === 0 && hurried === 0) await db.query({ name: 'end-withdrawing', text: END_WITHDRAWING })
  return { withdrawn, mayBeMore: (withdrawn > 0 && rows.length >= MOST_AT_ONCE) || hurried === MOST_AT_ONCE }
}

const CANCELLED = `join campaigns c on c.id = q.campaign_id and c.status = 'CANCELLED'`

const FIND = `
  select q.message_id as "messageId"
  from campaigns c, lateral (
    select message_id from queue q
    where q.account_id = c.account_id and q.agent_id = c.agent_id and q.priority = ${PRIORITIES.campaign} and q.campaign_id = c.id and ${NOT_UNDER_WAY}
    order by due_at limit $1
  ) as q
  where c.status = 'CANCELLED' and c.withdrawn_at is null
  limit $1`

/** SMS that wait for their time are due now, so that they are found to be cancelled, and say so. */
const HURRY_SMS = `
  update sms_queue s set due_at = now()
  from (
    select s.message_id, s.copy
    from campaigns c, lateral (
      select message_id, copy from sms_queue s
      where s.account_id = c.account_id and s.priority = ${PRIORITIES.campaign} and s.campaign_id = c.id and s.due_at > now() and s.lease is null
      order by due_at limit $1
      for update skip locked
    ) as s
    where c.status = 'CANCELLED' and c.withdrawn_at is null
    limit $1
  ) as waiting
  where s.message_id = waiting.message_id and s.copy = waiting.copy`

/** Those of which nothing waits or is under way any more. */
const END_WITHDRAWING = `
  update campaigns c set withdrawn_at = now()
  from (
    select c.id from campaigns c left join lateral (
      select true as is_there from queue q
      where q.account_id = c.account_id and q.agent_id = c.agent_id and q.priority = ${PRIORITIES.campaign} and q.campaign_id = c.id limit 1
    ) as waiting on true
    where c.status = 'CANCELLED' and c.withdrawn_at is null and waiting.is_there is null
  ) as done
  where c.id = done.id`
