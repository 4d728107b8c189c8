import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after } from 'node:test'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { until } from '../../support/until.ts'
import { foreign } from './foreign.ts'

export type PeerConnection = {
  socket: Socket
  /** Writes a PDU that the npm package encodes. */
  send: (command: string, fields: Record<string, unknown>) => void
  /** Writes the response to a request. */
  respond: (request: any, fields?: Record<string, unknown>) => void
  /** All PDUs that arrived, in order. */
  received: any[]
}

/** Returns true if it handled the PDU itself. */
type OnPdu = (connection: PeerConnection, pdu: any) => unknown

/**
 * A network on a bare socket, which can also do what no decent SMSC would. By itself it accepts binds and responds to unbind and
 * enquire_link. The npm package encodes and decodes the PDUs.
 */
export async function startPeer(onPdu: OnPdu = () => {}, { port = 0, ...tls }: { port?: number } & TlsOptions = {}) {
  const connections: PeerConnection[] = []
  const sockets = new Set<Socket>()
  function accept(socket: Socket): void {
    sockets.add(socket)
    // Otherwise the second of two responses waits for 40 ms.
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    const send: PeerConnection['send'] = (command, fields) => void socket.write(pdu(command, fields))
    const respond: PeerConnection['respond'] = ({ command, sequence_number }, fields) =>
      send(`${command}_resp`, { sequence_number, ...fields })
    const connection = { socket, send, respond, received: [] as any[] }
    connections.push(connection)
    let held = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      while (held.length >= 4 && held.length >= held.readUInt32BE(0)) {
        const length = held.readUInt32BE(0)
        const request = new foreign.PDU(held.subarray(0, length))
        held = held.subarray(length)
        connection.received.push(request)
        if (onPdu(connection, request) !== true) respondByDefault(connection, request)
      }
    })
  }
  const server = tls.key === undefined ? createServer(accept) : createTlsServer(tls, accept)
  server.on('tlsClientError', () => {})
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  after(close)
  return { port: (server.address() as AddressInfo).port, connections, close }
}

function respondByDefault({ respond, socket }: PeerConnection, request: any): void {
  if (request.command === 'bind_transceiver') respond(request, { system_id: 'peer' })
  if (request.command === 'enquire_link') respond(request)
  if (request.command === 'unbind') {
    respond(request)
    socket.end()
  }
}

/** Calls the function for each submit_sm. */
export function onSubmit(handle: (request: any, connection: PeerConnection) => void): OnPdu {
  return (connection, request) => void (request.command === 'submit_sm' && handle(request, connection))
}

/** Accepts every message. The first has the id `m1`. */
export function acceptSubmits(): OnPdu {
  let count = 0
  return onSubmit((request, { respond }) => {
    count += 1
    respond(request, { message_id: `m${count}` })
  })
}

/** Returns once everything has arrived that either side wrote before. */
export async function roundTrip({ send, received }: PeerConnection): Promise<void> {
  const isResponse = ({ command }: any) => command === 'enquire_link_resp'
  const before = received.filter(isResponse).length
  send('enquire_link', { sequence_number: 1 })
  await until('the response to enquire_link', () => received.filter(isResponse).length > before)
}

export function commandsOf(connections: PeerConnection[]): string[][] {
  return connections.map(({ received }) => received.map(({ command }) => command))
}

/** The octets of a PDU, made by the npm package. */
export function pdu(command: string, fields: Record<string, unknown>): Buffer {
  return new foreign.PDU(command, fields).toBuffer()
}

/** The same PDU with more octets, in hexadecimal, at its end. */
export function longer(octets: Buffer, more: string): Buffer {
  return withLength(Buffer.concat([octets, Buffer.from(more, 'hex')]))
}

export function withoutNul(octets: Buffer): Buffer {
  return withLength(Buffer.from(octets.subarray(0, -1)))
}

export function withoutBody(octets: Buffer): Buffer {
  return withLength(Buffer.from(octets.subarray(0, 16)))
}

/** Sets the status afterwards, since the package omits the body of a PDU that has one. */
export function withStatus(octets: Buffer, status: number): Buffer {
  octets.writeUInt32BE(status, 8)
  return octets
}

function withLength(octets: Buffer): Buffer {
  octets.writeUInt32BE(octets.length, 0)
  return octets
}
