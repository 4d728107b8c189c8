import type { Pool } from '../../db/pool.ts'
import { ApiError } from '../../errors.ts'
import type { Cursors, Place } from '../../events/cursor.ts'
import { NOW, placeOfEvent, readFeed } from '../../events/feed.ts'
import { eventBody } from '../../events/pages.ts'
import { findEnd, findEnds } from '../../events/start.ts'
import { forRoles, type Stream, type StreamPlace, serverSent } from './stream.ts'

// Sends the events of the log. One statement finds the ends of the logs of all accounts that have streams; streams of an account that are at the
// same position share one read. A stream remembers only its position, so a stream that is behind reads on from there, as a reader of the feed does.

/** Above this rate, people can't follow: the stream gets the number of events instead, and the page asks for what it shows. */
const EVENTS_PER_SECOND = 50
/** A new stream may get more at once: what its reader has missed since its connection broke. */
export const FIRST_EVENTS = 200
const BUSY_EVERY_MS = 1_000
const PAGE_EVENTS = 200
/** The bytes of one write, and the event that exceeds them. */
const WRITE_BYTES = 64 * 1024

type Log = { pool: Pool; cursors: Cursors }
type At = StreamPlace

/** Where a stream begins: after the cursor or, without one or with NOW, at the end of the log. Throws if the log does not continue after the cursor. */
export async function findPlace({ pool, cursors }: Log, accountId: number, cursor: string | undefined): Promise<At> {
  if (cursor === undefined || cursor === NOW) return atPlace(cursors, accountId, await findEnd(pool, accountId))
  await readFeed(pool, cursors, accountId, { after: cursor, limit: 1 })
  return { cursor, position: (cursors.decode(accountId, cursor) as Place).position }
}

const atPlace = (cursors: Cursors, accountId: number, place: Place): At => ({
  position: place.position,
  cursor: cursors.encode(accountId, place),
})

/** Sends every stream the events after its position, except to readers that are not ready. Returns whether there are more to send at once. */
export async function sendEvents(log: Log, streams: Iterable<Stream>): Promise<boolean> {
  const byAccount = Map.groupBy(
    [...streams].filter(({ at, connection }) => at !== undefined && connection.isReady()),
    ({ accountId }) => accountId as number,
  )
  if (byAccount.size === 0) return false
  const ends = await findEnds(log.pool, [...byAccount.keys()])
  let mayBeMore = false
  for (const [accountId, ofAccount] of byAccount) {
    const end = ends.get(accountId) as Place
    for (const together of Map.groupBy(ofAccount, ({ at }) => (at as At).cursor).values()) {
      if (await sendTo(log, accountId, together, end)) mayBeMore = true
    }
  }
  return mayBeMore
}

/** The common position of streams. */
const placeOf = ([first]: Stream[]) => (first as Stream).at as At

/** Sends to streams of one account that are at the same position. */
async function sendTo(log: Log, accountId: number, streams: Stream[], end: Place): Promise<boolean> {
  const at = placeOf(streams)
  const missing = end.position - at.position
  if (missing === 0) {
    // The streams have caught up: from now on they get at most EVENTS_PER_SECOND.
    for (const stream of streams) stream.allowed = Math.min(stream.allowed, EVENTS_PER_SECOND)
    return false
  }
  const now = performance.now()
  const [calm, busy] = [streams.filter((stream) => allowance(stream, now) >= missing), streams.filter(({ allowed }) => allowed < missing)]
  const due = busy.filter(({ busyAt }) => now - busyAt >= BUSY_EVERY_MS)
  if (due.length > 0 && missing > 0) sendCount(due, missing, atPlace(log.cursors, accountId, end))
  if (calm.length === 0) return false
  try {
    return await sendPage(log, accountId, calm)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    // The log was restored to an earlier state, or retention has removed what follows. The reader connects again, and gets the error.
    for (const { connection } of calm) connection.end(serverSent(JSON.stringify({ code: error.code }), { event: 'end' }))
    return false
  }
}

/** How many events the stream may get now. Its allowance grows by EVENTS_PER_SECOND, up to that many. */
function allowance(stream: Stream, now: number): number {
  const grown = ((now - stream.allowedAt) / 1_000) * EVENTS_PER_SECOND
  stream.allowed = Math.max(stream.allowed, Math.min(stream.allowed + grown, EVENTS_PER_SECOND))
  stream.allowedAt = now
  return stream.allowed
}

function sendCount(streams: Stream[], count: number, end: At): void {
  const { cursor: after } = placeOf(streams)
  const text = forRoles(serverSent(JSON.stringify({ count, after }), { event: 'busy', id: end.cursor }))
  for (const stream of streams) {
    stream.connection.write(text(stream))
    Object.assign(stream, { at: end, busyAt: performance.now() })
  }
}

async function sendPage({ pool, cursors }: Log, accountId: number, streams: Stream[]): Promise<boolean> {
  const { cursor } = placeOf(streams)
  const { items, hasMore } = await readFeed(pool, cursors, accountId, { after: cursor, limit: PAGE_EVENTS })
  let [text, sent, at] = ['', 0, undefined as At | undefined]
  for (const event of items) {
    if (text.length >= WRITE_BYTES) break
    at = atPlace(cursors, accountId, placeOfEvent(event))
    text += serverSent(eventBody(event), { id: at.cursor })
    sent += 1
  }
  if (at === undefined) return false
  const written = forRoles(text)
  for (const stream of streams) {
    // A reader that was ready before the read may have got something else meanwhile, or have disconnected.
    if (!stream.connection.isReady() || stream.at?.cursor !== cursor) continue
    stream.connection.write(written(stream))
    Object.assign(stream, { at, allowed: stream.allowed - sent })
  }
  return hasMore || sent < items.length
}
