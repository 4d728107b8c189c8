import { createBatcher } from '../db/batcher.ts'
import { BEFORE_EVERY_REQUEST, lists, type Pool } from '../db/pool.ts'
import { HOLD_MS, type Limiter, type Policy, type Verdict } from './limits.ts'

type Hit = { policy: Policy; subject: string }
type WindowRow = { bucket: string; granted: number; heldCounts: number[]; heldMs: number[]; used: number; resetMs: number }

/**
 * Exact sliding windows that all nodes count together, by the database's clock. Concurrent requests of a node are one statement.
 *
 * Each row keeps when how many requests of its bucket passed, oldest first. The statement locks the rows it needs in the order of their
 * names, so that two nodes never wait for each other in a circle, and reads the clock only when it holds the lock: of two nodes
 * that ask at once, the second sees what the first was granted. A time in the future, left by a clock that was set back, is dropped:
 * it would otherwise block its caller until the clock gets there again.
 *
 * A batch adds one entry, whatever it was granted. Quotas over 1,000, which a limit of the specification never has, are kept in steps of a
 * thousandth of the window, each counted as of its end: the limit still holds to the letter, at the price of a thousandth of it, and the
 * cost of a statement is bounded (measured: 0.7 ms with 30 entries, 16 ms with 10,000).
 */
const COUNT_HITS = `
  insert into rate_limit_windows as w
    (bucket, quota, window_ms, hit_times, hit_counts, granted, held_turns, held_counts, checked_at)
  select
    bucket, quota, window_ms, array[clock_timestamp()], array[least(asked, quota)], least(asked, quota), '{}', '{}', clock_timestamp()
  from unnest(${lists('text', 'int', 'int', 'int')}) as hit (bucket, asked, quota, window_ms)
  order by bucket
  on conflict (bucket) do update set
    (quota, window_ms, hit_times, hit_counts, granted, held_turns, held_counts, checked_at) = (
    select
      excluded.quota,
      excluded.window_ms,
      case when granted = 0 or mark = times[cardinality(times)] then times else times || mark end || held_turns,
      case
        when granted = 0 then counts
        when mark = times[cardinality(times)] then counts[:cardinality(counts) - 1] || counts[cardinality(counts)] + granted
        else counts || granted
      end || held_counts,
      granted,
      held_turns,
      held_counts,
      instant
    from (
      select
        clock_timestamp() as instant,
        excluded.window_ms * interval '1 millisecond' as span,
        ${HOLD_MS} * interval '1 millisecond' as hold
    ) as clock,
    lateral (
      select case when excluded.quota <= 1000 then instant else date_bin(span / 1000, instant, 'epoch') + span / 1000 end as mark
    ) as step,
    lateral (
      select
        coalesce(array_agg(hit.time order by hit.time), '{}') as times,
        coalesce(array_agg(hit.count order by hit.time), '{}') as counts,
        coalesce(sum(hit.count), 0)::int as used
      from unnest(w.hit_times, w.hit_counts) as hit (time, count)
      where hit.time > instant - span and hit.time <= mark + hold
    ) as recent,
    lateral (select greatest(0, least(excluded.granted, excluded.quota - used)) as granted) as at_once,
    lateral (
      -- Those that leave within the time that a request can be held make room, one after the other, for those that wait.
      select
        coalesce(array_agg(turn order by turn) filter (where given > 0), '{}') as held_turns,
        coalesce(array_agg(given order by turn) filter (where given > 0), '{}') as held_counts
      from (
        select turn, room - lag(room, 1, 0) over (order by turn) as given
        from (
          select
            time + span as turn,
            greatest(0, least(excluded.granted - granted, excluded.quota - used - granted + sum(count) over (order by time)))::int as room
          from unnest(times, counts) as leaving (time, count)
          where time + span <= instant + hold
        ) as leaving
      ) as waiting
    ) as soon
  )
  returning
    bucket,
    granted,
    held_counts as "heldCounts",
    array(select (extract(epoch from turn - checked_at) * 1000)::float8 from unnest(held_turns) as turn) as "heldMs",
    (select coalesce(sum(count), 0) from unnest(w.hit_counts) as count)::int as used,
    greatest(0, extract(epoch from (
      -- The first with whose leaving there is room for one more.
      select min(hit.time) from (
        select time, sum(count) over (order by time) - sum(count) over () + w.quota as room
        from unnest(w.hit_times, w.hit_counts) as h (time, count)
      ) as hit
      where hit.room > 0
    ) - checked_at) * 1000 + window_ms)::float8 as "resetMs"`

const FORGET_EVERY_MS = 60_000
const FORGET_AT_ONCE = 1_000

const FORGET_SILENT = `
  delete from rate_limit_windows
  where bucket in (
    select bucket from rate_limit_windows
    where checked_at < clock_timestamp() - interval '2 minutes'
    limit ${FORGET_AT_ONCE}
    for update skip locked
  )`

export function createDatabaseLimiter(pool: Pool): { limiter: Limiter; stop: () => void } {
  const count = createBatcher<Hit, Verdict>((hits) => countHits(pool, hits), { maxItems: 500 })
  // Tidying up is not worth an alarm: when it fails, the next turn does it.
  const timer = setInterval(() => void forgetSilent(pool).catch(() => {}), FORGET_EVERY_MS)
  timer.unref()
  return { limiter: (policy, subject) => count({ policy, subject }), stop: () => clearInterval(timer) }
}

/** In small bites, so that no request waits behind a large one; until nothing is left, so that the table follows the callers of the last minutes. */
export async function forgetSilent(pool: Pool): Promise<void> {
  while ((await pool.query(FORGET_SILENT)).rowCount === FORGET_AT_ONCE);
}

async function countHits(pool: Pool, hits: Hit[]): Promise<Verdict[]> {
  const buckets = new Map<string, { policy: Policy; asked: number; answered: number }>()
  for (const { policy, subject } of hits) {
    const key = `${policy.name} ${subject}`
    const bucket = buckets.get(key) ?? { policy, asked: 0, answered: 0 }
    bucket.asked += 1
    buckets.set(key, bucket)
  }
  const asked = [...buckets.values()]
  const { rows } = await pool.query<WindowRow>({
    name: 'count-hits',
    text: COUNT_HITS,
    values: [
      [...buckets.keys()],
      asked.map((bucket) => bucket.asked),
      asked.map(({ policy }) => policy.quota),
      asked.map(({ policy }) => policy.windowMs),
    ],
    ...BEFORE_EVERY_REQUEST,
  })
  const byBucket = new Map(rows.map((row) => [row.bucket, { ...row, waits: waitsOf(row) }]))

  // Of several requests of one caller in the batch, the first ones get what was granted.
  return hits.map(({ policy, subject }) => {
    const key = `${policy.name} ${subject}`
    const bucket = buckets.get(key)
    const row = byBucket.get(key)
    if (bucket === undefined || row === undefined) throw new Error('a rate limit window was asked for and not returned')
    bucket.answered += 1
    const waitMs = row.waits[bucket.answered - 1]
    const usedThen = waitMs === undefined ? row.used : row.used - row.waits.length + bucket.answered
    return {
      allowed: waitMs !== undefined,
      waitMs: waitMs ?? 0,
      remaining: Math.max(0, policy.quota - usedThen),
      resetMs: row.resetMs,
    }
  })
}

/** How long each of the requests that may pass has to wait: first those whose turn has come, then those that are held. */
function waitsOf({ granted, heldCounts, heldMs }: WindowRow): number[] {
  const held = heldCounts.flatMap((count, index) => Array.from({ length: count }, () => Math.max(0, heldMs[index] ?? 0)))
  return [...Array.from({ length: granted }, () => 0), ...held]
}
