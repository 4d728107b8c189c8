import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

// The leanest client there can be: requests are texts, of an answer only the status is read. A common one takes as much CPU time for each as
// what is measured here, on the same two cores.

export type Connections = {
  /** Sends a request over a connection that is free, and returns its answer, head and body, when all of it is there. */
  send: (request: string) => Promise<string>
  close: () => void
}

type Lane = { socket: Socket; received: string; settle: ((answer: string | Error) => void) | undefined }

/** `count` connections: never more requests are under way. Every answer must have the status `expected`. */
export async function openConnections(url: string, count: number, expected: number): Promise<Connections> {
  const { hostname, port } = new URL(url)
  const lanes = await Promise.all(Array.from({ length: count }, () => openLane(hostname, Number(port), expected)))
  const free = [...lanes]
  function send(request: string): Promise<string> {
    const lane = free.pop()
    if (lane === undefined) throw new Error(`more than ${count} requests are under way`)
    return new Promise((resolve, reject) => {
      lane.settle = (answer) => {
        lane.settle = undefined
        free.push(lane)
        if (answer instanceof Error) reject(answer)
        else resolve(answer)
      }
      lane.socket.write(request, 'latin1')
    })
  }
  function close(): void {
    for (const { socket } of lanes) socket.destroy()
  }
  return { send, close }
}

async function openLane(host: string, port: number, expected: number): Promise<Lane> {
  const socket = connect({ host, port, noDelay: true })
  await once(socket, 'connect')
  const lane: Lane = { socket, received: '', settle: undefined }
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    lane.received += chunk
    const status = statusOf(lane.received)
    if (status === undefined) return
    const answer = lane.received
    lane.received = ''
    lane.settle?.(status === expected ? answer : new Error(`the answer was ${answer}`))
  })
  socket.on('close', () => lane.settle?.(new Error('the connection was closed')))
  socket.on('error', () => {})
  return lane
}

/** Of an answer that is there to its last byte. */
function statusOf(answer: string): number | undefined {
  const head = answer.indexOf('\r\n\r\n')
  if (head === -1) return undefined
  const at = answer.search(/content-length: /i)
  const length = at === -1 || at > head ? 0 : Number.parseInt(answer.slice(at + 'content-length: '.length), 10)
  return answer.length < head + 4 + length ? undefined : Number(answer.slice(9, 12))
}

/** A POST of JSON, as it goes over the wire. `body` has ASCII alone. */
export function postRequest(path: string, headers: Record<string, string>, body: string): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${lines.join('')}\r\n${body}`
}
