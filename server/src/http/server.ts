import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { type FastifyInstance, fastify, LogController } from 'fastify'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import { HSTS, tlsOptions } from '../tls.ts'
import { newRequestId, respondToBrokenRequest } from './error-responses.ts'
import { limitRequest } from './request-timeout.ts'
import { routableUrl } from './routes.ts'
import { buildSerializer } from './serialization.ts'
import { buildValidator } from './validation.ts'

export type Timeouts = { headersMs: number; requestMs: number; keepAliveMs: number }

/** Handles a request and returns true, or returns false to leave it to Fastify. */
export type DirectHandler = (request: IncomingMessage, response: ServerResponse) => boolean

export const BODY_LIMIT_BYTES = 256 * 1024
const HEADER_LIMIT_BYTES = 16 * 1024

// Headers must arrive within 10 s and the body within another 30 s, so that a slow client can't hold a connection for longer. An idle
// connection is kept for 72 s, longer than the 60 s of load balancers: they close it first, so no request is lost on a closing connection.
const TIMEOUTS: Timeouts = { headersMs: 10_000, requestMs: 30_000, keepAliveMs: 72_000 }

/** Creates a Fastify instance with every limit and timeout set. No default coerces values, drops fields or waits without limit. */
export function createServer(
  config: Config,
  logger: Logger,
  { timeouts = TIMEOUTS, handleDirectly }: { timeouts?: Timeouts | undefined; handleDirectly?: DirectHandler | undefined } = {},
): FastifyInstance {
  const { tls } = config
  const serverOptions = {
    maxHeaderSize: HEADER_LIMIT_BYTES,
    headersTimeout: timeouts.headersMs,
    // request-timeout.ts replaces Node's timeout.
    requestTimeout: 0,
    keepAliveTimeout: timeouts.keepAliveMs,
    // Node's response would have no body; the first hook sends the documented one.
    requireHostHeader: false,
    // How often Node looks for connections that have timed out.
    connectionsCheckingInterval: Math.min(1_000, timeouts.headersMs / 4),
  }
  const app = fastify({
    serverFactory: (toFastify) => {
      const server =
        tls === undefined
          ? createHttpServer(serverOptions)
          : createHttpsServer({ ...serverOptions, ...tlsOptions(tls), handshakeTimeout: timeouts.headersMs })
      // Set here rather than in a hook, since Fastify sends some responses that no hook sees.
      if (tls !== undefined) server.on('request', (_request, response) => response.setHeader(HSTS.name, HSTS.value))
      const handle = inBatches((request, response) => {
        limitRequest(server, request, timeouts.requestMs)
        if (!handleDirectly?.(request, response)) toFastify(request, response)
      })
      server.on('request', handle)
      return server
    },
    // The server is created above. Fastify's log and `listeningUrl` read its scheme from this option.
    ...(tls !== undefined && { https: {} }),
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    // A logger for each request took 20 of the 490 µs of CPU that the API spends on a message. `logOf` creates one where it is needed.
    childLoggerFactory: (parent) => parent,
    genReqId: newRequestId,
    bodyLimit: BODY_LIMIT_BYTES,
    forceCloseConnections: 'idle',
    // `entryProblem` refuses these requests in the documented form.
    return503OnClosing: false,
    trustProxy: config.trustProxy.length > 0 ? config.trustProxy : false,
    clientErrorHandler: (error, socket) => {
      if (isUnused(error, socket)) keepIdle(socket, timeouts)
      else respondToBrokenRequest(error, socket)
    },
    // Not setValidatorCompiler, which Fastify drops in every scope that adds a schema. Fastify's type of this option fits only its own one.
    schemaController: { compilersFactory: { buildValidator: buildValidator as never, buildSerializer } },
    routerOptions: { maxParamLength: HEADER_LIMIT_BYTES },
    rewriteUrl: ({ url = '/' }) => routableUrl(url),
  }) as unknown as FastifyInstance
  app.decorateRequest('caller', undefined)
  app.decorateRequest('admin', undefined)
  app.decorateRequest('recordChange', undefined)
  app.decorateRequest('change', undefined)
  app.decorateRequest('isCached', false)
  app.decorateRequest('lookUpCaller', undefined)
  app.decorateRequest('received', undefined)
  // HTTP allows a server to ignore an unknown expectation; Node's response to it would have no body. CONNECT would get no response at all.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.server.on('connect', (_request, socket) => respondToBrokenRequest(new Error('CONNECT'), socket as Socket))
  return app
}

/**
 * Whether a client never sent a byte on a timed-out connection. Node starts the headers timeout when a connection opens, but clients open
 * connections in advance, which are as idle as connections between two requests. A client that got a 408 just as it sent its first request would
 * mistake it for the response.
 */
function isUnused({ code }: NodeJS.ErrnoException, { bytesRead }: Socket): boolean {
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' && bytesRead === 0
}

/**
 * Keeps an unused connection for as long as any other idle one. With its first byte, Node starts the headers timeout again. Not
 * `socket.setTimeout`, which would continue to count while a response waits for a slow reader.
 */
function keepIdle(socket: Socket, { headersMs, keepAliveMs }: Timeouts): void {
  const closeUnused = () => socket.bytesRead === 0 && socket.destroy()
  setTimeout(closeUnused, Math.max(0, keepAliveMs - headersMs)).unref()
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void

// As many as the connections of a busy caller. Without a bound, pipelined requests filled the memory: Node stops reading a connection only when
// its responses wait to be sent.
const MAX_BATCH_SIZE = 256

/**
 * Handles the requests of one turn of the event loop one after the other, when Node has read all of them. Under load, accepting a message takes
 * 127 µs of CPU instead of 198: bodies are complete when they are asked for, and each step runs for all requests before the next step begins.
 */
export function inBatches(handle: Handle): Handle {
  let waiting: Parameters<Handle>[] = []
  function handleAll(): void {
    const batch = waiting
    waiting = []
    for (const [request, response] of batch) {
      // Skip a request whose response can't be sent: the client has disconnected, or has sent garbage after the request and got a 400 for it.
      if (request.socket.writable) handle(request, response)
    }
  }
  return (request, response) => {
    if (waiting.length === 0) setImmediate(handleAll)
    waiting.push([request, response])
    if (waiting.length === MAX_BATCH_SIZE) handleAll()
  }
}

/** The URL that the server listens on, such as http://127.0.0.1:8080. */
export function listeningUrl({ server, initialConfig }: FastifyInstance): string {
  const { family, address, port } = server.address() as AddressInfo
  return `${initialConfig.https ? 'https' : 'http'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
