import { createAlarm } from '../timing.ts'
import type { Store } from './store.ts'

const ROWS_AT_ONCE = 256
const MOST_IN_MEMORY = 1000

/** The rows of a table of debts, on their way to whoever pays them: each is handed out once, when it is due and on disk. */
export type Owed<Row> = {
  /** A row that was just written. */
  add: (row: Row, dueAt: number) => void
  /** The oldest that is due; where there is none, `pump` is called when there is. */
  next: () => Row | undefined
  paid: (id: number) => void
  /** It was tried in vain. */
  again: (id: number, dueAt: number) => void
  /** It was not tried: it is due still. */
  giveBack: (id: number) => void
  /** What waits for its next try is due now. */
  hurry: () => void
  start: () => void
  stop: () => void
}

/**
 * A row that is due at once goes through memory and is not read again, unless so many are owed that some are in the database alone. Then
 * those are read first, by hundreds.
 */
export function createOwed<Row extends { id: number }>(store: Store, table: 'webhooks' | 'deliver_sm', pump: () => void): Owed<Row> {
  /** Rows that are in memory, here or with whoever pays them. */
  const taken = new Set<number>()
  const written: Row[] = []
  let ready: Row[] = []
  /** Whether rows that are due may be in the database alone. */
  let more = true
  const alarm = createAlarm(() => {
    more = true
    pump()
  })

  /** Only what is on disk is told: after a crash nobody may know of something that never was. */
  function keep(rows: Row[]): void {
    for (const { id } of rows) taken.add(id)
    if (written.push(...rows) > rows.length) return
    void store.committed().then(() => {
      ready = ready.concat(written.splice(0))
      pump()
    })
  }

  /** Reads rows again that are taken, but no more than are being paid just now, since nothing is ready when it looks. */
  function look(): void {
    const now = Date.now()
    const limit = ROWS_AT_ONCE + taken.size
    const rows = store.all<Row>(`select * from ${table} where due_at <= ? order by due_at, id limit ?`, now, limit)
    more = rows.length === limit
    const fresh = rows.filter(({ id }) => !taken.has(id))
    if (fresh.length > 0) keep(fresh)
    const next = store.get<{ due_at: number }>(`select due_at from ${table} where due_at > ? order by due_at, id limit 1`, now)
    if (next !== undefined) alarm.at(next.due_at)
  }

  const remove = createRemoval(store, table, taken)

  return {
    add: (row, dueAt) => {
      if (dueAt <= Date.now() && !more && taken.size < MOST_IN_MEMORY) keep([row])
      else alarm.at(dueAt)
    },
    next: () => {
      if (ready.length === 0 && written.length === 0 && more) look()
      return ready.shift()
    },
    paid: remove,
    again: (id, dueAt) => {
      store.run(`update ${table} set tries = tries + 1, due_at = ? where id = ?`, dueAt, id)
      taken.delete(id)
      alarm.at(dueAt)
    },
    giveBack: (id) => {
      taken.delete(id)
      alarm.at(Date.now())
    },
    hurry: () => {
      store.run(`update ${table} set due_at = ? where tries > 0 and due_at > ?`, Date.now(), Date.now())
      alarm.at(Date.now())
    },
    start: () => alarm.at(Date.now()),
    stop: alarm.stop,
  }
}

/** By one statement for all rows of a turn; until then they are taken, so that nobody gets them again. */
function createRemoval(store: Store, table: string, taken: Set<number>): (id: number) => void {
  let paid: number[] = []
  store.beforeCommit(() => {
    if (paid.length === 0) return
    const ids = JSON.stringify(paid)
    for (const id of paid) taken.delete(id)
    paid = []
    store.run(`delete from ${table} where id in (select value from json_each(?))`, ids)
  })
  return (id) => {
    store.begin()
    paid.push(id)
  }
}
