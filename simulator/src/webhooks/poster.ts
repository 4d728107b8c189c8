import { type Dispatcher, Pool } from 'undici'

const TIMEOUT_MS = 10_000
// What is longer is cut: the only text that counts is the secret of the challenge.
const MAX_TEXT_CHARACTERS = 1024

export type Answer = { status: number; text: string }
export type Poster = {
  /** The status and text of the answer; status 0 where there was none, with what went wrong as the text. */
  post: (body: string, signature?: string) => Promise<Answer>
  /** Lets what is under way end. */
  retire: () => void
  close: () => Promise<void>
}

/** Posts to one address. */
export function createPoster(url: string, connections: number): Poster {
  const { origin, pathname, search } = new URL(url)
  // The address is one that the owner of this machine gave, mostly this machine itself under a certificate of its own making; the
  // signature tells the other side who speaks. So the certificate is not held against a list of authorities.
  const pool = new Pool(origin, {
    connections,
    // The deadline of a post is kept below, for all its parts together.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: TIMEOUT_MS, rejectUnauthorized: false },
  })
  const path = `${pathname}${search}`
  return {
    post: (body, signature) => {
      const headers = ['content-type', 'application/json']
      if (signature !== undefined) headers.push('x-goog-signature', signature)
      return post(pool, { method: 'POST', path, headers, body })
    },
    retire: () => void pool.close(),
    close: () => pool.destroy(),
  }
}

/** By `dispatch`, which makes neither a stream nor an abort signal for each answer. */
function post(pool: Pool, request: Dispatcher.DispatchOptions): Promise<Answer> {
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined
    let status = 0
    let text = ''
    let isOver = false
    const deadline = setTimeout(() => fail(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)), TIMEOUT_MS)

    function end(answer: Answer): void {
      clearTimeout(deadline)
      isOver = true
      resolve(answer)
    }
    function fail(error: Error): void {
      if (isOver) return
      end({ status: 0, text: error.message })
      controller?.abort(error)
    }

    pool.dispatch(request, {
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
  })
}
