import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger } from '../../src/http/log.ts'
import { claimDue } from '../../src/webhooks/claim.ts'
import { createEndpointWindow } from '../../src/webhooks/endpoint-window.ts'
import { nextTryMs } from '../../src/webhooks/schedule.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { LOGGED_EVENTS, routeUntilDone } from '../support/log.ts'
import { until } from '../support/until.ts'
import { assertRatio, deliveriesOf, emitRouted, endpointAt, makeDue, startSink, startWorker } from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()
const LEASE = '00000000-0000-4000-8000-000000000001'

test('an endpoint is disabled after five days of failures: the worker logs it, emits an event, and routes no more to it', async (t) => {
  let log = ''
  const logger = createLogger('info', {
    write: (line) => {
      log += line
    },
  })
  const dead = await startSink(() => 500)
  const { endpointId, accountId } = await endpointAt(pool, dead)
  const endpoint = async () => (await pool.query('select * from webhook_endpoints where id = $1', [endpointId])).rows[0]
  const from = Date.now()
  await emitRouted(pool, accountId, 1)
  startWorker(t, url, logger)
  const failingSince: Date = await until('it fails', async () => (await endpoint()).failing_since)
  assert.ok(failingSince.getTime() >= from && failingSince.getTime() <= Date.now())
  const failAfter = async (time: string, attempts: number) => {
    await pool.query('update webhook_endpoints set failing_since = now() - $2::interval where id = $1', [endpointId, time])
    await makeDue(pool, endpointId)
    await until('the attempt is recorded', async () => {
      const { rowCount } = await pool.query('select from webhook_attempts where endpoint_id = $1', [endpointId])
      return rowCount === attempts
    })
  }
  await failAfter('4 days 23:50', 2)
  assert.equal((await endpoint()).status, 'ACTIVE')
  await failAfter('5 days 00:01', 3)
  await until('it is disabled', async () => (await endpoint()).status === 'DISABLED')
  await until('it is logged', () => /"level":"warn".*"endpointId":\d+.*disabled a webhook endpoint/.test(log))
  await emitRouted(pool, accountId, 1)
  const { rows } = await pool.query(`select kind, data from ${LOGGED_EVENTS} as e where account_id = $1 order by position`, [accountId])
  const kinds = rows.map(({ kind }) => kind)
  assert.deepEqual(kinds, ['message.sent', 'webhook.disabled', 'message.sent'])
  assert.deepEqual([rows[1].data.endpointId, rows[1].data.url], [endpointId, dead.url])
  assert.match(rows[1].data.failingSince, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.equal((await deliveriesOf(pool, endpointId)).length, 1)
})

test('nextTryMs returns 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, up to a fifth more, and null after ten attempts', () => {
  const seconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
  for (const [index, expected] of seconds.entries()) {
    const times = Array.from({ length: 1_000 }, () => (nextTryMs(index + 1) ?? Number.NaN) / 1_000)
    const [least, most] = [Math.min(...times), Math.max(...times)]
    assert.ok(least >= expected && least < expected * 1.05 && most <= expected * 1.2 && most > expected * 1.15, `${least} to ${most} s`)
  }
  assert.equal(nextTryMs(10, 60_000), null)
})

test('nextTryMs follows a Retry-After that is longer, up to a day', () => {
  const afterMs = (retryAfterMs: number) => (nextTryMs(1, retryAfterMs) ?? Number.NaN) / 1_000
  assert.ok(afterMs(1_000) >= 5 && afterMs(1_000) <= 6)
  assert.ok(afterMs(120_000) >= 120 && afterMs(120_000) <= 144)
  assert.ok(afterMs(10 ** 12) <= 86_400 * 1.2)
})

test('an endpoint window starts at 4 concurrent calls, grows by one per success up to 64, and halves per failure down to 2', async () => {
  const window = createEndpointWindow('any')
  const rooms = [window.room()]
  for (const isAccepted of [true, true, false, false, false, false]) {
    window.recordAttempt(isAccepted)
    rooms.push(window.room())
  }
  assert.deepEqual(rooms, [4, 5, 6, 3, 2, 2, 2])
  for (let taken = 0; taken < 100; taken += 1) window.recordAttempt(true)
  assert.equal(window.room(), 64)
  await window.close()
})

/** Endpoints that each have a call in progress and another event due. Returns how long claiming these events takes. */
async function prepareBusy(endpoints: number): Promise<() => Promise<number>> {
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
  await routeUntilDone(own.hotPool)
  const { rows } = await own.hotPool.query<{ id: number }>('select id from webhook_endpoints')
  const room = new Map(rows.map(({ id }) => [id, 3]))
  const underWay = rows.map(({ id }) => ({ endpointId: id, subject: '1' }))
  return async () => {
    const startedAt = performance.now()
    assert.equal((await claimDue(own.hotPool, { lease: LEASE, room, underWay })).length, endpoints)
    return performance.now() - startedAt
  }
}

test('claiming events of busy endpoints takes time in proportion to their number, not to its square', async () => {
  // Four times as many endpoints. A statement that compared each with each took 11 times as long.
  const [few, many] = [await prepareBusy(250), await prepareBusy(1_000)]
  await assertRatio(many, few, 7)
})

test('a claim reads at most 256 rows more when an endpoint has a long backlog', async () => {
  const own = await createTestDatabase()
  const sink = await startSink()
  const [crowded, single] = [await endpointAt(own.hotPool, sink), await endpointAt(own.hotPool, sink)]
  await emitRouted(own.hotPool, single.accountId, 1)
  async function rowsRead(): Promise<number> {
    const client = await own.hotPool.connect()
    const count = `select sum(pg_stat_get_xact_tuples_returned(r::regclass))::int as count
                   from unnest(array['webhook_deliveries', 'webhook_deliveries_pkey', 'webhook_deliveries_due']) as r`
    await client.query('begin')
    const before = (await client.query(count)).rows[0].count
    const due = await claimDue(client, { lease: LEASE, room: new Map(), underWay: [] })
    const after = (await client.query(count)).rows[0].count
    await client.query('rollback')
    client.release()
    assert.ok(due.some(({ endpointId }) => endpointId === single.endpointId))
    return after - before
  }
  await emitRouted(own.hotPool, crowded.accountId, 4)
  const few = await rowsRead()
  await emitRouted(own.hotPool, crowded.accountId, 5_000)
  await ownerOf(own.hotPool).query('analyze webhook_deliveries')
  const many = await rowsRead()
  assert.ok(few > 0 && many <= few + 256, `${few} rows, then ${many}`)
})
