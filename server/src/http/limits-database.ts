import { createBatcher } from '../db/batcher.ts'
import type { Pool } from '../db/pool.ts'
import type { Limiter, Policy, Verdict } from './limits.ts'

type Hit = { policy: Policy; subject: string }
type WindowRow = { bucket: string; granted: number; used: number; resetMs: number }

/**
 * Exact sliding windows that all nodes count together, by the database's clock. Concurrent requests of a node are one statement.
 *
 * Each row keeps when how many requests of its bucket passed, oldest first. The statement locks the rows it needs in the order of their
 * names, so that two nodes never wait for each other in a circle, and reads the clock only when it holds the lock: of two nodes
 * that ask at once, the second sees what the first was granted. A window of 100 that 20 batches filled holds 20 entries, not 100. A time in the
 * future, left by a clock that was set back, is dropped: it would otherwise block its caller until the clock gets there again.
 */
const COUNT_HITS = `
  insert into rate_limit_windows as w (bucket, quota, window_ms, hit_times, hit_counts, granted, checked_at)
  select bucket, quota, window_ms, array[clock_timestamp()], array[least(asked, quota)], least(asked, quota), clock_timestamp()
  from unnest($1::text[], $2::int[], $3::int[], $4::int[]) as hit (bucket, asked, quota, window_ms)
  order by bucket
  on conflict (bucket) do update set (quota, window_ms, hit_times, hit_counts, granted, checked_at) = (
    select
      excluded.quota,
      excluded.window_ms,
      case when granted > 0 then times || instant else times end,
      case when granted > 0 then counts || granted else counts end,
      granted,
      instant
    from (select clock_timestamp() as instant) as clock,
    lateral (
      select
        coalesce(array_agg(hit.time order by position), '{}') as times,
        coalesce(array_agg(hit.count order by position), '{}') as counts,
        coalesce(sum(hit.count), 0)::int as used
      from unnest(w.hit_times, w.hit_counts) with ordinality as hit (time, count, position)
      where hit.time > instant - excluded.window_ms * interval '1 millisecond' and hit.time <= instant
    ) as recent,
    lateral (select greatest(0, least(excluded.granted, excluded.quota - used)) as granted) as verdict
  )
  returning
    bucket,
    granted,
    (select coalesce(sum(count), 0) from unnest(w.hit_counts) as count)::int as used,
    least(window_ms, greatest(0, extract(epoch from w.hit_times[1] - checked_at) * 1000 + window_ms))::float8 as "resetMs"`

const FORGET_SILENT = `
  delete from rate_limit_windows
  where bucket in (
    select bucket from rate_limit_windows
    where checked_at < clock_timestamp() - interval '2 minutes'
    limit 1000
    for update skip locked
  )`

const FORGET_EVERY_MS = 60_000

export function createDatabaseLimiter(pool: Pool): { limiter: Limiter; stop: () => void } {
  const count = createBatcher<Hit, Verdict>((hits) => countHits(pool, hits), { maxItems: 500 })
  // Tidying up is not worth an alarm: when it fails, the next turn does it.
  const timer = setInterval(() => void pool.query(FORGET_SILENT).catch(() => {}), FORGET_EVERY_MS)
  timer.unref()
  return { limiter: (policy, subject) => count({ policy, subject }), stop: () => clearInterval(timer) }
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
  })
  const byBucket = new Map(rows.map((row) => [row.bucket, row]))

  // Of several requests of one caller in the batch, the first ones get what was granted.
  return hits.map(({ policy, subject }) => {
    const key = `${policy.name} ${subject}`
    const bucket = buckets.get(key)
    const row = byBucket.get(key)
    if (bucket === undefined || row === undefined) throw new Error('a rate limit window was asked for and not returned')
    bucket.answered += 1
    const allowed = bucket.answered <= row.granted
    const usedThen = allowed ? row.used - row.granted + bucket.answered : row.used
    return { allowed, remaining: Math.max(0, policy.quota - usedThen), resetMs: row.resetMs }
  })
}
