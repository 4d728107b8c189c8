import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { recordEvent } from '../../src/events/changes.ts'
import type { EventKind } from '../../src/events/kinds.ts'
import { disableEndpoint } from '../../src/webhooks/change-endpoint.ts'
import { createTestDatabase } from '../support/database.ts'
import { readWebhookSecrets } from '../support/keyring.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { assertError, call, createCaller, type ErrorDetails, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startSink } from '../webhooks/support.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const limits = { HERALD_LIMITS: 'memory', HERALD_LIMIT_OTHERS_PER_MINUTE: '100000' }
// Without HERALD_CARRIERS, so endpoints may be on this machine.
const { url } = await startTestService({ HERALD_DATABASE_URL, ...limits }, { roles: ['api', 'webhooks'] })
const strict = await startTestService({ HERALD_DATABASE_URL, ...limits, HERALD_WEBHOOK_ALLOW_PRIVATE: 'false' }, { roles: ['api'] })

const HOOK = 'https://hooks.example.com/herald'
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const NOT_FOUND = 'RCS_WEBHOOK_ENDPOINT_NOT_FOUND'

async function newCaller(at = url) {
  const { accountId, authorization } = await createCaller(pool)
  const ask = (method: string, path = '', body?: unknown) => call(`${at}/v1/webhook-endpoints${path}`, { method, authorization, body })
  const create = async (body: object = { url: HOOK }) => (await ask('POST', '', body)).body
  const emit = (kind: EventKind = 'message.sent') => recordEvent(pool, { accountId, kind, data: {} })
  return { accountId, ask, create, emit }
}

const eventIds = async (accountId: number): Promise<string[]> =>
  (await pool.query(`select event_id from ${LOGGED_EVENTS} as e where account_id = $1 order by page, place`, [accountId])).rows.map(
    ({ event_id }) => event_id,
  )

describe('POST /webhook-endpoints', () => {
  test('creates an endpoint, and returns its secret this once', async () => {
    const { ask } = await newCaller()
    const { status, headers, body } = await ask('POST', '', { url: ' https://Hooks.example.com:443/a/../herald', types: ['sms.sent'] })
    const { endpointId, secret, createdAt, secrets, ...rest } = body
    assert.deepEqual([status, headers.get('location')], [201, `/v1/webhook-endpoints/${endpointId}`])
    assert.deepEqual(rest, { url: HOOK, types: ['sms.sent'], status: 'ACTIVE', pending: 0, failed: 0 })
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.match(createdAt, TIME)
    assert.deepEqual([secrets.length, Object.keys(secrets[0])], [1, ['createdAt']])
    assert.deepEqual(
      (await readWebhookSecrets(pool, endpointId)).map((stored) => stored.secret),
      [secret],
    )
    const shown = await ask('GET', `/${endpointId}`)
    assert.deepEqual([shown.status, shown.body], [200, { endpointId, createdAt, secrets, ...rest }])
    assert.deepEqual((await ask('GET')).body, { items: [shown.body], nextCursor: null })
  })

  test('selects all types if the types are absent, null or *', async () => {
    const { create } = await newCaller()
    for (const [index, types] of [undefined, null, ['*']].entries())
      assert.equal((await create({ url: `${HOOK}/${index}`, types })).types, null)
  })

  test('gets 409 with the id of the endpoint that has the URL, also concurrently, but not from another account', async () => {
    const [one, other] = [await newCaller(), await newCaller()]
    const tries = await Promise.all(Array.from({ length: 5 }, () => one.ask('POST', '', { url: HOOK })))
    const [created, ...more] = tries.filter(({ status }) => status === 201)
    assert.deepEqual([created?.status, more], [201, []])
    for (const refused of tries.filter(({ status }) => status !== 201)) {
      const reason = `is already the URL of the endpoint ${created?.body.endpointId}`
      assertError(refused, 409, 'RCS_WEBHOOK_ENDPOINT_EXISTS', [['/url', reason]])
    }
    assert.equal((await other.ask('POST', '', { url: HOOK })).status, 201)
  })

  test('accepts 20 endpoints of an account, also concurrently, and as many again after a deletion', async () => {
    const { ask } = await newCaller()
    const tries = await Promise.all(Array.from({ length: 22 }, (_, n) => ask('POST', '', { url: `${HOOK}/${n}` })))
    const refused = tries.filter(({ status }) => status !== 201)
    assert.equal(refused.length, 2)
    const reason = 'The account has 20 webhook endpoints, the maximum: delete one that you no longer need.'
    for (const one of refused) assertError(one, 429, 'RCS_QUOTA_EXCEEDED', [['', reason]])
    assert.equal(refused[0]?.headers.get('retry-after'), '3600')
    const [first] = tries.filter(({ status }) => status === 201)
    assert.equal((await ask('DELETE', `/${first?.body.endpointId}`)).status, 204)
    assert.equal((await ask('POST', '', { url: HOOK })).status, 201)
  })

  const PRIVATE = (host: string) =>
    `must have a host of the public internet, unlike ${host}; for development, HERALD_WEBHOOK_ALLOW_PRIVATE=true allows it`
  const REFUSED: [body: unknown, ...details: ErrorDetails][] = [
    [{}, ['/url', 'is required']],
    [{ url: null }, ['/url', 'is required']],
    [{ url: 7 }, ['/url', 'must be a string']],
    [{ url: '' }, ['/url', 'must not be empty']],
    [{ url: 'hooks' }, ['/url', 'must be a URL, such as https://hooks.example.com/herald']],
    [{ url: 'http://hooks.example.com/' }, ['/url', 'must begin with https://']],
    [{ url: 'https://127.1/' }, ['/url', PRIVATE('127.0.0.1')]],
    [{ url: 'http://localhost:3000/' }, ['/url', PRIVATE('localhost')]],
    [{ url: 'https://[::ffff:10.0.0.1]/' }, ['/url', PRIVATE('[::ffff:a00:1]')]],
    [
      { url: `https://a.example.com/${'x'.repeat(2027)}` },
      ['/url', 'must have at most 2048 characters'],
      ['/url', 'must have at most 2048 characters'],
    ],
    [{ url: HOOK, events: ['sms.sent'] }, ['/events', 'is not known here; is it misspelt?']],
    [{ url: HOOK, types: 'sms.sent' }, ['/types', 'must be an array']],
    [{ url: HOOK, types: [] }, ['/types', 'must have at least 1 item']],
    [{ url: HOOK, types: ['sms.sent', 'sms.sent'] }, ['/types/1', 'appears twice']],
    [{ url: HOOK, types: ['*', 'sms.sent'] }, ['/types', 'must have no other item than "*"']],
  ]
  test('rejects an invalid URL, unknown types and unknown fields', async () => {
    const { ask } = await newCaller(strict.url)
    for (const [body, ...details] of REFUSED)
      assertError(await ask('POST', '', body), 400, 'RCS_INVALID_REQUEST', details, JSON.stringify(body))
    const { status, body } = await ask('POST', '', { url: HOOK, types: ['sms.heard'] })
    assert.deepEqual([status, body.details[0].path], [400, '/types/0'])
    assert.match(body.details[0].reason, /^must be one of message\.sent, .*\*$/)
    assert.deepEqual((await ask('GET')).body.items, [])
  })

  test('accepts a URL on this machine with the simulated network, and no other private one', async () => {
    const { ask, create } = await newCaller()
    assert.equal((await create({ url: 'http://localhost:3000/' })).url, 'http://localhost:3000/')
    assertError(await ask('POST', '', { url: 'http://10.0.0.1/' }), 400, 'RCS_INVALID_REQUEST', [['/url', PRIVATE('10.0.0.1')]])
  })
})

describe('GET /webhook-endpoints', () => {
  test('lists the endpoints of the account page by page, by status, and in both orders', async () => {
    const { ask, create } = await newCaller()
    const ids: number[] = []
    for (let n = 0; n < 5; n += 1) ids.push((await create({ url: `${HOOK}/${n}` })).endpointId)
    await ask('PATCH', `/${ids[2]}`, { status: 'DISABLED' })
    const walk = async (query: string) => {
      const seen: number[] = []
      for (let cursor = ''; cursor !== 'null'; ) {
        const { body } = await ask('GET', `?limit=2${query}${cursor && `&cursor=${cursor}`}`)
        seen.push(...body.items.map(({ endpointId }: any) => endpointId))
        cursor = String(body.nextCursor)
      }
      return seen
    }
    assert.deepEqual(await walk(''), ids.toReversed())
    assert.deepEqual(await walk('&sort=endpointId'), ids)
    assert.deepEqual(await walk('&status=ACTIVE&sort=createdAt'), ids.toSpliced(2, 1))
    assert.deepEqual(await walk('&status=DISABLED'), [ids[2]])
    const { nextCursor } = (await ask('GET', '?limit=2')).body
    for (const query of ['cursor=x', `cursor=${nextCursor}&sort=createdAt`, `cursor=${nextCursor}&status=ACTIVE`])
      assert.equal((await ask('GET', `?${query}`)).body.code, 'RCS_INVALID_CURSOR', query)
    for (const query of ['limit=0', 'limit=201', 'sort=url', 'status=active', 'account=1'])
      assert.equal((await ask('GET', `?${query}`)).body.code, 'RCS_INVALID_REQUEST', query)
  })
})

describe('a webhook endpoint', () => {
  test('of another account, deleted or unknown does not exist, for every operation', async () => {
    const [mine, other] = [await newCaller(), await newCaller()]
    const [foreign, deleted] = [await other.create(), await mine.create()]
    assert.equal((await mine.ask('DELETE', `/${deleted.endpointId}`)).status, 204)
    for (const id of [foreign.endpointId, deleted.endpointId, 2_000_000_000, 2 ** 31, 2 ** 53, 0, -1, 'x', '1e3', '%00']) {
      for (const [method, path, body] of [
        ['GET', ''],
        ['PATCH', '', { types: ['*'] }],
        ['DELETE', ''],
        ['POST', '/rotate'],
        ['POST', '/test'],
        ['POST', '/replay', { failed: true }],
        ['GET', '/attempts'],
      ] as const) {
        assertError(
          await mine.ask(method, `/${id}${path}`, body),
          404,
          NOT_FOUND,
          [['/id', 'names no webhook endpoint of this account']],
          `${method} ${id}${path}`,
        )
      }
    }
    assert.deepEqual((await mine.ask('GET')).body.items, [])
    const { status, secrets } = (await other.ask('GET', `/${foreign.endpointId}`)).body
    assert.deepEqual([status, secrets.length], ['ACTIVE', 1])
  })

  test('is changed by PATCH: its URL, its types and its status', async () => {
    const { ask, create } = await newCaller()
    const { endpointId, secret: _, ...created } = await create({ url: HOOK, types: ['sms.sent'] })
    const taken = await create({ url: `${HOOK}/taken` })
    const patch = (body: unknown) => ask('PATCH', `/${endpointId}`, body)
    const moved = await patch({ url: `${HOOK}/2`, types: ['*'] })
    assert.deepEqual([moved.status, moved.body], [200, { endpointId, ...created, url: `${HOOK}/2`, types: null }])
    assert.equal((await patch({ url: `${HOOK}/2` })).status, 200, 'its own URL')
    const refused = await patch({ url: `${HOOK}/taken`, types: ['sms.sent'], status: 'DISABLED' })
    assertError(refused, 409, 'RCS_WEBHOOK_ENDPOINT_EXISTS', [['/url', `is already the URL of the endpoint ${taken.endpointId}`]])
    assert.deepEqual((await ask('GET', `/${endpointId}`)).body, moved.body, 'nothing has changed')
    const { disabledAt, ...disabled } = (await patch({ status: 'DISABLED' })).body
    assert.deepEqual(disabled, { ...moved.body, status: 'DISABLED', disabledBecause: 'CALLER' })
    assert.match(disabledAt, TIME)
    const state: ErrorDetails = [['', 'The endpoint is DISABLED: set its status to ACTIVE first.']]
    assertError(await ask('POST', `/${endpointId}/test`), 409, 'RCS_WEBHOOK_ENDPOINT_STATE', state)
    assertError(await ask('POST', `/${endpointId}/replay`, { failed: true }), 409, 'RCS_WEBHOOK_ENDPOINT_STATE', state)
    const enabled = await patch({ status: 'ACTIVE' })
    assert.deepEqual(enabled.body, { ...moved.body, missedSince: disabledAt })
    assert.deepEqual((await patch({ status: 'ACTIVE' })).body, moved.body)
    await disableEndpoint(pool, endpointId)
    const reason = 'The operator has disabled the endpoint, and only the operator can enable it.'
    assertError(await patch({ status: 'ACTIVE' }), 409, 'RCS_WEBHOOK_ENDPOINT_STATE', [['/status', reason]])
    for (const body of [{}, { types: null }, { status: 'PAUSED' }, { url: '' }, { secret: 'x' }, { types: [] }, []])
      assert.equal((await patch(body)).status, 400, JSON.stringify(body))
  })

  test('that is deleted takes its pending events with it', async () => {
    const { ask, create, emit } = await newCaller()
    const sink = await startSink(() => 503)
    const { endpointId } = await create({ url: sink.url })
    await emit()
    await until('it is posted', () => sink.arrived.length > 0)
    await until('it is pending', async () => (await ask('GET', `/${endpointId}`)).body.pending === 1)
    const { status, body } = await ask('DELETE', `/${endpointId}`)
    assert.deepEqual([status, body], [204, ''])
    for (const table of ['webhook_deliveries', 'webhook_secrets', 'webhook_endpoints'])
      assert.equal(
        (await pool.query(`select from ${table} where ${table === 'webhook_endpoints' ? 'id' : 'endpoint_id'} = $1`, [endpointId]))
          .rowCount,
        0,
      )
  })
})

describe('POST /webhook-endpoints/{id}/rotate', () => {
  test('returns a new secret, and events are signed with both', async () => {
    const { ask, create, emit } = await newCaller()
    const sink = await startSink()
    const { endpointId, secret: first } = await create({ url: sink.url })
    const { status, body } = await ask('POST', `/${endpointId}/rotate`)
    assert.deepEqual([status, Object.keys(body)], [200, ['endpointId', 'secret', 'earlierSecretsEndAt']])
    const hours = (Date.parse(body.earlierSecretsEndAt) - Date.now()) / 3_600_000
    assert.ok(hours > 23.9 && hours < 24.1, `${hours} hours`)
    const { secrets } = (await ask('GET', `/${endpointId}`)).body
    assert.deepEqual(
      secrets.map(({ endsAt }: any) => endsAt),
      [undefined, body.earlierSecretsEndAt],
    )
    await emit()
    const { headers, body: posted } = await until('it is posted', () => sink.arrived[0])
    for (const secret of [first, body.secret]) new Webhook(secret).verify(posted, headers as Record<string, string>)
  })

  test('accepts an empty body or object, and gets 429 for an eleventh secret', async () => {
    const { ask, create } = await newCaller()
    const path = `/${(await create()).endpointId}/rotate`
    assert.equal((await ask('POST', path, { now: true })).status, 400)
    const bodies = [undefined, {}, '', 'null']
    for (let n = 0; n < 9; n += 1) assert.equal((await ask('POST', path, bodies[n % 4])).status, 200, `${bodies[n % 4]}`)
    const refused = await ask('POST', path)
    assert.deepEqual([refused.status, refused.body.code], [429, 'RCS_QUOTA_EXCEEDED'])
    assert.match(refused.body.details[0].reason, /^The endpoint has 10 active secrets, the maximum: the first one ends at \S+Z\.$/)
    const seconds = Number(refused.headers.get('retry-after'))
    assert.ok(seconds > 86_000 && seconds <= 86_400, `${seconds}`)
  })
})

describe('POST /webhook-endpoints/{id}/test', () => {
  test('responds with the result of the attempt, accepted or not', async () => {
    const { ask, create } = await newCaller()
    const sink = await startSink(async ({ path }, response) => {
      response.writeHead(path === '/hook' ? 200 : 503).end('Noted')
      return undefined
    })
    for (const [address, status] of [
      [sink.url, 200],
      [`${sink.url}/bad`, 503],
    ] as const) {
      const { endpointId, secret } = await create({ url: address, types: ['sms.sent'] })
      const { status: ok, body } = await ask('POST', `/${endpointId}/test`, {})
      const { attemptId, eventId, attemptedAt, durationMs, nextAttemptAt, ...result } = body
      assert.equal(nextAttemptAt !== undefined, status === 503)
      assert.deepEqual([ok, result], [200, { endpointId, type: 'webhook.test', attempt: 1, status, response: 'Noted' }])
      const posted = sink.arrived.at(-1)
      assert.equal(posted?.event.eventId, eventId)
      new Webhook(secret).verify(posted?.body as string, posted?.headers as Record<string, string>)
    }
    const { endpointId } = await create({ url: 'http://127.0.0.1:1/' })
    const { error, status, response } = (await ask('POST', `/${endpointId}/test`)).body
    assert.deepEqual([error, status, response], ['the connection was refused', undefined, undefined])
  })
})

test('POST /webhook-endpoints/{id}/test responds 404 as soon as the endpoint is deleted', async () => {
  const { ask, create } = await newCaller()
  const hanging = await startSink(() => undefined)
  const { endpointId } = await create({ url: hanging.url })
  const testing = ask('POST', `/${endpointId}/test`)
  await until('it is called', () => hanging.arrived.length === 1)
  assert.equal((await ask('DELETE', `/${endpointId}`)).status, 204)
  assertError(await testing, 404, 'RCS_WEBHOOK_ENDPOINT_NOT_FOUND')
})

describe('POST /webhook-endpoints/{id}/replay', () => {
  /** An endpoint that has accepted three events. */
  async function withEvents() {
    const caller = await newCaller()
    const sink = await startSink()
    const { endpointId } = await caller.create({ url: sink.url, types: ['message.sent', 'sms.sent'] })
    for (const kind of ['message.sent', 'message.read', 'sms.sent', 'message.sent'] as const) await caller.emit(kind)
    await until(
      'three are accepted',
      async () => sink.arrived.length === 3 && (await caller.ask('GET', `/${endpointId}`)).body.pending === 0,
    )
    const posted = (count: number) =>
      until(
        'they are accepted',
        async () => sink.arrived.length === count && (await caller.ask('GET', `/${endpointId}`)).body.pending === 0,
      )
    return { ...caller, sink, endpointId, posted, replay: (body: unknown) => caller.ask('POST', `/${endpointId}/replay`, body) }
  }

  test('posts the events of a time range, one event, or failed events again, and returns how many', async () => {
    const { accountId, endpointId, sink, posted, replay } = await withEvents()
    const before = new Date(Date.now() - 3_600_000).toISOString()
    const all = await replay({ from: before })
    assert.deepEqual([all.status, all.body], [200, { endpointId, replayed: 3, alreadyDue: 0 }])
    await posted(6)
    assert.deepEqual((await replay({ from: before, to: new Date(Date.now() - 1_800_000).toISOString() })).body.replayed, 0)
    assert.deepEqual((await replay({ from: before, to: new Date(Date.now() + 60_000).toISOString() })).body.replayed, 3)
    await posted(9)
    assert.deepEqual((await replay({ failed: true })).body, { endpointId, replayed: 0, alreadyDue: 0 })
    const [, read] = await eventIds(accountId)
    assert.deepEqual((await replay({ eventId: read })).body, { endpointId, replayed: 1, alreadyDue: 0 })
    await until('it is posted', () => sink.arrived.at(-1)?.event.eventId === read)
  })

  test('posts failed events again', async () => {
    const { ask, create, emit } = await newCaller()
    const sink = await startSink(() => 503)
    const { endpointId } = await create({ url: sink.url })
    await emit()
    await until('an attempt failed', async () => (await ask('GET', `/${endpointId}/attempts?failed=true`)).body.items.length > 0)
    sink.respondWith(() => 204)
    const from = new Date(Date.now() - 60_000).toISOString()
    assert.deepEqual((await ask('POST', `/${endpointId}/replay`, { failed: true, from })).body, { endpointId, replayed: 1, alreadyDue: 0 })
    await until('it is accepted', async () => (await ask('GET', `/${endpointId}`)).body.pending === 0)
  })

  test('runs once at a time for an endpoint; a killed one blocks the next for half a minute', async () => {
    const { endpointId, replay } = await withEvents()
    const running: ErrorDetails = [['', 'A replay of the endpoint is running: try again when it is done.']]
    const blocked = await pool.connect()
    try {
      await blocked.query('begin; lock table webhook_deliveries in share mode')
      const first = replay({ from: '2026-01-01T00:00:00Z' })
      await until('it runs', async () => {
        const find = 'select from webhook_endpoints where id = $1 and replaying_until > now()'
        return (await pool.query(find, [endpointId])).rowCount === 1
      })
      assertError(await replay({ failed: true }), 409, 'RCS_WEBHOOK_ENDPOINT_STATE', running)
      await blocked.query('commit')
      assert.equal((await first).body.replayed, 3)
    } finally {
      blocked.release(true)
    }
    assert.equal((await replay({ failed: true })).status, 200)
    const lease = (end: string) => pool.query(`update webhook_endpoints set replaying_until = ${end} where id = $1`, [endpointId])
    await lease(`clock_timestamp() + interval '29 seconds'`)
    assertError(await replay({ failed: true }), 409, 'RCS_WEBHOOK_ENDPOINT_STATE', running)
    await lease(`clock_timestamp() - interval '1 second'`)
    assert.equal((await replay({ failed: true })).status, 200)
  })

  test('rejects a range of more than 200,000 events, and a range or event that does not exist', async () => {
    const { accountId, replay } = await withEvents()
    const future = new Date(Date.now() + 60_000).toISOString()
    const REFUSED: [body: unknown, ...details: ErrorDetails][] = [
      [{}, ['', 'must have eventId or from, or failed: true']],
      [{ failed: false }, ['', 'must have eventId or from, or failed: true']],
      [{ to: future }, ['', 'must have eventId or from, or failed: true']],
      [{ from: future }, ['/from', 'must be in the past']],
      [{ from: '2026-01-02T00:00:00Z', to: '2026-01-02T01:00:00+01:00' }, ['/to', 'must be later than from']],
      [{ from: '2026-01-02' }, ['/from', 'must be a time with its zone, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00']],
      [{ failed: 'true' }, ['/failed', 'must be true or false'], ['', 'must have eventId or from, or failed: true']],
      [{ eventId: 'x', failed: true }, ['/failed', 'must be absent if eventId is given']],
      [{ since: '2026-01-02T00:00:00Z', failed: true }, ['/since', 'is not known here; is it misspelt?']],
    ]
    for (const [body, ...details] of REFUSED) {
      const { status, body: error } = await replay(body)
      const unordered = (list: any[]) => new Set(list.map((one) => JSON.stringify(one)))
      assert.deepEqual(
        [status, error.code, unordered(error.details)],
        [400, 'RCS_INVALID_REQUEST', unordered(details.map(([path, reason]) => ({ path, reason })))],
        JSON.stringify(body),
      )
    }
    for (const eventId of ['x', '0198c0de-0000-7000-8000-000000000003'])
      assertError(await replay({ eventId }), 404, 'RCS_EVENT_NOT_FOUND', [['/eventId', 'names no event in the log of this account']])
    // As if 200,000 events had come since.
    await pool.query('update log_heads set last_position = last_position + 200000 where account_id = $1', [accountId])
    const reason = 'The range has more than 200000 events: choose a later from, or an earlier to'
    assertError(await replay({ from: '2026-01-01T00:00:00Z' }), 400, 'RCS_INVALID_REQUEST', [['/from', reason]])
    assert.equal((await replay({ failed: true })).status, 200, 'few have failed')
    await pool.query('update log_heads set last_position = last_position - 200000 where account_id = $1', [accountId])
  })
})

describe('GET /webhook-endpoints/{id}/attempts', () => {
  test('lists attempts page by page, newest first, of one event, and failed or accepted ones', async () => {
    const { accountId, ask, create, emit } = await newCaller()
    const sink = await startSink()
    const { endpointId } = await create({ url: sink.url })
    for (let n = 0; n < 3; n += 1) await emit()
    await until(
      'they are accepted',
      async () => sink.arrived.length === 3 && (await ask('GET', `/${endpointId}/attempts`)).body.items.length === 3,
    )
    const [first, ...others] = await eventIds(accountId)
    // Some at the same time, and twice for one event: 12 failed ones of each event.
    await pool.query(
      `insert into webhook_attempts (endpoint_id, account_id, position, attempt, attempted_at, duration_ms, status, error)
       select $1, $2, p, n, date_trunc('day', now()) - n / 6 * interval '1 hour', n, case when n % 2 = 0 then 500 end, case when n % 2 = 1 then 'it hung' end
       from generate_series(1, 3) as p, generate_series(1, 12) as n`,
      [endpointId, accountId],
    )
    const walk = async (query: string, limit: number) => {
      const seen: any[] = []
      for (let cursor = ''; cursor !== 'null'; ) {
        const { body } = await ask('GET', `/${endpointId}/attempts?limit=${limit}${query}${cursor && `&cursor=${cursor}`}`)
        seen.push(...body.items)
        cursor = String(body.nextCursor)
      }
      return seen
    }
    const keyOf = ({ eventId, attempt, attemptedAt, status }: any) => [eventId, attempt, attemptedAt, status].join()
    for (const limit of [1, 7, 39, 200]) {
      const all = await walk('', limit)
      assert.equal(new Set(all.map(keyOf)).size, 39, `by ${limit}`)
      assert.ok(all.every(({ attemptedAt }, n) => n === 0 || attemptedAt <= all[n - 1].attemptedAt))
      assert.equal((await walk('&failed=true', limit)).length, 36)
      const accepted = await walk('&failed=false', limit)
      assert.deepEqual(new Set(accepted.map(({ eventId }) => eventId)), new Set([first, ...others]))
      assert.equal((await walk(`&eventId=${first}&failed=true&sort=attemptedAt`, limit)).length, 12)
    }
    const [hung] = await walk(`&eventId=${first}&failed=true&sort=attemptedAt`, 1)
    const { attemptId, attemptedAt, ...known } = hung
    assert.match(attemptedAt, TIME)
    assert.deepEqual(known, { eventId: first, type: 'message.sent', attempt: 12, durationMs: 12, status: 500 })
    assert.deepEqual((await ask('GET', `/${endpointId}/attempts?eventId=x`)).body, { items: [], nextCursor: null })
    for (const query of ['failed=1', 'eventId=', 'sort=status', 'event=x', 'limit=201'])
      assert.equal((await ask('GET', `/${endpointId}/attempts?${query}`)).body.code, 'RCS_INVALID_REQUEST', query)
  })

  test('says when a failed event is posted again, on its last attempt only', async () => {
    const { ask, create, emit } = await newCaller()
    const sink = await startSink(() => 503)
    const { endpointId } = await create({ url: sink.url })
    const attempts = async () => (await ask('GET', `/${endpointId}/attempts`)).body.items
    await emit()
    const [first] = await until('an attempt failed', async () => ((await attempts()).length === 1 ? attempts() : undefined))
    const due = async () =>
      (
        await pool.query('select due_at::timestamptz(3) from webhook_deliveries where endpoint_id = $1', [endpointId])
      ).rows[0]?.due_at.toISOString()
    assert.equal(first.nextAttemptAt, await due())
    assert.ok(first.nextAttemptAt > first.attemptedAt)

    // A replay begins with the first attempt again, so the number of an attempt does not show which was the last.
    await ask('POST', `/${endpointId}/replay`, { failed: true })
    const [second, earlier] = await until('another failed', async () => ((await attempts()).length === 2 ? attempts() : undefined))
    assert.deepEqual([second.attempt, second.nextAttemptAt], [1, await due()])
    const { nextAttemptAt: _, ...superseded } = first
    assert.deepEqual(earlier, superseded)

    await pool.query(`update webhook_endpoints set paused_until = now() + interval '1 day' where id = $1`, [endpointId])
    assert.ok((await attempts())[0].nextAttemptAt > new Date(Date.now() + 80_000_000).toISOString(), 'not before the pause ends')
    await ask('PATCH', `/${endpointId}`, { status: 'DISABLED' })
    assert.equal((await attempts())[0].nextAttemptAt, undefined, 'nothing is posted to a disabled endpoint')
    await ask('PATCH', `/${endpointId}`, { status: 'ACTIVE' })
    await pool.query('update webhook_deliveries set due_at = null where endpoint_id = $1', [endpointId])
    assert.equal((await attempts())[0].nextAttemptAt, undefined, 'it failed permanently')
  })
})

describe('GET /webhook-endpoints/{id}/attempts/{attemptId}', () => {
  test('returns what was posted, without the signature', async () => {
    const { accountId, ask, create } = await newCaller()
    const sink = await startSink(() => 503)
    const { endpointId } = await create({ url: sink.url })
    await recordEvent(pool, { accountId, kind: 'message.sent', data: { note: 'Grüße "an" \u2028 +491701234567' } })
    const [attempt] = await until('an attempt failed', async () => {
      const { items } = (await ask('GET', `/${endpointId}/attempts`)).body
      return items.length === 1 ? items : undefined
    })
    const posted = sink.arrived[0] as (typeof sink.arrived)[number]
    const { status, body } = await ask('GET', `/${endpointId}/attempts/${attempt.attemptId}`)
    const { request, ...rest } = body
    assert.deepEqual([status, rest], [200, attempt])
    assert.deepEqual([request.url, request.body], [sink.url, posted.body])
    assert.deepEqual(Object.keys(request.headers), ['content-type', 'user-agent', 'webhook-id', 'webhook-timestamp'])
    for (const [name, value] of Object.entries(request.headers)) assert.equal(value, posted.headers[name], name)

    await pool.query('delete from log_pages where account_id = $1', [accountId])
    const { request: gone, eventId, ...kept } = (await ask('GET', `/${endpointId}/attempts/${attempt.attemptId}`)).body
    assert.deepEqual([gone, eventId, kept.attemptId], [undefined, undefined, attempt.attemptId])
  })

  test('responds 404 for an attempt that is unknown or of another endpoint', async () => {
    const { ask, create, emit } = await newCaller()
    const sink = await startSink()
    const [one, other] = [await create({ url: sink.url }), await create({ url: `${sink.url}/other`, types: ['sms.sent'] })]
    await emit()
    const path = `/${one.endpointId}/attempts`
    const { attemptId } = await until('it is posted', async () => (await ask('GET', path)).body.items[0])
    assert.equal((await ask('GET', `${path}/${attemptId}`)).status, 200)
    const reason = 'names no attempt of this endpoint in the last 30 days'
    for (const unknown of [`/${other.endpointId}/attempts/${attemptId}`, `${path}/${attemptId}0`, `${path}/x`, `${path}/wa-9-9-9-9-9`])
      assertError(await ask('GET', unknown), 404, 'RCS_NOT_FOUND', [['/attemptId', reason]], unknown)
    assertError(await (await newCaller()).ask('GET', `${path}/${attemptId}`), 404, NOT_FOUND)
  })
})

test('an endpoint shows when its oldest pending event happened', async () => {
  const { ask, create, emit } = await newCaller()
  const sink = await startSink(() => 503)
  const { endpointId } = await create({ url: sink.url })
  for (let n = 0; n < 3; n += 1) await emit()
  await until('all have failed once', async () => (await ask('GET', `/${endpointId}/attempts`)).body.items.length === 3)
  const oldest = new Date(Math.min(...sink.arrived.map(({ event }) => Date.parse(event.occurredAt)))).toISOString()
  const { pending, oldestPendingAt } = (await ask('GET', `/${endpointId}`)).body
  assert.deepEqual([pending, oldestPendingAt], [3, oldest])
  assert.equal((await ask('GET')).body.items[0].oldestPendingAt, oldest)
  sink.respondWith(() => 204)
  await ask('POST', `/${endpointId}/replay`, { failed: true })
  await until('all are accepted', async () => (await ask('GET', `/${endpointId}`)).body.pending === 0)
  assert.equal((await ask('GET', `/${endpointId}`)).body.oldestPendingAt, undefined)
})
