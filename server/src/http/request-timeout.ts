import type { IncomingMessage, Server } from 'node:http'

// Node's `requestTimeout` applies to all requests, but an upload of any length needs an exception. Almost every request is complete when it is
// handled, and needs no timer.

const timers = new WeakMap<IncomingMessage, NodeJS.Timeout>()

/** Ends a request whose body does not arrive in time, as Node's `requestTimeout` does. */
export function limitRequest(server: Server, request: IncomingMessage, requestMs: number): void {
  if (request.complete) return
  const timer = setTimeout(() => {
    const error = Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
    if (!request.complete) server.emit('clientError', error, request.socket)
  }, requestMs)
  timers.set(request, timer.unref())
  request.once('close', () => clearTimeout(timer))
}

/** Lets a request take any time from now on. The route must end the request of a client that is too slow. */
export function liftRequestTimeout(request: IncomingMessage): void {
  clearTimeout(timers.get(request))
}
