import { ApiProblem, ask, urlOf } from './api.ts'

// Follows what happens in an account. All tabs of a browser share one stream, since browsers allow six connections to a host: the tab that
// holds the lock reads the stream, and forwards it to the others. When it is closed, another tab gets the lock, and reads on from the last cursor.

/** An event of the account's log, as webhooks get it. */
export type LogEvent = { eventId: string; type: string; occurredAt: string; data: Record<string, unknown> }

export type LiveEvent =
  | { name: 'event'; data: LogEvent }
  /** There were too many events to send each of them. */
  | { name: 'busy'; data: { count: number } }
  | { name: 'campaign'; data: Record<string, unknown> }
  | { name: 'health'; data: Record<string, unknown> }
  /** Events may have been missed: read everything again. */
  | { name: 'gap' }

export type LiveState = 'connecting' | 'live' | 'lost'

/** What the tab that reads the stream forwards to the others. `hello` comes from a new tab, which asks for the state. */
type Forwarded = { hello: true } | { state: LiveState } | { cursor: string } | { event: LiveEvent }

/** `personId`: tabs of another person do not share a stream, which may have more or less in it. */
type Options = { accountId: number; personId: number; onState: (state: LiveState) => void; onEvent: (event: LiveEvent) => void }

const RETRY_MS = 1_000
/** A quiet stream has a ping every 15 s. If two are missing, the connection is lost, even if neither side closed it. */
const SILENT_MS = 35_000
const ASK_MS = 5_000
const CONNECT_MS = 5_000

/** Follows an account, until the returned function is called. */
export function followAccount({ accountId, personId, onState, onEvent }: Options): () => void {
  const name = `herald-stream-${accountId}-${personId}`
  const closing = new AbortController()
  const channel = new BroadcastChannel(name)
  let state: LiveState = 'connecting'
  let cursor: string | undefined
  let isReader = false

  function receive(forwarded: Forwarded): void {
    if ('hello' in forwarded) {
      if (isReader) channel.postMessage({ state })
    } else if ('cursor' in forwarded) cursor = forwarded.cursor
    else if ('event' in forwarded) onEvent(forwarded.event)
    else {
      state = forwarded.state
      onState(state)
    }
  }
  function forward(forwarded: Forwarded): void {
    channel.postMessage(forwarded)
    receive(forwarded)
  }
  channel.onmessage = ({ data }: MessageEvent<Forwarded>) => receive(data)
  channel.postMessage({ hello: true })

  async function read(): Promise<void> {
    isReader = true
    while (!closing.signal.aborted) {
      await readStream({ accountId, cursor, wasLost: state === 'lost', forward, signal: closing.signal })
      if (closing.signal.aborted) return
      forward({ state: 'lost' })
      if (await isGone(accountId, cursor, closing.signal)) cursor = undefined
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
  // The request is rejected when this tab no longer follows the account.
  navigator.locks.request(name, { signal: closing.signal }, read).catch(() => {})
  return () => {
    closing.abort()
    channel.close()
  }
}

type Reading = {
  accountId: number
  cursor: string | undefined
  wasLost: boolean
  forward: (forwarded: Forwarded) => void
  signal: AbortSignal
}

/** Reads the stream until it ends. */
async function readStream({ accountId, cursor, wasLost, forward, signal }: Reading): Promise<void> {
  const query = new URLSearchParams({ accountId: String(accountId), ...(cursor !== undefined && { cursor }) })
  const source = new EventSource(urlOf(`/stream?${query}`))
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  const end = () => resolve()
  let timer = 0
  const heard = (waitMs = SILENT_MS) => {
    clearTimeout(timer)
    timer = setTimeout(end, waitMs)
  }
  heard(CONNECT_MS)
  source.addEventListener('ping', () => heard())
  // The browser would connect again by itself, but not after an error response.
  source.onerror = end
  signal.addEventListener('abort', end)
  const noteCursor = ({ lastEventId }: MessageEvent<string>) => forward({ cursor: lastEventId })
  source.addEventListener('ready', (event) => {
    heard()
    noteCursor(event)
    forward({ state: 'live' })
    // Without a cursor, the stream begins now. While the connection was lost, requests failed, and some changes emit no event.
    if (cursor === undefined || wasLost) forward({ event: { name: 'gap' } })
  })
  const forwardAs = (name: 'event' | 'busy' | 'campaign' | 'health') => (event: MessageEvent<string>) => {
    heard()
    if (event.lastEventId !== '') noteCursor(event)
    forward({ event: { name, data: JSON.parse(event.data) } })
  }
  source.onmessage = forwardAs('event')
  for (const name of ['busy', 'campaign', 'health'] as const) source.addEventListener(name, forwardAs(name))
  await ended
  clearTimeout(timer)
  signal.removeEventListener('abort', end)
  source.close()
}

/** Whether the log no longer has the place of the cursor. An EventSource does not say why it was refused. */
async function isGone(accountId: number, cursor: string | undefined, signal: AbortSignal): Promise<boolean> {
  if (cursor === undefined) return false
  const path = `/accounts/${accountId}/events?limit=1&after=${encodeURIComponent(cursor)}`
  return await ask(path, { signal, timeoutMs: ASK_MS }).then(
    () => false,
    (error: unknown) => error instanceof ApiProblem && error.status === 410,
  )
}
