import { parentPort } from 'node:worker_threads'
import { Agent, type Dispatcher } from 'undici'
import { envelope, type PostedRow, sign } from './envelope.ts'

// The worker's side: it signs, wraps and posts. poster-thread.ts, which starts it, says why it is a thread of its own.

const CONCURRENCY = 64
const TIMEOUT_MS = 10_000
// What is longer is cut: the only text that counts is the secret of the challenge.
const MAX_TEXT_CHARACTERS = 1024

/** A row with the key that signs it, which is another one where a fault wants a wrong signature. */
export type Signed = { row: PostedRow; key: string }
/** The status and text of the answer; status 0 where there was none, with what went wrong as the text. */
export type Answer = { status: number; text: string }
export type Order =
  | { is: 'target'; url: string }
  | { is: 'rows'; rows: Signed[] }
  | { is: 'challenge'; id: number; url: string; body: string }
export type Report = { is: 'posted'; rows: { id: number; status: number }[] } | { is: 'challenged'; id: number; answer: Answer }

// The address is one that the owner of this machine gave, mostly this machine itself under a certificate of its own making; the
// signature tells the other side who speaks. So the certificate is not held against a list of authorities. The deadline of a post is kept
// below, for all its parts together.
const options = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: TIMEOUT_MS, rejectUnauthorized: false } }
const rowsAgent = new Agent({ ...options, connections: CONCURRENCY })
// A challenge does not wait behind rows that the same address leaves without an answer.
const challengeAgent = new Agent(options)

const waiting: Signed[] = []
let target = ''
let posting = 0
let posted: { id: number; status: number }[] = []

if (parentPort === null) throw new Error('the poster runs as a worker')
const port = parentPort
const report = (message: Report) => port.postMessage(message)

port.on('message', (order: Order) => {
  if (order.is === 'challenge') {
    const { id, url, body } = order
    void post(challengeAgent, url, body).then((answer) => report({ is: 'challenged', id, answer }))
  } else {
    if (order.is === 'target') target = order.url
    else waiting.push(...order.rows)
    pump()
  }
})

/** Rows wait here and not in the agent, so that the deadline of each begins when it is posted, and a new address is for all that wait. */
function pump(): void {
  while (posting < CONCURRENCY) {
    const next = waiting.shift()
    if (next === undefined) break
    posting++
    const { row, key } = next
    void post(rowsAgent, target, envelope(row), sign(row.data, key)).then(({ status }) => {
      posting--
      if (posted.push({ id: row.id, status }) === 1) setImmediate(reportPosted)
      pump()
    })
  }
}

/** All that was answered in one turn goes back in one message. */
function reportPosted(): void {
  report({ is: 'posted', rows: posted })
  posted = []
}

/** By `dispatch`, which makes neither a stream nor an abort signal for each answer. */
function post(agent: Agent, url: string, body: string, signature?: string): Promise<Answer> {
  const { origin, pathname, search } = new URL(url)
  const headers = ['content-type', 'application/json']
  if (signature !== undefined) headers.push('x-goog-signature', signature)
  const request: Dispatcher.DispatchOptions = { origin, method: 'POST', path: `${pathname}${search}`, headers, body }
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

    agent.dispatch(request, {
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
