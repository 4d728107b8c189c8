import { type Executor, lists } from '../db/pool.ts'
import { MARK_LENGTH, type Place } from './cursor.ts'

/** The end of the account's log: a reader that starts here gets the events that are recorded from now on. */
export async function findEnd(db: Executor, accountId: number): Promise<Place> {
  return (await findEnds(db, [accountId])).get(accountId) as Place
}

/** The ends of the logs of several accounts. */
export async function findEnds(db: Executor, accountIds: number[]): Promise<Map<number, Place>> {
  const { rows } = await db.query<Place & { accountId: number }>({ name: 'find-ends', text: FIND_ENDS, values: [accountIds] })
  return new Map(rows.map(({ accountId, ...place }) => [accountId, place]))
}

/**
 * The place before the first event that got its position at this time or later. An event gets its position after it was recorded, so a reader
 * that starts here gets every event recorded since then, and perhaps some that were recorded a little earlier.
 */
export async function findStart(db: Executor, accountId: number, since: Date): Promise<Place> {
  const { rows } = await db.query<Place>({ name: 'find-start', text: FIND_START, values: [accountId, since] })
  return rows[0] as Place
}

/** In SQL: the place at a position that ends a page. No cursor check compares the mark of a page that retention has deleted. */
const placeAt = (position: string, accountId = '$1') => `${position} as position, coalesce(
    (select right(page_id::text, ${MARK_LENGTH}) from log_pages where account_id = ${accountId} and last_position = ${position}), repeat('0', ${MARK_LENGTH})) as mark`

const HEAD = 'coalesce((select last_position from log_heads where account_id = $1), 0)'

export const FIND_ENDS = `
  select head.account_id as "accountId", ${placeAt('head.position', 'head.account_id')}
  from (
    select wanted.account_id, coalesce((select last_position from log_heads h where h.account_id = wanted.account_id), 0) as position
    from unnest(${lists('int')}) as wanted (account_id)
  ) as head`

/**
 * A binary search, since the times in `placed_at` never decrease with the position: 20 index look-ups for a million pages. The first event is at
 * `low` or later, and not after `high`. Both are always the first positions of pages.
 */
export const FIND_START = `
  with recursive search as (
    select coalesce((select last_position - event_count from log_pages where account_id = $1 and last_position is not null
        order by last_position limit 1), ${HEAD}) + 1 as low,
      coalesce((select max(last_position) from log_pages where account_id = $1), ${HEAD}) + 1 as high
    union all
    select case when p.placed_at < $2 then p.last_position + 1 else low end,
      case when p.placed_at < $2 then high else p.last_position - p.event_count + 1 end
    from search, lateral (
      select last_position, event_count, placed_at from log_pages where account_id = $1 and last_position >= (low + high) / 2
      order by last_position limit 1
    ) as p
    where low < high
  )
  select ${placeAt('found.position')} from (select low - 1 as position from search where low >= high) as found`
