import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { createAccount, MODULES } from '../../src/accounts/accounts.ts'
import { timeOf } from '../../src/db/partitions.ts'
import { createHotPool, isUnavailable, type Pool, transaction } from '../../src/db/pool.ts'
import { createCursors } from '../../src/events/cursor.ts'
import { readFeed } from '../../src/events/feed.ts'
import { eventBody, eventsOf, readPages } from '../../src/events/pages.ts'
import { routeEvents } from '../../src/events/router.ts'
import { createTable, createTestDatabase, ownerOf } from '../support/database.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { until } from '../support/until.ts'

// Transactions commit in another order than a sequence hands out its numbers. A reader that continues after the highest number would miss
// events that are committed later with a lower one.

const { url, hotPool: pool } = await createTestDatabase()
const cursors = createCursors(randomBytes(32))
await createTable(pool, 'subjects (account_id int, id int, changes int not null default 0, primary key (account_id, id))')

function openPool(name: string): Pool {
  const named = new URL(url)
  named.searchParams.set('application_name', name)
  const opened = createHotPool({ connectionString: named.href }, () => {})
  after(() => opened.end())
  return opened
}
const writing = openPool('writer')
const routing = [openPool('router'), openPool('router')]

const SUBJECTS = 30
const WRITERS = 10

/** A change as the service makes it: one statement locks and changes rows, and writes their events as one page. */
const CHANGE = `
  with held as materialized (
    select id from subjects where account_id = $1 and id = any ($2::int[]) order by id for update
  ), changed as (
    update subjects set changes = changes + 1 where account_id = $1 and id in (select id from held) returning account_id, id, changes
  )
  insert into log_pages (account_id, event_count, events)
  select account_id, count(*), json_agg(json_build_array('webhook.test', now(), id::text, null, null, null, null, null,
    json_build_object('subject', id, 'change', changes, 'name', $3::text || ' of ' || id)) order by id)
  from changed group by account_id`

const nameOf = (change: string, subject: number) => `${change} of ${subject}`

type Random = (below: number) => number
type Event = { subject: number; change: number; name: string }
type Route = (pool: Pool) => Promise<unknown>

/** The same draws for the same seed, as far as the machine runs them in the same order. */
function drawFrom(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Rolls a transaction back. */
const ROLLBACK = new Error('rollback')

/** Changes by concurrent transactions of any length, a sixth of which is rolled back. Returns the names of the committed events. */
async function change(accountId: number, draw: Random, count: number): Promise<string[]> {
  const committed: string[] = []
  const numbers = Array.from({ length: count }, (_, number) => number).values()
  async function write(): Promise<void> {
    for (const number of numbers) {
      const name = `change ${number}`
      const subjects = [...new Set(Array.from({ length: 1 + draw(3) }, () => draw(SUBJECTS)))]
      const [isLong, isRolledBack] = [draw(8) === 0, draw(6) === 0]
      await transaction(writing, async (tx) => {
        await tx.query(CHANGE, [accountId, subjects, name])
        if (isLong) await sleep(draw(30))
        if (isRolledBack) throw ROLLBACK
      })
        .then(() => committed.push(...subjects.map((subject) => nameOf(name, subject))))
        .catch((error) => assert.equal(error, ROLLBACK))
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, write))
  return committed
}

/** A transaction that has written its event and stays open until the test ends it. It has no time limit. */
async function openChange(accountId: number, subject: number, name: string) {
  const client = new pg.Client(url)
  // If the test fails before, the database is dropped while it is open.
  client.on('error', () => {})
  await client.connect()
  await client.query('begin')
  await client.query(CHANGE, [accountId, [subject], name])
  return async (how: 'commit' | 'rollback') => {
    await client.query(how)
    await client.end()
  }
}

/** Repeats `work` until the returned function is called. */
function repeat(work: () => Promise<unknown>): () => Promise<void> {
  let isStopping = false
  async function loop(): Promise<void> {
    while (!isStopping) await work()
  }
  const done = loop()
  return async () => {
    isStopping = true
    await done
  }
}

/** Routes in several concurrent loops, even if their connections end. */
function keepRouting(route: Route): () => Promise<unknown> {
  const loops = [...routing, ...routing].map((from) =>
    repeat(async () => {
      await route(from).catch((error) => assert.ok(isUnavailable(error), error))
      await sleep(1)
    }),
  )
  return () => Promise.all(loops.map((stop) => stop()))
}

/** Ends connections of routers during their transactions, repeatedly. Returns how many, when it is stopped. */
function keepKilling(): () => Promise<number> {
  let killed = 0
  const stop = repeat(async () => {
    const { rowCount } = await ownerOf(pool).query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = 'router' and datname = current_database() and state <> 'idle' and xact_start is not null
       order by random() limit 1`,
    )
    killed += rowCount ?? 0
    await sleep(10)
  })
  return async () => {
    await stop()
    return killed
  }
}

/** Reads small pages from cursor to cursor, the first one since a time. `end` reads the rest and returns. */
function follow(accountId: number, draw: Random, since?: Date) {
  const seen: Event[] = []
  let after: string | undefined
  async function readPage(): Promise<number> {
    const page = await readFeed(pool, cursors, accountId, { limit: 1 + draw(9), after, since: after === undefined ? since : undefined })
    seen.push(...page.items.map((event) => JSON.parse(eventBody(event)).data))
    after = page.nextCursor
    if (!page.hasMore) await sleep(1)
    return page.items.length
  }
  return { since, seen, ...repeatUntilEnd(readPage) }
}

/** Reads by the numbers of pages, without the checks of the feed. */
function followNumbers(accountId: number, draw: Random) {
  const seen: Event[] = []
  let after = 0
  async function readPage(): Promise<number> {
    const pages = await readPages(pool, accountId, { after, last: Number.MAX_SAFE_INTEGER, limit: 1 + draw(9) })
    seen.push(...pages.flatMap((page) => eventsOf(page)).map(({ data }) => JSON.parse(data)))
    after = pages.at(-1)?.lastPosition ?? after
    if (pages.length === 0) await sleep(1)
    return pages.length
  }
  return { since: undefined, seen, ...repeatUntilEnd(readPage) }
}

function repeatUntilEnd(readPage: () => Promise<number>) {
  const stop = repeat(readPage)
  return {
    end: async () => {
      await stop()
      while ((await readPage()) > 0);
    },
  }
}

async function newAccount(): Promise<number> {
  return (await createAccount(pool, 'Test', MODULES)).accountId
}

type Reader = (accountId: number, draw: Random, since?: Date) => { since: Date | undefined; seen: Event[]; end: () => Promise<void> }

/** Everything concurrently. Two transactions stay open until the readers have seen hundreds of later events: readers do not wait for them. */
async function run(seed: number, route: Route, { changes, before, reader = follow }: { changes: number; before: number; reader?: Reader }) {
  const [accountId, draw] = [await newAccount(), drawFrom(seed)]
  await pool.query('insert into subjects select $1, generate_series(0, $2)', [accountId, SUBJECTS + 1])
  const [endLong, endRolledBack] = [await openChange(accountId, SUBJECTS, 'long'), await openChange(accountId, SUBJECTS + 1, 'rolled back')]
  const readers = [reader(accountId, draw), reader(accountId, draw)]
  const [stopRouting, stopKilling] = [keepRouting(route), keepKilling()]

  const changing = change(accountId, draw, changes)
  const late: ReturnType<Reader>[] = []
  for (const share of [0.1, 0.4, 0.7, 1]) {
    await until(`${share * before} events have been seen`, () => readers.every(({ seen }) => seen.length >= share * before))
    const { rows: clock } = await pool.query<{ now: Date }>('select clock_timestamp()::timestamptz(3) as now')
    late.push(reader(accountId, draw, clock[0]?.now))
  }
  await Promise.all([endLong('commit'), endRolledBack('rollback')])
  const committed = [...(await changing), LONG]
  await until('all is routed', async () => (await pool.query('select from log_pages where last_position is null limit 1')).rowCount === 0)
  const killed = await stopKilling()
  await stopRouting()
  await Promise.all([...readers, ...late].map(({ end }) => end()))
  const { rows } = await pool.query<{ position: number; data: Event; page_id: string; placed_at: Date }>(
    `select e.position, e.data, page_id, p.placed_at from ${LOGGED_EVENTS} as e join log_pages p using (account_id, page_id)
     where account_id = $1 order by position`,
    [accountId],
  )
  const [log, positions] = [rows.map(({ data }) => data), rows.map(({ position }) => position)]
  const recordedAt = rows.map(({ page_id }) => timeOf(page_id))
  const placedAt = rows.map(({ placed_at }) => placed_at)
  return { committed, killed, log, positions, recordedAt, placedAt, late, readers: readers.map(({ seen }) => seen) }
}

const LONG = nameOf('long', SUBJECTS)

const namesOf = (events: Event[]) => events.map(({ name }) => name)

describe('the feed', () => {
  const seed = randomInt(2 ** 31)

  test(`has every committed event once, in the order of the log, while transactions commit in any order and routers die (seed ${seed})`, async (t) => {
    const { committed, killed, log, positions, readers, late, recordedAt, placedAt } = await run(seed, routeEvents, {
      changes: 900,
      before: 300,
    })
    t.diagnostic(`${committed.length} committed, ${killed} connections of routers ended`)
    assert.equal(log.length, committed.length)
    assert.deepEqual(new Set(namesOf(log)), new Set(committed), 'the log has the committed events, once, and no other')
    for (const seen of readers) assert.deepEqual(seen, log)
    for (const { since, seen } of late) {
      const start = log.length - seen.length
      assert.deepEqual(seen, log.slice(start), 'a reader since a time has the rest of the log, once')
      assert.ok(start > 0 && seen.length > 0, `${seen.length} since ${since?.toISOString()}`)
      const missed = recordedAt.findIndex((time, index) => index < start && time >= (since as Date))
      assert.equal(missed, -1, 'every event recorded since then is in it')
      assert.ok((placedAt[start - 1] as Date) < (since as Date), 'the event before has had its position already')
    }
    assert.deepEqual(
      positions,
      log.map((_, index) => index + 1),
      'without a gap',
    )
    assert.ok(namesOf(log).indexOf(LONG) >= 300, 'an event committed late is after the events that were read before')
    assert.ok(killed >= 5, `${killed} killed`)

    const bySubject = Map.groupBy(log, ({ subject }) => subject)
    assert.ok(bySubject.size > SUBJECTS / 2)
    for (const [subject, events] of bySubject) {
      const expected = events.map((_, index) => index + 1)
      assert.deepEqual(
        events.map((event) => event.change),
        expected,
        `of subject ${subject}, in the order of its changes`,
      )
    }
  })

  test('misses no event when a router is slow and another could overtake it', async (t) => {
    const [accountId, slow] = [await newAccount(), await newAccount()]
    const writeMany = `insert into log_pages (account_id, event_count, events)
      select $1, 1, json_build_array(json_build_array('message.sent', now(), null, null, null, null, null, null, '{}'::json)) from generate_series(1, $2)`
    const [late, endpoint] = [await writing.connect(), await writing.connect()]
    for (const client of [late, endpoint]) t.after(() => client.release(true))
    await pool.query(`insert into webhook_endpoints (account_id, url) values ($1, 'https://example.com')`, [slow])
    await endpoint.query('begin')
    await endpoint.query('select from webhook_endpoints where account_id = $1 for update', [slow])

    // A full batch, with lower numbers than the events that are committed before it.
    await late.query('begin')
    await late.query(writeMany, [accountId, 100])
    await pool.query(writeMany, [accountId, 1])
    await pool.query(writeMany, [slow, 1])
    const first = routeEvents(routing[0] as Pool)
    await until('the first router waits for the endpoint', async () => {
      const { rowCount } = await ownerOf(pool).query(
        `select from pg_stat_activity
         where application_name = 'router' and datname = current_database() and wait_event_type = 'Lock'`,
      )
      return rowCount
    })
    await late.query('commit')
    assert.deepEqual(await routeEvents(routing[1] as Pool), { routed: 0, mayBeMore: false, last: 0 })
    const page = await readFeed(pool, cursors, accountId, { limit: 2_000 })
    await endpoint.query('commit')
    const { routed, mayBeMore } = await first
    assert.deepEqual({ routed, mayBeMore }, { routed: 2, mayBeMore: false })
    assert.equal((await routeEvents(routing[1] as Pool)).routed, 100)
    const rest = await readFeed(pool, cursors, accountId, { limit: 2_000, after: page.nextCursor })
    assert.equal(page.items.length + rest.items.length, 101)
  })

  test(`would miss events under this load if it followed page numbers (seed ${seed})`, async () => {
    const { committed, readers } = await run(seed, routeByNumber, { changes: 300, before: 100, reader: followNumbers })
    for (const seen of readers) {
      const missed = new Set(committed).difference(new Set(namesOf(seen)))
      assert.ok(missed.has(LONG))
    }
  })
})

/** What the router must not do. A page has at most three events, so that positions do not overlap. */
async function routeByNumber(from: Pool): Promise<void> {
  await from.query('update log_pages set last_position = 3 * id where last_position is null')
}
