import { connect as connectPlain } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type Decoded, decodePdu, isResponse, NO_TLVS, type Pdu, type PduOf } from './pdu.ts'
import {
  bare,
  createSession,
  type End,
  enter,
  type InFlight,
  nextSequence,
  type Session,
  type SessionEvents,
  write,
} from './session-state.ts'
import { DEFAULT_ENQUIRE_LINK_SECONDS, type SmppSettings, type SmppTimings } from './settings.ts'
import { STATUS } from './statuses.ts'

// One connection from connect to end. It has no timers: its owner calls `tickSession` often.

// Networks have a window of some ten to a hundred for deliver_sm too. Beyond this limit, Herald asks the network to resend a deliver_sm.
const MAX_DELIVERIES = 1_000
const INTERFACE_VERSION = 0x34

export function openSession(settings: SmppSettings, timings: SmppTimings, events: SessionEvents): Session {
  const { host, port } = settings
  const socket = settings.tls ? connectTls({ host, port }) : connectPlain({ host, port })
  // Writes of one turn are already joined, so Nagle's algorithm would only add delay.
  socket.setNoDelay(true)
  const session = createSession(settings, timings, events, socket)
  socket.once(settings.tls ? 'secureConnect' : 'connect', () => bind(session))
  socket.on('data', (chunk: Buffer) => receive(session, chunk))
  socket.on('drain', () => socket.resume())
  socket.on('error', (err) => endSession(session, { is: 'lost', reason: 'the connection failed', err }))
  socket.on('close', () => endSession(session, { is: 'lost', reason: 'the network closed the connection' }))
  return session
}

/** Whether a submit may be written now. Not while an enquire_link has no response: the outcome of the submit might stay unknown. */
export function hasRoom(session: Session, window: number): boolean {
  return session.state === 'bound' && session.inFlight.size < window && session.enquiredAtMs === undefined && session.socket.writable
}

/** Call it only if `hasRoom`. `settle` is called exactly once. */
export function writeSubmit(session: Session, pdu: PduOf<'submit_sm'>, nowMs: number, settle: InFlight['settle']): void {
  pdu.sequence = nextSequence(session)
  session.inFlight.set(pdu.sequence, { writtenAtMs: nowMs, settle })
  write(session, pdu)
}

/** Unbinds once all submits and deliveries in progress are done or have timed out. */
export function leave(session: Session): void {
  if (session.state === 'connecting' || session.state === 'binding') endSession(session, { is: 'left' })
  if (session.state !== 'bound') return
  enter(session, 'leaving')
  unbindIfDone(session)
}

/** Handles timeouts: of the connection, the bind, the responses and the enquire_link. */
export function tickSession(session: Session, nowMs: number): void {
  const { timings, state } = session
  const inStateMs = nowMs - session.sinceMs
  if (state === 'connecting' && inStateMs >= timings.connectMs) lose(session, 'the connection timed out')
  else if (state === 'binding' && inStateMs >= timings.bindMs) lose(session, 'the bind timed out')
  else if (state === 'unbinding' && inStateMs >= timings.unbindMs) endSession(session, { is: 'left' })
  else if (state === 'leaving' && inStateMs >= timings.leaveMs) unbind(session)
  if (session.state === 'ended') return
  settleOverdue(session, nowMs)
  if (session.state === 'bound') checkLink(session, nowMs)
}

function settleOverdue(session: Session, nowMs: number): void {
  const { inFlight, timings } = session
  let settled = false
  for (const [sequence, { writtenAtMs, settle }] of inFlight) {
    if (nowMs - writtenAtMs < timings.responseMs) break
    inFlight.delete(sequence)
    settle({ is: 'lost', reason: 'The network did not respond in time.' })
    settled = true
    // Nothing was received since the submit was written: check whether the peer is still there.
    if (session.heardAtMs < writtenAtMs) enquire(session, nowMs)
  }
  if (settled) afterResponses(session)
}

function checkLink(session: Session, nowMs: number): void {
  const { enquireLinkSeconds = DEFAULT_ENQUIRE_LINK_SECONDS } = session.settings
  if (session.enquiredAtMs !== undefined) {
    if (nowMs - session.enquiredAtMs >= session.timings.responseMs) lose(session, 'no response to enquire_link')
  } else if (nowMs - session.heardAtMs >= 1_000 * enquireLinkSeconds) enquire(session, nowMs)
}

function enquire(session: Session, nowMs: number): void {
  if (session.state !== 'bound' || session.enquiredAtMs !== undefined) return
  session.enquiredAtMs = nowMs
  write(session, bare('enquire_link', nextSequence(session)))
}

function bind(session: Session): void {
  enter(session, 'binding')
  write(session, {
    command: 'bind_transceiver',
    status: 0,
    sequence: nextSequence(session),
    tlvs: NO_TLVS,
    systemId: session.settings.systemId,
    password: session.settings.password,
    systemType: session.settings.systemType ?? '',
    interfaceVersion: INTERFACE_VERSION,
    addressTon: 0,
    addressNpi: 0,
    addressRange: '',
  })
}

function receive(session: Session, chunk: Buffer): void {
  const { frames, fault } = session.framer.push(chunk)
  const wasAsked = session.enquiredAtMs !== undefined
  session.heardAtMs = performance.now()
  session.enquiredAtMs = undefined
  const before = session.inFlight.size
  for (const frame of frames) {
    if (session.state === 'ended') return
    handle(session, decodePdu(frame))
  }
  if (wasAsked || session.inFlight.size < before) afterResponses(session)
  if (fault !== undefined) lose(session, fault)
}

/** Ignores an unknown response: it belongs to no request of this session. A known response can always be decoded. */
function handle(session: Session, decoded: Decoded): void {
  if (decoded.is === 'pdu') handlePdu(session, decoded.pdu)
  else if (!isResponse(decoded.commandId)) {
    write(session, bare('generic_nack', decoded.sequence, decoded.is === 'broken' ? STATUS.INVALID_LENGTH : STATUS.INVALID_COMMAND))
  }
}

function handlePdu(session: Session, pdu: Pdu): void {
  switch (pdu.command) {
    case 'submit_sm_resp':
      settle(session, pdu.sequence, pdu)
      break
    case 'deliver_sm':
      void deliver(session, pdu)
      break
    case 'enquire_link':
      write(session, bare('enquire_link_resp', pdu.sequence))
      break
    case 'bind_transceiver_resp':
      if (session.state === 'binding') bound(session, pdu.status)
      break
    case 'generic_nack':
      // A network that does not know bind_transceiver responds to it with a generic_nack.
      if (session.state === 'binding') bound(session, pdu.status || STATUS.INVALID_COMMAND)
      // A generic_nack without a status does not say whether the message was accepted.
      else settle(session, pdu.sequence, pdu.status === STATUS.OK ? undefined : { status: pdu.status, messageId: '' })
      break
    case 'unbind':
      peerLeaves(session, pdu.sequence)
      break
    case 'unbind_resp':
      if (session.state === 'unbinding') endSession(session, { is: 'left' })
      break
    case 'bind_transceiver':
    case 'submit_sm':
      write(session, bare('generic_nack', pdu.sequence, STATUS.INVALID_COMMAND))
      break
    default:
  }
}

function bound(session: Session, status: number): void {
  if (status !== STATUS.OK) {
    endSession(session, { is: 'refused', status })
    return
  }
  enter(session, 'bound')
  session.events.onBound()
}

/** If `response` is undefined, the network may have accepted the message. */
function settle(session: Session, sequence: number, response: { status: number; messageId: string } | undefined): void {
  const inFlight = session.inFlight.get(sequence)
  // A duplicate or late response.
  if (inFlight === undefined) return
  session.inFlight.delete(sequence)
  const { writtenAtMs } = inFlight
  if (response === undefined)
    inFlight.settle({ is: 'lost', reason: 'The network’s response does not say whether it accepted the message.' })
  else inFlight.settle({ is: 'responded', status: response.status, messageId: response.messageId, writtenAtMs })
}

function afterResponses(session: Session): void {
  if (session.state === 'bound') session.events.onRoom()
  else unbindIfDone(session)
}

async function deliver(session: Session, pdu: PduOf<'deliver_sm'>): Promise<void> {
  session.deliveries += 1
  let status: number = STATUS.TEMPORARY
  // After the unbind, closing no longer waits for deliveries, and the database may close before this one is stored.
  if (session.deliveries <= MAX_DELIVERIES && session.state !== 'unbinding') {
    try {
      await session.events.onDelivery(pdu)
      status = STATUS.OK
    } catch {
      // The status of the response makes the network keep the deliver_sm and send it again.
    }
  }
  session.deliveries -= 1
  write(session, { command: 'deliver_sm_resp', status, sequence: pdu.sequence, tlvs: NO_TLVS, messageId: '' })
  unbindIfDone(session)
}

/** Stays connected until responses to earlier submits arrive or time out. */
function peerLeaves(session: Session, sequence: number): void {
  write(session, bare('unbind_resp', sequence))
  session.peerLeft = true
  if (session.state === 'bound') enter(session, 'leaving')
  unbindIfDone(session)
}

function unbindIfDone(session: Session): void {
  if (session.state === 'leaving' && session.inFlight.size === 0 && session.deliveries === 0) unbind(session)
}

function unbind(session: Session): void {
  if (session.peerLeft) {
    endSession(session, { is: 'lost', reason: 'the network unbound' })
    return
  }
  enter(session, 'unbinding')
  write(session, bare('unbind', nextSequence(session)))
}

function lose(session: Session, reason: string): void {
  endSession(session, { is: 'lost', reason })
}

function endSession(session: Session, end: End): void {
  if (session.state === 'ended') return
  const leaving = session.state === 'unbinding'
  enter(session, 'ended')
  closeSocket(session)
  const unsettled = [...session.inFlight.values()]
  session.inFlight.clear()
  for (const { settle } of unsettled) settle({ is: 'lost', reason: 'The connection was lost before the network responded.' })
  session.events.onEnd(leaving ? { is: 'left' } : end)
}

/** After the network's unbind, the response to it is still written, if the network reads it. */
function closeSocket({ socket, peerLeft, timings }: Session): void {
  if (!peerLeft) {
    socket.destroy()
    return
  }
  socket.setTimeout(timings.bindMs, () => socket.destroy())
  socket.destroySoon()
}
