import { connect, type Socket } from 'node:net'
import type { FuzzRequest } from './generate.ts'
import { readHead, responseEnd } from './response.ts'

// Sends bytes over sockets, since no HTTP client sends broken requests. Complete requests of a lane share a connection; each broken one has
// its own.

export type Response = {
  /** Undefined if the connection ended without a response. */
  status: number | undefined
  headers: Map<string, string>
  body: Buffer
  /** Undefined if the body is not JSON. */
  json: unknown
  tookMs: number
  /** Neither a whole response nor the end of the connection came in time. */
  isHang: boolean
}

export type Sender = {
  /** `lane`: requests of one lane come one after the other. */
  send: (request: FuzzRequest, lane: number) => Promise<Response>
  close: () => void
}

/** `deadlineMs`: how long a response may take; for an erasure `erasureMs`, since it waits for the transactions of others, several times. */
export function createSender(port: number, deadlineMs: number, erasureMs = deadlineMs): Sender {
  const shared = new Map<number, Socket>()

  function open(localAddress: string | undefined): Socket {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, ...(localAddress !== undefined && { localAddress }) })
    socket.on('error', () => {})
    return socket
  }

  async function send(request: FuzzRequest, lane: number): Promise<Response> {
    const isOwn = request.isRaw || request.address !== undefined
    const known = isOwn ? undefined : shared.get(lane)
    const socket = known === undefined || known.destroyed || known.readableEnded ? open(request.address) : known
    if (!isOwn) shared.set(lane, socket)
    const isErasure = request.operation.path.endsWith('/erase')
    const { response, isReusable } = await exchange(socket, request, isErasure ? erasureMs : deadlineMs)
    if (!isOwn && isReusable) return response
    socket.destroy()
    if (!isOwn) shared.delete(lane)
    return response
  }

  function close(): void {
    for (const socket of shared.values()) socket.destroy()
  }
  return { send, close }
}

type Exchange = { response: Response; isReusable: boolean }

function exchange(socket: Socket, { bytes, method, isIncomplete }: FuzzRequest, deadlineMs: number): Promise<Exchange> {
  return new Promise((resolve) => {
    const startedAt = performance.now()
    const chunks: Buffer[] = []
    let length = 0
    let needed = 0

    function received(): Buffer {
      const all = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
      chunks.splice(0, chunks.length, all)
      return all
    }

    function settle(end: number | undefined, isHang: boolean): void {
      clearTimeout(timer)
      socket.removeListener('data', onData).removeListener('close', onClose).removeListener('end', onClose)
      const tookMs = performance.now() - startedAt
      const bytes = received()
      const whole = end === undefined ? undefined : readHead(bytes)
      const headers = whole?.headers ?? new Map<string, string>()
      const body = whole === undefined ? bytes : whole.bodyOf(bytes.subarray(0, end))
      const response = { status: whole?.status, headers, body, json: jsonIn(headers, body), tookMs, isHang }
      const isReusable = end === length && headers.get('connection')?.toLowerCase() !== 'close'
      resolve({ response, isReusable })
    }
    function onData(chunk: Buffer): void {
      chunks.push(chunk)
      length += chunk.length
      // Joining all chunks for every new one would cost more than the response itself.
      if (length < needed) return
      const end = responseEnd(received(), method, false)
      if (end.at !== undefined) settle(end.at, false)
      else needed = end.needed
    }
    function onClose(): void {
      settle(responseEnd(received(), method, true).at, false)
    }

    const timer = setTimeout(() => settle(undefined, true), deadlineMs)
    socket.on('data', onData).on('close', onClose).on('end', onClose)
    if (isIncomplete) socket.end(bytes)
    else socket.write(bytes)
  })
}

function jsonIn(headers: Map<string, string>, body: Buffer): unknown {
  if (!headers.get('content-type')?.startsWith('application/json')) return undefined
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}
