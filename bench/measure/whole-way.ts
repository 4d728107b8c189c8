import { setTimeout as sleep } from 'node:timers/promises'
import { CONNECTIONS } from '../load/connections.ts'
import { sendAtOnce } from '../load/requests.ts'
import { messageRequest } from '../setup/accounts.ts'
import type { Server } from '../setup/checkouts.ts'
import { type Service, startApart, untilRead, untilReceiptsAccepted } from '../setup/service.ts'
import type { Cost } from './costs.ts'
import { openWal } from './postgres-statistics.ts'
import { timed } from './rounds.ts'

// Messages from acceptance to READ, through a server with a process for each role and its own PostgreSQL.

/** Counters are folded every second, and events are routed after their change: this work belongs to the messages. */
const SETTLE_MS = 1_500

/**
 * Messages before each round that do not count. A server that waited for its turn has closed its connections to PostgreSQL, after 10 s: new
 * ones have empty caches and plan every statement again.
 */
export const LEAD_IN = 500

/** Puts so many messages into the service. */
type Start = (service: Service, count: number) => Promise<void>

export type WholeWay = {
  service: Service
  /** Starts so many messages and returns when all are READ. By default, they are sent one by one. */
  run: (count: number, start?: Start) => Promise<Cost>
  /** The cost of `work`, which returns the number of messages that it is divided by. */
  measure: (work: () => Promise<number>) => Promise<Cost>
  /** Returns when so many messages, accepted since a time in ms, are READ. */
  untilRead: (count: number, since: number) => Promise<void>
}

/** `each`: the number of processes of the API, and of delivery. */
export async function openWholeWay({ checkout, simulator }: Server, delayMs: number, each = 1): Promise<WholeWay> {
  const service = await startApart({ checkout, simulator, delayMs, each })
  const wal = await openWal(service.databaseUrl)
  let sent = 0
  async function measure(work: () => Promise<number>): Promise<Cost> {
    // Every round begins with a checkpoint, so that none begins in the middle of one and all have as many page images.
    await wal.checkpoint()
    const position = await wal.position()
    let count = 0
    const { perSecond, cpu } = await timed(1, service.cpu, async () => {
      count = await work()
    })
    const { records, commits, bytes, pageBytes } = await wal.since(position)
    return {
      perSecond: perSecond * count,
      cpu: Object.fromEntries(Object.entries(cpu).map(([name, microseconds]) => [name, microseconds / count])),
      wal: { records: records / count, commits: commits / count, bytes: bytes / count, pageBytes: pageBytes / count },
    }
  }
  async function untilAllRead(count: number, since: number): Promise<void> {
    sent += count
    await untilReceiptsAccepted(service.simulator, sent)
    await untilRead(service.pool, count, since)
  }
  async function leadIn(): Promise<void> {
    const since = Date.now()
    await sendOneByOne(service, LEAD_IN)
    await untilAllRead(LEAD_IN, since)
    await sleep(SETTLE_MS)
  }
  async function run(count: number, start: Start = sendOneByOne): Promise<Cost> {
    await leadIn()
    const since = Date.now()
    let perSecond = 0
    const cost = await measure(async () => {
      const startedAt = performance.now()
      await start(service, count)
      await untilReceiptsAccepted(service.simulator, sent + count)
      perSecond = (count * 1_000) / (performance.now() - startedAt)
      await sleep(SETTLE_MS)
      return count
    })
    await untilAllRead(count, since)
    return { ...cost, perSecond }
  }
  return { service, run, measure, untilRead: untilAllRead }
}

/** As fast as they are accepted. */
export async function sendOneByOne({ url, account }: Pick<Service, 'url' | 'account'>, count: number): Promise<void> {
  await sendAtOnce({ url, request: () => messageRequest(account) }, count, CONNECTIONS)
}
