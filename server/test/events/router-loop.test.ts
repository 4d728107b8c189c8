import assert from 'node:assert/strict'
import { before, describe, type TestContext, test } from 'node:test'
import pg from 'pg'
import { createHotPool, isTimedOut } from '../../src/db/pool.ts'
import { createRouterPoll, createStandby } from '../../src/events/router-loop.ts'
import { createTestDatabase } from '../support/database.ts'
import { routeUntilDone } from '../support/log.ts'

const { hotPool: pool, url } = await createTestDatabase()

/** Stops the clock of the polls. It advances only by `move`. */
function holdClock(t: TestContext): { move: (seconds: number) => void } {
  let now = performance.now()
  t.mock.method(performance, 'now', () => now)
  return {
    move: (seconds) => {
      now += seconds * 1_000
    },
  }
}

/** Pages of one event each. */
const EMIT = `insert into log_pages (account_id, event_count, events)
  select 1, 1, json_build_array(json_build_array('message.sent', now(), null, null, null, null, null, null, '{}'::json)) from generate_series(1, $1::int)`

/** A connection that ends with the test, whatever it holds then. */
async function connect(t: TestContext): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  t.after(() => client.end())
  return client
}

/** A transaction that has emitted an event and stays open. */
async function openTransaction(t: TestContext, pages: number): Promise<{ commit: () => Promise<unknown> }> {
  const client = await connect(t)
  await client.query('begin')
  await client.query(EMIT, [pages])
  return { commit: () => client.query('commit') }
}

describe('a page that commits late', () => {
  test('is routed by the next poll if its transaction was open for less than 10 s', async (t) => {
    const clock = holdClock(t)
    const round = createRouterPoll(pool)
    const open = await openTransaction(t, 1)
    await pool.query(EMIT, [1])
    assert.equal((await round()).routed, 1)
    clock.move(9)
    await pool.query(EMIT, [1])
    assert.equal((await round()).routed, 1)
    clock.move(0.9)
    await open.commit()
    assert.equal((await round()).routed, 1)
  })

  test('is routed by a full scan within 10 s if its transaction was open for longer; other polls read only new pages', async (t) => {
    const clock = holdClock(t)
    const round = createRouterPoll(pool)
    const routed = async () => (await round()).routed
    const open = await openTransaction(t, 1)
    await pool.query(EMIT, [1])
    assert.equal(await routed(), 1)
    clock.move(9.5)
    assert.equal(await routed(), 0)
    clock.move(1)
    await open.commit()
    await pool.query(EMIT, [2])
    assert.deepEqual([await routed(), await routed()], [2, 0], 'new pages are routed at once')
    clock.move(9.1)
    assert.deepEqual([await routed(), await routed()], [1, 0])
  })

  test('is routed with all others, even if they need more than one poll', async (t) => {
    const clock = holdClock(t)
    const round = createRouterPoll(pool)
    const routed = async () => (await round()).routed
    const open = await openTransaction(t, 101)
    await pool.query(EMIT, [1])
    assert.equal(await routed(), 1)
    clock.move(9.5)
    assert.equal(await routed(), 0)
    await open.commit()
    clock.move(10.1)
    assert.deepEqual([await routed(), await routed(), await routed()], [100, 1, 0])
  })
})

describe('a poll', () => {
  test('halves the batch after a timeout, down to one page, and doubles it after a success, up to 100', async (t) => {
    const one = createHotPool({ connectionString: url }, () => {})
    t.after(() => one.end())
    const blocker = await connect(t)
    const round = createRouterPoll(one)
    await pool.query(EMIT, [400])
    const failing = async (times: number, setting: string, isExpected: (error: unknown) => boolean) => {
      await blocker.query('begin; lock table log_pages in exclusive mode')
      // The pool has this one connection, since nothing is asked of it at once.
      await one.query(`set ${setting} = 50`)
      for (let time = 0; time < times; time += 1) await assert.rejects(round(), isExpected)
      await one.query(`reset ${setting}`)
      await blocker.query('rollback')
    }
    await failing(2, 'statement_timeout', isTimedOut)
    const sizes = [(await round()).routed, (await round()).routed, (await round()).routed, (await round()).routed]
    assert.deepEqual(sizes, [25, 50, 100, 100])
    await failing(8, 'statement_timeout', isTimedOut)
    assert.deepEqual([(await round()).routed, (await round()).routed], [1, 2])
    // A failure of another kind says nothing about how many are too many.
    await failing(1, 'lock_timeout', (error) => error instanceof pg.DatabaseError && error.code === '55P03')
    assert.equal((await round()).routed, 4)
    assert.equal(one.totalCount, 1)
  })
})

describe('a standby', () => {
  before(() => routeUntilDone(pool))

  test('leaves a page to the process that routes, and routes it if it still waits at the next poll', async () => {
    const [standby, router] = [createRouterPoll(pool, createStandby()), createRouterPoll(pool)]
    await pool.query(EMIT, [1])
    assert.equal((await standby()).routed, 0)
    assert.equal((await router()).routed, 1)
    await pool.query(EMIT, [1])
    assert.equal((await standby()).routed, 0, 'another page than at the poll before')
    await pool.query(EMIT, [1])
    assert.equal((await standby()).routed, 2)
    assert.equal((await standby()).routed, 0)
  })

  test('routes all pages once it becomes the router', async () => {
    const standby = createRouterPoll(pool, createStandby())
    await pool.query(EMIT, [250])
    const sizes = [await standby(), await standby(), await standby(), await standby()].map(({ routed }) => routed)
    assert.deepEqual(sizes, [0, 100, 100, 50])
  })

  test('routes a page that commits late although newer pages are routed', async (t) => {
    const clock = holdClock(t)
    const [standby, router] = [createRouterPoll(pool, createStandby()), createRouterPoll(pool)]
    const open = await openTransaction(t, 1)
    for (let poll = 0; poll < 3; poll += 1) {
      await pool.query(EMIT, [1])
      await standby()
      assert.equal((await router()).routed, 1)
      clock.move(9.9)
    }
    await open.commit()
    clock.move(0.2)
    assert.equal((await standby()).routed, 0, 'found by the full scan')
    assert.equal((await standby()).routed, 1)
  })
})
