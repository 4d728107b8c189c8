import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { type Executor, transaction } from '../../src/db/pool.ts'
import { applyRetention } from '../../src/delivery/retention.ts'
import { recordEvent } from '../../src/events/changes.ts'
import { routeEvents } from '../../src/events/router.ts'
import { listAttempts } from '../../src/webhooks/attempts.ts'
import { disableEndpoint, enableEndpoint } from '../../src/webhooks/change-endpoint.ts'
import { addEndpoint, COUNTED_UP_TO, findEndpoint, listEndpoints, rotateSecret } from '../../src/webhooks/endpoints.ts'
import { listOwnAttempts } from '../../src/webhooks/lists.ts'
import { removeEndpoint } from '../../src/webhooks/remove-endpoint.ts'
import { recordAttempts } from '../../src/webhooks/results.ts'
import { awaitTest, testEndpoint } from '../../src/webhooks/test-endpoint.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring, readWebhookSecrets } from '../support/keyring.ts'
import { LOGGED_EVENTS, routeUntilDone, writeEvents } from '../support/log.ts'
import { createCaller } from '../support/service.ts'
import { until } from '../support/until.ts'
import { countBlocked, killMidway, NO_INSERTS, operatorError, startBlocked } from './support.ts'

const { pool, url: databaseUrl } = await createTestDatabase()
const URL = 'https://hooks.example.com/herald'
const NOBODY = 2_000_000_000

async function newEndpoint(kinds?: Parameters<typeof addEndpoint>[1]['types']) {
  const { accountId } = await createCaller(pool)
  return await addEndpoint(pool, { accountId, url: URL, types: kinds }, keyring)
}

async function count(table: string, endpointId: number): Promise<number> {
  const { rows } = await pool.query(`select count(*) from ${table} where endpoint_id = $1`, [endpointId])
  return rows[0].count
}

async function exists(endpointId: number): Promise<boolean> {
  return ((await pool.query('select from webhook_endpoints where id = $1', [endpointId])).rowCount ?? 0) > 0
}

async function addDeliveries(db: Executor, { endpointId, accountId }: Ids, from: number, to: number, due: string): Promise<void> {
  await db.query(
    `insert into webhook_deliveries (endpoint_id, account_id, position, due_at) select $1, $2, n, ${due} from generate_series($3::int, $4::int) n`,
    [endpointId, accountId, from, to],
  )
}

type Ids = { endpointId: number; accountId: number }
type Tried = { status?: number; error?: string; response?: string; at?: string; attempts?: number }

/** Records an attempt as a worker does. */
async function record({ endpointId, accountId }: Ids, position: number, { status, error, response = '', at, attempts = 0 }: Tried) {
  const isAccepted = status !== undefined && status < 300
  const attemptedAt = at === undefined ? (await pool.query('select clock_timestamp() as now')).rows[0].now : new Date(at)
  const outcome = { attemptedAt, durationMs: 12, isAccepted, afterMs: isAccepted ? null : 5_000, pauseMs: 0, status, error, response }
  const found = 'select generation from webhook_deliveries where endpoint_id = $1 and position = $2'
  const { rows } = await pool.query<{ generation: string }>(found, [endpointId, position])
  await recordAttempts(pool, [
    { endpointId, accountId, position, subjectId: null, generation: rows[0]?.generation ?? '3', attempts, ...outcome },
  ])
}

async function routed(
  accountId: number,
  kind: 'message.sent' | 'message.read' = 'message.sent',
): Promise<{ position: number; id: string }> {
  await recordEvent(pool, { accountId, kind, data: {} })
  await routeEvents(pool)
  const { rows } = await pool.query(
    `select position, event_id as id from ${LOGGED_EVENTS} as e where account_id = $1 order by position desc limit 1`,
    [accountId],
  )
  return rows[0]
}

describe('an endpoint', () => {
  test('is added with its own secret, for all event kinds or some', async () => {
    const { accountId } = await createCaller(pool)
    const { endpointId, createdAt, secret, ...added } = await addEndpoint(pool, { accountId, url: URL, types: undefined }, keyring)
    assert.deepEqual(added, { accountId, url: URL, types: null, status: 'ACTIVE' })
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.deepEqual(await readWebhookSecrets(pool, endpointId), [{ secret, endsAt: null, hours: null }])
    const some = await addEndpoint(pool, { accountId, url: `${URL}/2`, types: ['message.read', 'sms.sent'] }, keyring)
    assert.deepEqual(some.types, ['message.read', 'sms.sent'])
    assert.notEqual(some.secret, secret)
    const missing = `There is no account ${NOBODY}; see "herald account list".`
    assert.equal(await operatorError(addEndpoint(pool, { accountId: NOBODY, url: URL }, keyring)), missing)
  })

  test('cannot be added twice to an account, also concurrently', async () => {
    const [one, two] = [await createCaller(pool), await createCaller(pool)]
    const add = () => addEndpoint(pool, { accountId: one.accountId, url: URL }, keyring)
    const tries = await startBlocked(pool, NO_INSERTS, [add, add, add, add])
    assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
    const [{ endpointId } = { endpointId: 0 }] = await listEndpoints(pool, one.accountId)
    for (const tried of tries) {
      if (tried.status === 'rejected') {
        assert.equal(tried.reason.message, `Endpoint ${endpointId} of account ${one.accountId} already has this URL; remove it first.`)
      }
    }
    await addEndpoint(pool, { accountId: two.accountId, url: URL }, keyring)
  })

  test('is listed with its pending and failed events and the ends of its secrets, without a secret', async () => {
    const endpoint = await newEndpoint(['message.sent'])
    const { endpointId, accountId, secret, ...known } = endpoint
    await addDeliveries(pool, endpoint, 1, 3, 'null')
    await addDeliveries(pool, endpoint, 4, 8, `now() + interval '1 hour'`)
    const { secret: second, earlierSecretsEndAt } = await rotateSecret(pool, endpointId, keyring)
    const [{ secrets, ...listed }, ...others] = (await listEndpoints(pool, accountId)) as [any]
    // The log has none of these events.
    const counts = { pending: 5, morePending: false, oldestPendingAt: null, failed: 3, moreFailed: false }
    const nothing = { failingSince: null, disabledAt: null, disabledBecause: null }
    assert.deepEqual(listed, { endpointId, accountId, ...known, ...nothing, ...counts })
    assert.deepEqual(others, [])
    assert.deepEqual(
      secrets.map(({ endsAt }: { endsAt: string | null }) => endsAt),
      [null, earlierSecretsEndAt?.toISOString()],
    )
    const everything = JSON.stringify(await listEndpoints(pool))
    assert.ok(everything.includes(`"endpointId":${endpointId},`))
    for (const hidden of [secret, second, 'whsec_']) assert.equal(everything.includes(hidden), false)
    assert.match(await operatorError(listEndpoints(pool, NOBODY)), /^There is no account 2000000000/)
  })

  test('with a long backlog is listed with at most 10,000 pending events', async () => {
    const endpoint = await newEndpoint()
    await addDeliveries(pool, endpoint, 1, 7, 'null')
    await addDeliveries(pool, endpoint, 8, COUNTED_UP_TO + 8, 'now()')
    const [listed] = await listEndpoints(pool, endpoint.accountId)
    const { pending, morePending, failed, moreFailed } = listed as NonNullable<typeof listed>
    assert.deepEqual({ pending, morePending, failed, moreFailed }, { pending: 10_000, morePending: true, failed: 7, moreFailed: false })
  })

  test('keeps a rotated secret for 24 hours', async () => {
    const { endpointId, accountId, secret: first } = await newEndpoint()
    const { secret: second, ...rotated } = await rotateSecret(pool, endpointId, keyring)
    assert.deepEqual([rotated.endpointId, rotated.accountId, rotated.url], [endpointId, accountId, URL])
    const [replaced, current] = await readWebhookSecrets(pool, endpointId)
    assert.deepEqual([replaced?.secret, current?.secret, current?.hours], [first, second, null])
    const hours = replaced?.hours ?? 0
    assert.ok(hours > 23.98 && hours <= 24, `${hours} hours`)
    await pool.query(`update webhook_secrets set ends_at = ends_at - interval '24 hours' where endpoint_id = $1`, [endpointId])
    const { secret: third } = await rotateSecret(pool, endpointId, keyring)
    const left = await readWebhookSecrets(pool, endpointId)
    assert.deepEqual(
      left.map(({ secret }) => secret),
      [second, third],
    )
  })

  test('keeps the secrets of concurrent rotations, one of them without an end, and rejects an eleventh', async () => {
    const { endpointId, secret } = await newEndpoint()
    const rotations = await Promise.allSettled(Array.from({ length: 12 }, () => rotateSecret(pool, endpointId, keyring)))
    const made = rotations.flatMap((rotation) => (rotation.status === 'fulfilled' ? [rotation.value.secret] : []))
    const rows = await readWebhookSecrets(pool, endpointId)
    assert.deepEqual(new Set(rows.map((row) => row.secret)), new Set([secret, ...made]))
    assert.equal(made.length, 9)
    assert.equal(rows.filter(({ endsAt }) => endsAt === null).length, 1)
    const first = rows.flatMap(({ endsAt }) => endsAt ?? []).sort((a, b) => Number(a) - Number(b))[0]
    const refused = `Endpoint ${endpointId} already has 10 active secrets, the maximum; the first one ends at ${first?.toISOString()}.`
    assert.equal(await operatorError(rotateSecret(pool, endpointId, keyring)), refused)
  })

  test('that is disabled keeps its pending events and gets no new ones until it is enabled', async () => {
    const { endpointId, accountId } = await newEndpoint()
    await routed(accountId)
    const { status, disabledBecause, disabledAt } = await disableEndpoint(pool, endpointId)
    assert.deepEqual([status, disabledBecause], ['DISABLED', 'OPERATOR'])
    await routed(accountId)
    assert.equal(await count('webhook_deliveries', endpointId), 1)
    assert.deepEqual((await disableEndpoint(pool, endpointId)).disabledAt, disabledAt)
    const enabled = await enableEndpoint(pool, endpointId)
    assert.deepEqual([enabled.status, enabled.disabledAt], ['ACTIVE', null])
    assert.equal((await enableEndpoint(pool, endpointId)).missedSince, null)
    await routed(accountId)
    assert.equal(await count('webhook_deliveries', endpointId), 2)
  })

  test('that was disabled for failing keeps that reason if disabled again, and starts afresh when enabled', async () => {
    const { endpointId } = await newEndpoint()
    await pool.query(
      `update webhook_endpoints set status = 'DISABLED', disabled_because = 'FAILING', disabled_at = now(), failing_since = now() - interval '5 days'
       where id = $1`,
      [endpointId],
    )
    assert.equal((await disableEndpoint(pool, endpointId)).disabledBecause, 'FAILING')
    const { status, disabledBecause, failingSince } = await enableEndpoint(pool, endpointId)
    assert.deepEqual([status, disabledBecause, failingSince], ['ACTIVE', null, null])
  })

  test('that does not exist is a readable error in every command', async () => {
    const missing = `There is no webhook endpoint ${NOBODY}; see "herald webhook list".`
    const works = [findEndpoint, enableEndpoint, disableEndpoint, removeEndpoint, testEndpoint]
    for (const work of works) assert.equal(await operatorError(work(pool, NOBODY)), missing, work.name)
    assert.equal(await operatorError(rotateSecret(pool, NOBODY, keyring)), missing)
    assert.equal(await operatorError(listAttempts(pool, NOBODY, { limit: 1 })), missing)
  })
})

describe('removing an endpoint', () => {
  test('deletes its deliveries, attempts and secrets, and nothing of another endpoint', async () => {
    const [one, two] = [await newEndpoint(), await newEndpoint()]
    for (const endpoint of [one, two]) {
      const { position } = await routed(endpoint.accountId)
      await record(endpoint, position, { status: 500 })
      await addDeliveries(pool, endpoint, 2_000_001, 2_000_012, 'now()')
    }
    await removeEndpoint(pool, one.endpointId, { chunkRows: 5 })
    assert.equal(await exists(one.endpointId), false)
    for (const table of ['webhook_deliveries', 'webhook_attempts', 'webhook_secrets']) assert.equal(await count(table, one.endpointId), 0)
    const others = [await count('webhook_deliveries', two.endpointId), await count('webhook_attempts', two.endpointId)]
    assert.deepEqual([...others, await exists(two.endpointId)], [13, 1, true])
    const { rows } = await pool.query(`select count(*) from ${LOGGED_EVENTS} as e where account_id = $1`, [one.accountId])
    assert.equal(rows[0].count, 1, 'its event stays in the log')
  })

  test('leaves nothing behind while events are routed to it, also when two remove it', async () => {
    const { endpointId, accountId } = await newEndpoint()
    let isOver = false
    const busy = (async () => {
      while (!isOver) await routed(accountId)
    })()
    try {
      await until('some are routed', async () => (await count('webhook_deliveries', endpointId)) > 5)
      const removals = await Promise.allSettled([
        removeEndpoint(pool, endpointId, { chunkRows: 2 }),
        removeEndpoint(pool, endpointId, { chunkRows: 2 }),
      ])
      const refusals = removals.flatMap((removal) => (removal.status === 'rejected' ? [removal.reason.message] : []))
      assert.ok(refusals.length < 2)
      for (const refusal of refusals) assert.match(refusal, /^There is no webhook endpoint/)
      await routed(accountId)
    } finally {
      isOver = true
      await busy
    }
    assert.deepEqual([await exists(endpointId), await count('webhook_deliveries', endpointId)], [false, 0])
  })

  test('waits for a router that is writing a delivery to it', async () => {
    const endpoint = await newEndpoint()
    let removing: Promise<unknown> = Promise.resolve()
    await transaction(pool, async (tx) => {
      // The router takes the same lock.
      await tx.query('select from webhook_endpoints where id = $1 for key share', [endpoint.endpointId])
      removing = removeEndpoint(pool, endpoint.endpointId)
      await until('it waits', async () => (await countBlocked(pool)) > 0)
      await addDeliveries(tx, endpoint, 1, 2, 'now()')
    })
    await removing
    assert.deepEqual([await exists(endpoint.endpointId), await count('webhook_deliveries', endpoint.endpointId)], [false, 0])
  })

  test('skips a locked delivery without waiting, and ends once the lock is released', async () => {
    const endpoint = await newEndpoint()
    await addDeliveries(pool, endpoint, 1, 3, 'now()')
    let removing: Promise<unknown> = Promise.resolve()
    await transaction(pool, async (tx) => {
      await tx.query('select from webhook_deliveries where endpoint_id = $1 and position = 2 for update', [endpoint.endpointId])
      removing = removeEndpoint(pool, endpoint.endpointId)
      await until('the others are gone', async () => (await count('webhook_deliveries', endpoint.endpointId)) === 1)
      assert.deepEqual([await exists(endpoint.endpointId), await countBlocked(pool)], [true, 0])
    })
    await removing
    assert.deepEqual([await exists(endpoint.endpointId), await count('webhook_deliveries', endpoint.endpointId)], [false, 0])
  })

  test('that is killed leaves no endpoint to see, frees its URL, and retention deletes the rest', async () => {
    const endpoint = await newEndpoint()
    const { accountId } = endpoint
    await addDeliveries(pool, endpoint, 1, 2_000, 'now()')
    const hasBegun = async () => (await count('webhook_deliveries', endpoint.endpointId)) < 2_000
    await killMidway(databaseUrl, pool, (own) => removeEndpoint(own, endpoint.endpointId, { chunkRows: 1 }), hasBegun)
    assert.ok((await count('webhook_deliveries', endpoint.endpointId)) > 0, 'some are left')
    const missing = `There is no webhook endpoint ${endpoint.endpointId}; see "herald webhook list".`
    for (const work of [findEndpoint, enableEndpoint, disableEndpoint, removeEndpoint, testEndpoint])
      assert.equal(await operatorError(work(pool, endpoint.endpointId)), missing, work.name)
    assert.deepEqual(await listEndpoints(pool, accountId), [])
    const again = await addEndpoint(pool, { accountId, url: URL }, keyring)
    await addDeliveries(pool, again, 1, 3, 'now()')
    await applyRetention(pool)
    assert.equal(await count('webhook_deliveries', again.endpointId), 3)
    assert.deepEqual([await exists(endpoint.endpointId), await count('webhook_deliveries', endpoint.endpointId)], [false, 0])
  })
})

describe('a test of an endpoint', () => {
  test('is sent to that endpoint alone, whatever its event kinds, and its result is found', async () => {
    const endpoint = await newEndpoint(['sms.sent'])
    const { endpointId, accountId } = endpoint
    const sibling = await addEndpoint(pool, { accountId, url: `${URL}/all` }, keyring)
    const requested = await testEndpoint(pool, endpointId)
    const outcome = awaitTest(pool, requested)
    await routeEvents(pool)
    const { rows } = await pool.query(`select position, event_id, data from ${LOGGED_EVENTS} as e where account_id = $1`, [accountId])
    assert.deepEqual([rows.length, rows[0].data], [1, { endpointId }])
    assert.deepEqual([await count('webhook_deliveries', endpointId), await count('webhook_deliveries', sibling.endpointId)], [1, 0])
    await record(endpoint, rows[0].position, { status: 503, response: 'Later' })
    const { attemptId, attemptedAt, nextAttemptAt, ...found } = await outcome
    assert.ok(nextAttemptAt !== null && nextAttemptAt > attemptedAt)
    const attempt = {
      eventId: rows[0].event_id,
      type: 'webhook.test',
      attempt: 1,
      status: 503,
      error: null,
      durationMs: 12,
      response: 'Later',
    }
    assert.deepEqual(found, { endpointId, ...attempt })
  })

  test('is found behind thousands of events, and distinguished from another test', async () => {
    const endpoint = await newEndpoint()
    const { accountId, endpointId } = endpoint
    const first = await testEndpoint(pool, endpointId)
    await routeEvents(pool)
    await writeEvents(
      pool,
      Array.from({ length: 6_000 }, () => ({ accountId })),
    )
    await routeUntilDone(pool)
    const second = await testEndpoint(pool, endpointId)
    await routeEvents(pool)
    const { rows } = await pool.query(
      `select position from ${LOGGED_EVENTS} as e where account_id = $1 and kind = 'webhook.test' order by position`,
      [accountId],
    )
    await record(endpoint, rows[1].position, { status: 204 })
    await record(endpoint, rows[0].position, { error: 'it did not respond within 15 s' })
    assert.equal((await awaitTest(pool, { ...second, after: 0 })).status, 204)
    const { status, error } = await awaitTest(pool, first)
    assert.deepEqual([status, error], [null, 'it did not respond within 15 s'])
  })

  test('that gets no result reports how far it got', async () => {
    const { endpointId } = await newEndpoint()
    const requested = await testEndpoint(pool, endpointId)
    assert.equal(
      await operatorError(awaitTest(pool, requested, { timeoutMs: 1 })),
      'No process claimed the test within 0.001 s: is "herald serve" running? The test is posted once it runs.',
    )
    await routeEvents(pool)
    assert.match(
      await operatorError(awaitTest(pool, requested, { timeoutMs: 1 })),
      /^The test was not posted within 0\.001 s\. Is "herald serve" running with the role webhooks\? Earlier events go first/,
    )
    await assert.rejects(awaitTest(pool, requested, { timeoutMs: 1 }), ({ asApiError }) => {
      assert.deepEqual([asApiError.code, asApiError.headers], ['RCS_UNAVAILABLE', { 'Retry-After': '10' }])
      return true
    })
    await assert.rejects(awaitTest(pool, requested, { signal: AbortSignal.abort() }), { name: 'AbortError' })
    await disableEndpoint(pool, endpointId)
    const disabled = `Endpoint ${endpointId} is disabled; run "herald webhook enable ${endpointId}" first.`
    assert.equal(await operatorError(testEndpoint(pool, endpointId)), disabled)
  })
})

describe('attempts', () => {
  test('are listed newest first, of one event or only failed ones, with any batch size', async () => {
    const endpoint = await newEndpoint()
    const { endpointId, accountId } = endpoint
    const events = [await routed(accountId), await routed(accountId, 'message.read')]
    // Their times are after the events', and some are the same.
    const begin = Date.now() + 60_000
    const made: { event: number; status?: number; error?: string }[] = []
    for (let n = 0; n < 24; n += 1) {
      const result = n % 4 === 0 ? { error: 'it was out of reach' } : { status: n % 4 === 1 ? 200 : 301 }
      made.push({ event: n % 2, ...result })
      const position = events[n % 2]?.position as number
      await record(endpoint, position, { ...result, response: `${n}`, at: new Date(begin + Math.floor(n / 3) * 1_000).toISOString() })
    }
    const other = await newEndpoint()
    await record(other, (await routed(other.accountId)).position, { status: 500 })
    const read = async (filter: { eventId?: string; failedOnly?: boolean; limit: number }, batchRows: number) =>
      (await listAttempts(pool, endpointId, filter, batchRows)).map(({ attemptedAt, response }) => [
        attemptedAt.getTime(),
        Number(response),
      ])
    for (const batchRows of [1, 2, 5, 24, 100]) {
      const all = await read({ limit: 100 }, batchRows)
      assert.deepEqual(new Set(all.map(([, n]) => n)).size, 24, `in batches of ${batchRows}`)
      assert.deepEqual(
        all.map(([at]) => at),
        all.map(([at]) => at as number).sort((a, b) => b - a),
      )
      assert.deepEqual(
        (await read({ limit: 4 }, batchRows)).map(([at]) => at),
        all.slice(0, 4).map(([at]) => at),
      )
      const failed = (await read({ failedOnly: true, limit: 100 }, batchRows)).map(([, n]) => n as number)
      assert.deepEqual(
        failed.sort((a, b) => a - b),
        made.flatMap(({ status }, n) => (status === 200 ? [] : [n])),
      )
      const ofOne = (await read({ eventId: events[1]?.id as string, limit: 100 }, batchRows)).map(([, n]) => n as number)
      assert.deepEqual(
        ofOne.sort((a, b) => a - b),
        made.flatMap(({ event }, n) => (event === 1 ? [n] : [])),
      )
    }
    const [newest] = await listAttempts(pool, endpointId, { limit: 1 })
    assert.deepEqual([newest?.eventId, newest?.type, newest?.attempt], [events[1]?.id, 'message.read', 1])
  })

  test('match a filter after thousands that do not: each page looks at a bounded number of rows', async () => {
    const endpoint = await newEndpoint()
    const { endpointId, accountId } = endpoint
    await pool.query(
      `insert into webhook_attempts (endpoint_id, account_id, position, attempt, attempted_at, duration_ms, status)
       select $1, $2, n, 1, now() - n * interval '1 second', 1, case when n in (8, 9, 20, 21) then 500 else 200 end from generate_series(1, 25) as n`,
      [endpointId, accountId],
    )
    for (const limit of [1, 2, 3, 50]) {
      const [seen, sizes]: [number[], number[]] = [[], []]
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const query = { limit, failed: true, ...(cursor !== undefined && { cursor }) }
        const page = await listOwnAttempts(pool, accountId, endpointId, query, 5)
        seen.push(...page.items.map(({ attemptedAt }) => attemptedAt.getTime()))
        sizes.push(page.items.length)
        cursor = page.nextCursor
      }
      assert.deepEqual([seen.length, new Set(seen).size], [4, 4], `by ${limit}`)
      assert.equal(sizes[0], 0, 'the first five rows have none')
    }
  })

  test('of an event of another account are not listed; those of a deleted event are', async () => {
    const [one, two] = [await newEndpoint(), await newEndpoint()]
    const { id, position } = await routed(one.accountId)
    await record(one, position, { status: 200 })
    const missing = (eventId: string) => `Account ${two.accountId} has no event ${eventId}; its log keeps events for 30 days.`
    for (const eventId of [id, randomUUID(), 'x'])
      assert.equal(await operatorError(listAttempts(pool, two.endpointId, { eventId, limit: 1 })), missing(eventId))
    await pool.query('delete from log_pages where page_id = $1', [id])
    const [attempt] = await listAttempts(pool, one.endpointId, { limit: 1 })
    assert.deepEqual([attempt?.eventId, attempt?.status, attempt?.response], [null, 200, null])
  })
})
