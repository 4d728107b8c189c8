import type { Executor } from '../db/pool.ts'

/**
 * The standbys of the database. `connected`: null if the owner of the tables may not see them. `missing`: how many should be connected and are
 * not. `commitsWait`: no commit ends until a synchronous standby is back.
 */
export type Standbys = { connected: number | null; missing: number; commitsWait: boolean }

type Row = { connected: number | null; synchronous: number | null; names: string; inactiveSlots: number }

/** With `local` or `off`, commits wait for no standby. */
export const READ_STANDBYS = `
  select connected, synchronous,
    case when current_setting('synchronous_commit') in ('local', 'off') then '' else current_setting('synchronous_standby_names') end as names,
    (select count(*)::integer from pg_replication_slots where slot_type = 'physical' and not temporary and not active) as "inactiveSlots"
  from count_standbys()`

/** `seen`: how many were connected at once within the last hour. */
export async function readStandbys(db: Executor, seen: number): Promise<Standbys> {
  const { rows } = await db.query<Row>({ name: 'read-standbys', text: READ_STANDBYS })
  return standbysOf(rows[0] as Row, seen)
}

/** A standby is missing if commits wait for it, if it left the slot that is reserved for it, or if it was connected within the last hour. */
export function standbysOf({ connected, synchronous, names, inactiveSlots }: Row, seen: number): Standbys {
  const missed = connected === null ? 0 : seen - connected
  const waitedFor = synchronous === null ? 0 : neededBy(names) - synchronous
  return { connected, missing: Math.max(0, missed, waitedFor, inactiveSlots), commitsWait: waitedFor > 0 }
}

/** How many standbys a commit waits for, by the setting `synchronous_standby_names`: `FIRST 2 (a, b, c)`, `ANY 1 (*)`, `2 (a, b)`, or names. */
function neededBy(names: string): number {
  if (names.trim() === '') return 0
  return Number(/^\s*(?:first|any)?\s*(\d+)\s*\(/i.exec(names)?.[1] ?? 1)
}

/** A standby that left longer ago is no longer missed: it may have been removed on purpose. */
const REMEMBERED_MS = 3_600_000

/** Remembers the highest of the numbers of the last hour. */
export function createHighest(now = () => performance.now()) {
  let highest = { value: 0, at: 0 }
  return {
    note: (value: number): void => {
      if (value >= highest.value || now() - highest.at > REMEMBERED_MS) highest = { value, at: now() }
    },
    value: () => highest.value,
  }
}
