import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { Webhook } from 'standardwebhooks'
import { READ_FEED } from '../../src/events/feed.ts'
import { EVENT_KINDS, type EventKind } from '../../src/events/kinds.ts'
import { createTestDatabase } from '../support/database.ts'
import { routeUntilDone } from '../support/log.ts'
import { assertError, call, createCaller, startTestService } from '../support/service.ts'

const { url: HERALD_DATABASE_URL, pool, hotPool } = await createTestDatabase()
const { url } = await startTestService({ HERALD_DATABASE_URL }, { roles: ['api'] })

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

async function newReader() {
  const { accountId, authorization } = await createCaller(pool)
  const read = (query = '') => call(`${url}/v1/events${query}`, { authorization })
  return { accountId, authorization, read }
}

const numbersOf = (body: any) => body.items.map(({ data }: any) => data.endpointId)

describe('GET /events', () => {
  test('counts towards the default limit', async () => {
    const { read, authorization } = await newReader()
    const responses = await Promise.all(Array.from({ length: 30 }, () => read()))
    assert.deepEqual([...new Set(responses.map(({ status }) => status))], [200])
    assert.match(responses[0]?.headers.get('ratelimit-policy') ?? '', /"default";q=30;w=60/)
    assert.equal((await read()).status, 429)
    assert.equal((await call(`${url}/v1/agents`, { authorization })).status, 429)
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
  const NOT_THERE = 'points to a place that this log does not have; start again without it'
  const REFUSED: [query: string, path: string, reason: string][] = [
    ['limit=0', '/limit', 'must be at least 1'],
    ['limit=201', '/limit', 'must be at most 200'],
    ['limit=ten', '/limit', 'must be a whole number'],
    ['limit=1.5', '/limit', 'must be a whole number'],
    ['cursor=x', '/cursor', 'is not known here; is it misspelt?'],
    ['after=', '/after', 'must not be empty'],
    [`after=${'a'.repeat(101)}`, '/after', 'must have at most 100 characters'],
    [`after=${cursor('1:1:0123abcd')}&after=${cursor('1:2:0123abcd')}`, '/after', 'must be a string'],
    ...['1:0:', '1:1:0123abcd', '2:1:0123abcd', '1:9007199254740991:0123abcd', `1:1:' or 1=1`, '\0', '\x01'.repeat(41)]
      .map((text) => cursor(text))
      .concat('*', 'null', '12', 'A'.repeat(55), '%F0%9F%98%80')
      .map((after): [string, string, string] => [`after=${after}`, '/after', NOT_OURS]),
  ]
  test('rejects an invalid limit or cursor', async () => {
    const { read } = await newReader()
    for (const [query, path, reason] of REFUSED) {
      assertError(await read(`?${query}`), 400, 'RCS_INVALID_REQUEST', [[path, reason]], query)
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
        const { status, body } = await read(`?after=${nextCursor}`)
        return status === 200 ? undefined : body.details?.[0]?.reason
      }
      assert.equal(await refusal(), undefined)
      const { rows } = await pool.query<{ last: number }>('select max(last_position) as last from log_pages where account_id = $1', [
        accountId,
      ])
      const { last } = rows[0] as { last: number }
      // A standby without the last event took over, and another event got its position.
      await pool.query('update log_pages set page_id = gen_random_uuid() where account_id = $1 and last_position = $2', [accountId, last])
      assert.equal(await refusal(), NOT_THERE)
      // The last event is missing.
      await pool.query('delete from log_pages where account_id = $1 and last_position = $2', [accountId, last])
      assert.equal(await refusal(), NOT_THERE)
      await pool.query('delete from log_pages where account_id = $1', [accountId])
      const setHead = (position: number) =>
        pool.query('update log_heads set last_position = $2 where account_id = $1', [accountId, position])
      await setHead(1)
      assert.equal(await refusal(), NOT_THERE)
      // All events up to there were deleted by retention.
      await setHead(last)
      assert.equal(await refusal(), undefined)
    })
  }

  test('reads equally few blocks at any depth, even with a plan from when the log was short', async (t) => {
    const [mine, other] = [await newReader(), await newReader()]
    const client = await hotPool.connect()
    t.after(() => client.release(true))
    await client.query(`set plan_cache_mode = force_generic_plan; prepare feed (int, bigint, int, text) as ${READ_FEED}`)
    await client.query(`execute feed (${mine.accountId}, 0, 11, '')`)
    await pool.query(
      `insert into log_pages (account_id, event_count, last_position, events)
       select (array[$1, $2]::int[])[1 + n % 2], 1, n, '[["webhook.test", "2026-11-15T09:30:00.125Z", null, null, null, null, null, null, {}]]'
       from generate_series(1, 20000) as n`,
      [mine.accountId, other.accountId],
    )
    const costs = async (depth: number, { limit = 11, pages = 11 } = {}) => {
      const plan = await client.query(`explain (analyze, buffers, format json) execute feed (${mine.accountId}, ${depth}, ${limit}, '')`)
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
    await pool.query('vacuum log_pages')
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
