import { createAlarm } from '../timing.ts'
import { byDue, pushDue, shiftDue } from './due-queue.ts'
import type { Debt, ListName, LogRecord } from './state.ts'
import type { Store } from './store.ts'

// The rows of more debts than these are in the log alone, and read again when they are due.
const MOST_ROWS = 20_000

/** A debt that is handed out, with its row. */
export type Handed<Row> = { id: number; tries: number; row: Row }

/** The debts of a list on their way to the code that pays them: each is handed out once, when it is due and in the log. */
export type Owed<Row> = {
  add: (row: Row, dueAt: number) => void
  /** The first that is due; where there is none, `pump` is called when there is. */
  next: () => Handed<Row> | undefined
  paid: (id: number) => void
  /** It was tried in vain. */
  again: (id: number, dueAt: number) => void
  /** It was not tried: it is still due. */
  giveBack: (id: number) => void
  /** What waits for its next try is due now. */
  hurry: () => void
  start: () => void
  stop: () => void
}

export function createOwed<Row>(store: Store, list: ListName, pump: () => void): Owed<Row> {
  const { debts } = store.state.owed[list]
  const rows = new Map<number, Row>()
  /** All but those that are handed out and those that are not committed yet. */
  const waiting = [...debts.values()].sort(byDue)
  let fresh: Debt[] = []
  const alarm = createAlarm(pump)
  const paid = createPayments(store, list, rows)

  /** After a crash nobody may know of something that never was, so what is handed out is committed. */
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
      if (rows.size < MOST_ROWS) rows.set(id, row)
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
    giveBack: (id) => {
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

/** One record for all debts that were paid in a turn. */
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
