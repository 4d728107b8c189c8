import type { Executor } from './pool.ts'

const BATCH_SIZE = 10_000

/** `where` and `order`: which deltas come first. `steps`: SQL that adds the rows of the step `batch` to the totals. */
type Fold = { deltas: string; where?: string; order: string; steps: string }

/** The statement that folds a batch of deltas into totals, so that reading stays fast. Concurrent folds skip each other's deltas. */
export const foldStatement = ({ deltas, where = 'true', order, steps }: Fold) => `
  with batch as (
    delete from ${deltas} where ctid = any (array(
      select ctid from ${deltas} where ${where} order by ${order} limit $1 for update skip locked))
    returning *
  ), ${steps}
  select count(*) as folded from batch`

/** Returns whether there may be more deltas. */
export async function fold(db: Executor, name: string, text: string): Promise<{ mayBeMore: boolean }> {
  const { rows } = await db.query<{ folded: number }>({ name, text, values: [BATCH_SIZE] })
  return { mayBeMore: rows[0]?.folded === BATCH_SIZE }
}
