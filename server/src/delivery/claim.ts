import { randomUUID } from 'node:crypto'
import type { RcsCarrier } from '../carriers/carrier.ts'
import { columns, type Executor, listed, lists, type Pool, transaction } from '../db/pool.ts'
import { countFirstClaims } from '../events/changes.ts'
import { NO_CAMPAIGN } from '../ids.ts'
import { NOW_MS } from '../windows/recipients.ts'
import { entriesOf, type Lane, type LaneKey, laneKey, readLanes } from './lanes.ts'
import { isClosed, postpone } from './postpone.ts'
import { isRated, lockRate, SLOTS_AHEAD_MS, slotsWithin, takeSlots } from './rate.ts'
import { shareOut } from './share-out.ts'

/** A queue entry that a worker has leased: until the lease ends, no other worker may send it or record its result. */
export type Entry = {
  messageId: string
  accountId: number
  agentId: string
  task: 'send' | 'revoke'
  /** The number of attempts, including this one. */
  attempts: number
  lease: string
  /** The time of its slot, by performance.now(): the worker makes the call then. 0 if neither the carrier nor the agent has a rate. */
  slotAt: number
  /** How long until the message expires, by the database's clock, since this machine's clock may be off. Only the task `send` uses it. */
  expiresInMs: number
  /** Its delivery window; null: none. Only the task `send` uses it. */
  window: string | null
  /** The time of the claim by the database's clock. */
  nowMs: number
}

type Carrier = Pick<RcsCarrier, 'name' | 'messagesPerSecond' | 'messagesPerSecondPerAgent'>

export type ClaimRequest = {
  carrier: Carrier
  /** How many calls the worker can make now. */
  free: number
  leaseMs: number
  /** Agents whose messages the network would refuse now. */
  pausedAgents: string[]
  /** The worker's running calls, by account. */
  calls: ReadonlyMap<number, number>
}

export type Claim<Claimed = Entry> = {
  entries: Claimed[]
  /** Another worker is claiming now. */
  isBusy: boolean
  /** Some due entries were not claimed: they wait for a slot or a free call, or their account already has its share of the calls. */
  mayBeMore: boolean
  /** Entries were postponed, since their delivery windows are closed. Other due entries may be behind them. */
  hasPostponed?: boolean
}

/**
 * Claims due entries: it reads the lanes, shares out the free calls between them, and leases the entries. Concurrent claims do not wait for each
 * other. If the carrier has a rate, its claims run one at a time, since two workers would use the same slots.
 */
export async function claim(pool: Pool, request: ClaimRequest): Promise<Claim> {
  if (!isRated(request.carrier)) return await claimEntries(pool, request, 0)
  return await transaction(pool, async (tx) => {
    const carrierWaitMs = await lockRate(tx, request.carrier.name)
    if (carrierWaitMs === undefined) return { entries: [], isBusy: true, mayBeMore: false }
    return await claimEntries(tx, request, carrierWaitMs)
  })
}

async function claimEntries(db: Executor, request: ClaimRequest, carrierWaitMs: number): Promise<Claim> {
  const { carrier, free, leaseMs, pausedAgents, calls } = request
  // Count one entry more than the worker can send, to see whether there are more.
  const lanes = await readLanes(db, carrier.name, free + 1, pausedAgents)
  const due = lanes.reduce((sum, lane) => sum + lane.due, 0)
  const shared = shareOut(lanes, {
    free,
    calls,
    carrierSlots: slotsWithin(SLOTS_AHEAD_MS, carrierWaitMs, carrier.messagesPerSecond),
    agentSlots: ({ agentWaitMs }) => slotsWithin(SLOTS_AHEAD_MS, agentWaitMs, carrier.messagesPerSecondPerAgent),
  })
  if (shared.length === 0) return { entries: [], isBusy: false, mayBeMore: due > 0 }
  const leased = await leaseEntries(db, shared, leaseMs, due > shared.length)
  const closed = leased.filter((entry) => isClosed(entry, entry.nowMs))
  if (closed.length > 0) await postpone(db, closed)
  const open = closed.length === 0 ? leased : leased.filter((entry) => !closed.includes(entry))
  const entries = await takeSlots(db, carrier, inOrderOf(shared, open))
  return { entries, isBusy: false, mayBeMore: due > leased.length, hasPostponed: closed.length > 0 }
}

type Leased = Omit<Entry, 'slotAt'> & LaneKey

/**
 * Leases as many entries of each lane as the lane got calls, and skips entries that another worker has locked. The update touches no index,
 * since no index contains `lease` or `leased_until`. If the worker crashes, the lease ends by itself; the next claim writes a new token, so a
 * late result no longer matches. If not all due entries got a call, the accounts that got none come first next time. The first claim of a
 * campaign's message is counted: the message is SENDING from then on.
 */
async function leaseEntries(db: Executor, shared: Lane[], leaseMs: number, isContended: boolean): Promise<Leased[]> {
  const lease = randomUUID()
  const counts = new Map<Lane, number>()
  for (const lane of shared) counts.set(lane, (counts.get(lane) ?? 0) + 1)
  const lanes = [...counts.keys()]
  const { rows } = await db.query<Omit<Leased, 'lease'>>({
    name: 'lease-entries',
    text: LEASE_ENTRIES,
    values: [...columns(lanes, 'accountId', 'agentId', 'priority', 'campaignId'), [...counts.values()], lease, leaseMs, isContended],
  })
  return rows.map((row) => ({ ...row, lease }))
}

export const LEASE_ENTRIES = `
  with unleased as materialized (
    select q.* from unnest(${lists('int', 'text', 'smallint', 'uuid', 'int')})
      as lane (account_id, agent_id, priority, campaign_id, calls), lateral (${entriesOf('lane', 'lane.calls', 'for update skip locked')}
    ) as q
  ), first as (
    select * from unleased where not claimed and task = 'send' and campaign_id <> '${NO_CAMPAIGN}'
  ), counted as (${countFirstClaims('first')}
  ), served as (
    update agent_assignments s set served_at = now()
    from (select distinct * from unnest(${listed('$1::int[]')}, ${listed('$2::text[]')})) as lane (account_id, agent_id)
    where $8 and s.account_id = lane.account_id and s.agent_id = lane.agent_id
  )
  update queue q set lease = $6, leased_until = now() + $7 * interval '1 millisecond', attempts = q.attempts + 1, claimed = true
  where q.message_id = any (array(select message_id from unleased))
  returning q.message_id as "messageId", q.account_id as "accountId", q.agent_id as "agentId", q.task, q.attempts, q.priority,
    q.campaign_id as "campaignId", q.delivery_window as window, ${NOW_MS} as "nowMs",
    round(extract(epoch from q.expires_at - now()) * 1000)::float8 as "expiresInMs"`

/** The leased entries in the order in which the calls were shared out. */
function inOrderOf(shared: Lane[], leased: Leased[]): Leased[] {
  const byLane = Map.groupBy(leased, laneKey)
  return shared.flatMap((lane) => byLane.get(laneKey(lane))?.shift() ?? [])
}
