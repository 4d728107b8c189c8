import { type AddressInfo, createServer } from 'node:net'

// The leanest SMSC there can be: every PDU gets its answer, all that came in one piece in one piece.

const HEADER_BYTES = 16
const ANSWER = 0x80000000
const SUBMIT_SM = 4

const server = createServer((socket) => {
  let rest: Buffer = Buffer.alloc(0)
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    const { answers, left } = answerAll(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]))
    rest = left
    if (answers.length > 0) socket.write(Buffer.concat(answers))
  })
})

let submits = 0

function answerAll(octets: Buffer): { answers: Buffer[]; left: Buffer } {
  const answers: Buffer[] = []
  let left = octets
  while (left.length >= HEADER_BYTES && left.length >= left.readUInt32BE(0)) {
    const command = left.readUInt32BE(4)
    if (command === SUBMIT_SM) submits += 1
    if (command < ANSWER) answers.push(answerTo(command, left.readUInt32BE(12), `${submits}`))
    left = left.subarray(left.readUInt32BE(0))
  }
  return { answers, left }
}

function answerTo(command: number, sequence: number, text: string): Buffer {
  const answer = Buffer.alloc(HEADER_BYTES + text.length + 1)
  answer.writeUInt32BE(answer.length, 0)
  answer.writeUInt32BE((command | ANSWER) >>> 0, 4)
  answer.writeUInt32BE(sequence, 12)
  answer.write(text, HEADER_BYTES, 'latin1')
  return answer
}

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
