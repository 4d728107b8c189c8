import type { Server } from 'node:net'
import type { Pdu, Session } from 'smpp'
import type { Faults } from '../faults.ts'
import type { Identity } from '../state/identity.ts'
import { corked } from './corked.ts'
import type { Outbox } from './outbox.ts'
import { smpp } from './package.ts'
import { STATUS } from './status.ts'

const BIND_WITHIN_MS = 30_000
const ENQUIRE_EVERY_MS = 30_000

type Bound = 'transmitter' | 'receiver' | 'transceiver'
const BINDS = new Map<string, Bound>([
  ['bind_transmitter', 'transmitter'],
  ['bind_receiver', 'receiver'],
  ['bind_transceiver', 'transceiver'],
])
// What an SMSC knows and this one doesn't do.
const UNSUPPORTED = new Set(['query_sm', 'cancel_sm', 'replace_sm', 'submit_multi', 'data_sm', 'broadcast_sm'])

/** Takes a submit_sm and answers it, or does not. */
export type OnSubmit = (pdu: Pdu, answer: (status: number, messageId?: string) => void, drop: () => void) => void

type Smsc = { identity: Identity; faults: Faults; outbox: Outbox; onSubmit: OnSubmit; enquireEveryMs?: number }

export type SmppServer = { server: Server; stop: () => Promise<void> }

/** The SMSC's side of the line. Whatever comes over it, at worst that session ends. */
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
  const patience = setTimeout(() => session.destroy(), BIND_WITHIN_MS)
  const enquiring = enquire(session, smsc.enquireEveryMs ?? ENQUIRE_EVERY_MS)

  // Else a small PDU waits up to 40 ms for the acknowledgement of the one before.
  session.socket.setNoDelay(true)
  session.on('error', () => session.destroy())
  session.on('close', () => {
    clearTimeout(patience)
    clearInterval(enquiring)
    smsc.outbox.leave(session)
  })
  // The package calls this from the reading of a socket: an exception would end the process.
  session.on('pdu', (pdu: Pdu) => {
    try {
      receive(pdu)
    } catch (error) {
      console.error(error)
      session.destroy()
    }
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
    clearTimeout(patience)
    if (asks !== 'transmitter') smsc.outbox.join(session)
  }

  function submit(pdu: Pdu): void {
    if (bound !== 'transmitter' && bound !== 'transceiver') {
      reply(session, pdu, STATUS.INVBNDSTS)
      return
    }
    smsc.onSubmit(
      pdu,
      (status, messageId) => {
        reply(session, pdu, status, { message_id: messageId })
        // A PDU that is cut short means that the two sides don't agree where the next one begins.
        if (status === STATUS.INVCMDLEN) session.close()
      },
      () => {
        // What was answered before goes out.
        session.socket.uncork()
        session.destroy()
      },
    )
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

/** Asks the other side from time to time whether it is there; one that hasn't answered by the next time is not. */
function enquire(session: Session, everyMs: number): NodeJS.Timeout {
  let answered = true
  return setInterval(() => {
    if (!answered) {
      session.destroy()
      return
    }
    answered = false
    session.enquire_link({}, () => {
      answered = true
    })
  }, everyMs)
}
