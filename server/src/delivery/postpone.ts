import { columns, type Executor, lists } from '../db/pool.ts'
import { countFirstClaims } from '../events/changes.ts'
import { NO_CAMPAIGN } from '../ids.ts'
import { opensAt } from '../windows/gate.ts'
import { type LaneKey, laneKey } from './lanes.ts'

// Entries whose delivery window is closed. A message is queued for the time at which its window opens, so a claim finds few of them: after a
// retry, a pause or a backlog, and after the clock was set back.

type Windowed = { messageId: string; lease: string; window: string | null; nowMs: number } & LaneKey

/** Whether the window of an entry is closed at this time of the database's clock. A revocation may go out at any time. */
export const isClosed = ({ window, task = 'send' }: { window: string | null; task?: 'send' | 'revoke' }, at: number) =>
  window !== null && task === 'send' && opensAt(window, at) > at

/** How many entries at the head of a lane are postponed with the claimed ones. When a window closes, a lane may have a million of them. */
const HEAD = 1_000

/**
 * Postpones claimed entries until their windows open, and with them the entries behind them in their lanes that have the same windows: otherwise
 * each of them would take a call from messages whose window is open. No attempt is counted, and a message that was never tried is ACCEPTED again.
 * The statement waits for no lock: an entry that is being cancelled or expires keeps its lease.
 */
export async function postpone(db: Executor, closed: readonly Windowed[]): Promise<void> {
  const lanes = [...new Map(closed.map((entry) => [laneKey(entry), entry])).values()]
  const openings = new Map(closed.map(({ window, nowMs }) => [window as string, new Date(opensAt(window as string, nowMs))]))
  const values = [
    ...columns(closed, 'messageId', 'lease'),
    [...openings.keys()],
    [...openings.values()],
    ...columns(lanes, 'accountId', 'agentId', 'priority', 'campaignId'),
  ]
  await db.query({ name: 'postpone-entries', text: POSTPONE_ENTRIES, values })
}

export const POSTPONE_ENTRIES = `
  with closed as materialized (
    select * from unnest($3::text[], $4::timestamptz[]) as c (delivery_window, opens_at)
  ), waiting as materialized (
    select q.message_id from unnest($5::int[], $6::text[], $7::smallint[], $8::uuid[]) as lane (account_id, agent_id, priority, campaign_id), lateral (
      select message_id, delivery_window, task from queue q
      where q.account_id = lane.account_id and q.agent_id = lane.agent_id and q.priority = lane.priority and q.campaign_id = lane.campaign_id
        and q.due_at <= now() and q.leased_until <= now()
      order by q.due_at limit ${HEAD} for update skip locked
    ) as q
    where q.task = 'send' and q.delivery_window in (select delivery_window from closed)
  ), held as materialized (
    select q.message_id from unnest(${lists('uuid', 'uuid')}) as r (message_id, lease), lateral (
      select message_id from queue q where q.message_id = r.message_id and q.lease = r.lease for update skip locked
    ) as q
  ), postponed as (
    update queue q set lease = null, leased_until = '-infinity', attempts = q.attempts - 1, claimed = q.attempts > 1,
      due_at = (select opens_at from closed c where c.delivery_window = q.delivery_window)
    where q.message_id = any (array(select message_id from held))
    returning q.account_id, q.campaign_id, q.attempts
  ), unclaimed as (
    select * from postponed where attempts = 0 and campaign_id <> '${NO_CAMPAIGN}'
  ), uncounted as (${countFirstClaims('unclaimed', '-count(*)')}
  )
  update queue q set due_at = (select opens_at from closed c where c.delivery_window = q.delivery_window)
  where q.message_id = any (array(select message_id from waiting))`
