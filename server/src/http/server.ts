import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { type FastifyInstance, fastify, LogController } from 'fastify'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import { HSTS, tlsOptions } from '../tls.ts'
import { answerBrokenRequest, newRequestId } from './error-answers.ts'
import { routableUrl } from './routes.ts'
import { buildSerializer } from './serialization.ts'
import { buildValidator } from './validation.ts'

export type Timeouts = { headersMs: number; requestMs: number; keepAliveMs: number }

/** Serves a request itself and returns true, or leaves it to Fastify. */
export type DirectHandler = (request: IncomingMessage, response: ServerResponse) => boolean

export const BODY_LIMIT_BYTES = 256 * 1024
const HEADER_LIMIT_BYTES = 16 * 1024

// Headers within 10 s and the whole request within 30 s: a slow client can't hold a connection for longer. An idle connection is kept
// for 72 s, which is longer than load balancers keep theirs (60 s), so that it is they who close it and no request is lost in between.
const TIMEOUTS: Timeouts = { headersMs: 10_000, requestMs: 30_000, keepAliveMs: 72_000 }

/** A Fastify with every limit and time-out set, and nothing left to defaults that bend, drop or wait. */
export function createServer(
  config: Config,
  logger: Logger,
  { timeouts = TIMEOUTS, handleDirectly }: { timeouts?: Timeouts | undefined; handleDirectly?: DirectHandler | undefined } = {},
): FastifyInstance {
  const { tls } = config
  const serverOptions = {
    maxHeaderSize: HEADER_LIMIT_BYTES,
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    // Node would answer without a body; the first hook says it in ours.
    requireHostHeader: false,
    // How often Node looks for connections that have run out of time.
    connectionsCheckingInterval: Math.min(1_000, timeouts.headersMs / 4),
  }
  const app = fastify({
    serverFactory: (toFastify) => {
      const server =
        tls === undefined
          ? createHttpServer(serverOptions)
          : createHttpsServer({ ...serverOptions, ...tlsOptions(tls), handshakeTimeout: timeouts.headersMs })
      // Here rather than in a hook, since Fastify sends some responses that no hook sees.
      if (tls !== undefined) server.on('request', (_request, response) => response.setHeader(HSTS.name, HSTS.value))
      const handle = inBatches((request, response) => {
        if (!handleDirectly?.(request, response)) toFastify(request, response)
      })
      server.on('request', handle)
      return server
    },
    // The server is made above. Fastify names the scheme by this, in its log and to `listeningUrl`.
    ...(tls !== undefined && { https: {} }),
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    // A logger of its own for each request took 20 of the 490 µs of CPU that the API spends on a message. `logOf` makes one where it is needed.
    childLoggerFactory: (parent) => parent,
    genReqId: newRequestId,
    bodyLimit: BODY_LIMIT_BYTES,
    forceCloseConnections: 'idle',
    // Ours says so in the documented form.
    return503OnClosing: false,
    trustProxy: config.trustProxy.length > 0 ? config.trustProxy : false,
    clientErrorHandler: (error, socket) => {
      if (isUnused(error, socket)) keepIdle(socket, timeouts)
      else answerBrokenRequest(error, socket)
    },
    // Not setValidatorCompiler: Fastify forgets that in every scope that adds a schema. The type of the validator fits only its own.
    schemaController: { compilersFactory: { buildValidator: buildValidator as never, buildSerializer } },
    routerOptions: { maxParamLength: HEADER_LIMIT_BYTES },
    rewriteUrl: ({ url = '/' }) => routableUrl(url),
  }) as unknown as FastifyInstance
  app.decorateRequest('caller', undefined)
  app.decorateRequest('confirmCaller', undefined)
  // An expectation that we don't know may be ignored, says HTTP; Node would answer it without a body. CONNECT it would not answer at all.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  app.server.on('connect', (_request, socket) => answerBrokenRequest(new Error('CONNECT'), socket as Socket))
  return app
}

/**
 * Node counts the time for headers from the first moment of a connection. One that has not asked anything yet is as idle as one between two
 * requests: clients open some in advance, and one that is told 408 just as it begins to ask takes that for the answer.
 */
function isUnused({ code }: NodeJS.ErrnoException, { bytesRead }: Socket): boolean {
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' && bytesRead === 0
}

/**
 * For as long as any other. With its first byte, Node counts the time for headers anew. Not `socket.setTimeout`, which would go on counting
 * while an answer waits for a slow reader.
 */
function keepIdle(socket: Socket, { headersMs, keepAliveMs }: Timeouts): void {
  const closeUnused = () => socket.bytesRead === 0 && socket.destroy()
  setTimeout(closeUnused, Math.max(0, keepAliveMs - headersMs)).unref()
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Handles the requests of one turn of the event loop one after the other, when Node has read all of them. Under load, accepting a message takes
 * 127 µs of CPU instead of 198: bodies are complete when they are asked for, and each step runs for all requests before the next step begins.
 */
function inBatches(handle: Handle): Handle {
  let waiting: Parameters<Handle>[] = []
  function handleAll(): void {
    const batch = waiting
    waiting = []
    for (const [request, response] of batch) {
      // Nobody waits for the response of a connection that has gone meanwhile, and its address is no longer known.
      if (!request.socket.destroyed) handle(request, response)
    }
  }
  return (request, response) => {
    if (waiting.length === 0) setImmediate(handleAll)
    waiting.push([request, response])
  }
}

/** Where it listens, such as http://127.0.0.1:8080. */
export function listeningUrl({ server, initialConfig }: FastifyInstance): string {
  const { family, address, port } = server.address() as AddressInfo
  return `${initialConfig.https ? 'https' : 'http'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
