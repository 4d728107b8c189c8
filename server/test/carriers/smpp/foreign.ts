import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

/** The npm package `smpp`: a codec, a client and a server that are not ours. It has no types. */
export const foreign: any = createRequire(import.meta.url)('smpp')

export type ForeignServer = { port: number; sessions: any[]; close: () => void }

/** A network made with the package. `listen` hears of every session, and answers what it wants answered. */
export async function startForeignServer(listen: (session: any) => void, options: { port?: number; key?: Buffer; cert?: Buffer } = {}) {
  const sessions = new Set<any>()
  const { port: wantedPort = 0, ...tls } = options
  const server = foreign.createServer(tls, (session: any) => {
    sessions.add(session)
    session.on('error', () => {})
    session.on('close', () => sessions.delete(session))
    session.on('unbind', (pdu: any) => {
      session.send(pdu.response())
      session.close()
    })
    session.on('enquire_link', (pdu: any) => session.send(pdu.response()))
    listen(session)
  })
  server.on('tlsClientError', () => {})
  server.listen(wantedPort, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    server.close()
    for (const session of sessions) session.destroy()
  }
  after(close)
  return { port: (server.address() as AddressInfo).port, sessions, close }
}

/** Takes every bind. */
export function acceptBind(session: any): void {
  session.on('bind_transceiver', (pdu: any) => session.send(pdu.response({ system_id: 'SMSC' })))
}

/** Takes every message, and calls the first `m1`. */
export function acceptSubmits(session: any): void {
  let count = 0
  session.on('submit_sm', (pdu: any) => {
    count += 1
    session.send(pdu.response({ message_id: `m${count}` }))
  })
}
