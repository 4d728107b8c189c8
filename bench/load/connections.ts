import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Cpu } from '../measure/process-usage.ts'
import { inParallel, type Rate, saturate } from '../measure/rounds.ts'

// A minimal HTTP client: requests are texts, and only the status and the length of a response are read. A common client uses as much CPU
// time for a request as what is measured, on the same two cores.

/** Sends requests one after the other. */
export type Connection = { exchange: (request: string) => Promise<string>; close: () => void }

/** A closed connection rejects its requests: the service closes a connection that is idle for 10 s. */
export async function openConnection(host: string, port: number, localAddress?: string): Promise<Connection> {
  const socket: Socket = connect({ host, port, noDelay: true, ...(localAddress !== undefined && { localAddress }) })
  let received = ''
  let settle: ((response: string | Error) => void) | undefined
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    received += chunk
    if (!isComplete(received)) return
    const response = received
    received = ''
    settle?.(response)
  })
  socket.on('error', () => {})
  socket.on('close', () => settle?.(new Error('the connection was closed')))
  await once(socket, 'connect')
  function exchange(request: string): Promise<string> {
    return new Promise((resolve, reject) => {
      settle = (response) => {
        settle = undefined
        if (response instanceof Error) reject(response)
        else resolve(response)
      }
      if (socket.destroyed) settle(new Error('the connection was closed'))
      else socket.write(request, 'latin1')
    })
  }
  return { exchange, close: () => void socket.removeAllListeners('close').destroy() }
}

export type Connections = {
  /** Sends a request as soon as a connection is free, and returns the response, head and body. */
  send: (request: string) => Promise<string>
  close: () => void
}

/**
 * Every response must have the status `expected`. With a `first` request, connections are opened one by one, each after the response to the
 * one before: Kannel's backlog is so short that the system drops some of 256 connections that come at once, and tries again after seconds.
 */
export async function openConnections(url: string, count: number, expected: number, first?: () => string): Promise<Connections> {
  const { hostname, port } = new URL(url)
  const all: Connection[] = []
  await inParallel(count, first === undefined ? count : 1, async () => {
    const connection = await openConnection(hostname, Number(port))
    if (first !== undefined) await connection.exchange(first())
    all.push(connection)
  })
  const free = [...all]
  const waiting: ((connection: Connection) => void)[] = []
  async function send(request: string): Promise<string> {
    const connection = free.pop() ?? (await new Promise<Connection>((resolve) => waiting.push(resolve)))
    const response = await connection.exchange(request)
    const next = waiting.shift()
    if (next === undefined) free.push(connection)
    else next(connection)
    if (statusOf(response) !== expected) throw new Error(`the response was ${response}`)
    return response
  }
  function close(): void {
    for (const connection of all) connection.close()
  }
  return { send, close }
}

/** Where requests go, and what they are. */
export type Receiver = { url: string; request: () => string }

/** More than any service handles at a time. */
export const CONNECTIONS = 256

/** Keeps all connections busy for so many seconds. `cpu`: the time used so far, in ms. `first`: see `openConnections`. */
export async function saturateHttp(
  { url, request }: Receiver,
  seconds: number,
  cpu = (): Cpu => ({}),
  first?: () => string,
): Promise<Rate> {
  // New ones each time: the service closes connections that wait for their turn.
  const connections = await openConnections(url, CONNECTIONS, 202, first)
  const rate = await saturate({ seconds, concurrency: CONNECTIONS, cpu }, () => connections.send(request()))
  connections.close()
  return rate
}

export function statusOf(response: string): number {
  return Number(response.slice(9, 12))
}

function isComplete(response: string): boolean {
  const head = response.indexOf('\r\n\r\n')
  if (head === -1) return false
  const at = response.search(/content-length: /i)
  const length = at === -1 || at > head ? 0 : Number.parseInt(response.slice(at + 'content-length: '.length), 10)
  return response.length >= head + 4 + length
}

/** A request as it goes over the wire, without the blank line and the body. */
export function headOf(method: string, path: string, headers: Record<string, string>): string {
  const lines = Object.entries({ Host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}`
}

/** A POST of JSON. `body` is ASCII. */
export function postRequest(path: string, headers: Record<string, string>, body: string): string {
  return `${headOf('POST', path, { 'Content-Type': 'application/json', 'Content-Length': `${body.length}`, ...headers })}\r\n${body}`
}
