import type { RcsCarrier } from '../carriers/carrier.ts'
import { type Executor, listed } from '../db/pool.ts'
import type { Entry } from './claim.ts'

// A rate is kept by turns: `free_at` of a carrier, and of an agent, is the time of the next one. Workers wait for the turns that they took.

/** Turns are given out this far ahead, and waited for: a rate is kept to the message, and a claim serves many of them. */
export const TURNS_AHEAD_MS = 100

/** Without its row a carrier has no turns. */
export async function ensurePace(db: Executor, carrier: string): Promise<void> {
  await db.query('insert into carrier_paces (carrier) values ($1) on conflict do nothing', [carrier])
}

/** Has this transaction give out the turns of a carrier; false where another does at this moment. */
export async function holdPace(tx: Executor, carrier: string): Promise<boolean> {
  const text = 'select from carrier_paces where carrier = $1 for update skip locked'
  return (await tx.query({ name: 'hold-pace', text, values: [carrier] })).rowCount === 1
}

/** How many turns there are within a time, the next one being so far away. */
export function turnsWithin(ms: number, waitMs: number, perSecond: number | undefined): number {
  if (perSecond === undefined) return Number.POSITIVE_INFINITY
  return waitMs > ms ? 0 : 1 + Math.floor(((ms - waitMs) * perSecond) / 1_000)
}

type Rates = Pick<RcsCarrier, 'name' | 'messagesPerSecond' | 'messagesPerSecondPerAgent'>

export function isRated({ messagesPerSecond, messagesPerSecondPerAgent }: Rates): boolean {
  return (messagesPerSecond ?? messagesPerSecondPerAgent) !== undefined
}

/** Gives entries their turns, in their order. They were claimed while the carrier's turns were held. */
export async function takeTurns<E extends Omit<Entry, 'turnAt'>>(
  db: Executor,
  carrier: Rates,
  entries: E[],
): Promise<(E & { turnAt: number })[]> {
  const { name, messagesPerSecond, messagesPerSecondPerAgent } = carrier
  const byAgent = Map.groupBy(entries, ({ agentId }) => agentId)
  if (entries.length === 0 || !isRated(carrier)) return entries.map((entry) => ({ ...entry, turnAt: 0 }))
  const { rows } = await db.query<{ agentId: string | null; waitMs: number }>({
    name: 'take-turns',
    text: TAKE_TURNS,
    values: [
      name,
      entries.length,
      messagesPerSecond ?? null,
      messagesPerSecondPerAgent ?? null,
      [...byAgent.keys()],
      [...byAgent.values()].map(({ length }) => length),
    ],
  })
  const now = performance.now()
  const waits = new Map(rows.map(({ agentId, waitMs }) => [agentId, waitMs]))
  const taken = new Map<string | null, number>()
  const turnOf = (agentId: string | null, perSecond: number | undefined) => {
    const before = taken.get(agentId) ?? 0
    taken.set(agentId, before + 1)
    return perSecond === undefined ? 0 : now + (waits.get(agentId) ?? 0) + (before * 1_000) / perSecond
  }
  return entries.map((entry) => ({
    ...entry,
    turnAt: Math.max(turnOf(null, messagesPerSecond), turnOf(entry.agentId, messagesPerSecondPerAgent)),
  }))
}

/**
 * When the next turn is. By the clock as it stands at this row, not `now()`, which was before the statement was planned: all turns that had
 * passed meanwhile were taken at once, on a busy machine 24 in a second at a rate of 20. Further ahead than the slowest rate, one a second,
 * puts it, it is of a clock that was set back since, and means nothing.
 */
const nextTurn = (freeAt: string) =>
  `case when ${freeAt} > clock_timestamp() + interval '2 seconds' then clock_timestamp() else greatest(${freeAt}, clock_timestamp()) end`

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
