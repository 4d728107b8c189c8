import type { Server } from 'node:net'
import type { Pdu, Session } from 'smpp'
import type { Faults } from '../faults.ts'
import type { Identity } from '../state/identity.ts'
import { corked } from './corked.ts'
import type { Outbox } from './outbox.ts'
import { smpp } from './package.ts'
import { STATUS } from './status.ts'
import { readSubmission, type Submission } from './submission.ts'

const BIND_WITHIN_MS = 30_000
const ENQUIRE_EVERY_MS = 30_000
// The limit for responses that the peer has not read. It is more than the 64 KiB below which a socket emits `drain`.
const MAX_UNREAD_BYTES = 262_144

type Bound = 'transmitter' | 'receiver' | 'transceiver'
const BINDS = new Map<string, Bound>([
  ['bind_transmitter', 'transmitter'],
  ['bind_receiver', 'receiver'],
  ['bind_transceiver', 'transceiver'],
])
// Commands of SMPP that this SMSC does not support.
const UNSUPPORTED = new Set(['query_sm', 'cancel_sm', 'replace_sm', 'submit_multi', 'data_sm', 'broadcast_sm'])

/** The connection of a session, for the code that handles its submits. */
export type Connection = {
  /** Accepted submits that get no response. */
  withoutResponse: number
  drop: () => void
}
/** Handles a submit_sm, with or without a response. `submission`: its content, or the command_status that refuses it. */
export type OnSubmit = (
  pdu: Pdu,
  submission: Submission | number,
  connection: Connection,
  respond: (status: number, messageId?: string) => void,
) => void

type Smsc = { identity: Identity; faults: Faults; outbox: Outbox; onSubmit: OnSubmit; enquireEveryMs?: number }

type SmppServer = { server: Server; stop: () => Promise<void> }

/** Creates the SMSC. Invalid input ends its session at worst. */
export function createSmppServer(smsc: Smsc): SmppServer {
  const sessions = new Set<Session>()
  const server = smpp.createServer((session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    serve(session, smsc)
  })
  return {
    server,
    stop: () => {
      for (const session of sessions) session.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function serve(session: Session, smsc: Smsc): void {
  let bound: Bound | undefined
  const connection: Connection = {
    withoutResponse: 0,
    drop: () => {
      // Sends the earlier responses.
      session.socket.uncork()
      session.destroy()
    },
  }
  const timer = setTimeout(() => session.destroy(), BIND_WITHIN_MS)
  const enquiring = enquire(session, smsc.enquireEveryMs ?? ENQUIRE_EVERY_MS)

  // Otherwise a small PDU waits up to 40 ms for the acknowledgement of the previous one.
  session.socket.setNoDelay(true)
  session.on('error', () => session.destroy())
  session.on('close', () => {
    clearTimeout(timer)
    clearInterval(enquiring)
    smsc.outbox.leave(session)
  })
  session.on('pdu', (pdu: Pdu) => {
    receive(pdu)
    // Stop reading from a peer that does not read its responses: they would fill the memory.
    if (session.socket.writableLength <= MAX_UNREAD_BYTES) return
    session.pause()
    session.socket.once('drain', () => session.resume())
  })

  function receive(pdu: Pdu): void {
    const asks = BINDS.get(pdu.command)
    if (pdu.isResponse()) return
    if (asks !== undefined) bind(pdu, asks)
    else if (pdu.command === 'enquire_link') reply(session, pdu, STATUS.OK)
    else if (pdu.command === 'unbind') {
      reply(session, pdu, STATUS.OK)
      session.close()
    } else if (pdu.command === 'submit_sm') submit(pdu)
    else if (pdu.command === 'unknown' || UNSUPPORTED.has(pdu.command)) reply(session, pdu, STATUS.INVCMDID)
  }

  function bind(pdu: Pdu, asks: Bound): void {
    const status = bound === undefined ? bindStatus(pdu, smsc) : STATUS.ALYBND
    reply(session, pdu, status, { system_id: 'simulator' })
    if (status !== STATUS.OK) return
    bound = asks
    clearTimeout(timer)
    if (asks !== 'transmitter') smsc.outbox.join(session)
  }

  function submit(pdu: Pdu): void {
    if (bound !== 'transmitter' && bound !== 'transceiver') {
      reply(session, pdu, STATUS.INVBNDSTS)
      return
    }
    const submission = read(session, pdu)
    if (submission === undefined) return
    smsc.onSubmit(pdu, submission, connection, (status, messageId) => {
      reply(session, pdu, status, { message_id: messageId })
      // After a truncated PDU, the start of the next one is unknown.
      if (status === STATUS.INVCMDLEN) session.close()
    })
  }
}

/** Invalid input ends the session at worst. Once a submission is read, an exception is a bug and ends the process. */
function read(session: Session, pdu: Pdu): Submission | number | undefined {
  try {
    return readSubmission(pdu)
  } catch (error) {
    console.error(error)
    session.destroy()
    return undefined
  }
}

function bindStatus(pdu: Pdu, { identity, faults }: Smsc): number {
  const refused = faults.strikes('smpp.bindRefused')
  if (refused !== undefined) return refused.status
  if (pdu.system_id !== identity.systemId) return STATUS.INVSYSID
  return pdu.password === identity.smppPassword ? STATUS.OK : STATUS.INVPASWD
}

function reply(session: Session, pdu: Pdu, status: number, fields: Record<string, unknown> = {}): void {
  try {
    corked(session).send(pdu.response({ command_status: status, ...fields }))
  } catch (error) {
    console.error(error)
    session.destroy()
  }
}

/** Sends enquire_link at an interval, and ends a session that has not responded to the previous one. */
function enquire(session: Session, everyMs: number): NodeJS.Timeout {
  let responded = true
  return setInterval(() => {
    if (!responded) {
      session.destroy()
      return
    }
    responded = false
    session.enquire_link({}, () => {
      responded = true
    })
  }, everyMs)
}
