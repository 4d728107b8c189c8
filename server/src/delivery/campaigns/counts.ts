import type { Executor } from '../../db/pool.ts'

const MOST_AT_ONCE = 10_000

/**
 * A step of a statement that moves messages: counts them for their campaigns, in the same transaction. `moved` names a step with
 * `campaign_id`, `was` and `became`.
 */
export const countMoves = (moved: string) => `
  counted as (
    insert into campaign_changes (campaign_id, status, change)
    select campaign_id, step.status, sum(step.change)
    from ${moved} as moved, lateral (values (moved.was, -1), (moved.became, 1)) as step (status, change)
    where campaign_id is not null
    group by campaign_id, step.status
  )`

/** Adds changes up, so that reading a campaign stays quick. Of two at once each takes changes of its own. Returns whether there may be more. */
export async function foldCounts(db: Executor): Promise<{ mayBeMore: boolean }> {
  const { rows } = await db.query<{ folded: number }>({ name: 'fold-campaign-counts', text: FOLD, values: [MOST_AT_ONCE] })
  return { mayBeMore: rows[0]?.folded === MOST_AT_ONCE }
}

const FOLD = `
  with taken as (
    delete from campaign_changes where ctid = any (array(select ctid from campaign_changes order by campaign_id limit $1 for update skip locked))
    returning campaign_id, status, change
  ), folded as (
    insert into campaign_counts as c (campaign_id, status, count)
    select campaign_id, status, sum(change) from taken group by campaign_id, status order by campaign_id, status
    on conflict (campaign_id, status) do update set count = c.count + excluded.count
  )
  select count(*) as folded from taken`
