import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { addressOf } from './limits.ts'

// The service has to buffer the responses of a client that sends requests but does not read. It closes a connection after a time without
// progress, or when the connections of its account or of the process hold too many unsent bytes.

export type UnreadLimits = {
  /** How long a connection may have unsent bytes while its client reads none. */
  idleMs: number
  /** How many unsent bytes the connections of one account may hold, and all connections together. */
  accountBytes: number
  processBytes: number
}

const MIB = 1024 * 1024
// The largest page of a list is 1 MiB, so 16 callers of an account can read one at the same time.
export const UNREAD_LIMITS: UnreadLimits = { idleMs: 60_000, accountBytes: 16 * MIB, processBytes: 64 * MIB }

/** Smaller responses are not tracked one by one: Node stops reading a connection that has this much to send. */
const LARGE_BYTES = 16 * 1024
const SWEEP_MS = 1_000
const SWEEP_SOON_MS = 20

type Connection = {
  socket: Socket
  /** The account of the last response that belonged to one; if none did, the address. */
  owner: number | string
  /** Large responses that are not closed. A response that waits for an earlier one buffers its bytes itself, not in the socket. */
  responses: Set<ServerResponse>
  unsent: number
  /** The part of `unsent` that was passed to the operating system. It shows progress within one large write. */
  queued: number
  /** When the client last read something. */
  progressAt: number
  idleMs: number
}

export type UnreadWatch = {
  /** Watches every connection of a server. */
  watch: (app: FastifyInstance) => void
  /** Call this for every response that Fastify does not send, just before it is sent. Returns the body to send. */
  note: (response: ServerResponse, address: string, body: string) => string | Buffer
  /** Sets another timeout than the default `idleMs` for the client of this response. */
  allowIdle: (reply: FastifyReply, idleMs: number) => void
  stop: () => void
}

export function createUnreadWatch(logger: Logger, limits: UnreadLimits = UNREAD_LIMITS): UnreadWatch {
  const connections = new Map<Socket, Connection>()
  let soon: NodeJS.Timeout | undefined

  function sweep(): void {
    soon = undefined
    const holding = measure(connections.values(), performance.now())
    for (const [{ owner, socket }, reason] of toDisconnect(holding, limits)) {
      const accountId = typeof owner === 'number' ? owner : undefined
      logger.warn({ reason, accountId }, 'closed the connection of a client that does not read')
      resetConnection(socket)
    }
  }

  function addLarge(response: ServerResponse, connection: Connection): void {
    connection.responses.add(response)
    response.once('close', () => connection.responses.delete(response))
    soon ??= setTimeout(sweep, SWEEP_SOON_MS).unref()
  }

  function note<Payload>(
    response: ServerResponse,
    ownerOf: (connection: Connection) => number | string,
    payload: Payload,
  ): Payload | Buffer {
    const connection = connections.get(response.req.socket)
    if (connection === undefined) return payload
    connection.owner = ownerOf(connection)
    if (!isLarge(payload)) return payload
    addLarge(response, connection)
    // For a buffered string, Node counts UTF-16 units, which can be a third of the bytes. For a Buffer it counts bytes.
    return typeof payload === 'string' ? Buffer.from(payload) : payload
  }

  const timer = setInterval(sweep, SWEEP_MS).unref()
  return {
    watch: (app) => {
      watchConnections(app.server as Server, connections, limits.idleMs)
      app.addHook('onSend', (request, reply, payload, done) => {
        done(
          null,
          note(reply.raw, (connection) => ownerOf(request, connection), payload),
        )
      })
    },
    note: (response, address, body) => note(response, ({ owner }) => (typeof owner === 'number' ? owner : address), body),
    allowIdle: ({ request, raw: response }, idleMs) => {
      const connection = connections.get(request.raw.socket)
      if (connection === undefined) return
      connection.idleMs = idleMs
      response.once('close', () => {
        connection.idleMs = limits.idleMs
      })
    },
    stop: () => {
      clearInterval(timer)
      clearTimeout(soon)
    },
  }
}

function watchConnections(server: Server, connections: Map<Socket, Connection>, idleMs: number): void {
  const add = (socket: Socket) => {
    connections.set(socket, { socket, owner: 'unknown', responses: new Set(), unsent: 0, queued: 0, progressAt: 0, idleMs })
    socket.once('close', () => connections.delete(socket))
  }
  // A TLS server also emits the bare connection, on which no response is written.
  server.on('secureConnection', add)
  if (!('setSecureContext' in server)) server.on('connection', add)
}

function ownerOf(request: FastifyRequest, { owner }: Connection): number | string {
  return request.caller?.accountId ?? (typeof owner === 'number' ? owner : addressOf(request))
}

/** A stream has no known length, so it counts as large. */
function isLarge(payload: unknown): boolean {
  if (typeof payload === 'string' || Buffer.isBuffer(payload)) return payload.length > LARGE_BYTES
  return typeof payload === 'object' && payload !== null
}

/** Measures each connection. Returns the connections with unsent bytes, and for how long their client has read nothing. */
function measure(connections: Iterable<Connection>, now: number): (Connection & { stalledMs: number })[] {
  const holding = []
  for (const connection of connections) {
    const [unsent, queued] = [unsentOf(connection), queuedOf(connection)]
    if (unsent !== connection.unsent || queued !== connection.queued) connection.progressAt = now
    Object.assign(connection, { unsent, queued })
    if (unsent > 0) holding.push({ ...connection, stalledMs: now - connection.progressAt })
  }
  return holding
}

function unsentOf({ socket, responses }: Connection): number {
  let bytes = socket.writableLength
  for (const response of responses) if (response.socket === null) bytes += response.writableLength
  return bytes
}

/** Node's own timeout for idle sockets reads this property. Node has no public name for it. */
function queuedOf({ socket }: Connection): number {
  return (socket as unknown as { _handle?: { writeQueueSize?: number } | null })._handle?.writeQueueSize ?? 0
}

type Holding = ReturnType<typeof measure>

/**
 * Returns which connections to close, and why. First come connections that are stalled for too long. Then come the longest stalled connections
 * of every owner that holds too many bytes and, while the process holds too many, of the owner that holds the most.
 */
function toDisconnect(holding: Holding, { accountBytes, processBytes }: UnreadLimits): Map<Connection, string> {
  const gone = new Map<Connection, string>()
  for (const connection of holding) if (connection.stalledMs >= connection.idleMs) gone.set(connection, 'it read nothing for too long')
  const rest = holding.filter((connection) => !gone.has(connection))
  const owners = [...Map.groupBy(rest, ({ owner }) => owner).values()].map((connections) => ({
    stalledLongestLast: connections.toSorted((a, b) => a.stalledMs - b.stalledMs),
    bytes: connections.reduce((sum, { unsent }) => sum + unsent, 0),
  }))
  let total = owners.reduce((sum, { bytes }) => sum + bytes, 0)
  function disconnectOne(owner: (typeof owners)[number], reason: string): void {
    const connection = owner.stalledLongestLast.pop() as Holding[number]
    gone.set(connection, reason)
    owner.bytes -= connection.unsent
    total -= connection.unsent
  }
  for (const owner of owners) while (owner.bytes > accountBytes) disconnectOne(owner, 'its account holds too many unsent bytes')
  while (total > processBytes) {
    const largest = owners.reduce((most, owner) => (owner.bytes > most.bytes ? owner : most))
    disconnectOne(largest, 'the process holds too many unsent bytes')
  }
  return gone
}

/** Closes a connection by a reset (TLS has none), so that a client that continues to read sees at once that the response is incomplete. */
export function resetConnection(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy()
  else socket.resetAndDestroy()
}
