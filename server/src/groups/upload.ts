import type { IncomingMessage } from 'node:http'
import type { RecordChange } from '../audit/record.ts'
import type { Pool } from '../db/pool.ts'
import { ApiError, OperatorError } from '../errors.ts'
import { liftRequestTimeout } from '../http/request-timeout.ts'
import type { GroupKey } from './groups.ts'
import { type ImportResult, importGroup } from './import.ts'

// A file that a caller uploads can have any length, so its body is not buffered, and neither the size limit nor the memory budget of request
// bodies applies. It is read as fast as the database stores it, with a few blocks in memory. Uploads have their own connection pool.

export type UploadLimits = {
  /** A client must send at least `windowBytes` in each `windowMs` that the service waits for it. */
  windowMs: number
  windowBytes: number
  /** How long an upload may take as a whole. */
  longestMs: number
  /**
   * How long to read and discard the rest of a file that was refused. If the connection were closed at once, the client, still writing, might
   * never see the response.
   */
  lingerMs: number
}

const KIB = 1024
const UPLOAD_LIMITS: UploadLimits = { windowMs: 30_000, windowBytes: 64 * KIB, longestMs: 3_600_000, lingerMs: 2_000 }
const UPLOADS_PER_ACCOUNT = 2
const UPLOADS_PER_NODE = 4
const RETRY_AFTER_SECONDS = '10'

export type Receive = (request: IncomingMessage, group: GroupKey, record?: RecordChange) => Promise<ImportResult>

/** Makes a function that imports the body of a request into a group. A node has one, since it counts the imports of all routes. */
export function createReceiver(pool: Pool, limits = UPLOAD_LIMITS): Receive {
  /** The account of each running upload. */
  const running: number[] = []

  function takeSlot(accountId: number): void {
    const own = running.filter((id) => id === accountId).length
    if (own >= UPLOADS_PER_ACCOUNT)
      throw busy(`The account already runs ${UPLOADS_PER_ACCOUNT} imports on this node, the maximum; try again later.`)
    if (running.length >= UPLOADS_PER_NODE) throw busy(`This node already runs ${UPLOADS_PER_NODE} imports, the maximum; try again later.`)
    running.push(accountId)
  }

  return async (request, group, record) => {
    takeSlot(group.accountId)
    liftRequestTimeout(request)
    try {
      return await importGroup(pool, { ...group, source: readUpload(request, limits), record })
    } catch (error) {
      discardRest(request, limits)
      if (error instanceof OperatorError) throw new ApiError('RCS_INVALID_REQUEST', { details: [{ path: '', reason: error.message }] })
      throw error
    } finally {
      running.splice(running.indexOf(group.accountId), 1)
    }
  }
}

function busy(reason: string): ApiError {
  return new ApiError('RCS_UNAVAILABLE', { headers: { 'Retry-After': RETRY_AFTER_SECONDS }, details: [{ path: '', reason }] })
}

/** Yields the bytes of a body. Throws if the client disconnects or is too slow; the time that the database takes does not count. */
async function* readUpload(request: IncomingMessage, limits: UploadLimits): AsyncGenerator<Uint8Array> {
  const { windowMs, windowBytes, longestMs } = limits
  const deadline = performance.now() + longestMs
  // Otherwise an error in the file would destroy the connection before the response is sent.
  const chunks = request.iterator({ destroyOnReturn: false })
  let waitedMs = 0
  let bytes = 0
  for (;;) {
    const from = performance.now()
    const next = await within(chunks.next(), Math.min(windowMs - waitedMs, deadline - from), limits)
    if (next.done) return
    waitedMs += performance.now() - from
    bytes += next.value.length
    if (bytes >= windowBytes) waitedMs = bytes = 0
    yield next.value
  }
}

async function within<T>(arriving: Promise<T>, ms: number, { windowMs, windowBytes, longestMs }: UploadLimits): Promise<T> {
  // After a timeout nothing awaits this promise. Mark it as handled.
  arriving.catch(() => {})
  const { promise: over, reject } = Promise.withResolvers<never>()
  const reason = `the client must send ${windowBytes / KIB} KiB every ${windowMs / 1_000} s, and the whole file in ${longestMs / 60_000} min`
  const timer = setTimeout(() => reject(new ApiError('RCS_REQUEST_TIMEOUT', { details: [{ path: '', reason }] })), Math.max(ms, 0))
  try {
    return await Promise.race([arriving, over])
  } finally {
    clearTimeout(timer)
  }
}

function discardRest(request: IncomingMessage, { lingerMs }: UploadLimits): void {
  if (request.complete || request.destroyed) return
  // The iterator still listens, and would keep the stream from flowing.
  request.removeAllListeners('readable')
  request.resume()
  const timer = setTimeout(() => request.complete || request.socket.destroy(), lingerMs).unref()
  request.once('close', () => clearTimeout(timer))
}
