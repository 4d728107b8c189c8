import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after } from 'node:test'
import { foreign } from './foreign.ts'

export type RawConnection = {
  socket: Socket
  /** Writes a PDU, made by the npm package. */
  send: (command: string, fields: Record<string, unknown>) => void
  /** Everything that came in, in order. */
  received: any[]
}

/**
 * A network on a bare socket, for what no decent server would do. It takes binds and answers unbind and enquire_link by itself, as long as
 * `onPdu` does not return true for them. PDUs are read by the npm package.
 */
export async function startRawPeer(onPdu: (connection: RawConnection, pdu: any) => unknown) {
  const connections: RawConnection[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    // Without it, the second of two answers waits for 40 ms.
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    const send = (command: string, fields: Record<string, unknown>) => void socket.write(pdu(command, fields))
    const connection: RawConnection = { socket, send, received: [] }
    connections.push(connection)
    let held = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      while (held.length >= 4 && held.length >= held.readUInt32BE(0)) {
        const length = held.readUInt32BE(0)
        const received = new foreign.PDU(held.subarray(0, length))
        held = held.subarray(length)
        connection.received.push(received)
        if (onPdu(connection, received) !== true) answer(connection, received)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, connections }
}

function answer({ send, socket }: RawConnection, { command, sequence_number }: any): void {
  if (command === 'bind_transceiver') send('bind_transceiver_resp', { sequence_number, system_id: 'raw' })
  if (command === 'enquire_link') send('enquire_link_resp', { sequence_number })
  if (command === 'unbind') {
    send('unbind_resp', { sequence_number })
    socket.end()
  }
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

/** The package leaves the body out where there is a status, so that is put in afterwards. */
export function withStatus(octets: Buffer, status: number): Buffer {
  octets.writeUInt32BE(status, 8)
  return octets
}

function withLength(octets: Buffer): Buffer {
  octets.writeUInt32BE(octets.length, 0)
  return octets
}
