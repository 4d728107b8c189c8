import type { Executor } from '../../db/pool.ts'
import { PRIORITIES } from '../../messages/states.ts'
import { failWaiting, IS_WAITING } from '../fail.ts'
import { skipCancelled } from '../sms/schedule.ts'

const BATCH_SIZE = 1_000

/** Fails the messages that cancelled campaigns have not sent. A message that a worker is sending now is skipped: its result decides. */
export async function withdrawCancelled(db: Executor): Promise<{ withdrawn: number; mayBeMore: boolean }> {
  const { rows } = await db.query<{ messageId: string }>({ name: 'find-cancelled', text: FIND_CANCELLED, values: [BATCH_SIZE] })
  const ids = rows.map(({ messageId }) => messageId)
  const withdrawn = await failWaiting(db, ids, 'CAMPAIGN_CANCELLED', CANCELLED, skipCancelled)
  const { rowCount: madeDue } = await db.query({ name: 'make-cancelled-sms-due', text: MAKE_SMS_DUE, values: [BATCH_SIZE] })
  if (rows.length === 0 && madeDue === 0) await db.query({ name: 'end-withdrawing', text: END_WITHDRAWING })
  return { withdrawn, mayBeMore: (withdrawn > 0 && rows.length >= BATCH_SIZE) || madeDue === BATCH_SIZE }
}

export const CANCELLED = `join campaigns c on c.id = q.campaign_id and c.status = 'CANCELLED'`

export const FIND_CANCELLED = `
  select q.message_id as "messageId"
  from campaigns c, lateral (
    select message_id from queue q
    where q.account_id = c.account_id and q.agent_id = c.agent_id and q.priority = ${PRIORITIES.campaign} and q.campaign_id = c.id
      and ${IS_WAITING}
    order by due_at limit $1
  ) as q
  where c.status = 'CANCELLED' and c.withdrawn_at is null
  limit $1`

/** Makes waiting SMS of cancelled campaigns due now, so that the next claim records that they are cancelled. */
export const MAKE_SMS_DUE = `
  update sms_queue set due_at = now() where ctid = any (array(
    select s.ctid from campaigns c, lateral (
      select ctid from sms_queue s
      where s.account_id = c.account_id and s.priority = ${PRIORITIES.campaign} and s.campaign_id = c.id and s.due_at > now() and s.lease is null
      order by due_at limit $1 for update skip locked
    ) as s
    where c.status = 'CANCELLED' and c.withdrawn_at is null
    limit $1))`

/** Ends the withdrawal of campaigns that have no message left in the queue. */
export const END_WITHDRAWING = `
  update campaigns c set withdrawn_at = now()
  where c.status = 'CANCELLED' and c.withdrawn_at is null and (
    select true from queue q
    where q.account_id = c.account_id and q.agent_id = c.agent_id and q.priority = ${PRIORITIES.campaign} and q.campaign_id = c.id limit 1
  ) is null`
