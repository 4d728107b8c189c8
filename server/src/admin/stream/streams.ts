import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { Gauge, type Registry } from 'prom-client'
import { repeat } from '../../background/repeat.ts'
import type { Pool } from '../../db/pool.ts'
import { ApiError } from '../../errors.ts'
import type { Cursors } from '../../events/cursor.ts'
import { unavailable } from '../../http/error-responses.ts'
import type { UnreadWatch } from '../../http/unread.ts'
import { sendCampaigns } from './campaigns.ts'
import { openConnection } from './connection.ts'
import { FIRST_EVENTS, sendEvents } from './events.ts'
import { checkRights } from './rights.ts'
import { type Stream, type Subscription, serverSent } from './stream.ts'

export type StreamLimits = {
  /** How many streams a person or token may have open at this process, and all together. */
  perOwner: number
  perProcess: number
  /** For how long a reader may take nothing. */
  stalledMs: number
  /** How often the credentials of all streams are checked. */
  checkEveryMs: number
  /** How long a stream stays open without such a check: the database is out of reach, and the person may have lost access. */
  uncheckedMs: number
  pingEveryMs: number
  healthEveryMs: number
}

const LIMITS: StreamLimits = {
  perOwner: 20,
  perProcess: 500,
  stalledMs: 30_000,
  checkEveryMs: 10_000,
  uncheckedMs: 30_000,
  pingEveryMs: 15_000,
  healthEveryMs: 5_000,
}

// A poll that finds nothing is one statement for all streams. Events that this process routes wake the loop at once.
const EVENTS_EVERY_MS = 250
const CAMPAIGNS_EVERY_MS = 1_000
const SWEEP_EVERY_MS = 1_000
/** While there are no streams, the loops sleep until one is opened. */
const ASLEEP_MS = 3_600_000
/** Keeps a quiet connection open. Browsers hide comments from a page, so an event lets the page notice a lost connection. */
const PING = `: ping\n${serverSent('{}', { event: 'ping' })}`
/** For how long a reader waits before it connects again. */
const RETRY_MS = 2_000

export type Streams = {
  /** Opens a stream as the response to a request. Throws if there are too many. */
  open: (reply: FastifyReply, subscription: Subscription) => void
  count: () => number
  /** Call it when events have got their positions in the log. */
  wake: () => void
  /** Ends all streams, and refuses new ones. */
  end: () => void
  stop: () => Promise<void>
}

type Options = {
  pool: Pool
  cursors: Cursors
  logger: Logger
  registry: Registry
  unread: Pick<UnreadWatch, 'allowIdle'>
  /** The health for operators, as JSON. Never throws. */
  readHealth: () => Promise<string>
  limits?: Partial<StreamLimits> | undefined
}

export function createStreams({ pool, cursors, logger, registry, unread, readHealth, limits }: Options): Streams {
  const { perOwner, perProcess, ...times } = { ...LIMITS, ...limits }
  const streams = new Set<Stream>()
  let isEnding = false
  const loops = startLoops({ pool, cursors, logger, streams, readHealth, times })
  const sweeping = setInterval(() => sweep(streams, times, logger), Math.min(SWEEP_EVERY_MS, times.stalledMs, times.pingEveryMs)).unref()
  new Gauge({
    name: 'herald_streams',
    help: 'Streams of /admin/v1/stream that are open',
    registers: [registry],
    collect() {
      this.set(streams.size)
    },
  })

  function checkLimits(owner: string): void {
    if (isEnding) throw unavailable('The service is shutting down.')
    if (streams.size >= perProcess) throw unavailable(`The process has ${perProcess} streams open, and allows no more.`)
    const own = streams.values().filter((stream) => stream.owner === owner)
    if ([...own].length < perOwner) return
    const reason = `At most ${perOwner} streams of a person or token may be open; close one.`
    throw new ApiError('RCS_RATE_LIMITED', { details: [{ path: '', reason }], headers: { 'Retry-After': '10' } })
  }

  return {
    open: (reply, subscription) => {
      checkLimits(subscription.owner)
      // `sweep` finds readers that do not read.
      unread.allowIdle(reply, Number.POSITIVE_INFINITY)
      const now = performance.now()
      const started = { checkedAt: now, allowed: FIRST_EVENTS, allowedAt: now, busyAt: Number.NEGATIVE_INFINITY, campaigns: new Map() }
      const connection = openConnection(reply, () => streams.delete(stream))
      const stream: Stream = { ...subscription, ...started, connection }
      // Tells the reader the cursor from which it continues, even if its connection breaks before the first event.
      const id = subscription.at && { id: subscription.at.cursor }
      connection.write(`retry: ${RETRY_MS}\n${serverSent('{}', { event: 'ready', ...id })}`)
      const wereAsleep = streams.size === 0
      streams.add(stream)
      if (wereAsleep) for (const loop of loops) loop.wake()
      else void sendHealth([stream], readHealth)
    },
    count: () => streams.size,
    wake: () => loops[0]?.wake(),
    end: () => {
      isEnding = true
      for (const { connection } of streams) connection.end(serverSent(JSON.stringify({ code: 'RCS_UNAVAILABLE' }), { event: 'end' }))
    },
    stop: async () => {
      clearInterval(sweeping)
      await Promise.all(loops.map((loop) => loop.stop()))
    },
  }
}

type Times = Omit<StreamLimits, 'perOwner' | 'perProcess'>
type LoopOptions = Pick<Options, 'pool' | 'cursors' | 'logger' | 'readHealth'> & { streams: Set<Stream>; times: Times }

/** The loops that serve all streams. The first one sends events. */
function startLoops({ pool, cursors, logger, streams, readHealth, times }: LoopOptions) {
  const every = (name: string, ms: number, work: () => Promise<unknown>) =>
    repeat(name, logger, async () => {
      if (streams.size === 0) return ASLEEP_MS
      return (await work()) === true ? 0 : ms
    })
  return [
    every('stream events', EVENTS_EVERY_MS, () => sendEvents({ pool, cursors }, streams)),
    every('stream campaigns', CAMPAIGNS_EVERY_MS, () => sendCampaigns(pool, streams)),
    every('stream health', times.healthEveryMs, () => sendHealth(streams, readHealth)),
    every('check rights of streams', times.checkEveryMs, () => checkRights(pool, streams)),
  ]
}

async function sendHealth(streams: Iterable<Stream>, readHealth: () => Promise<string>): Promise<void> {
  const operators = [...streams].filter(({ role }) => role === 'operator')
  if (operators.length === 0) return
  const text = Buffer.from(serverSent(await readHealth(), { event: 'health' }))
  for (const { connection } of operators) if (connection.isReady()) connection.write(text)
}

/** Disconnects readers that do not read, and streams whose credentials could not be checked. Keeps quiet connections alive. */
function sweep(streams: Set<Stream>, { stalledMs, uncheckedMs, pingEveryMs }: Times, logger: Logger): void {
  const now = performance.now()
  for (const { connection, checkedAt, accountId } of streams) {
    if (connection.stalledMs() >= stalledMs) {
      logger.warn({ accountId, reason: 'it read nothing for too long' }, 'closed a stream')
      connection.reset()
    } else if (now - checkedAt > uncheckedMs) {
      logger.warn({ accountId, reason: 'its credentials could not be checked' }, 'closed a stream')
      connection.end(serverSent(JSON.stringify({ code: 'RCS_UNAVAILABLE' }), { event: 'end' }))
    } else if (connection.isReady() && connection.quietMs() >= pingEveryMs) connection.write(PING)
  }
}
