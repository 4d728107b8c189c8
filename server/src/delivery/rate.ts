import type { RcsCarrier } from '../carriers/carrier.ts'
import { type Executor, listed } from '../db/pool.ts'

// A rate is a sequence of slots at equal intervals: `next_slot_at` of a carrier or an agent is the time of its next free slot. A claim takes
// slots, and its worker waits for each of them.

/** How far ahead a claim takes slots. The worker waits for each slot, so the rate is exact, and one claim serves many messages. */
export const SLOTS_AHEAD_MS = 100

/**
 * A next slot further ahead than this dates from before the clock was set back, and is ignored. A message takes one slot, which lasts one second
 * at the slowest rate.
 */
export const MAX_AHEAD_SECONDS = 2

/** Adds the row that holds the next slot of a carrier. */
export async function ensureRate(db: Executor, carrier: string): Promise<void> {
  await db.query('insert into carrier_rates (carrier) values ($1) on conflict do nothing', [carrier])
}

/** Locks a carrier's rate for this transaction. Returns the milliseconds until its next slot; undefined if another transaction has the lock. */
export async function lockRate(tx: Executor, carrier: string, maxAheadSeconds = MAX_AHEAD_SECONDS): Promise<number | undefined> {
  const { rows } = await tx.query<{ waitMs: number }>({ name: 'lock-rate', text: LOCK_RATE, values: [carrier, maxAheadSeconds] })
  return rows[0]?.waitMs
}

/** In SQL: milliseconds until the next slot. `next_slot_at` may be `-infinity`, which PostgreSQL 15 and 16 can't subtract. */
export const waitMs = (nextSlotAt: string, maxAheadSeconds: string) =>
  `case when ${nextSlotAt} > clock_timestamp() + ${maxAheadSeconds} * interval '1 second' then 0
     else (extract(epoch from greatest(${nextSlotAt}, clock_timestamp()) - clock_timestamp()) * 1000)::float8 end`

export const LOCK_RATE = `
  select ${waitMs('next_slot_at', '$2')} as "waitMs" from carrier_rates where carrier = $1 for update skip locked`

/** How many slots there are within `ms`, if the next one is `waitMs` away. */
export function slotsWithin(ms: number, waitMs: number, perSecond: number | undefined): number {
  if (perSecond === undefined) return Number.POSITIVE_INFINITY
  return waitMs > ms ? 0 : 1 + Math.floor(((ms - waitMs) * perSecond) / 1_000)
}

type Rates = Pick<RcsCarrier, 'name' | 'messagesPerSecond'> & Partial<Pick<RcsCarrier, 'messagesPerSecondPerAgent'>>

export function isRated({ messagesPerSecond, messagesPerSecondPerAgent }: Rates): boolean {
  return (messagesPerSecond ?? messagesPerSecondPerAgent) !== undefined
}

/** Takes slots for entries, in order: one each, or `segmentsLeft` for an SMS. The transaction of the claim has locked the carrier's rate. */
export async function takeSlots<E extends { agentId: string; segmentsLeft?: number }>(
  db: Executor,
  carrier: Rates,
  entries: E[],
  maxAheadSeconds = MAX_AHEAD_SECONDS,
): Promise<(E & { slotAt: number })[]> {
  const { name, messagesPerSecond, messagesPerSecondPerAgent } = carrier
  const byAgent = Map.groupBy(entries, ({ agentId }) => agentId)
  if (entries.length === 0 || !isRated(carrier)) return entries.map((entry) => ({ ...entry, slotAt: 0 }))
  const { rows } = await db.query<{ agentId: string | null; waitMs: number }>({
    name: 'take-slots',
    text: TAKE_SLOTS,
    values: [
      name,
      entries.reduce((sum, { segmentsLeft = 1 }) => sum + segmentsLeft, 0),
      messagesPerSecond ?? null,
      messagesPerSecondPerAgent ?? null,
      [...byAgent.keys()],
      [...byAgent.values()].map(({ length }) => length),
      maxAheadSeconds,
    ],
  })
  const now = performance.now()
  const waits = new Map(rows.map(({ agentId, waitMs }) => [agentId, waitMs]))
  const taken = new Map<string | null, number>()
  const slotOf = (agentId: string | null, perSecond: number | undefined, slots = 1) => {
    if (perSecond === undefined) return 0
    const before = taken.get(agentId) ?? 0
    taken.set(agentId, before + slots)
    return now + (waits.get(agentId) ?? 0) + (before * 1_000) / perSecond
  }
  return entries.map((entry) => ({
    ...entry,
    slotAt: Math.max(slotOf(null, messagesPerSecond, entry.segmentsLeft), slotOf(entry.agentId, messagesPerSecondPerAgent)),
  }))
}

/**
 * In SQL: the time of the next slot. It reads the clock when it reaches this row. `now()` is the start of the transaction, so all slots that had
 * passed since were used at once: 24 messages in a second at a rate of 20, on a busy machine.
 */
const nextSlot = (nextSlotAt: string) =>
  `case when ${nextSlotAt} > clock_timestamp() + $7 * interval '1 second' then clock_timestamp()
      else greatest(${nextSlotAt}, clock_timestamp()) end`

export const TAKE_SLOTS = `
  with of_carrier as (
    update carrier_rates set next_slot_at = ${nextSlot('next_slot_at')} + $2 * interval '1 second' / $3
    where carrier = $1 and $3::float8 is not null
    returning null::text as agent_id, next_slot_at - $2 * interval '1 second' / $3 as slot_at
  ), of_agent as (
    update agents a set next_slot_at = ${nextSlot('a.next_slot_at')} + taken.slots * interval '1 second' / $4
    from (select * from unnest(${listed('$5::text[]')}, ${listed('$6::int[]')}) as t (agent_id, slots) order by agent_id) as taken
    where a.agent_id = taken.agent_id and $4::float8 is not null
    returning a.agent_id, a.next_slot_at - taken.slots * interval '1 second' / $4 as slot_at
  )
  select agent_id as "agentId", greatest(0, extract(epoch from slot_at - clock_timestamp()) * 1000)::float8 as "waitMs"
  from (select * from of_carrier union all select * from of_agent) as slot`
