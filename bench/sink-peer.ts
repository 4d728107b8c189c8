import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

// Endpoints of callers, as lean as can be: /taken and /timed take every event, /refused refuses every one, /silent never answers. How many
// came, and when each of /timed came, is told to whoever asks.

let count = 0
// By the number in an event's data; the clock is the machine's, the same for all its processes.
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
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
