import { Client, type Dispatcher } from 'undici'

const TIMEOUT_MS = 10_000
// A longer text is cut: only the secret of the challenge matters.
const MAX_TEXT_CHARACTERS = 1024

/** The status and text of the response. Without a response the status is 0, and the text is the error. */
export type PostResult = { status: number; text: string }

/** An address and the connections to it. */
export type Poster = {
  /** Opens another connection if none is idle. `done` is called once, after 10 s at the latest. */
  post: (body: string, signature: string | undefined, done: (result: PostResult) => void) => void
  /** Finishes the posts in progress, and accepts no more. */
  close: () => Promise<void>
  /** Aborts the posts in progress. */
  destroy: () => Promise<void>
}

/**
 * Does not verify certificates: the operator chose the address, which is usually this machine with a self-signed certificate, and the
 * signature of an event authenticates the sender.
 */
export function createPoster(url: string): Poster {
  const { origin, pathname, search } = new URL(url)
  const path = `${pathname}${search}`
  // `dispatch` applies one deadline to all phases of a post.
  const options = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: TIMEOUT_MS, rejectUnauthorized: false } }
  const clients: Client[] = []
  const idle: Client[] = []
  function open(): Client {
    const client = new Client(origin, options)
    clients.push(client)
    return client
  }
  return {
    // One client for each connection: undici's pool searches all of them for each request.
    post: (body, signature, done) => {
      const client = idle.pop() ?? open()
      const headers = ['content-type', 'application/json']
      if (signature !== undefined) headers.push('x-goog-signature', signature)
      dispatch(client, { origin, method: 'POST', path, headers, body }, (result) => {
        // After undici's callback has returned: a request to a client within the callback of its failed connection ends the process.
        queueMicrotask(() => {
          idle.push(client)
          done(result)
        })
      })
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.close()))
    },
    destroy: async () => {
      await Promise.all(clients.map((client) => client.destroy()))
    },
  }
}

/** Uses `dispatch`, which creates neither a stream nor an abort signal for each response. */
function dispatch(client: Client, request: Dispatcher.DispatchOptions, done: (result: PostResult) => void): void {
  let controller: Dispatcher.DispatchController | undefined
  let status = 0
  let text = ''
  let isOver = false
  const deadline = setTimeout(() => fail(new Error(`no response within ${TIMEOUT_MS / 1000} s`)), TIMEOUT_MS)

  function end(result: PostResult): void {
    clearTimeout(deadline)
    isOver = true
    done(result)
  }
  function fail(error: Error): void {
    if (isOver) return
    end({ status: 0, text: error.message })
    controller?.abort(error)
  }

  client.dispatch(request, {
    onRequestStart: (started) => {
      // The deadline passed while the request waited for a connection.
      if (isOver) started.abort(new Error('too late'))
      else controller = started
    },
    onResponseStart: (_, statusCode) => {
      status = statusCode
    },
    onResponseData: (_, chunk) => {
      if (text.length < MAX_TEXT_CHARACTERS) text += chunk.toString('utf8')
    },
    onResponseEnd: () => end({ status, text }),
    onResponseError: (_, error) => fail(error),
  })
}
