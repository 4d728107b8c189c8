import type { Socket } from 'node:net'
import { createFramer, type Framer } from './framing.ts'
import { encodePdu, NO_TLVS, type Pdu, type PduOf } from './pdu.ts'
import type { SmppSettings, SmppTimings } from './settings.ts'

// The state of one connection, and writing to it. session.ts has the protocol.

/** The outcome of a submit_sm that was written to the socket. */
export type SubmitOutcome = { is: 'responded'; status: number; messageId: string; writtenAtMs: number } | { is: 'lost'; reason: string }

export type InFlight = { writtenAtMs: number; settle: (outcome: SubmitOutcome) => void }

/** Why a connection ended. */
export type End = { is: 'refused'; status: number } | { is: 'lost'; reason: string; err?: Error } | { is: 'left' }

export type SessionEvents = {
  onBound: () => void
  /** The window has room again. */
  onRoom: () => void
  /** Resolves once the event is committed. Only then is the deliver_sm acknowledged. */
  onDelivery: (pdu: PduOf<'deliver_sm'>) => Promise<void>
  /** Called once, as the last event. */
  onEnd: (end: End) => void
}

/** `leaving`: no new submits are written, and responses are awaited. `unbinding`: only the response to the unbind is awaited. */
type State = 'connecting' | 'binding' | 'bound' | 'leaving' | 'unbinding' | 'ended'

export type Session = {
  settings: SmppSettings
  timings: SmppTimings
  events: SessionEvents
  socket: Socket
  framer: Framer
  state: State
  sinceMs: number
  heardAtMs: number
  enquiredAtMs: number | undefined
  sequence: number
  /** By sequence number, oldest first. */
  inFlight: Map<number, InFlight>
  deliveries: number
  /** The network has sent an unbind, so this side need not send one. */
  peerLeft: boolean
  corked: boolean
}

const MAX_SEQUENCE = 0x7fffffff

export function createSession(settings: SmppSettings, timings: SmppTimings, events: SessionEvents, socket: Socket): Session {
  const nowMs = performance.now()
  return {
    settings,
    timings,
    events,
    socket,
    framer: createFramer(),
    state: 'connecting',
    sinceMs: nowMs,
    heardAtMs: nowMs,
    enquiredAtMs: undefined,
    sequence: 0,
    inFlight: new Map(),
    deliveries: 0,
    peerLeft: false,
    corked: false,
  }
}

export function enter(session: Session, state: State): void {
  session.state = state
  session.sinceMs = performance.now()
}

export function nextSequence(session: Session): number {
  session.sequence = session.sequence === MAX_SEQUENCE ? 1 : session.sequence + 1
  return session.sequence
}

export function bare(
  command: 'enquire_link' | 'enquire_link_resp' | 'unbind' | 'unbind_resp' | 'generic_nack',
  sequence: number,
  status = 0,
): Pdu {
  return { command, status, sequence, tlvs: NO_TLVS }
}

/** Corks the socket, so that all PDUs of one turn of the event loop leave in one system call. */
export function write(session: Session, pdu: Pdu): void {
  const { socket } = session
  if (!socket.writable) return
  if (!session.corked) {
    session.corked = true
    socket.cork()
    process.nextTick(() => {
      session.corked = false
      socket.uncork()
    })
  }
  // Stop reading from a peer that does not read, until it does.
  if (!socket.write(encodePdu(pdu))) socket.pause()
}
