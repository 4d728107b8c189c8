import { createServer } from 'node:net'
import { listen } from './listen.ts'

// A minimal SMSC that responds to every PDU. The responses to the PDUs of one chunk go out as one chunk.

const HEADER_BYTES = 16
const RESPONSE = 0x80000000
const SUBMIT_SM = 4

const server = createServer((socket) => {
  let rest: Buffer = Buffer.alloc(0)
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    const { responses, left } = respondToAll(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]))
    rest = left
    if (responses.length > 0) socket.write(Buffer.concat(responses))
  })
})

let submits = 0

function respondToAll(octets: Buffer): { responses: Buffer[]; left: Buffer } {
  const responses: Buffer[] = []
  let left = octets
  while (left.length >= HEADER_BYTES && left.length >= left.readUInt32BE(0)) {
    const command = left.readUInt32BE(4)
    if (command === SUBMIT_SM) submits += 1
    if (command < RESPONSE) responses.push(responseTo(command, left.readUInt32BE(12), `${submits}`))
    left = left.subarray(left.readUInt32BE(0))
  }
  return { responses, left }
}

function responseTo(command: number, sequence: number, text: string): Buffer {
  const response = Buffer.alloc(HEADER_BYTES + text.length + 1)
  response.writeUInt32BE(response.length, 0)
  response.writeUInt32BE((command | RESPONSE) >>> 0, 4)
  response.writeUInt32BE(sequence, 12)
  response.write(text, HEADER_BYTES, 'latin1')
  return response
}

listen(server)
