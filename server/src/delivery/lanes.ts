import { isLive } from '../accounts/accounts.ts'
import type { Executor } from '../db/pool.ts'
import { listed } from '../db/pool.ts'
import { NO_CAMPAIGN } from '../ids.ts'
import { PRIORITIES } from '../messages/states.ts'
import { MAX_AHEAD_SECONDS, waitMs } from './rate.ts'

/** A lane is the part of the queue that has one account, agent, priority and campaign (or none). Its entries are in due order. */
export type LaneKey = { accountId: number; agentId: string; priority: number; campaignId: string }

export function laneKey({ accountId, agentId, priority, campaignId }: LaneKey): string {
  return `${accountId} ${priority} ${campaignId} ${agentId}`
}

export type Lane = LaneKey & {
  /** When its first entry became due, in milliseconds since 1970. */
  dueAt: number
  /** How many entries can be sent now, counted up to a limit. */
  due: number
  /** When the account last got calls for this agent while other entries had to wait, in milliseconds since 1970. */
  servedAt: number
  /** Milliseconds until the agent's next slot; 0 if it has no rate. */
  agentWaitMs: number
}

/**
 * A recursive step `lane`: every lane of a queue, with the due time of its first entry. It needs one index look-up for each lane, however long
 * the lane is: 4.5 ms for 314 lanes with a million entries, on a busy machine. `key`: the columns that identify a lane; they lead the queue's
 * index.
 */
const lanesOf = (queue: string, key: string[]) => `
  lane as (
    (select ${key.join(', ')}, due_at from ${queue} order by ${key.join(', ')}, due_at limit 1)
    union all
    select next.*
    from lane, lateral (
      select ${key.join(', ')}, due_at from ${queue} q
      where (${key.map((column) => `q.${column}`).join(', ')}) > (${key.map((column) => `lane.${column}`).join(', ')})
      order by ${key.join(', ')}, due_at limit 1
    ) as next
  )`

export const LANES = lanesOf('queue', ['account_id', 'agent_id', 'priority', 'campaign_id'])
export const SMS_LANES = lanesOf('sms_queue', ['account_id', 'priority', 'campaign_id'])

/** The due entries of a lane that no worker has leased, in due order. It skips expired entries, which the expiry loop handles. */
export const entriesOf = (lane: string, limit: string, lock = '') => `
      select * from (
        select message_id, account_id, campaign_id, task, due_at, expires_at, claimed from queue q
        where q.account_id = ${lane}.account_id and q.agent_id = ${lane}.agent_id and q.priority = ${lane}.priority
          and q.campaign_id = ${lane}.campaign_id and q.due_at <= now() and q.leased_until <= now()
        order by q.due_at limit ${limit} ${lock}
      ) as first
      where task = 'revoke' or expires_at > now()`

/** The due SMS of a lane, in due order. A leased SMS is not due before its lease ends. `condition`: a further one on the SMS `q`. */
export const smsEntriesOf = (lane: string, limit: string, condition = '') => `
      select message_id, copy, account_id, recipient, priority, due_at, expires_at from sms_queue q
      where q.account_id = ${lane}.account_id and q.priority = ${lane}.priority and q.campaign_id = ${lane}.campaign_id and q.due_at <= now()${condition}
      order by q.due_at limit ${limit}`

/**
 * Reads the lanes of a carrier that have entries to send now. Revocations are among them even if the agent is inactive, the account is
 * suspended or the campaign does not run. `limit`: where to stop counting the entries of a lane. A subselect hides its value from PostgreSQL,
 * which would otherwise plan the statement again for each value.
 */
export async function readLanes(db: Executor, carrier: string, limit: number, pausedAgents: string[]): Promise<Lane[]> {
  const { rows } = await db.query<Lane>({ name: 'read-lanes', text: READ_LANES, values: [carrier, limit, pausedAgents] })
  return rows
}

export const READ_LANES = `
  with recursive ${LANES}
  select l.account_id as "accountId", l.agent_id as "agentId", l.priority, l.campaign_id as "campaignId", ready.due,
    (extract(epoch from l.due_at) * 1000)::float8 as "dueAt",
    coalesce(extract(epoch from nullif(s.served_at, '-infinity')) * 1000, 0)::float8 as "servedAt",
    ${waitMs('a.next_slot_at', `${MAX_AHEAD_SECONDS}`)} as "agentWaitMs"
  from lane l
  join agents a on a.agent_id = l.agent_id and a.carrier = $1
  join agent_assignments s on s.account_id = l.account_id and s.agent_id = l.agent_id
  left join campaigns c on c.id = l.campaign_id and l.campaign_id <> '${NO_CAMPAIGN}',
  lateral (select count(*)::int as due from (${entriesOf('l', '(select $2::int)')}) as entries) as ready
  where l.due_at <= now() and l.agent_id <> all (${listed('$3::text[]')}::text[]) and ready.due > 0
    and (l.priority = ${PRIORITIES.revoke} or s.active and ${isLive('l.account_id')} and (l.campaign_id = '${NO_CAMPAIGN}' or c.status = 'RUNNING'))`
