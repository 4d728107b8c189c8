import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { createAccount, MODULES } from '../../src/accounts/accounts.ts'
import { createHotPool, isUnavailable, type Pool, transaction } from '../../src/db/pool.ts'
import { createCursors } from '../../src/events/cursor.ts'
import { readFeed } from '../../src/events/feed.ts'
import { eventBody } from '../../src/events/pages.ts'
import { routeEvents } from '../../src/events/router.ts'
import { createTestDatabase } from '../support/database.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { until } from '../support/until.ts'

// A sequence gives its numbers out in one order, and transactions commit in another. Whoever reads by the number, and goes on after the
// highest that was there, passes by those that are committed later with a lower one.

const { url, hotPool: pool } = await createTestDatabase()
const cursors = createCursors(randomBytes(32))
await pool.query('create table subjects (account_id int, id int, changes int not null default 0, primary key (account_id, id))')

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

/** A change as the service makes them: rows are locked and moved, and the same statement writes their events, as one page. */
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
type Told = { subject: number; change: number; name: string }
type Route = (pool: Pool) => Promise<unknown>

/** The same draws for the same seed, as far as the machine lets them come in the same order. */
function drawFrom(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Thrown by a transaction that is to leave nothing behind. */
const CHANGED_ITS_MIND = new Error('changed its mind')

/** Changes by many transactions at once, of any length, of which a sixth is rolled back. Returns the names of the events that were committed. */
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
        if (isRolledBack) throw CHANGED_ITS_MIND
      })
        .then(() => committed.push(...subjects.map((subject) => nameOf(name, subject))))
        .catch((error) => assert.equal(error, CHANGED_ITS_MIND))
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, write))
  return committed
}

/** A transaction that has written its event, and is ended when the test says so. It has no time-out of ours. */
async function openChange(accountId: number, subject: number, name: string) {
  const client = new pg.Client(url)
  // Where the test has failed before it is ended, the database is dropped beneath it.
  client.on('error', () => {})
  await client.connect()
  await client.query('begin')
  await client.query(CHANGE, [accountId, [subject], name])
  return async (how: 'commit' | 'rollback') => {
    await client.query(how)
    await client.end()
  }
}

/** Routes in several loops at once until it is told to stop, whatever becomes of its connections. */
function keepRouting(route: Route): () => Promise<void> {
  let stopping = false
  async function loop(from: Pool): Promise<void> {
    while (!stopping) {
      await route(from).catch((error) => assert.ok(isUnavailable(error), error))
      await sleep(1)
    }
  }
  const loops = Promise.all(routing.flatMap((from) => [loop(from), loop(from)]))
  return async () => {
    stopping = true
    await loops
  }
}

/** Ends connections of routers in the middle of their transactions, again and again. */
function keepKilling(): () => Promise<number> {
  let [stopping, killed] = [false, 0]
  async function loop(): Promise<void> {
    while (!stopping) {
      const { rowCount } = await pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'router' and datname = current_database() and state <> 'idle' and xact_start is not null
         order by random() limit 1`,
      )
      killed += rowCount ?? 0
      await sleep(10)
    }
  }
  const done = loop()
  return async () => {
    stopping = true
    await done
    return killed
  }
}

/** Follows the cursor by small pages until there is nothing more once it is told that all has been written. */
function follow(accountId: number, draw: Random) {
  const seen: Told[] = []
  let isAllThere = false
  async function read(): Promise<void> {
    let cursor: string | undefined
    for (;;) {
      const wasAllThere = isAllThere
      const page = await readFeed(pool, cursors, accountId, { limit: 1 + draw(9), ...(cursor !== undefined && { after: cursor }) })
      seen.push(...page.items.map((event) => JSON.parse(eventBody(event)).data))
      cursor = page.nextCursor
      if (wasAllThere && page.items.length === 0) return
      if (!page.hasMore) await sleep(1)
    }
  }
  const done = read()
  return {
    seen,
    end: async () => {
      isAllThere = true
      await done
    },
  }
}

async function newAccount(): Promise<number> {
  return (await createAccount(pool, 'Test', MODULES)).accountId
}

/** All of it at once. Two transactions stay open until a reader has seen hundreds of later ones, which proves that it need not wait. */
async function run(seed: number, route: Route, { changes, before }: { changes: number; before: number }) {
  const [accountId, draw] = [await newAccount(), drawFrom(seed)]
  await pool.query('insert into subjects select $1, generate_series(0, $2)', [accountId, SUBJECTS + 1])
  const [endLong, endVain] = [await openChange(accountId, SUBJECTS, 'long'), await openChange(accountId, SUBJECTS + 1, 'in vain')]
  const readers = [follow(accountId, draw), follow(accountId, draw)]
  const [stopRouting, stopKilling] = [keepRouting(route), keepKilling()]

  const changing = change(accountId, draw, changes)
  await until(`${before} events have been seen`, () => readers.every(({ seen }) => seen.length >= before))
  await Promise.all([endLong('commit'), endVain('rollback')])
  const committed = [...(await changing), LONG]
  await until('all is routed', async () => (await pool.query('select from log_pages where last_position is null limit 1')).rowCount === 0)
  const killed = await stopKilling()
  await stopRouting()
  await Promise.all(readers.map(({ end }) => end()))
  const { rows } = await pool.query<{ position: number; data: Told }>(
    `select position, data from ${LOGGED_EVENTS} as e where account_id = $1 order by position`,
    [accountId],
  )
  const [log, positions] = [rows.map(({ data }) => data), rows.map(({ position }) => position)]
  return { committed, killed, log, positions, readers: readers.map(({ seen }) => seen) }
}

const LONG = nameOf('long', SUBJECTS)

const namesOf = (events: Told[]) => events.map(({ name }) => name)

describe('the feed', () => {
  const seed = randomInt(2 ** 31)

  test(`shows every committed event once, in the order of the log, while transactions commit in any order, stay open and roll back, and routers die (seed ${seed})`, async (t) => {
    const { committed, killed, log, positions, readers } = await run(seed, routeEvents, { changes: 900, before: 300 })
    t.diagnostic(`${committed.length} committed, ${killed} connections of routers ended`)
    assert.equal(log.length, committed.length)
    assert.deepEqual(new Set(namesOf(log)), new Set(committed), 'what was committed is in the log, once, and nothing else')
    for (const seen of readers) assert.deepEqual(seen, log)
    assert.deepEqual(
      positions,
      log.map((_, index) => index + 1),
      'without a gap, whatever was rolled back',
    )
    assert.ok(namesOf(log).indexOf(LONG) >= 300, 'one that was committed late stands behind what had been read')
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

  test('holds also where a router is slow and another could place what was committed meanwhile', async (t) => {
    const [accountId, slow] = [await newAccount(), await newAccount()]
    const tellMany = `insert into log_pages (account_id, event_count, events)
      select $1, 1, json_build_array(json_build_array('message.sent', now(), null, null, null, null, null, null, '{}'::json)) from generate_series(1, $2)`
    const [late, endpoint] = [await writing.connect(), await writing.connect()]
    for (const client of [late, endpoint]) t.after(() => client.release(true))
    await pool.query(`insert into webhook_endpoints (account_id, url) values ($1, 'https://example.com')`, [slow])
    await endpoint.query('begin')
    await endpoint.query('select from webhook_endpoints where account_id = $1 for update', [slow])

    // As many as are routed at once, with lower numbers than what is committed before them.
    await late.query('begin')
    await late.query(tellMany, [accountId, 100])
    await pool.query(tellMany, [accountId, 1])
    await pool.query(tellMany, [slow, 1])
    const first = routeEvents(routing[0] as Pool)
    await until('the first router waits for the endpoint', async () => {
      const { rowCount } = await pool.query(
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

  test(`would miss events by the numbers of pages: the load above is one that shows it (seed ${seed})`, async () => {
    const { committed, readers } = await run(seed, routeByNumber, { changes: 300, before: 100 })
    for (const seen of readers) {
      const missed = new Set(committed).difference(new Set(namesOf(seen)))
      assert.ok(missed.has(LONG))
    }
  })
})

/** What the router must not do. A page has three events at the most, so that places do not overlap. */
async function routeByNumber(from: Pool): Promise<void> {
  await from.query('update log_pages set last_position = 3 * id where last_position is null')
}
