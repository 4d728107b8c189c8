import { setTimeout as sleep } from 'node:timers/promises'
import { type Pool, transaction } from '../../server/src/db/pool.ts'
import { atLeast, atMost, grouped, once, percentile } from '../measure/figures.ts'
import type { Bench } from '../part.ts'
import { type Account, createBenchAgent, createSender } from '../setup/accounts.ts'
import { createDatabase, type Database, startPostgres } from '../setup/postgres.ts'
import { openReader, type Reader, startReportService } from '../setup/report-database.ts'

// The event feed over a month of events: pages since a time, pages of a rare type, and a reader at the limit of 5 pages a second that starts at
// a time while others write. Every event written since then must reach the reader exactly once.

const DAYS = 30
const EVENTS_A_PAGE = 50
const TARGET_MS = 50
const PAGES_A_SECOND = 5
const WRITERS = 8

type Event = { eventId: string; type: string; data: { name?: string } }
type FeedPage = { items: Event[]; nextCursor: string; hasMore: boolean }

export async function measureFeed(bench: Bench): Promise<void> {
  const { quick, say, report } = bench
  const database = await createDatabase(await startPostgres())
  await createBenchAgent(database.pool)
  const account = await createSender(database.pool)
  const pages = quick ? 2_000 : 100_000
  say(`writing ${grouped(pages * EVENTS_A_PAGE)} events of a month`)
  await fillMonth(database, account, pages)
  const reader = openReader(await startReportService(database))
  const each = quick ? 20 : 200
  const firstMs = await timesOf(each, () => reader.get(`/events?limit=200&since=${randomTime()}`, account))
  report({
    what: 'a page since a time of the month, 99th percentile',
    unit: 'ms',
    measured: once(percentile(firstMs, 0.99)),
    target: atMost(TARGET_MS),
  })
  // The longest that a page takes: it finds nothing, and stops at its limit.
  const rareMs = await timesOf(each, () => reader.get(`/events?types=sms.failed&since=${randomTime()}`, account))
  report({ what: 'a page of a type that the month does not have, 99th percentile', unit: 'ms', measured: once(percentile(rareMs, 0.99)) })
  await followWriters(bench, database, account, reader)
  await reader.close()
}

/** Pages with the ids and positions of a month, in order. */
async function fillMonth({ client }: Database, { accountId }: Account, pages: number): Promise<void> {
  await client.query(
    `insert into log_pages (account_id, page_id, event_count, last_position, placed_at, events)
     select $1, overlay(gen_random_uuid()::text placing left(uuid_v7_from(at)::text, 15) from 1 for 15)::uuid, $3::int, n * $3::int, at,
       (select json_agg(json_build_array('message.delivered', at, gen_random_uuid(), 'order-' || e, 'bench', '+48500100200', null, false, null))
        from generate_series(1, $3::int) as e)
     from (select n, now() - ($2::int - n + 1) * (interval '${DAYS} days' / $2::int) as at from generate_series(1, $2::int) as n) as month`,
    [accountId, pages, EVENTS_A_PAGE],
  )
  await client.query('insert into log_heads (account_id, last_position, placed_at) values ($1, $2, now())', [
    accountId,
    pages * EVENTS_A_PAGE,
  ])
  await client.query('vacuum analyze log_pages')
}

const randomTime = () => new Date(Date.now() - Math.random() * DAYS * 86_400_000).toISOString()

async function timesOf(count: number, read: () => Promise<{ ms: number }>): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < count; n++) times.push((await read()).ms)
  return times
}

/** A reader since a time in the middle of the writes. */
async function followWriters({ quick, report, say }: Bench, { pool }: Database, account: Account, reader: Reader): Promise<void> {
  const written = new Map<string, Date>()
  let isWriting = true
  const writing = Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(pool, account, writer, written, () => isWriting)))
  await sleep(2_000)
  const since = new Date()
  const stop = sleep(quick ? 5_000 : 60_000).then(() => {
    isWriting = false
  })
  const { seen, times, seconds } = await readToEnd(reader, account, since, () => isWriting)
  await Promise.all([stop, writing])
  const expected = [...written].filter(([, begun]) => begun >= since).map(([name]) => name)
  const distinct = new Set(seen)
  const missed = expected.filter((name) => !distinct.has(name)).length
  say(
    `${grouped(written.size)} events written, ${grouped(expected.length)} of them since the start of the reader, which got ${grouped(seen.length)}`,
  )
  if (missed > 0 || distinct.size < seen.length) throw new Error(`${missed} events missed, ${seen.length - distinct.size} repeated`)
  report({
    what: 'pages read in a second while others write',
    unit: '/s',
    measured: once(times.length / seconds),
    target: atLeast(0.95 * PAGES_A_SECOND),
  })
  report({ what: 'such a page, 99th percentile', unit: 'ms', measured: once(percentile(times, 0.99)), target: atMost(TARGET_MS) })
}

/** Transactions of any length, so that they commit in another order than they began. */
async function write(
  pool: Pool,
  { accountId }: Account,
  writer: number,
  written: Map<string, Date>,
  isWriting: () => boolean,
): Promise<void> {
  for (let n = 0; isWriting(); n++) {
    const name = `${writer}-${n}`
    const begun = await transaction(pool, async (tx) => {
      const { rows } = await tx.query<{ now: Date }>(
        `with page as (
           insert into log_pages (account_id, event_count, events) select $1, 1, json_build_array(json_build_array(
             'webhook.test', now(), null, null, null, null, null, null, json_build_object('name', $2::text)))
         ) select now()`,
        [accountId, name],
      )
      await sleep(Math.random() * 40)
      return rows[0]?.now as Date
    })
    written.set(name, begun)
  }
}

/** Reads evenly spaced pages, for two more seconds after the writers ended: by then the router has given the last events their positions. */
async function readToEnd(reader: Reader, account: Account, since: Date, isWriting: () => boolean) {
  const seen: string[] = []
  const times: number[] = []
  const startedAt = performance.now()
  let query = `since=${since.toISOString()}`
  for (let pagesLeft = 2 * PAGES_A_SECOND; pagesLeft > 0; ) {
    const { body, ms } = await reader.get<FeedPage>(`/events?limit=200&${query}`, account)
    times.push(ms)
    seen.push(...body.items.flatMap(({ data }) => data.name ?? []))
    query = `after=${body.nextCursor}`
    if (!isWriting() && !body.hasMore) pagesLeft -= 1
    await sleep(Math.max(0, startedAt + times.length * (1_000 / PAGES_A_SECOND) - performance.now()))
  }
  return { seen, times, seconds: (performance.now() - startedAt) / 1_000 }
}
