import type { RcsCarrier } from '../carriers/carrier.ts'
import { type Executor, listed } from '../db/pool.ts'

// A rate is kept by turns: `free_at` of a carrier or an agent is the time of the next slot. Workers wait for the turns that they were given.

/** How far ahead turns are given out. Workers wait for each turn, so the rate is exact, and one claim serves many messages. */
export const TURNS_AHEAD_MS = 100

/**
 * A next turn further ahead than this dates from before the clock was set back, and is ignored. A message takes one turn, which is one second
 * at the slowest rate.
 */
export const MOST_AHEAD_SECONDS = 2

/** Adds the row that holds the turns of a carrier. */
export async function ensurePace(db: Executor, carrier: string): Promise<void> {
  await db.query('insert into carrier_paces (carrier) values ($1) on conflict do nothing', [carrier])
}

/** Locks the turns of a carrier for this transaction. Returns how far away the next one is; undefined if another transaction has the lock. */
export async function holdPace(tx: Executor, carrier: string, mostAheadSeconds = MOST_AHEAD_SECONDS): Promise<number | undefined> {
  const text = `select ${waitMs('free_at', '$2')} as "waitMs" from carrier_paces where carrier = $1 for update skip locked`
  const { rows } = await tx.query<{ waitMs: number }>({ name: 'hold-pace', text, values: [carrier, mostAheadSeconds] })
  return rows[0]?.waitMs
}

/** In SQL: milliseconds until the next turn. That may be `-infinity`, which PostgreSQL 15 and 16 can't subtract. */
export const waitMs = (freeAt: string, mostAheadSeconds: string) =>
  `case when ${freeAt} > clock_timestamp() + ${mostAheadSeconds} * interval '1 second' then 0
     else (extract(epoch from greatest(${freeAt}, clock_timestamp()) - clock_timestamp()) * 1000)::float8 end`

/** How many turns there are within a time, if the next one is this far away. */
export function turnsWithin(ms: number, waitMs: number, perSecond: number | undefined): number {
  if (perSecond === undefined) return Number.POSITIVE_INFINITY
  return waitMs > ms ? 0 : 1 + Math.floor(((ms - waitMs) * perSecond) / 1_000)
}

type Rates = Pick<RcsCarrier, 'name' | 'messagesPerSecond'> & Partial<Pick<RcsCarrier, 'messagesPerSecondPerAgent'>>

export function isRated({ messagesPerSecond, messagesPerSecondPerAgent }: Rates): boolean {
  return (messagesPerSecond ?? messagesPerSecondPerAgent) !== undefined
}

/** Gives entries their turns, in order: one each, or one for each of its `parts`. The transaction that claimed them holds the carrier's turns. */
export async function takeTurns<E extends { agentId: string; parts?: number }>(
  db: Executor,
  carrier: Rates,
  entries: E[],
  mostAheadSeconds = MOST_AHEAD_SECONDS,
): Promise<(E & { turnAt: number })[]> {
  const { name, messagesPerSecond, messagesPerSecondPerAgent } = carrier
  const byAgent = Map.groupBy(entries, ({ agentId }) => agentId)
  if (entries.length === 0 || !isRated(carrier)) return entries.map((entry) => ({ ...entry, turnAt: 0 }))
  const { rows } = await db.query<{ agentId: string | null; waitMs: number }>({
    name: 'take-turns',
    text: TAKE_TURNS,
    values: [
      name,
      entries.reduce((sum, { parts = 1 }) => sum + parts, 0),
      messagesPerSecond ?? null,
      messagesPerSecondPerAgent ?? null,
      [...byAgent.keys()],
      [...byAgent.values()].map(({ length }) => length),
      mostAheadSeconds,
    ],
  })
  const now = performance.now()
  const waits = new Map(rows.map(({ agentId, waitMs }) => [agentId, waitMs]))
  const taken = new Map<string | null, number>()
  const turnOf = (agentId: string | null, perSecond: number | undefined, parts = 1) => {
    if (perSecond === undefined) return 0
    const before = taken.get(agentId) ?? 0
    taken.set(agentId, before + parts)
    return now + (waits.get(agentId) ?? 0) + (before * 1_000) / perSecond
  }
  return entries.map((entry) => ({
    ...entry,
    turnAt: Math.max(turnOf(null, messagesPerSecond, entry.parts), turnOf(entry.agentId, messagesPerSecondPerAgent)),
  }))
}

/**
 * When the next turn is. It reads the clock at this row: `now()` is from before the statement was planned, so all turns that had passed since
 * were taken at once. On a busy machine that made 24 in a second at a rate of 20.
 */
const nextTurn = (freeAt: string) =>
  `case when ${freeAt} > clock_timestamp() + $7 * interval '1 second' then clock_timestamp() else greatest(${freeAt}, clock_timestamp()) end`

const TAKE_TURNS = `
  with of_carrier as (
    update carrier_paces set free_at = ${nextTurn('free_at')} + $2 * interval '1 second' / $3 where carrier = $1 and $3::float8 is not null
    returning null::text as agent_id, free_at - $2 * interval '1 second' / $3 as turn_at
  ), of_agent as (
    update agents a set free_at = ${nextTurn('a.free_at')} + taken.turns * interval '1 second' / $4
    from (select * from unnest(${listed('$5::text[]')}, ${listed('$6::int[]')}) as t (agent_id, turns) order by agent_id) as taken
    where a.agent_id = taken.agent_id and $4::float8 is not null
    returning a.agent_id, a.free_at - taken.turns * interval '1 second' / $4 as turn_at
  )
  select agent_id as "agentId", greatest(0, extract(epoch from turn_at - clock_timestamp()) * 1000)::float8 as "waitMs"
  from (select * from of_carrier union all select * from of_agent) as turn`
