import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { Webhook } from 'standardwebhooks'
import { READ_FEED } from '../../src/events/feed.ts'
import { EVENT_KINDS, type EventKind } from '../../src/events/kinds.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { routeUntilDone } from '../support/log.ts'
import { assertError, call, createCaller, startTestService } from '../support/service.ts'

const { url: HERALD_DATABASE_URL, pool, hotPool } = await createTestDatabase()
const limits = { HERALD_LIMITS: 'memory', HERALD_LIMIT_EVENTS_PER_SECOND: '100000' }
const { url } = await startTestService({ HERALD_DATABASE_URL, ...limits }, { roles: ['api'] })
const limited = await startTestService({ HERALD_DATABASE_URL }, { roles: ['api'] })

const MESSAGE = { messageId: '0198c0de-0000-7000-8000-000000000001', agentId: 'demo-single', recipient: '+48500100200', test: false }
const NAMED = { clientReferenceId: 'order "1001" ą\n😀', campaignId: '0198c0de-0000-7000-8000-000000000002' }
const FAILURE = { failure: { reason: 'REJECTED', description: 'The network refused the message.' } }
const CAMPAIGN = { campaignId: NAMED.campaignId, name: 'Spring sale', agentId: 'demo-single' }
const { messageId, test: _test, ...PERSON } = MESSAGE

/** The data of each kind: the least and the most that there can be. */
const DATA: Record<EventKind, [Record<string, unknown>, Record<string, unknown>]> = {
  'message.sent': [MESSAGE, { ...MESSAGE, ...NAMED }],
  'message.delivered': [MESSAGE, { ...MESSAGE, ...NAMED }],
  'message.read': [MESSAGE, { ...MESSAGE, ...NAMED }],
  'message.failed': [
    { ...MESSAGE, ...FAILURE },
    { ...MESSAGE, ...NAMED, ...FAILURE },
  ],
  'message.expired': [MESSAGE, { ...MESSAGE, ...NAMED, test: true }],
  'message.clicked': [
    { ...PERSON, messageId, channel: 'sms', action: 'clicked', url: 'https://example.com/' },
    { ...MESSAGE, ...NAMED, channel: 'rcs', action: 'clicked', buttonId: 'track', text: 'Track it', url: 'https://example.com/' },
  ],
  'message.replied': [
    { ...PERSON, channel: 'sms', action: 'wrote', text: 'Hello' },
    { ...MESSAGE, ...NAMED, channel: 'rcs', action: 'shared-location', latitude: 52.2297, longitude: -21 },
  ],
  'sms.sent': [
    { ...MESSAGE, segments: 1 },
    { ...MESSAGE, ...NAMED, segments: 10 },
  ],
  'sms.delivered': [
    { ...MESSAGE, segments: 1 },
    { ...MESSAGE, ...NAMED, segments: 10 },
  ],
  'sms.failed': [
    { ...MESSAGE, segments: 1, ...FAILURE },
    { ...MESSAGE, ...NAMED, segments: 2, ...FAILURE },
  ],
  'campaign.started': [CAMPAIGN, { ...CAMPAIGN, clientReferenceId: 'spring' }],
  'campaign.completed': [
    { ...CAMPAIGN, recipients: 0 },
    { ...CAMPAIGN, clientReferenceId: 'spring', recipients: 2 },
  ],
  'campaign.cancelled': [CAMPAIGN, { ...CAMPAIGN, clientReferenceId: 'spring', recipients: 2 }],
  'recipient.opted_out': [
    { ...PERSON, source: 'operator' },
    { ...MESSAGE, ...NAMED, channel: 'rcs', source: 'word', text: 'STOP' },
  ],
  'webhook.disabled': [
    { endpointId: 1, url: 'https://example.com/', failingSince: '2026-11-10T08:00:00.000Z' },
    { endpointId: 2, url: 'https://example.com/', failingSince: '2026-11-10T08:00:00.000Z' },
  ],
  'webhook.test': [{ endpointId: 1 }, { endpointId: 2 }],
}

type Emitted = { kind: string; data: Record<string, unknown>; occurredAt?: string }

const EVENTS_PER_PAGE = 100

/** As the log keeps an event: what it says of a message has places of its own. */
function stored({ kind, data, occurredAt = '2026-11-15T09:30:00.125Z' }: Emitted): unknown[] {
  if (!('recipient' in data)) return [kind, occurredAt, null, null, null, null, null, null, data]
  const { messageId = null, clientReferenceId = null, agentId, recipient, campaignId = null, test: isTest = null, ...more } = data
  return [
    kind,
    occurredAt,
    messageId,
    clientReferenceId,
    agentId,
    recipient,
    campaignId,
    isTest,
    Object.keys(more).length > 0 ? more : null,
  ]
}

/** Emits events as one statement does, in pages, and has them routed. */
async function emit(accountId: number, emitted: Emitted[]): Promise<void> {
  await pool.query(
    `insert into log_pages (account_id, event_count, events)
     select $1, count(*), json_agg(event order by n) from json_array_elements($2::json) with ordinality as e (event, n)
     group by (n - 1) / ${EVENTS_PER_PAGE} order by (n - 1) / ${EVENTS_PER_PAGE}`,
    [accountId, JSON.stringify(emitted.map(stored))],
  )
  await routeUntilDone(pool)
}

const numbered = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => ({ kind: 'webhook.test', data: { endpointId: from + index } }))

async function newReader(at = url) {
  const { accountId, authorization } = await createCaller(pool)
  const read = (query = '') => call(`${at}/v1/events${query}`, { authorization })
  return { accountId, authorization, read }
}

const numbersOf = (body: any) => body.items.map(({ data }: any) => data.endpointId)

describe('GET /events', () => {
  test('has a limit of its own, of 5 requests in a second, and leaves the default limit alone', async () => {
    const { read, authorization } = await newReader(limited.url)
    const responses = await Promise.all(Array.from({ length: 60 }, () => read()))
    const refused = responses.find(({ status }) => status === 429)
    assert.deepEqual([refused?.body.code, refused?.headers.get('retry-after')], ['RCS_RATE_LIMITED', '1'])
    const heads = await fetch(`${limited.url}/v1/events`, { method: 'HEAD', headers: { authorization } })
    for (const one of [...responses, heads]) assert.equal(one.headers.get('ratelimit-policy'), '"events";q=5;w=1')
    const { headers } = await call(`${limited.url}/v1/agents`, { authorization })
    assert.match(headers.get('ratelimit') ?? '', /^"default";r=29;/)
  })

  test('returns every kind as it was emitted and as the OpenAPI document describes it', async () => {
    const { accountId, read } = await newReader()
    const emitted = EVENT_KINDS.flatMap((kind) => DATA[kind].map((data) => ({ kind, data })))
    await emit(accountId, emitted)
    const { status, headers, body } = await read('?limit=200')
    assert.deepEqual([status, headers.get('content-type')], [200, 'application/json; charset=utf-8'])
    const { nextCursor, hasMore, items } = body
    const ids = items.map(({ eventId }: any) => eventId)
    const expected = emitted.map(({ kind, data }, index) => ({
      eventId: ids[index],
      type: kind,
      occurredAt: '2026-11-15T09:30:00.125Z',
      data,
    }))
    assert.deepEqual(body, { items: expected, nextCursor, hasMore: false })
    assert.equal(new Set(ids).size, emitted.length)

    const described = describedResponse()
    assert.ok(described(body), JSON.stringify(described.errors))
    for (const [index, wrong] of items.entries()) {
      const others = [
        { ...wrong, more: 1 },
        { ...wrong, data: { ...wrong.data, more: 1 } },
        { ...wrong, data: {} },
      ]
      for (const other of others) assert.ok(!described({ nextCursor, hasMore, items: items.with(index, other) }), wrong.type)
    }
  })

  test('returns an event of an unknown kind', async () => {
    const { accountId, read } = await newReader()
    await emit(accountId, [{ kind: 'message.unheard-of', data: { any: null, number: 1e21, deep: [[]] } }, ...numbered(1, 1)])
    const { body } = await read()
    assert.deepEqual(
      body.items.map(({ type, data }: any) => [type, data]),
      [
        ['message.unheard-of', { any: null, number: 1e21, deep: [[]] }],
        ['webhook.test', { endpointId: 1 }],
      ],
    )
  })

  test('returns each event once, page by page; an empty page has a cursor, too', async () => {
    const [mine, other] = [await newReader(), await newReader()]
    for (let from = 1; from <= 7; from += 1) {
      await emit(mine.accountId, numbered(from, 1))
      await emit(other.accountId, numbered(100 * from, 1))
    }
    const seen: unknown[] = []
    let query = '?limit=3'
    for (const hasMore of [true, true, false, false]) {
      const { body } = await mine.read(query)
      seen.push(numbersOf(body))
      assert.equal(body.hasMore, hasMore)
      query = `?limit=3&after=${body.nextCursor}`
    }
    assert.deepEqual(seen, [[1, 2, 3], [4, 5, 6], [7], []])
    await emit(mine.accountId, numbered(8, 3))
    const { body } = await mine.read(query)
    assert.deepEqual([numbersOf(body), body.hasMore], [[8, 9, 10], false])
    assert.deepEqual(numbersOf((await mine.read(query)).body), [8, 9, 10], 'the same cursor, the same events')
  })

  test('starts and ends a page anywhere in a page of the log', async () => {
    const { accountId, read } = await newReader()
    const all = Array.from({ length: 210 }, (_, index) => index + 1)
    await emit(accountId, numbered(1, 205))
    await emit(accountId, numbered(206, 5))
    for (const limit of [40, 99, 100, 101, 200]) {
      const [seen, ids]: [number[], string[]] = [[], []]
      for (let [query, hasMore] = ['', true]; hasMore; ) {
        const { body } = await read(`?limit=${limit}${query}`)
        seen.push(...numbersOf(body))
        ids.push(...body.items.map(({ eventId }: any) => eventId))
        query = `&after=${body.nextCursor}`
        hasMore = body.hasMore
        assert.equal(body.items.length, Math.min(limit, 210 - (seen.length - body.items.length)), 'a page is full where there is more')
      }
      assert.deepEqual(seen, all, `by ${limit}`)
      assert.equal(new Set(ids).size, 210)
    }
  })

  test('returns an empty page to a new account, and later events from its cursor', async () => {
    const { accountId, read } = await newReader()
    const { body } = await read()
    assert.deepEqual(body, { items: [], nextCursor: body.nextCursor, hasMore: false })
    await emit(accountId, numbered(1, 2))
    assert.deepEqual(numbersOf((await read(`?after=${body.nextCursor}`)).body), [1, 2])
  })

  test('returns 50 events by default, and at most 200', async () => {
    const { accountId, read } = await newReader()
    await emit(accountId, numbered(1, 201))
    assert.deepEqual(numbersOf((await read()).body).length, 50)
    const { body } = await read('?limit=200')
    assert.deepEqual([body.items.length, body.hasMore], [200, true])
    assert.equal((await read('?limit=1')).body.items.length, 1)
  })

  const cursor = (text: string) => Buffer.from(text).toString('base64url')
  const NOT_OURS = 'is not a cursor that this feed has given out'
  const NOT_THERE = 'points to a place whose next events the log does not have; start again without it'
  const TYPES = `must be one or more of ${EVENT_KINDS.join(', ')}, separated by commas`
  const TIME = 'must be a time with its zone, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00'
  const REFUSED: [query: string, path: string, reason: string, code?: string][] = [
    ['since=yesterday', '/since', TIME],
    ['since=2026-01-31T08:00:00', '/since', TIME],
    ['since=', '/since', TIME],
    ['since=2026-01-31T08:00:00Z&after=now', '/since', 'must be absent if after is given'],
    ['types=', '/types', 'must not be empty'],
    ['types=message.heard', '/types', TYPES],
    ['types=sms.sent,', '/types', TYPES],
    ['types=sms.sent,%20sms.failed', '/types', TYPES],
    ['types=sms.sent&types=sms.failed', '/types', 'must be a string'],
    ['after=NOW', '/after', NOT_OURS, 'RCS_INVALID_CURSOR'],
    ['limit=0', '/limit', 'must be at least 1'],
    ['limit=201', '/limit', 'must be at most 200'],
    ['limit=ten', '/limit', 'must be a whole number'],
    ['limit=1.5', '/limit', 'must be a whole number'],
    ['cursor=x', '/cursor', 'is not known here; is it misspelt?'],
    ['after=', '/after', 'must not be empty', 'RCS_INVALID_CURSOR'],
    [`after=${'a'.repeat(101)}`, '/after', 'must have at most 100 characters', 'RCS_INVALID_CURSOR'],
    [`after=${cursor('1:1:0123abcd')}&after=${cursor('1:2:0123abcd')}`, '/after', 'must be a string', 'RCS_INVALID_CURSOR'],
    ...['1:0:', '1:1:0123abcd', '2:1:0123abcd', '1:9007199254740991:0123abcd', `1:1:' or 1=1`, '\0', '\x01'.repeat(41)]
      .map((text) => cursor(text))
      .concat('*', 'null', '12', 'A'.repeat(55), '%F0%9F%98%80')
      .map((after): [string, string, string, string] => [`after=${after}`, '/after', NOT_OURS, 'RCS_INVALID_CURSOR']),
  ]
  test('rejects an invalid limit, cursor, time or type', async () => {
    const { read } = await newReader()
    for (const [query, path, reason, code = 'RCS_INVALID_REQUEST'] of REFUSED) {
      assertError(await read(`?${query}`), 400, code, [[path, reason]], query)
    }
  })

  for (const [where, CURSOR_AT] of [
    ['at the end of a page', ''],
    ['within a page', '?limit=3'],
  ] as const) {
    test(`rejects a cursor ${where} of a log that was longer or had another event at that place`, async () => {
      const { accountId, read } = await newReader()
      await emit(accountId, numbered(1, 1))
      await emit(accountId, numbered(2, 3))
      const { nextCursor } = (await read(CURSOR_AT)).body
      const refusal = async () => {
        const gone = await read(`?after=${nextCursor}`)
        if (gone.status === 200) return undefined
        assertError(gone, 410, 'RCS_CURSOR_GONE', [['/after', NOT_THERE]])
        return NOT_THERE
      }
      assert.equal(await refusal(), undefined)
      const { rows } = await pool.query<{ last: number }>('select max(last_position) as last from log_pages where account_id = $1', [
        accountId,
      ])
      const { last } = rows[0] as { last: number }
      // A standby without the last event took over, and another event got its position.
      await pool.query('update log_pages set page_id = gen_random_uuid() where account_id = $1 and last_position = $2', [accountId, last])
      assert.equal(await refusal(), NOT_THERE)
      // The database was restored to before the last event.
      await pool.query('delete from log_pages where account_id = $1 and last_position = $2', [accountId, last])
      const setHead = (position: number) =>
        pool.query('update log_heads set last_position = $2 where account_id = $1', [accountId, position])
      await setHead(1)
      assert.equal(await refusal(), NOT_THERE)
      await pool.query('delete from log_pages where account_id = $1', [accountId])
      assert.equal(await refusal(), NOT_THERE)
    })
  }

  test('continues at a cursor whose event was deleted by retention, unless later events were deleted, too', async () => {
    const { accountId, read } = await newReader()
    const beginning = (await read()).body.nextCursor
    for (let n = 1; n <= 4; n += 1) await emit(accountId, numbered(n, 1))
    const cursors: string[] = [beginning]
    for (let n = 0; n < 4; n += 1) cursors.push((await read(`?limit=1&after=${cursors[n]}`)).body.nextCursor)
    const drop = (...positions: number[]) =>
      pool.query('delete from log_pages where account_id = $1 and last_position = any ($2)', [accountId, positions])
    const after = async (n: number) => {
      const { status, body } = await read(`?after=${cursors[n]}`)
      return status === 200 ? numbersOf(body) : status
    }
    await drop(1, 2)
    assert.deepEqual([await after(0), await after(1), await after(2), await after(3)], [410, 410, [3, 4], [4]])
    assert.deepEqual(numbersOf((await read()).body), [3, 4], 'without a cursor')
    await emit(accountId, numbered(5, 2))
    // Retention goes by time, and a later position may have an earlier time.
    await drop(4)
    const { body } = await read()
    assert.deepEqual([numbersOf(body), body.hasMore], [[3], true], 'the page ends before the gap')
    assert.equal((await read(`?after=${body.nextCursor}`)).status, 410)
    assert.deepEqual([await after(3), await after(4)], [410, [5, 6]])
    await drop(6)
    assert.deepEqual([await after(3), await after(4)], [410, 410], 'the end is gone')
    await drop(3)
    for (const query of ['', '?after=now', '?since=2026-01-31T08:00:00Z', '?types=sms.sent']) {
      const { nextCursor, ...end } = (await read(query)).body
      assert.deepEqual(end, { items: [], hasMore: false }, `nothing is left: ${query}`)
      assert.deepEqual((await read(`?after=${nextCursor}`)).body, { items: [], nextCursor, hasMore: false })
    }
  })

  test('starts at the end with after=now', async () => {
    const { accountId, read } = await newReader()
    for (const from of [0, 1, 4]) {
      if (from > 0) await emit(accountId, numbered(from, 3))
      const { body } = await read('?after=now&limit=2&types=webhook.test')
      assert.deepEqual(body, { items: [], nextCursor: body.nextCursor, hasMore: false })
      assert.deepEqual((await read(`?after=${body.nextCursor}`)).body, body)
      await emit(accountId, numbered(100 + from, 1))
      assert.deepEqual(numbersOf((await read(`?after=${body.nextCursor}`)).body), [100 + from])
    }
  })

  test('starts with the events that were recorded at a time or later', async () => {
    const [{ accountId, read }, other] = [await newReader(), await newReader()]
    const since = async (time: string, more = '') => (await read(`?limit=200&since=${encodeURIComponent(time)}${more}`)).body
    assert.deepEqual((await since('2026-01-31T08:00:00Z')).items, [])
    await emit(other.accountId, numbered(1, 3))
    for (let n = 1; n <= 9; n += 1) await emit(accountId, numbered(10 * n, n))
    const at = (n: number, ms = 0) => new Date(Date.UTC(2026, 0, n) + ms).toISOString()
    await pool.query(
      `update log_pages p set placed_at = timestamptz '2025-12-31Z' + n * interval '1 day'
       from (select page_id, row_number() over (order by last_position) as n from log_pages where account_id = $1) as numbered
       where p.account_id = $1 and p.page_id = numbered.page_id`,
      [accountId],
    )
    const numbers = (from: number) =>
      Array.from({ length: 10 - from }, (_, i) => numbered(10 * (from + i), from + i).map(({ data }) => data.endpointId)).flat()
    for (let n = 1; n <= 9; n += 1) {
      assert.deepEqual(numbersOf(await since(at(n))), numbers(n), `${n}`)
      assert.deepEqual(numbersOf(await since(at(n, -1))), numbers(n))
      assert.deepEqual(numbersOf(await since(at(n, 1))), n < 9 ? numbers(n + 1) : [])
    }
    assert.deepEqual(numbersOf(await since('2025-01-01T01:00:00+01:00')), numbers(1))
    const { nextCursor, hasMore, items } = await since('9999-12-31T23:59:59Z')
    assert.deepEqual([items, hasMore], [[], false])
    await emit(accountId, numbered(1_000, 1))
    assert.deepEqual(numbersOf((await read(`?after=${nextCursor}`)).body), [1_000])
    // The first pages are deleted, and the rest is still found.
    await pool.query(`delete from log_pages where account_id = $1 and placed_at < $2`, [accountId, at(5)])
    assert.deepEqual(numbersOf(await since(at(2))), [...numbers(5), 1_000])
    const first = await since(at(7), '&limit=4')
    assert.equal(first.details?.[0].reason, 'must be a whole number', 'given twice')
    const { body } = await read(`?limit=4&since=${at(7)}`)
    assert.deepEqual([numbersOf(body), body.hasMore], [[70, 71, 72, 73], true])
    assert.deepEqual(numbersOf((await read(`?after=${body.nextCursor}&limit=4`)).body), [74, 75, 76, 80])
  })

  test('returns only the given types, page by page, and skips the others in bounded steps', async () => {
    const { accountId, read } = await newReader()
    const kinds = ['message.sent', 'message.read', 'sms.sent'] as const
    const data = DATA['message.sent'][0]
    await emit(
      accountId,
      Array.from({ length: 250 }, (_, n) => ({ kind: kinds[n % 3] as string, data: n % 3 === 2 ? { ...data, segments: n } : data })),
    )
    for (const limit of [5, 83, 84, 200]) {
      const seen: number[] = []
      for (let [query, hasMore] = ['', true]; hasMore; ) {
        const { body } = await read(`?limit=${limit}&types=sms.sent,sms.failed${query}`)
        seen.push(...body.items.map((item: any) => item.data.segments))
        assert.ok(body.items.length <= limit)
        query = `&after=${body.nextCursor}`
        hasMore = body.hasMore
      }
      assert.deepEqual(
        seen,
        Array.from({ length: 83 }, (_, n) => 3 * n + 2),
        `by ${limit}`,
      )
    }
    const { body } = await read('?types=message.read&limit=1')
    const { body: other } = await read(`?types=message.sent&limit=1&after=${body.nextCursor}`)
    assert.deepEqual([body.items[0].type, other.items[0].type], ['message.read', 'message.sent'], 'types may change')

    // 30,000 events of another type: a page looks at 8,400 at most.
    await pool.query(
      `insert into log_pages (account_id, event_count, events)
       select $1, 100, (select json_agg(json_build_array('message.sent', now(), gen_random_uuid(), null, 'a', '+48500100200', null, false, null)) from generate_series(1, 100 + 0 * n))
       from generate_series(1, 300) as n`,
      [accountId],
    )
    await emit(accountId, [{ kind: 'sms.sent', data: { ...data, segments: 1_000 } }])
    const found: [items: number, hasMore: boolean][] = []
    const end = (await read('?types=sms.sent&limit=200')).body
    for (let [cursor, hasMore] = [end.nextCursor, true]; hasMore; ) {
      const { body: page } = await read(`?types=sms.sent&after=${cursor}`)
      found.push([page.items.length, page.hasMore])
      cursor = page.nextCursor
      hasMore = page.hasMore
    }
    assert.equal(end.items.length, 83)
    assert.ok(found.length > 2 && found.length < 10, `${found.length} pages`)
    assert.deepEqual(found.at(-1), [1, false])
    for (const page of found.slice(0, -1)) assert.deepEqual(page, [0, true])
  })

  test('reads equally few blocks at any depth, even with a plan from when the log was short', async (t) => {
    const [mine, other] = [await newReader(), await newReader()]
    const client = await hotPool.connect()
    t.after(() => client.release(true))
    await client.query(`set plan_cache_mode = force_generic_plan; prepare feed (int, bigint, int, text, bool) as ${READ_FEED}`)
    await client.query(`execute feed (${mine.accountId}, 0, 11, '', true)`)
    await pool.query(
      `insert into log_pages (account_id, event_count, last_position, events)
       select (array[$1, $2]::int[])[1 + n % 2], 1, n, '[["webhook.test", "2026-11-15T09:30:00.125Z", null, null, null, null, null, null, {}]]'
       from generate_series(1, 20000) as n`,
      [mine.accountId, other.accountId],
    )
    const costs = async (depth: number, { limit = 11, pages = 11 } = {}) => {
      const plan = await client.query(
        `explain (analyze, buffers, format json) execute feed (${mine.accountId}, ${depth}, ${limit}, '', true)`,
      )
      const [{ Plan }] = plan.rows[0]['QUERY PLAN']
      assert.equal(Plan['Actual Rows'], pages)
      const blocks = Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
      assert.ok(blocks < 60, `${blocks} blocks at ${depth}`)
    }
    for (const depth of [0, 10_000, 19_800]) await costs(depth)
    // Pages of 100 events, of which few are needed.
    await pool.query(
      `insert into log_pages (account_id, event_count, last_position, events)
       select $1, 100, 20000 + 100 * n, (select json_agg(json_build_array('webhook.test', now(), gen_random_uuid(), null, null, null, null, null, '{}'::json))
         from generate_series(1, 100) where n > 0)
       from generate_series(1, 100) as n`,
      [mine.accountId],
    )
    await costs(20_150, { limit: 201, pages: 3 })
    // A cursor into deleted pages.
    await pool.query('delete from log_pages where last_position <= 2000')
    await ownerOf(pool).query('vacuum log_pages')
    await costs(1_000)
  })
})

describe('the OpenAPI document', () => {
  const document = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8'))

  test('has a webhook for every event kind, with the signed headers', () => {
    assert.deepEqual(Object.keys(document.webhooks), [...EVENT_KINDS])
    for (const [kind, { post }] of Object.entries<any>(document.webhooks)) {
      assert.deepEqual(post.requestBody.content['application/json'].schema, { $ref: `#/components/schemas/${kind}` })
      assert.deepEqual(document.components.schemas[kind].properties.type.enum, [kind])
      const names = post.parameters.map(({ $ref }: any) => document.components.parameters[$ref.split('/').at(-1)].name)
      assert.deepEqual(names, ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
      assert.deepEqual(post.security, [])
    }
  })
})

test('the function in docs/webhooks-and-events.md accepts only a recent signature with one of the secrets', async () => {
  const page = readFileSync(new URL('../../../docs/webhooks-and-events.md', import.meta.url), 'utf8')
  const [, code = ''] = /Or by hand:\n\n```js\n(.*?)```/s.exec(page) ?? []
  const { isFromHerald } = await import(`data:text/javascript,${encodeURIComponent(code)}`)
  const [secret, older] = [`whsec_${Buffer.alloc(32, 7).toString('base64')}`, `whsec_${Buffer.alloc(32, 8).toString('base64')}`]
  const body = '{"eventId":"0198c0de-0000-7000-8000-000000000003","data":{"text":"Zażółć 😀"}}'
  const signed = (by: string[], at = new Date()) => ({
    'webhook-id': '0198c0de-0000-7000-8000-000000000003',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': by.map((each) => new Webhook(each).sign('0198c0de-0000-7000-8000-000000000003', at, body)).join(' '),
  })
  const right = signed([secret])
  assert.ok(isFromHerald(secret, right, body))
  assert.ok(isFromHerald(secret, right, Buffer.from(body)))
  assert.ok(isFromHerald(secret, signed([older, secret]), body))
  assert.ok(!isFromHerald(secret, signed([older]), body))
  assert.ok(!isFromHerald(secret, right, `${body} `))
  for (const minutes of [-6, 6]) assert.ok(!isFromHerald(secret, signed([secret], new Date(Date.now() + minutes * 60_000)), body))
  for (const name of Object.keys(right)) {
    for (const value of [undefined, '', 'ą', `${right[name as keyof typeof right]}0`]) {
      assert.ok(!isFromHerald(secret, { ...right, [name]: value }, body), `${name} ${value}`)
    }
  }
})

/** Checks a response against the OpenAPI document alone, as a caller's tools would. */
function describedResponse() {
  const document = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8'))
  const ajv = new Ajv2020({ strict: false, discriminator: false, validateFormats: false })
  ajv.addSchema(document, 'document')
  const pointer = '/paths/~1events/get/responses/200/content/application~1json/schema'
  return ajv.compile({ $ref: `document#${pointer}` })
}
