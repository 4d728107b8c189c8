import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { inTurn } from './measure.ts'
import { type Cpu, eachMicroseconds } from './proc.ts'

// The leanest client there can be: requests are texts, of an answer only the status is read. A common one takes as much CPU time for each as
// what is measured here, on the same two cores.

export type Connections = {
  /** Sends a request over a connection as soon as one is free, and returns its answer, head and body, when all of it is there. */
  send: (request: string) => Promise<string>
  close: () => void
}

type Lane = { socket: Socket; received: string; settle: ((answer: string | Error) => void) | undefined }

type Waiting = { request: string; settle: (answer: string | Error) => void }

/**
 * Every answer must have the status `expected`. Where there is a `first` request, connections are opened one by one, each when the one before
 * has its answer: Kannel listens with a backlog so short that the system drops some of 256 that come at once, and tries again after seconds.
 */
export async function openConnections(url: string, count: number, expected: number, first?: () => string): Promise<Connections> {
  const { hostname, port } = new URL(url)
  const lanes: Lane[] = []
  async function open(): Promise<void> {
    const lane = await openLane(hostname, Number(port), expected)
    if (first !== undefined) await exchange(lane, first())
    lanes.push(lane)
  }
  await inTurn(count, first === undefined ? count : 1, open)
  const free = [...lanes]
  const waiting: Waiting[] = []
  function begin(lane: Lane, { request, settle }: Waiting): void {
    lane.settle = (answer) => {
      lane.settle = undefined
      const next = waiting.shift()
      if (next === undefined) free.push(lane)
      else begin(lane, next)
      settle(answer)
    }
    lane.socket.write(request, 'latin1')
  }
  function send(request: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const settle = (answer: string | Error) => (answer instanceof Error ? reject(answer) : resolve(answer))
      const lane = free.pop()
      if (lane === undefined) waiting.push({ request, settle })
      else begin(lane, { request, settle })
    })
  }
  function close(): void {
    for (const { socket } of lanes) socket.removeAllListeners('close').destroy()
  }
  return { send, close }
}

/** Over a connection that nothing else uses yet. */
async function exchange(lane: Lane, request: string): Promise<void> {
  const answer = await new Promise<string | Error>((resolve) => {
    lane.settle = resolve
    lane.socket.write(request, 'latin1')
  })
  lane.settle = undefined
  if (answer instanceof Error) throw answer
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
  // The service closes one that has sent nothing for 10 s: whoever opens connections uses all of them.
  socket.on('close', () => {
    const error = new Error('the connection was closed')
    if (lane.settle === undefined) throw error
    lane.settle(error)
  })
  socket.on('error', () => {})
  return lane
}

/** What saturates: more than anybody answers at once. */
export const CONNECTIONS = 256

/** `cpu`: for each request, in µs, by what used it. */
export type Rate = { perSecond: number; cpu: Cpu }

/** Keeps all connections busy for so long, after a warm-up of a quarter of it. `cpu`: what was used so far, in ms. `first`: see above. */
export async function saturate(url: string, seconds: number, request: () => string, cpu: () => Cpu, first?: () => string): Promise<Rate> {
  // Opened anew each time: the service closes one that has been idle for as long as the others take their turns.
  const connections = await openConnections(url, CONNECTIONS, 202, first)
  let done = 0
  let isOver = false
  async function keepSending(): Promise<void> {
    while (!isOver) {
      await connections.send(request())
      done += 1
    }
  }
  const sending = Promise.all(Array.from({ length: CONNECTIONS }, keepSending))
  await Promise.race([sleep(seconds * 250), sending])
  const from = { done, at: performance.now(), cpu: cpu() }
  await Promise.race([sleep(seconds * 1_000), sending])
  const count = done - from.done
  const rate = { perSecond: (count * 1_000) / (performance.now() - from.at), cpu: eachMicroseconds(from.cpu, cpu(), count) }
  isOver = true
  await sending
  connections.close()
  return rate
}

/** Of an answer that is there to its last byte. */
export function statusOf(answer: string): number | undefined {
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
