import assert from 'node:assert/strict'
import { randomInt, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { transaction } from '../../src/db/pool.ts'
import { disableEndpoint } from '../../src/webhooks/change-endpoint.ts'
import { claimDue } from '../../src/webhooks/claim.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { removeEndpoint } from '../../src/webhooks/remove-endpoint.ts'
import { countReplay, type ReplayProgress, replayAll, replayEvent, replayFailed } from '../../src/webhooks/replay.ts'
import { recordAttempts } from '../../src/webhooks/results.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { createCaller } from '../support/service.ts'
import { until } from '../support/until.ts'
import { countBlocked, killMidway, operatorError } from './support.ts'

const { pool, url: databaseUrl } = await createTestDatabase()
const HOUR_MS = 3_600_000
const NOW = Date.now()
const LONG_AGO = new Date(0)

let urls = 0
async function newEndpoint(accountId?: number, kinds?: Parameters<typeof addEndpoint>[1]['types']) {
  urls += 1
  const account = accountId ?? (await createCaller(pool)).accountId
  return await addEndpoint(pool, { accountId: account, url: `https://hooks.example.com/${urls}`, types: kinds }, keyring)
}
type Ids = { endpointId: number; accountId: number }

/** A page id of this time, in SQL. */
const idOf = (time: string) => `overlay(gen_random_uuid()::text placing left(uuid_v7_from(${time})::text, 15) from 1 for 15)::uuid`

type Logged = { kind?: string; hoursAgo?: number; eventsAPage?: number; subject?: string }

/** Writes events to the log, in pages a second apart, the last of them this many hours ago. Returns their positions. */
async function logged(
  accountId: number,
  count: number,
  { kind = 'message.sent', hoursAgo = 1, eventsAPage = 1, subject }: Logged = {},
): Promise<number[]> {
  const { rows } = await pool.query<{ last: number }>(
    `insert into log_heads as h (account_id, last_position) values ($1, $2)
     on conflict (account_id) do update set last_position = h.last_position + $2 returning last_position as last`,
    [accountId, count],
  )
  const before = (rows[0]?.last ?? Number.NaN) - count
  await pool.query(
    `insert into log_pages (account_id, page_id, event_count, last_position, events)
     select $1, ${idOf(`$4::timestamptz - (($2::int - 1) / $5 - page) * interval '1 second'`)}, count(*), $6::bigint + max(n),
       json_agg(json_build_array($3::text, $4::timestamptz, $7::text, null, null, null, null, null, '{}'::json) order by n)
     from (select n, (n - 1) / $5::int as page from generate_series(1, $2::int) as n) as numbered group by page order by page`,
    [accountId, count, kind, new Date(NOW - hoursAgo * HOUR_MS), eventsAPage, before, subject],
  )
  return Array.from({ length: count }, (_, index) => before + 1 + index)
}

async function eventIdAt({ accountId }: { accountId: number }, position: number): Promise<string> {
  const find = `select event_id from ${LOGGED_EVENTS} as e where account_id = $1 and position = $2`
  return (await pool.query(find, [accountId, position])).rows[0].event_id
}

/** `due` as SQL. */
async function deliver({ endpointId, accountId }: Ids, positions: number[], attempts: number, due: string): Promise<void> {
  await pool.query(
    `insert into webhook_deliveries (endpoint_id, account_id, position, attempts, due_at) select $1, $2, p, $4, ${due} from unnest($3::bigint[]) p`,
    [endpointId, accountId, positions, attempts],
  )
}

/** The deliveries that are due, with their attempts. */
async function due(endpointId: number): Promise<[position: number, attempts: number][]> {
  const { rows } = await pool.query(
    'select position, generation, attempts from webhook_deliveries where endpoint_id = $1 and due_at <= now() order by position',
    [endpointId],
  )
  return rows.map(({ position, attempts }) => [position, attempts])
}

const untried = (positions: number[]) => positions.map((position) => [position, 0])

describe('a replay of one event', () => {
  test('makes a delivered, failed or waiting event due without attempts, and skips one that is due', async () => {
    const endpoint = await newEndpoint(undefined, ['sms.sent'])
    const [accepted, failed, waiting, onItsWay] = (await logged(endpoint.accountId, 4)) as [number, number, number, number]
    await deliver(endpoint, [failed], 10, 'null')
    await deliver(endpoint, [waiting], 4, `now() + interval '2 hours'`)
    await deliver(endpoint, [onItsWay], 3, 'now()')
    const { endpointId } = endpoint
    for (const position of [accepted, failed, waiting]) {
      const result = await replayEvent(pool, endpointId, await eventIdAt(endpoint, position))
      assert.deepEqual(result, { endpointId, replayed: 1, alreadyDue: 0 })
    }
    for (const position of [onItsWay, accepted]) {
      const result = await replayEvent(pool, endpointId, await eventIdAt(endpoint, position))
      assert.deepEqual(result, { endpointId, replayed: 0, alreadyDue: 1 })
    }
    assert.deepEqual(await due(endpointId), [...untried([accepted, failed, waiting]), [onItsWay, 3]])
  })

  test('skips an event whose result is being written', async () => {
    const endpoint = await newEndpoint()
    const [position] = (await logged(endpoint.accountId, 1)) as [number]
    await deliver(endpoint, [position], 10, 'null')
    const eventId = await eventIdAt(endpoint, position)
    await transaction(pool, async (tx) => {
      await tx.query('update webhook_deliveries set attempts = 7 where endpoint_id = $1', [endpoint.endpointId])
      assert.equal((await replayEvent(pool, endpoint.endpointId, eventId)).replayed, 0)
    })
    assert.equal((await replayEvent(pool, endpoint.endpointId, eventId)).replayed, 1)
    assert.deepEqual(await due(endpoint.endpointId), untried([position]))
  })

  test('fails for an event of another account or one that does not exist', async () => {
    const [endpoint, other] = [await newEndpoint(), await newEndpoint()]
    const [position] = (await logged(other.accountId, 1)) as [number]
    for (const eventId of [await eventIdAt(other, position), randomUUID(), 'x']) {
      const missing = `Account ${endpoint.accountId} has no event ${eventId}; its log keeps events for 30 days.`
      assert.equal(await operatorError(replayEvent(pool, endpoint.endpointId, eventId)), missing)
    }
    assert.deepEqual(await due(endpoint.endpointId), [])
  })
})

describe('a pause of the endpoint', () => {
  async function isPaused({ endpointId }: Ids): Promise<boolean> {
    const { rows } = await pool.query('select paused_until > now() as paused from webhook_endpoints where id = $1', [endpointId])
    return rows[0].paused === true
  }
  async function pausedEndpoint() {
    const endpoint = await newEndpoint()
    const positions = await logged(endpoint.accountId, 2)
    await deliver(endpoint, positions, 1, 'now()')
    await pool.query(`update webhook_endpoints set paused_until = now() + interval '5 minutes' where id = $1`, [endpoint.endpointId])
    return { ...endpoint, positions }
  }

  test('ends with a replay, even if all its events were already due', async () => {
    const replays: ((endpoint: Ids, position: number, record: () => Promise<void>) => Promise<unknown>)[] = [
      ({ endpointId }, _, record) => replayFailed(pool, endpointId, LONG_AGO, { record, chunkRows: 1 }),
      ({ endpointId }, _, record) => replayAll(pool, endpointId, LONG_AGO, { record, chunkRows: 1 }),
      async (endpoint, position, record) => replayEvent(pool, endpoint.endpointId, await eventIdAt(endpoint, position), record),
    ]
    for (const replay of replays) {
      const endpoint = await pausedEndpoint()
      let recorded = 0
      await replay(endpoint, endpoint.positions[0] as number, async () => {
        recorded += 1
      })
      assert.deepEqual([await isPaused(endpoint), recorded], [false, 1])
    }
  })

  test('lasts after a replay that has no events', async () => {
    const endpoint = await pausedEndpoint()
    await replayFailed(pool, endpoint.endpointId, new Date(NOW - HOUR_MS / 2))
    assert.equal(await isPaused(endpoint), true)
  })
})

describe('a replay of failed events', () => {
  test('includes events since the time that failed permanently or wait for another attempt', async () => {
    const endpoint = await newEndpoint()
    const sibling = await newEndpoint(endpoint.accountId)
    const old = await logged(endpoint.accountId, 2, { hoursAgo: 3 })
    const [gone, waiting, untouched, onItsWay, givenUp] = (await logged(endpoint.accountId, 5)) as [number, number, number, number, number]
    for (const { endpointId, accountId } of [endpoint, sibling])
      await deliver({ endpointId, accountId }, [...old, gone, givenUp], 10, 'null')
    await deliver(endpoint, [waiting], 1, `now() + interval '5 minutes'`)
    await deliver(endpoint, [untouched], 0, `now() + interval '5 minutes'`)
    await deliver(endpoint, [onItsWay], 2, 'now()')
    // Older than the 30 days of the log.
    await pool.query('delete from log_pages where account_id = $1 and last_position = $2', [endpoint.accountId, gone])
    const { endpointId } = endpoint
    const result = await replayFailed(pool, endpointId, new Date(NOW - 2 * HOUR_MS), { chunkRows: 2 })
    assert.deepEqual(result, { endpointId, replayed: 2, alreadyDue: 1 })
    assert.deepEqual(
      await due(endpointId),
      [
        [waiting, 0],
        [onItsWay, 2],
        [givenUp, 0],
      ].sort(([a = 0], [b = 0]) => a - b),
    )
    assert.deepEqual(await due(sibling.endpointId), [])
  })
})

describe('a replay of all events', () => {
  test('includes the account’s events since the time, of the kinds of the endpoint, and no tests', async () => {
    const { accountId } = await createCaller(pool)
    const stranger = await newEndpoint()
    const [all, some] = [await newEndpoint(accountId), await newEndpoint(accountId, ['message.read', 'webhook.test'])]
    await logged(accountId, 3, { hoursAgo: 3 })
    const sent = await logged(accountId, 5, { eventsAPage: 3 })
    await logged(stranger.accountId, 5)
    const read = await logged(accountId, 4, { kind: 'message.read', hoursAgo: 0.5 })
    await logged(accountId, 1, { kind: 'webhook.test', hoursAgo: 0.25 })
    const since = new Date(NOW - 2 * HOUR_MS)
    for (const chunkRows of [1, 3, 1_000]) {
      await pool.query('delete from webhook_deliveries where account_id = $1', [accountId])
      const options = { chunkRows }
      assert.equal((await replayAll(pool, all.endpointId, since, options)).replayed, 9, `in chunks of ${chunkRows}`)
      assert.deepEqual(await due(all.endpointId), untried([...sent, ...read]))
      assert.equal((await replayAll(pool, some.endpointId, since, options)).replayed, 4)
      assert.deepEqual(await due(some.endpointId), untried(read))
    }
    assert.deepEqual(await replayAll(pool, all.endpointId, since), { endpointId: all.endpointId, replayed: 0, alreadyDue: 9 })
    assert.deepEqual(await due(stranger.endpointId), [])
  })

  test('from a time before 1970 includes every event, and until such a time none', async () => {
    const { accountId, endpointId } = await newEndpoint()
    const positions = await logged(accountId, 3)
    await deliver({ accountId, endpointId }, positions.slice(0, 2), 3, 'null')
    const before1970 = new Date('1969-12-31T23:59:59Z')
    for (const replay of [replayAll, replayFailed])
      assert.equal((await replay(pool, endpointId, before1970, { until: before1970 })).replayed, 0)
    assert.equal((await countReplay(pool, endpointId, { since: before1970 })).events, 3)
    assert.equal((await replayFailed(pool, endpointId, before1970)).replayed, 2)
    assert.equal((await replayAll(pool, endpointId, before1970)).replayed, 1)
  })

  test('starts with the first event since the time, also if times and positions differ in order', async () => {
    const { accountId, endpointId } = await newEndpoint()
    await logged(accountId, 2, { hoursAgo: 0.02 })
    const positions = await logged(accountId, 3, { hoursAgo: 0.01 })
    // The first position has the latest time.
    await pool.query(
      `update log_pages set page_id = ${idOf(`to_timestamp($3) + interval '5 seconds'`)} where account_id = $1 and last_position = $2`,
      [accountId, positions[0], (NOW - 0.01 * HOUR_MS) / 1_000],
    )
    const { replayed } = await replayAll(pool, endpointId, new Date(NOW - 0.01 * HOUR_MS - 1_500))
    assert.equal(replayed, 3)
  })

  test('reports its progress, and ends with the events that existed when it began', async () => {
    const { accountId, endpointId } = await newEndpoint()
    const positions = await logged(accountId, 40)
    const progress: ReplayProgress[] = []
    let later: Promise<unknown> | undefined
    const onProgress = (now: ReplayProgress) => {
      progress.push(now)
      later ??= logged(accountId, 10)
    }
    await replayAll(pool, endpointId, LONG_AGO, { chunkRows: 10, onProgress })
    await later
    assert.deepEqual(
      progress.map(({ replayed }) => replayed),
      [10, 20, 30, 40],
    )
    assert.deepEqual(
      progress.map(({ share }) => share),
      progress.map(({ share }) => share).sort((a, b) => a - b),
    )
    assert.equal(progress.at(-1)?.share, 1)
    assert.deepEqual(await due(endpointId), untried(positions))
  })

  test('is rejected from a future time, and replays nothing from an empty log', async () => {
    const { endpointId } = await newEndpoint()
    const tomorrow = new Date(Date.now() + 24 * HOUR_MS)
    const refused = `The time ${tomorrow.toISOString()} is in the future; a replay must start in the past.`
    for (const replay of [replayAll, replayFailed]) {
      assert.equal(await operatorError(replay(pool, endpointId, tomorrow)), refused)
      assert.deepEqual(await replay(pool, endpointId, LONG_AGO), { endpointId, replayed: 0, alreadyDue: 0 })
    }
  })
})

describe('a replay', () => {
  for (const [what, replay] of [
    [
      'event by event',
      async ({ endpointId }: Ids, ids: string[]) => {
        for (const id of ids) await replayEvent(pool, endpointId, id)
      },
    ],
    ['of failed events', ({ endpointId }: Ids) => replayFailed(pool, endpointId, LONG_AGO)],
    ['of all events', ({ endpointId }: Ids) => replayAll(pool, endpointId, LONG_AGO)],
  ] as const) {
    test(`${what} keeps the order of the events of one message`, async () => {
      const endpoint = await newEndpoint()
      const { accountId, endpointId } = endpoint
      const first = await logged(accountId, 3, { subject: 'a', eventsAPage: 2 })
      const positions = [...first, ...(await logged(accountId, 2, { subject: 'b' })), ...(await logged(accountId, 1))]
      if (what === 'of failed events') {
        await deliver(endpoint, positions, 10, 'null')
        await pool.query(
          `update webhook_deliveries set subject_id = e.subject_id from ${LOGGED_EVENTS} as e
           where endpoint_id = $1 and (e.account_id, e.position) = (webhook_deliveries.account_id, webhook_deliveries.position)`,
          [endpointId],
        )
      }
      await replay(endpoint, await Promise.all(positions.map((position) => eventIdAt(endpoint, position))))
      assert.deepEqual(await due(endpointId), untried(positions))
      const claimed = await claimDue(pool, { lease: randomUUID(), room: new Map([[endpointId, 10]]), underWay: [] })
      const mine = claimed.filter((one) => one.endpointId === endpointId)
      assert.deepEqual(
        mine.map(({ position, subjectId, hasNext }) => [position, subjectId, hasNext]).sort(([a], [b]) => Number(a) - Number(b)),
        [
          [positions[0], 'a', true],
          [positions[3], 'b', true],
          [positions[5], null, false],
        ],
      )
      await removeEndpoint(pool, endpointId)
    })
  }

  test('is rejected if the endpoint is disabled or removed, before it or midway', async () => {
    const { accountId, endpointId } = await newEndpoint()
    const positions = await logged(accountId, 300)
    const disabled = `Endpoint ${endpointId} is disabled; run "herald webhook enable ${endpointId}" first.`
    let disabling: Promise<unknown> | undefined
    const onProgress = () => {
      disabling ??= disableEndpoint(pool, endpointId)
    }
    assert.equal(await operatorError(replayAll(pool, endpointId, LONG_AGO, { chunkRows: 1, onProgress })), disabled)
    await disabling
    const done = await due(endpointId)
    assert.ok(done.length > 0 && done.length < positions.length, `${done.length} of ${positions.length}`)
    assert.equal(await operatorError(replayEvent(pool, endpointId, await eventIdAt({ accountId }, positions[299] as number))), disabled)
    for (const replay of [replayAll, replayFailed]) assert.equal(await operatorError(replay(pool, endpointId, LONG_AGO)), disabled)
    assert.equal((await due(endpointId)).length, done.length)
    await removeEndpoint(pool, endpointId)
    const missing = `There is no webhook endpoint ${endpointId}; see "herald webhook list".`
    for (const replay of [replayAll, replayFailed]) assert.equal(await operatorError(replay(pool, endpointId, LONG_AGO)), missing)
  })

  test('leaves no delivery behind if its endpoint is removed meanwhile', async () => {
    const endpoint = await newEndpoint()
    const { accountId, endpointId } = endpoint
    const [position] = (await logged(accountId, 1)) as [number]
    let both: Promise<unknown> = Promise.resolve()
    const stopped = await transaction(pool, async (tx) => {
      // Blocks the replay after it has read the endpoint.
      await tx.query('insert into webhook_deliveries (endpoint_id, account_id, position) values ($1, $2, $3)', [
        endpointId,
        accountId,
        position,
      ])
      const replaying = replayAll(pool, endpointId, LONG_AGO)
      await until('the replay waits', async () => (await countBlocked(pool)) === 1)
      both = Promise.all([replaying, removeEndpoint(pool, endpointId)])
      both.catch(() => {})
      await until('the removal waits for the replay', async () => (await countBlocked(pool)) === 2)
      throw new Error('rolled back')
    }).catch((error) => error.message)
    assert.equal(stopped, 'rolled back')
    await both
    const { rowCount } = await pool.query('select from webhook_deliveries where endpoint_id = $1', [endpointId])
    assert.equal(rowCount, 0)
  })

  test('that is killed keeps what it has done, and a second replay completes it', async () => {
    const { accountId, endpointId } = await newEndpoint()
    const positions = await logged(accountId, 1_000)
    const hasBegun = async () => (await due(endpointId)).length > 0
    await killMidway(databaseUrl, pool, (own) => replayAll(own, endpointId, LONG_AGO, { chunkRows: 1 }), hasBegun)
    const before = (await due(endpointId)).length
    assert.ok(before > 0 && before < 1_000, `${before}`)
    assert.deepEqual(await replayAll(pool, endpointId, LONG_AGO), { endpointId, replayed: 1_000 - before, alreadyDue: before })
    assert.deepEqual(await due(endpointId), untried(positions))
  })

  test('runs beside other replays and workers without failing, and every event is posted or due', async () => {
    const seed = Number(process.env.HERALD_TEST_SEED ?? randomInt(2 ** 31))
    console.error(`seed ${seed}`)
    const random = mulberry32(seed)
    const endpoint = await newEndpoint()
    const { accountId, endpointId } = endpoint
    const positions = await logged(accountId, 400, { eventsAPage: 30 })
    await deliver(endpoint, positions.slice(0, 200), 10, 'null')
    await deliver(endpoint, positions.slice(200, 300), 2, `now() + interval '1 hour'`)
    let isOver = false
    const work = async () => {
      while (!isOver) {
        const { rows } = await pool.query(
          'select position, generation, attempts from webhook_deliveries where endpoint_id = $1 and due_at <= now() order by due_at, position limit 60',
          [endpointId],
        )
        // In random order, as results arrive.
        const some = rows.map((row) => ({ row, order: random() })).sort((a, b) => a.order - b.order)
        const outcome = { attemptedAt: new Date(), durationMs: 1, pauseMs: 0, error: undefined, response: '' }
        const results = some.map(({ row }) => {
          const isAccepted = random() < 0.5
          return {
            endpointId,
            accountId,
            ...row,
            ...outcome,
            isAccepted,
            status: isAccepted ? 200 : 500,
            afterMs: isAccepted ? null : 3_600_000,
          }
        })
        if (results.length > 0) await recordAttempts(pool, results)
      }
    }
    const working = work()
    const replays = [replayAll, replayFailed, replayAll, replayFailed, replayAll]
    await Promise.all(replays.map((replay, n) => replay(pool, endpointId, LONG_AGO, { chunkRows: 7 + 10 * n })))
    isOver = true
    await working
    const { rows } = await pool.query('select distinct position from webhook_attempts where endpoint_id = $1', [endpointId])
    const seen = new Set([...rows.map(({ position }) => position), ...(await due(endpointId)).map(([position]) => position)])
    assert.deepEqual(
      [...seen].sort((a, b) => a - b),
      positions,
    )
  })
})

/** Small, and the same everywhere for a seed. */
function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
