import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createLogger } from '../../src/http/log.ts'
import { claimDue } from '../../src/webhooks/claim.ts'
import { createEndpointWindow } from '../../src/webhooks/endpoint-window.ts'
import { disableEndpoint, enableEndpoint } from '../../src/webhooks/endpoints.ts'
import { nextTryMs } from '../../src/webhooks/schedule.ts'
import { createTestDatabase } from '../support/database.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { until } from '../support/until.ts'
import { deliveriesOf, endpointAt, passTime, routeAll, startSink, startWorker, tellRouted } from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()

async function countAttempts(endpointId: number): Promise<number> {
  const { rows } = await pool.query<{ count: number }>('select count(*) from webhook_attempts where endpoint_id = $1', [endpointId])
  return rows[0]?.count ?? Number.NaN
}

describe('an endpoint', () => {
  test('is disabled when nothing but failures came for five days, its account is told, and no more is routed to it', async (t) => {
    let log = ''
    const logger = createLogger('info', {
      write: (line) => {
        log += line
      },
    })
    const dead = await startSink(() => 500)
    const { endpointId, accountId } = await endpointAt(pool, dead)
    await tellRouted(pool, accountId, 1)
    startWorker(t, url, logger)
    const failingSince = await until('it fails', async () => {
      const { rows } = await pool.query('select failing_since as since from webhook_endpoints where id = $1', [endpointId])
      return rows[0].since as Date | null
    })
    assert.ok(Math.abs(Date.now() - failingSince.getTime()) < 10_000)
    const status = async () => (await pool.query('select status from webhook_endpoints where id = $1', [endpointId])).rows[0].status
    const failOnce = async (count: number) => {
      await passTime(pool, endpointId)
      await until('it was tried', async () => (await countAttempts(endpointId)) === count)
    }
    await pool.query(`update webhook_endpoints set failing_since = now() - interval '4 days 23:59' where id = $1`, [endpointId])
    await failOnce(2)
    assert.equal(await status(), 'ACTIVE')
    await pool.query(`update webhook_endpoints set failing_since = now() - interval '5 days 00:01' where id = $1`, [endpointId])
    await failOnce(3)
    await until('it is disabled', async () => (await status()) === 'DISABLED')
    assert.match(log, /"level":"warn".*"endpointId":\d+.*disabled a webhook endpoint/)
    await tellRouted(pool, accountId, 1)
    const { rows } = await pool.query(`select kind, data from ${LOGGED_EVENTS} as e where account_id = $1 order by position`, [accountId])
    assert.deepEqual(
      rows.map(({ kind }) => kind),
      ['message.sent', 'webhook.disabled', 'message.sent'],
    )
    assert.deepEqual([rows[1].data.endpointId, rows[1].data.url], [endpointId, dead.url])
    assert.match(rows[1].data.failingSince, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.equal((await deliveriesOf(pool, endpointId)).length, 1)
  })

  test('that takes one event again is well: the five days begin anew', async (t) => {
    const sink = await startSink()
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await pool.query(`update webhook_endpoints set failing_since = now() - interval '6 days' where id = $1`, [endpointId])
    await tellRouted(pool, accountId, 1)
    startWorker(t, url)
    await until('it is well', async () => {
      const { rows } = await pool.query('select failing_since, status from webhook_endpoints where id = $1', [endpointId])
      return rows[0].failing_since === null && rows[0].status === 'ACTIVE'
    })
  })

  test('that is disabled gets nothing; what it had due goes on when it is enabled', async (t) => {
    const sink = await startSink()
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await tellRouted(pool, accountId, 2)
    await disableEndpoint(pool, endpointId)
    await tellRouted(pool, accountId, 1)
    const worker = startWorker(t, url)
    const good = await startSink()
    const { accountId: another } = await endpointAt(pool, good)
    await tellRouted(pool, another, 1)
    worker.wake()
    await until('the worker has been through', () => good.arrived.length === 1)
    assert.equal(sink.arrived.length, 0)
    await enableEndpoint(pool, endpointId)
    await until('all are taken', async () => (await deliveriesOf(pool, endpointId)).length === 0)
    assert.deepEqual(sink.subjects(), [1, 2])
  })
})

test('tries come after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, up to a fifth later; the tenth is the last', () => {
  const seconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
  for (const [index, expected] of seconds.entries()) {
    const times = Array.from({ length: 1_000 }, () => (nextTryMs(index + 1) ?? Number.NaN) / 1_000)
    const [least, most] = [Math.min(...times), Math.max(...times)]
    assert.ok(least >= expected && least < expected * 1.05 && most <= expected * 1.2 && most > expected * 1.15, `${least} to ${most} s`)
  }
  assert.equal(nextTryMs(10, 60_000), null)
})

test('an endpoint may ask for more time than that, up to a day, and not for less', () => {
  const afterMs = (retryAfterMs: number) => (nextTryMs(1, retryAfterMs) ?? Number.NaN) / 1_000
  assert.ok(afterMs(1_000) >= 5 && afterMs(1_000) <= 6)
  assert.ok(afterMs(120_000) >= 120 && afterMs(120_000) <= 144)
  assert.ok(afterMs(10 ** 12) <= 86_400 * 1.2)
})

test('an endpoint gets 4 calls at once to begin with, more by each that it takes up to 64, and half of them by each that it does not, down to 2', async () => {
  const window = createEndpointWindow(true)
  const rooms = [window.room()]
  for (const isTaken of [true, true, false, false, false, false]) {
    window.recordAttempt(isTaken)
    rooms.push(window.room())
  }
  assert.deepEqual(rooms, [4, 5, 6, 3, 2, 2, 2])
  for (let taken = 0; taken < 100; taken += 1) window.recordAttempt(true)
  assert.equal(window.room(), 64)
  await window.close()
})

/** How long claimDue needs, at its quickest of ten times, to find an event for each endpoint, where each has another one under way. */
async function quickestTakeMs(endpoints: number): Promise<number> {
  const own = await createTestDatabase()
  await own.hotPool.query(`insert into accounts (name, modules) values ('Test', '{rcs}')`)
  await own.hotPool.query(
    `insert into webhook_endpoints (account_id, url) select id, 'https://example.com/' || n from accounts, generate_series(1, $1::int) as n`,
    [endpoints],
  )
  await own.hotPool.query(
    `insert into log_pages (account_id, event_count, events)
     select id, 1, json_build_array(json_build_array('message.sent', now(), null, null, null, null, null, null, '{}'::json)) from accounts, generate_series(1, 2)`,
  )
  await routeAll(own.hotPool)
  const { rows } = await own.hotPool.query<{ id: number }>('select id from webhook_endpoints')
  const room = new Map(rows.map(({ id }) => [id, 3]))
  const underWay = rows.map(({ id }) => ({ endpointId: id, subject: '1' }))
  let quickestMs = Number.POSITIVE_INFINITY
  for (let time = 0; time < 10; time += 1) {
    const from = performance.now()
    assert.equal((await claimDue(own.hotPool, { lease: '00000000-0000-4000-8000-000000000001', room, underWay })).length, endpoints)
    quickestMs = Math.min(quickestMs, performance.now() - from)
  }
  return quickestMs
}

test('finding events for busy endpoints takes time in proportion to their number, not to its square', async () => {
  const [few, many] = [await quickestTakeMs(250), await quickestTakeMs(1_000)]
  // Four times as many endpoints. A statement that compared each with each took 11 times as long.
  assert.ok(many < 7 * few, `${few} ms for 250, ${many} ms for 1,000`)
})

test('what is due is found at the same cost, however long the backlogs of other endpoints and, but for a short look ahead, its own are', async () => {
  const own = await createTestDatabase()
  const sink = await startSink()
  const [crowded, single] = [await endpointAt(own.hotPool, sink), await endpointAt(own.hotPool, sink)]
  await tellRouted(own.hotPool, single.accountId, 1)
  async function rowsLookedAt(): Promise<number> {
    const client = await own.hotPool.connect()
    const count = `select sum(pg_stat_get_xact_tuples_returned(r::regclass))::int as count
                   from unnest(array['webhook_deliveries', 'webhook_deliveries_pkey', 'webhook_deliveries_due']) as r`
    await client.query('begin')
    const before = (await client.query(count)).rows[0].count
    const due = await claimDue(client, { lease: '00000000-0000-4000-8000-000000000001', room: new Map(), underWay: [] })
    const after = (await client.query(count)).rows[0].count
    await client.query('rollback')
    client.release()
    assert.ok(due.some(({ endpointId }) => endpointId === single.endpointId))
    return after - before
  }
  await tellRouted(own.hotPool, crowded.accountId, 4)
  const few = await rowsLookedAt()
  await tellRouted(own.hotPool, crowded.accountId, 5_000)
  await own.hotPool.query('analyze webhook_deliveries')
  const many = await rowsLookedAt()
  assert.ok(few > 0 && many <= few + 256, `${few} rows, then ${many}`)
})
