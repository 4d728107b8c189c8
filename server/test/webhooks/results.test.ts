import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { enableEndpoint } from '../../src/webhooks/change-endpoint.ts'
import { claimDue } from '../../src/webhooks/claim.ts'
import { replayEvent } from '../../src/webhooks/replay.ts'
import { type Result, recordAttempts } from '../../src/webhooks/results.ts'
import { testEndpoint } from '../../src/webhooks/test-endpoint.ts'
import { createTestDatabase } from '../support/database.ts'
import { LOGGED_EVENTS, routeUntilDone } from '../support/log.ts'
import { emitRouted, endpointAt, makeDue, missedBy, startBlocked, startSink, writeAgo } from './support.ts'

// What the results of attempts do to events and endpoints.

const { hotPool: pool } = await createTestDatabase()
const sink = await startSink()
const LEASE = '00000000-0000-4000-8000-000000000001'
const TAKEN = { isAccepted: true, afterMs: null, status: 204 }

/** An endpoint with so many due events, and a failed first attempt for each of them. */
async function newEndpoint(events: number) {
  const { endpointId, accountId } = await endpointAt(pool, sink)
  await emitRouted(pool, accountId, events)
  return { endpointId, accountId, results: await triesOf(endpointId, events) }
}

async function triesOf(endpointId: number, most: number): Promise<Result[]> {
  const due = await claimDue(pool, { lease: LEASE, room: new Map([[endpointId, most]]), underWay: [] })
  return due
    .filter((delivery) => delivery.endpointId === endpointId)
    .map(({ accountId, position, generation, attempts, readAt: attemptedAt }) => {
      const tried = { endpointId, accountId, position, subjectId: null, generation, attempts, attemptedAt, durationMs: 5 }
      return { ...tried, isAccepted: false, afterMs: 5_000, pauseMs: 0, status: 500, error: undefined, response: '' }
    })
}

async function firstOf({ results }: { results: Result[] }): Promise<Result> {
  return results[0] ?? assert.fail('nothing is due')
}

type Health = {
  status: string
  because: string | null
  since: Date | null
  failures: number
  lastFailedAgoS: number | null
  pauseS: number
}

async function healthOf(endpointId: number): Promise<Health> {
  const { rows } = await pool.query<Health>(
    `select status, disabled_because as because, failing_since as since, failures, extract(epoch from now() - last_failed_at)::float8 as "lastFailedAgoS",
       round(extract(epoch from coalesce(paused_until - last_failed_at, '0')))::int as "pauseS"
     from webhook_endpoints where id = $1`,
    [endpointId],
  )
  return rows[0] ?? assert.fail('no such endpoint')
}

async function deliveryOf({ endpointId, position }: Result) {
  const { rows } = await pool.query(
    'select generation, attempts, due_at, due_at <= now() as "isDue" from webhook_deliveries where endpoint_id = $1 and position = $2',
    [endpointId, position],
  )
  return rows[0]
}

async function setFailing(endpointId: number, since: string, last: string): Promise<void> {
  await pool.query(
    `update webhook_endpoints set failing_since = now() - $2::interval, last_failed_at = now() - $3::interval, failures = 3 where id = $1`,
    [endpointId, since, last],
  )
}

async function disabledEvents(accountId: number): Promise<any[]> {
  const { rows } = await pool.query(`select data from ${LOGGED_EVENTS} as e where account_id = $1 and kind = 'webhook.disabled'`, [
    accountId,
  ])
  return rows.map(({ data }) => data)
}

describe('a late result of a frozen worker', () => {
  for (const [outcome, late] of [
    ['success', TAKEN],
    ['failure', {}],
  ] as const) {
    test(`that is a ${outcome} changes nothing after a replay`, async () => {
      const { endpointId, accountId, ...rest } = await newEndpoint(1)
      const frozen = await firstOf(rest)
      await recordAttempts(pool, [frozen])
      const { rows } = await pool.query(`select event_id as id from ${LOGGED_EVENTS} as e where account_id = $1`, [accountId])
      assert.equal((await replayEvent(pool, endpointId, rows[0].id)).replayed, 1)
      const replayed = await deliveryOf(frozen)
      assert.deepEqual([replayed.attempts, replayed.isDue], [0, true])
      await recordAttempts(pool, [{ ...frozen, ...late }])
      assert.deepEqual(await deliveryOf(frozen), replayed)
    })

    test(`that is a ${outcome} changes nothing after another worker’s attempt`, async () => {
      const frozen = await firstOf(await newEndpoint(1))
      await recordAttempts(pool, [frozen])
      const tried = await deliveryOf(frozen)
      assert.deepEqual([tried.attempts, tried.isDue], [1, false])
      await recordAttempts(pool, [{ ...frozen, ...late }])
      assert.deepEqual(await deliveryOf(frozen), tried)
    })
  }

  test('neither restores an event that another worker delivered nor deletes its replay', async () => {
    const { endpointId, accountId, ...rest } = await newEndpoint(1)
    const frozen = await firstOf(rest)
    await recordAttempts(pool, [{ ...frozen, ...TAKEN }])
    await recordAttempts(pool, [frozen])
    assert.equal(await deliveryOf(frozen), undefined)
    const { rows } = await pool.query(`select event_id as id from ${LOGGED_EVENTS} as e where account_id = $1`, [accountId])
    await replayEvent(pool, endpointId, rows[0].id)
    await recordAttempts(pool, [{ ...frozen, ...TAKEN }])
    assert.equal((await deliveryOf(frozen)).isDue, true)
  })
})

test('a result that is written twice is one attempt in the history', async () => {
  const { endpointId, results } = await newEndpoint(2)
  // A worker that lost the response to its commit writes again, perhaps while the first write is still running.
  await Promise.all([recordAttempts(pool, results), recordAttempts(pool, results)])
  await recordAttempts(pool, results)
  const { rows } = await pool.query('select position from webhook_attempts where endpoint_id = $1 order by position', [endpointId])
  assert.deepEqual(
    rows.map(({ position }) => position),
    results.map(({ position }) => position),
  )
})

describe('an endpoint that fails', () => {
  test('is failing since its first failure, and counts each failure of a batch', async () => {
    const { endpointId, results } = await newEndpoint(3)
    const times = ['2026-11-01T10:00:02Z', '2026-11-01T10:00:01Z', '2026-11-01T10:00:03Z'].map((time) => new Date(time))
    await recordAttempts(
      pool,
      results.map((result, index) => ({ ...result, attemptedAt: times[index] as Date })),
    )
    const { since, failures, lastFailedAgoS } = await healthOf(endpointId)
    assert.deepEqual([since, failures], [times[1], 3])
    assert.ok(lastFailedAgoS !== null && lastFailedAgoS >= -0.001 && lastFailedAgoS < 600, `${lastFailedAgoS}`)
    await pool.query(`update webhook_endpoints set last_failed_at = now() - interval '1 hour' where id = $1`, [endpointId])
    await makeDue(pool, endpointId)
    await recordAttempts(pool, (await triesOf(endpointId, 1)).slice(0, 1))
    const again = await healthOf(endpointId)
    assert.deepEqual([again.since, again.failures], [times[1], 4])
    assert.ok((again.lastFailedAgoS ?? Number.NaN) < 600, `${again.lastFailedAgoS}`)
  })

  test('recovers by one success, also if it is written together with failures', async () => {
    const { endpointId, results } = await newEndpoint(8)
    await recordAttempts(pool, results.slice(0, 5))
    assert.equal((await healthOf(endpointId)).pauseS, 1)
    await recordAttempts(
      pool,
      results.slice(5).map((result, index) => ({ ...result, ...(index === 1 ? TAKEN : {}) })),
    )
    const well = { status: 'ACTIVE', because: null, since: null, failures: 0, lastFailedAgoS: null, pauseS: 0 }
    assert.deepEqual(await healthOf(endpointId), well)
    const { rows } = await pool.query('select paused_until from webhook_endpoints where id = $1', [endpointId])
    assert.equal(rows[0].paused_until, null)
  })

  const CASES: [what: string, since: string, last: string, status: string, beginsAnew: boolean][] = [
    ['for five days, with a failure in the last two,', '5 days 00:01', '1 day 23:00', 'DISABLED', false],
    ['for not quite five days', '4 days 23:59', '1 day 23:00', 'ACTIVE', false],
    ['again after three quiet weeks', '21 days', '21 days', 'ACTIVE', true],
    ['again after two quiet days', '6 days', '2 days 00:01', 'ACTIVE', true],
  ]
  for (const [what, since, last, status, beginsAnew] of CASES) {
    test(`${what} is ${status}${beginsAnew ? ', and the five days begin again' : ''}`, async () => {
      const { endpointId, accountId, ...rest } = await newEndpoint(1)
      const result = await firstOf(rest)
      await setFailing(endpointId, since, last)
      const disabled = await recordAttempts(pool, [result])
      const health = await healthOf(endpointId)
      assert.deepEqual([health.status, disabled.length], [status, status === 'DISABLED' ? 1 : 0])
      assert.equal(health.because, status === 'DISABLED' ? 'FAILING' : null)
      assert.equal(health.since?.getTime() === result.attemptedAt.getTime(), beginsAnew)
      assert.equal(health.failures, beginsAnew ? 1 : 4)
      assert.equal((await disabledEvents(accountId)).length, disabled.length)
    })
  }

  test('and is disabled emits one event, without the query of its URL', async () => {
    const { endpointId, accountId, results } = await newEndpoint(4)
    await pool.query(`update webhook_endpoints set url = url || '?token=hidden' where id = $1`, [endpointId])
    await setFailing(endpointId, '6 days', '1 hour')
    const returned: number[] = []
    for (const batch of [results.slice(0, 2), results.slice(2, 3), results.slice(3)]) {
      returned.push((await recordAttempts(pool, batch)).length)
    }
    assert.deepEqual(returned, [1, 0, 0])
    const events = (await disabledEvents(accountId)).map(({ endpointId: id, url }) => [id, url])
    assert.deepEqual(events, [[endpointId, sink.url]])
  })

  test('and is disabled gets the events it missed by the replay that enabling returns', async () => {
    const { endpointId, accountId, ...rest } = await newEndpoint(1)
    await setFailing(endpointId, '6 days', '1 hour')
    await writeAgo(pool, accountId, '3 hours')
    await recordAttempts(pool, [await firstOf(rest)])
    await routeUntilDone(pool)
    // The event whose attempt failed is one of them.
    const kinds = ['message.sent', 'message.sent', 'webhook.disabled']
    assert.deepEqual(await missedBy(pool, endpointId), { kinds, alreadyDue: 0, hoursAgo: 3 })
  })

  test('and was disabled before keeps that position, also if it is unknown', async () => {
    for (const position of [0, null]) {
      const { endpointId, accountId, results } = await newEndpoint(1)
      await setFailing(endpointId, '6 days', '1 hour')
      await pool.query(
        `update webhook_endpoints set status = 'DISABLED', disabled_at = now() - interval '2 hours', disabled_because = 'OPERATOR', disabled_position = $2
         where id = $1`,
        [endpointId, position],
      )
      await emitRouted(pool, accountId, 1)
      await recordAttempts(pool, results)
      const find = 'select disabled_position as position from webhook_endpoints where id = $1'
      assert.deepEqual((await pool.query(find, [endpointId])).rows, [{ position }])
    }
  })

  test('and is disabled by two workers at once emits one event', async () => {
    const { endpointId, accountId, results } = await newEndpoint(2)
    await setFailing(endpointId, '6 days', '1 hour')
    const lock = `select from webhook_endpoints where id = ${endpointId} for no key update`
    const works = results.map((result) => () => recordAttempts(pool, [result]))
    const written = await startBlocked(pool, lock, works)
    assert.equal(written.flatMap((one) => (one.status === 'fulfilled' ? one.value : assert.fail(one.reason))).length, 1)
    assert.equal((await disabledEvents(accountId)).length, 1)
  })
})

describe('a pause', () => {
  test('starts at 1 s with the fifth failure in a row, and doubles up to 30 s', async () => {
    const { endpointId, results } = await newEndpoint(12)
    const pauses: number[] = []
    for (const result of results) {
      await recordAttempts(pool, [result])
      pauses.push((await healthOf(endpointId)).pauseS)
    }
    assert.deepEqual(pauses, [0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30, 30])
  })

  test('has the same length for failures that are written together', async () => {
    const { endpointId, results } = await newEndpoint(7)
    await recordAttempts(pool, results)
    assert.equal((await healthOf(endpointId)).pauseS, 4)
  })

  test('lasts as long as the endpoint asks or as its failures demand, whichever is longer', async () => {
    const asking = await newEndpoint(2)
    await recordAttempts(
      pool,
      asking.results.map((result, index) => ({ ...result, pauseMs: index === 0 ? 90_000 : 0 })),
    )
    assert.equal((await healthOf(asking.endpointId)).pauseS, 90)
    const failing = await newEndpoint(8)
    await recordAttempts(
      pool,
      failing.results.map((result) => ({ ...result, pauseMs: 2_000 })),
    )
    assert.equal((await healthOf(failing.endpointId)).pauseS, 8)
  })

  test('keeps all workers from the endpoint until it ends', async () => {
    const { endpointId } = await newEndpoint(1)
    await pool.query(`update webhook_endpoints set paused_until = now() + interval '1 minute' where id = $1`, [endpointId])
    const claimedBy = async (lease: string) =>
      (await claimDue(pool, { lease, room: new Map(), underWay: [] })).filter((one) => one.endpointId === endpointId).length
    const another = '00000000-0000-4000-8000-000000000002'
    assert.equal(await claimedBy(LEASE), 0)
    await pool.query(`update webhook_endpoints set leased_until = now() where id = $1`, [endpointId])
    assert.deepEqual([await claimedBy(LEASE), await claimedBy(another)], [0, 0])
    await pool.query('update webhook_endpoints set paused_until = now() where id = $1', [endpointId])
    assert.equal(await claimedBy(another), 1)
  })

  test('ends with a test of the endpoint or when it is enabled', async () => {
    const { endpointId } = await newEndpoint(1)
    const isPaused = async () => {
      const { rowCount } = await pool.query('select from webhook_endpoints where id = $1 and paused_until > now()', [endpointId])
      return rowCount === 1
    }
    await pool.query(`update webhook_endpoints set paused_until = now() + interval '1 minute' where id = $1`, [endpointId])
    await testEndpoint(pool, endpointId)
    assert.equal(await isPaused(), false)
    await pool.query(`update webhook_endpoints set paused_until = now() + interval '1 minute' where id = $1`, [endpointId])
    await enableEndpoint(pool, endpointId)
    assert.equal(await isPaused(), false)
    await pool.query(
      `update webhook_endpoints set paused_until = now() + interval '1 minute', status = 'DISABLED', disabled_at = now(), disabled_because = 'FAILING'
       where id = $1`,
      [endpointId],
    )
    assert.equal(await isPaused(), true)
    await enableEndpoint(pool, endpointId)
    assert.equal(await isPaused(), false)
  })
})
