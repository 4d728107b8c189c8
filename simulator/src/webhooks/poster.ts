import { Client, type Dispatcher } from 'undici'

const TIMEOUT_MS = 10_000
// What is longer is cut: the only text that counts is the secret of the challenge.
const MAX_TEXT_CHARACTERS = 1024

/** The status and text of the response; status 0 where there was none, with what went wrong as the text. */
export type Answer = { status: number; text: string }

/** An address, with the connections to it. */
export type Poster = {
  /** Opens another connection where none is idle. `done` is called once, after 10 s at the latest. */
  post: (body: string, signature: string | undefined, done: (answer: Answer) => void) => void
  /** Lets what is under way end, and takes nothing new. */
  close: () => Promise<void>
  /** Cuts off what is under way. */
  destroy: () => Promise<void>
}

/**
 * The address is one that the owner of this machine gave, mostly this machine itself under a certificate of its own making; the signature
 * tells the other side who speaks. So the certificate is not held against a list of authorities.
 */
export function createPoster(url: string): Poster {
  const { origin, pathname, search } = new URL(url)
  const path = `${pathname}${search}`
  // The deadline of a post is kept below, for all its parts together.
  const options = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: TIMEOUT_MS, rejectUnauthorized: false } }
  const clients: Client[] = []
  const idle: Client[] = []
  function open(): Client {
    const client = new Client(origin, options)
    clients.push(client)
    return client
  }
  return {
    // A client for each connection, not undici's pool, which looks through all of them for each request.
    post: (body, signature, done) => {
      const client = idle.pop() ?? open()
      const headers = ['content-type', 'application/json']
      if (signature !== undefined) headers.push('x-goog-signature', signature)
      dispatch(client, { origin, method: 'POST', path, headers, body }, (answer) => {
        // After undici's callback has returned. If a connection fails, undici ends the process if the same client gets a request meanwhile.
        queueMicrotask(() => {
          idle.push(client)
          done(answer)
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

/** By `dispatch`, which makes neither a stream nor an abort signal for each response. */
function dispatch(client: Client, request: Dispatcher.DispatchOptions, done: (answer: Answer) => void): void {
  let controller: Dispatcher.DispatchController | undefined
  let status = 0
  let text = ''
  let isOver = false
  const deadline = setTimeout(() => fail(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)), TIMEOUT_MS)

  function end(answer: Answer): void {
    clearTimeout(deadline)
    isOver = true
    done(answer)
  }
  function fail(error: Error): void {
    if (isOver) return
    end({ status: 0, text: error.message })
    controller?.abort(error)
  }

  client.dispatch(request, {
    onRequestStart: (started) => {
      // It had to wait so long for a connection that nobody waits for it any more.
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
