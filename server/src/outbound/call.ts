import type { Dispatcher } from 'undici'

type CallLimits = {
  timeoutMs: number
  /** When the timeout ends, by performance.now(): several calls may share it. */
  endsAt: number
  /** A longer response is an error. */
  maxBytes: number
  /** How much of the body to keep. */
  keptBytes: number
  /** Interim responses such as 103, which a server could send forever. */
  maxInterimResponses: number
  /** Abort the call. */
  signals?: AbortSignal[]
}

/** How a call ended: what arrived, and what went wrong. */
export type CallEnd = {
  /** Undefined if the headers of a response did not arrive completely. */
  status: number | undefined
  headers: Record<string, string | string[] | undefined>
  /** The first `keptBytes` of the body that arrived. */
  body: Buffer
  /** Undefined if the response arrived completely. */
  error: CallError | undefined
  /** If false, the request never got a connection, so it had no effect. */
  wasSent: boolean
  /** Whether any byte of a response arrived. */
  hasBegun: boolean
}

export type CallError = Error & { code?: string; reason?: string; errors?: CallError[] }

/** The call did not end by itself: `reason` says why this process ended it. */
export class Aborted extends Error {
  readonly isStopped: boolean
  constructor(reason: string, isStopped = false) {
    super(reason)
    this.isStopped = isStopped
  }
}

/**
 * Makes one HTTP call, with one deadline for all its phases. Never throws. It uses `dispatch`, which creates neither a stream nor an abort
 * signal for each response, and reports when a request gets a connection.
 */
export function call(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions, limits: CallLimits): Promise<CallEnd> {
  const { timeoutMs, endsAt, maxBytes, keptBytes, maxInterimResponses, signals = [] } = limits
  return new Promise((resolve) => {
    const end: CallEnd = { status: undefined, headers: {}, body: Buffer.alloc(0), error: undefined, wasSent: false, hasBegun: false }
    const chunks: Buffer[] = []
    let bytes = 0
    let interimResponses = 0
    let isOver = false
    let controller: Dispatcher.DispatchController | undefined
    const deadline = setTimeout(() => abort(new Aborted(`no response within ${timeoutMs / 1_000} s`)), endsAt - performance.now())
    const stop = () => abort(new Aborted('stopped before a response', true))
    for (const signal of signals) signal.addEventListener('abort', stop)

    function finish(error?: CallError): void {
      if (isOver) return
      isOver = true
      clearTimeout(deadline)
      for (const signal of signals) signal.removeEventListener('abort', stop)
      resolve({ ...end, body: Buffer.concat(chunks).subarray(0, keptBytes), error })
    }
    /** Closes the connection too: anything else that arrives on it is useless. */
    function abort(error: Aborted): void {
      finish(error)
      controller?.abort(error)
    }

    if (signals.some(({ aborted }) => aborted)) return stop()
    dispatcher.dispatch(request, {
      onRequestStart: (started) => {
        controller = started
        // The deadline passed while the request waited for a connection.
        if (isOver) started.abort(new Error('too late'))
        else end.wasSent = true
      },
      onResponseStarted: () => {
        end.hasBegun = true
      },
      onResponseStart: (_, status, headers) => {
        if (status >= 200) Object.assign(end, { status, headers })
        else if (++interimResponses > maxInterimResponses) abort(new Aborted(`too many responses with status ${status}`))
      },
      onResponseData: (_, chunk) => {
        if (bytes < keptBytes) chunks.push(chunk)
        bytes += chunk.length
        if (bytes > maxBytes) abort(new Aborted(`the response exceeds ${maxBytes} bytes`))
      },
      onResponseEnd: () => finish(end.status === undefined ? new Aborted('the response has no status') : undefined),
      onResponseError: (_, error) => finish(error),
    })
  })
}
