import { createAlarm } from '../timing.ts'
import { byDue, pushDue, shiftDue } from './due-queue.ts'
import type { Debt, ListName, LogRecord } from './state.ts'
import type { Store } from './store.ts'

// The rows of further debts are only in the log, and are read when they are due.
const MAX_ROWS = 20_000

/** A debt that is being paid, with its row. */
export type Claimed<Row> = { id: number; tries: number; row: Row }

/** A list of debts: work that the simulator still owes, such as an event to post. A debt can be claimed once it is due and in the log. */
export type Owed<Row> = {
  add: (row: Row, dueAt: number) => void
  /** Claims the first debt that is due. If there is none, `pump` is called as soon as there is one. */
  next: () => Claimed<Row> | undefined
  /** Removes a debt whose work is done. */
  paid: (id: number) => void
  /** Postpones a debt after a failed try. */
  again: (id: number, dueAt: number) => void
  /** Releases a debt that was not tried: it is still due. */
  release: (id: number) => void
  /** Makes all debts that wait for their next try due now. */
  hurry: () => void
  start: () => void
  stop: () => void
}

export function createOwed<Row>(store: Store, list: ListName, pump: () => void): Owed<Row> {
  const { debts } = store.state.owed[list]
  const rows = new Map<number, Row>()
  /** All debts that are committed and not in progress. */
  const waiting = [...debts.values()].sort(byDue)
  let fresh: Debt[] = []
  const alarm = createAlarm(pump)
  const paid = createPayments(store, list, rows)

  /** Only committed debts can be claimed: after a crash, no receiver may know of an event that the log does not have. */
  function queueFresh(): void {
    for (const debt of fresh) pushDue(waiting, debt)
    fresh = []
    if ((waiting[0] as Debt).dueAt <= Date.now()) pump()
    else alarm.at((waiting[0] as Debt).dueAt)
  }

  return {
    add: (row, dueAt) => {
      const id = store.state.owed[list].lastId + 1
      store.append({ is: 'owed', list, id, dueAt, row })
      if (rows.size < MAX_ROWS) rows.set(id, row)
      if (fresh.push(debts.get(id) as Debt) === 1) void store.committed().then(queueFresh)
    },
    next: () => {
      const first = waiting[0]
      if (first === undefined) return undefined
      if (first.dueAt > Date.now()) {
        alarm.at(first.dueAt)
        return undefined
      }
      shiftDue(waiting)
      const { id, tries, offset } = first
      return { id, tries, row: rows.get(id) ?? ((store.read(offset) as Extract<LogRecord, { is: 'owed' }>).row as Row) }
    },
    paid,
    again: (id, dueAt) => {
      store.append({ is: 'again', list, id, dueAt })
      pushDue(waiting, debts.get(id) as Debt)
      alarm.at(dueAt)
    },
    release: (id) => {
      pushDue(waiting, debts.get(id) as Debt)
      alarm.at(Date.now())
    },
    hurry: () => {
      store.append({ is: 'hurry', list, at: Date.now() })
      waiting.sort(byDue)
      alarm.at(Date.now())
    },
    start: () => alarm.at(Date.now()),
    stop: alarm.stop,
  }
}

/** Writes one record for all debts paid in a turn. */
function createPayments(store: Store, list: ListName, rows: Map<number, unknown>): (id: number) => void {
  let ids: number[] = []
  store.beforeCommit(() => {
    if (ids.length === 0) return
    store.append({ is: 'paid', list, ids })
    ids = []
  })
  return (id) => {
    store.begin()
    rows.delete(id)
    ids.push(id)
  }
}
