import type { Session } from 'smpp'
import type { Ledger } from '../phones/ledger.ts'
import { type Claimed, createOwed, type Owed } from '../state/owed.ts'
import type { Store } from '../state/store.ts'
import { waitMsAfter } from '../timing.ts'
import { corked } from './corked.ts'

type Row = { phone: string; messageId: string; pdu: Record<string, unknown> }

const MAX_IN_FLIGHT_PER_SESSION = 64
const RESPONSE_TIMEOUT_MS = 10_000
const LONGEST_WAIT_MS = 60_000

export type Outbox = {
  owe: (about: { phone: string; messageId: string; dueAt: number }, pdu: Record<string, unknown>) => void
  /** Sends an SMS from a phone to a number. */
  writeSms: (phone: string, number: string, text: string) => void
  /** A session that may receive is bound. */
  join: (session: Session) => void
  leave: (session: Session) => void
  start: () => void
  stop: () => void
}

type InFlight = Map<number, NodeJS.Timeout>
type State = {
  ledger: Ledger
  owed: Owed<Row>
  receivers: Map<Session, InFlight>
  turn: number
  stopped: boolean
}

/** Sends each deliver_sm to a session that may receive, and repeats it until the status of the response is 0. */
export function createOutbox(store: Store, ledger: Ledger): Outbox {
  const owed = createOwed<Row>(store, 'deliverSm', () => pump(state))
  const state: State = { ledger, owed, receivers: new Map(), turn: 0, stopped: true }
  const owe: Outbox['owe'] = ({ phone, messageId, dueAt }, pdu) => owed.add({ phone, messageId, pdu }, dueAt)
  return {
    owe,
    writeSms: (phone, number, text) => owe({ phone, messageId: '', dueAt: Date.now() }, smsFromPhone(phone, number, text)),
    join: (session) => {
      state.receivers.set(session, new Map())
      // A client that reconnects gets the missed PDUs at once.
      owed.hurry()
    },
    leave: (session) => leave(state, session),
    start: () => {
      state.stopped = false
      owed.start()
    },
    stop: () => {
      state.stopped = true
      owed.stop()
      for (const session of state.receivers.keys()) leave(state, session)
    },
  }
}

/** Releases PDUs without a response: they are due again at once. */
function leave({ receivers, owed }: State, session: Session): void {
  for (const [id, timer] of receivers.get(session) ?? []) {
    clearTimeout(timer)
    owed.release(id)
  }
  receivers.delete(session)
}

function smsFromPhone(phone: string, number: string, text: string): Record<string, unknown> {
  const from = { source_addr_ton: 1, source_addr_npi: 1, source_addr: phone.slice(1) }
  const to = { dest_addr_ton: 1, dest_addr_npi: 1, destination_addr: number }
  // These characters are the same in ASCII and GSM 03.38, except for one or two that the package converts.
  const dataCoding = /^[ -Z_a-z\n\r]*$/.test(text) ? 0 : 8
  return { ...from, ...to, esm_class: 0, data_coding: dataCoding, short_message: text }
}

function pump(state: State): void {
  if (state.stopped) return
  for (;;) {
    const session = freeReceiver(state)
    const claimed = session && state.owed.next()
    if (claimed === undefined) return
    send(state, session as Session, claimed)
  }
}

function freeReceiver(state: State): Session | undefined {
  const all = [...state.receivers]
  for (let tried = 0; tried < all.length; tried++) {
    const [session, inFlight] = all[state.turn++ % all.length] ?? []
    if (inFlight !== undefined && inFlight.size < MAX_IN_FLIGHT_PER_SESSION) return session
  }
  return undefined
}

function send(state: State, session: Session, claimed: Claimed<Row>): void {
  const { id, row } = claimed
  const inFlight = state.receivers.get(session) as InFlight
  const settle = (status: number | undefined) => {
    // The first of the response, the timeout and the end of the session settles the PDU.
    if (!inFlight.has(id)) return
    clearTimeout(inFlight.get(id))
    inFlight.delete(id)
    if (status === 0) accepted(state, claimed)
    else again(state, claimed)
  }
  const respond = (status: number | undefined) => {
    settle(status)
    pump(state)
  }
  inFlight.set(id, setTimeout(respond, RESPONSE_TIMEOUT_MS, undefined))
  try {
    if (!corked(session).deliver_sm({ ...row.pdu }, (response) => respond(response.command_status))) settle(undefined)
  } catch (error) {
    console.error(error)
    settle(undefined)
  }
}

function accepted({ owed, ledger }: State, { id, tries, row: { phone, messageId } }: Claimed<Row>): void {
  owed.paid(id)
  ledger.write({ kind: 'receipt-accepted', channel: 'sms', phone, messageId, origin: '', detail: { tries: tries + 1 } })
}

function again({ owed }: State, { id, tries }: Claimed<Row>): void {
  owed.again(id, Date.now() + waitMsAfter(tries, LONGEST_WAIT_MS))
}
