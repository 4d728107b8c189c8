import { createServer, type IncomingMessage } from 'node:http'
import { listen } from './listen.ts'

// Minimal endpoints: /taken and /timed accept every event, /refused refuses every event, /silent never responds. The sink reports how many
// events came, and when each event of /timed came.

let count = 0
// By the number in an event's data, in ms of the machine's clock, which all processes share.
let arrivedAt = new Map<number, number>()

function note(request: IncomingMessage): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.once('end', () => {
    const number = Number(/"number" ?: ?(\d+)/.exec(Buffer.concat(chunks).toString())?.[1])
    if (!arrivedAt.has(number)) arrivedAt.set(number, Number(process.hrtime.bigint()) / 1e6)
  })
}

const server = createServer((request, response) => {
  if (request.url === '/silent') return
  if (request.url === '/timed') note(request)
  else request.resume()
  request.once('end', () => {
    count += 1
    response.statusCode = request.url === '/refused' ? 500 : 204
    response.end()
  })
})
server.keepAliveTimeout = 60_000

process.on('message', (question: 'count' | 'arrivals') => {
  if (question === 'count') return process.send?.({ count })
  process.send?.({ arrivals: [...arrivedAt] })
  arrivedAt = new Map()
  return
})
listen(server)
