import type { Session } from 'smpp'
import type { Ledger } from '../phones/ledger.ts'
import type { Store } from '../state/store.ts'
import { type Alarm, createAlarm } from '../timing.ts'

type Owed = { id: number; tries: number; phone: string; message_id: string; pdu: string }

const IN_FLIGHT_FOR_A_SESSION = 64
const ANSWER_WITHIN_MS = 10_000
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 60_000

export type Outbox = {
  owe: (about: { phone: string; messageId: string; dueAt: number }, pdu: Record<string, unknown>) => void
  /** An SMS that a phone writes to a number. */
  writeSms: (phone: string, number: string, text: string) => void
  /** A session that may receive has come. */
  join: (session: Session) => void
  leave: (session: Session) => void
  start: () => void
  stop: () => void
}

type InFlight = Map<number, NodeJS.Timeout>
type Desk = {
  store: Store
  ledger: Ledger
  alarm: Alarm
  receivers: Map<Session, InFlight>
  /** Rows that a session has and has not answered yet. */
  taken: Set<number>
  turn: number
  stopped: boolean
}

/** Hands deliver_sm to any session that may receive, again and again until one answers with 0. */
export function createOutbox(store: Store, ledger: Ledger): Outbox {
  const alarm = createAlarm(() => pump(desk))
  const desk: Desk = { store, ledger, alarm, receivers: new Map(), taken: new Set(), turn: 0, stopped: true }
  const owe: Outbox['owe'] = ({ phone, messageId, dueAt }, pdu) => {
    store.run('insert into deliver_sm (due_at, phone, message_id, pdu) values (?, ?, ?, ?)', dueAt, phone, messageId, JSON.stringify(pdu))
    alarm.at(dueAt)
  }
  return {
    owe,
    writeSms: (phone, number, text) => owe({ phone, messageId: '', dueAt: Date.now() }, smsFromPhone(phone, number, text)),
    join: (session) => {
      desk.receivers.set(session, new Map())
      // Whoever comes back need not wait for what it missed.
      store.run('update deliver_sm set due_at = ? where tries > 0 and due_at > ?', Date.now(), Date.now())
      alarm.at(Date.now())
    },
    leave: (session) => leave(desk, session),
    start: () => {
      desk.stopped = false
      alarm.at(Date.now())
    },
    stop: () => {
      desk.stopped = true
      alarm.stop()
      for (const session of desk.receivers.keys()) leave(desk, session)
    },
  }
}

/** What it had and did not answer is owed again, at once. */
function leave({ receivers, taken, alarm }: Desk, session: Session): void {
  for (const [id, timer] of receivers.get(session) ?? []) {
    clearTimeout(timer)
    taken.delete(id)
  }
  receivers.delete(session)
  alarm.at(Date.now())
}

function smsFromPhone(phone: string, number: string, text: string): Record<string, unknown> {
  const from = { source_addr_ton: 1, source_addr_npi: 1, source_addr: phone.slice(1) }
  const to = { dest_addr_ton: 1, dest_addr_npi: 1, destination_addr: number }
  // These letters are the same in ASCII and in GSM 03.38, but for one or two that the package knows.
  const dataCoding = /^[ -Z_a-z\n\r]*$/.test(text) ? 0 : 8
  return { ...from, ...to, esm_class: 0, data_coding: dataCoding, short_message: text }
}

function pump(desk: Desk): void {
  const { store, alarm, receivers, taken } = desk
  if (desk.stopped || receivers.size === 0) return
  const room = Math.max(0, receivers.size * IN_FLIGHT_FOR_A_SESSION - taken.size)
  const limit = room + taken.size
  const rows = store.all<Owed>('select * from deliver_sm where due_at <= ? order by due_at, id limit ?', Date.now(), limit)
  const fresh = rows.filter(({ id }) => !taken.has(id)).slice(0, room)
  for (const row of fresh) taken.add(row.id)
  if (fresh.length > 0) void handAll(desk, fresh)
  const next = store.get<{ due_at: number }>('select due_at from deliver_sm where due_at > ? order by due_at, id limit 1', Date.now())
  if (next !== undefined) alarm.at(next.due_at)
}

async function handAll(desk: Desk, rows: Owed[]): Promise<void> {
  // Only what is on disk is told.
  const safe = await desk.store.committed().then(
    () => true,
    () => false,
  )
  for (const row of rows) {
    const session = safe && !desk.stopped ? freeReceiver(desk) : undefined
    if (session === undefined) desk.taken.delete(row.id)
    else hand(desk, session, row)
  }
}

function freeReceiver(desk: Desk): Session | undefined {
  const all = [...desk.receivers]
  for (let tried = 0; tried < all.length; tried++) {
    const [session, inFlight] = all[desk.turn++ % all.length] ?? []
    if (inFlight !== undefined && inFlight.size < IN_FLIGHT_FOR_A_SESSION) return session
  }
  return undefined
}

function hand(desk: Desk, session: Session, row: Owed): void {
  const inFlight = desk.receivers.get(session)
  if (inFlight === undefined) return
  const settle = (status: number | undefined) => {
    // Once only: by the answer, by its time, or by the end of the session.
    if (!inFlight.has(row.id)) return
    clearTimeout(inFlight.get(row.id))
    inFlight.delete(row.id)
    desk.taken.delete(row.id)
    if (status === 0) accepted(desk, row)
    else again(desk, row)
    desk.alarm.at(Date.now())
  }
  inFlight.set(row.id, setTimeout(settle, ANSWER_WITHIN_MS, undefined))
  try {
    if (!session.deliver_sm(JSON.parse(row.pdu), (answer) => settle(answer.command_status))) settle(undefined)
  } catch (error) {
    console.error(error)
    settle(undefined)
  }
}

function accepted({ store, ledger }: Desk, row: Owed): void {
  const { phone, message_id: messageId, tries } = row
  store.run('delete from deliver_sm where id = ?', row.id)
  ledger.write({ kind: 'receipt-accepted', channel: 'sms', phone, messageId, origin: '', detail: { tries: tries + 1 } })
}

function again({ store }: Desk, row: Owed): void {
  const waitMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(row.tries, 20), LONGEST_WAIT_MS)
  store.run('update deliver_sm set tries = tries + 1, due_at = ? where id = ?', Date.now() + waitMs, row.id)
}
