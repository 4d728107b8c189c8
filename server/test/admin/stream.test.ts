import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAccount, MODULES } from '../../src/accounts/accounts.ts'
import type { Pool } from '../../src/db/pool.ts'
import { changePerson, createPerson, removeRole, setRole } from '../../src/people/people.ts'
import type { AccountRole, Role } from '../../src/people/roles.ts'
import { endSession, listSessions, openSession } from '../../src/people/sessions.ts'
import { createToken, revokeToken } from '../../src/people/tokens.ts'
import type { ServiceOptions } from '../../src/service.ts'
import { createTestDatabase } from '../support/database.ts'
import { writeEvents } from '../support/log.ts'
import { cuttableDatabase } from '../support/proxy.ts'
import { openStream, type TestStream } from '../support/server-sent.ts'
import { assertError, call, startTestService, type TestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase({ uncounted: 'events and campaigns are written by hand' })
const CHECK_EVERY_MS = 100

async function startService(streamLimits: ServiceOptions['streamLimits'] = {}, env: Record<string, string> = {}): Promise<TestService> {
  const settings = { HERALD_DATABASE_URL, HERALD_LIMITS: 'memory', ...env }
  return await startTestService(settings, { streamLimits: { checkEveryMs: CHECK_EVERY_MS, ...streamLimits } })
}

const service = await startService()
const newAccount = async () => (await createAccount(pool, 'Test', MODULES)).accountId

let names = 0
async function tokenOf(role: Role, accountIds: number[] = []) {
  names += 1
  const expiresAt = new Date(Date.now() + 3_600_000)
  const { secret, tokenId } = await createToken(pool, { name: `token ${names}`, role, accountIds, expiresAt })
  return { tokenId, headers: { authorization: `Bearer ${secret}` } }
}

/** A person with a role in an account, and a session. */
async function personIn(accountId: number, role: AccountRole) {
  names += 1
  const { personId } = await createPerson(pool, { email: `person-${names}@example.com`, name: 'Person' })
  await setRole(pool, personId, accountId, role)
  const secret = await openSession(pool, personId, { address: '127.0.0.1', userAgent: 'test' })
  return { personId, headers: { cookie: `herald-local=${secret}` } }
}

type Follow = { at?: TestService; headers?: Record<string, string>; cursor?: string; lastId?: string | undefined }

async function follow(accountId: number, { at = service, headers, cursor, lastId }: Follow = {}): Promise<TestStream> {
  const query = new URLSearchParams({ accountId: String(accountId), ...(cursor && { cursor }) })
  const credentials = headers ?? (await tokenOf('operator')).headers
  const stream = await openStream(`${at.url}/admin/v1/stream?${query}`, { ...credentials, ...(lastId && { 'last-event-id': lastId }) })
  if (stream.status === 200) await stream.next('ready')
  return stream
}

const write = (accountId: number, ...names: (string | number)[]) =>
  writeEvents(
    pool,
    names.map((name) => ({ accountId, kind: 'webhook.test', data: { name: String(name) } })),
  )
const namesOf = (stream: TestStream) => stream.logged().map(({ data }) => data.data.name as string)
/** Connects until that is possible. */
const untilOpen = (open: () => Promise<TestStream>) =>
  until('it can connect', async () => {
    const stream = await open()
    return stream.status === 200 ? stream : undefined
  })
const untilNamed = (stream: TestStream, name: string) => until(`${name} has arrived`, () => namesOf(stream).includes(name))

describe('GET /admin/v1/stream', () => {
  test('sends the events that are recorded from now on, each with the cursor of the feed', async () => {
    const accountId = await newAccount()
    const { headers } = await tokenOf('operator')
    await write(accountId, 'before')
    const feed = `${service.url}/admin/v1/accounts/${accountId}/events`
    await until('it has its position', async () => (await call(feed, { headers })).body.items?.length === 1)
    const stream = await follow(accountId, { headers })
    assert.equal(stream.headers['content-type'], 'text/event-stream; charset=utf-8')
    assert.equal(stream.headers['cache-control'], 'no-store')
    assert.match(String(stream.headers['x-request-id']), /^req_/)
    await write(accountId, 'one', 'two')
    await untilNamed(stream, 'two')
    assert.deepEqual(namesOf(stream), ['one', 'two'])
    const [one, two] = stream.logged()
    const { body } = await call(`${feed}?after=${one?.id}`, { headers })
    assert.deepEqual(body, { items: [two?.data], nextCursor: two?.id, hasMore: false })
  })

  test('sends the events from now on with the cursor or the Last-Event-ID now', async () => {
    const accountId = await newAccount()
    await write(accountId, 'before')
    await untilEnd(accountId, 1)
    const streams = [await follow(accountId, { cursor: 'now' }), await follow(accountId, { lastId: 'now' })]
    await write(accountId, 'one')
    for (const stream of streams) {
      await untilNamed(stream, 'one')
      assert.deepEqual(namesOf(stream), ['one'])
    }
  })

  test('begins after a cursor, and sends only events of its account', async () => {
    const [accountId, other] = [await newAccount(), await newAccount()]
    const first = await follow(accountId)
    await write(accountId, 'one', 'two', 'three')
    await write(other, 'foreign')
    await untilNamed(first, 'three')
    const stream = await follow(accountId, { cursor: first.logged()[0]?.id as string })
    await untilNamed(stream, 'three')
    assert.deepEqual(namesOf(stream), ['two', 'three'])
  })

  const REFUSED: [why: string, query: string, of: Role | undefined, status: number, code: string, details?: [string, string][]][] = [
    ['nobody has signed in', 'accountId=OWN', undefined, 401, 'RCS_UNAUTHORIZED'],
    ['the role is in another account', 'accountId=OTHER', 'viewer', 404, 'RCS_ACCOUNT_NOT_FOUND'],
    ['there is no such account', 'accountId=999999', 'operator', 404, 'RCS_ACCOUNT_NOT_FOUND'],
    ['the account is no number', 'accountId=x', 'viewer', 404, 'RCS_ACCOUNT_NOT_FOUND'],
    [
      'there is no account and the role is not operator',
      '',
      'admin',
      403,
      'RCS_ROLE',
      [['', 'The request needs the role operator; yours is lower.']],
    ],
    [
      'the cursor is none',
      'accountId=OWN&cursor=x',
      'viewer',
      400,
      'RCS_INVALID_CURSOR',
      [['/cursor', 'is not a cursor that this feed has given out']],
    ],
  ]
  for (const [why, query, role, status, code, details] of REFUSED) {
    test(`is refused with ${status} if ${why}`, async () => {
      const [own, other] = [await newAccount(), await newAccount()]
      const { headers } = role === undefined ? { headers: {} } : await tokenOf(role, role === 'operator' ? [] : [own])
      const path = `/admin/v1/stream?${query.replace('OWN', String(own)).replace('OTHER', String(other))}`
      assertError(await call(`${service.url}${path}`, { headers }), status, code, details)
    })
  }

  test('is refused with 410 if the log no longer has the events after Last-Event-ID, and with 400 if that is no cursor', async () => {
    const accountId = await newAccount()
    const first = await follow(accountId)
    await write(accountId, 'one', 'two')
    await untilNamed(first, 'two')
    await pool.query('delete from log_pages where account_id = $1', [accountId])
    const gone = await follow(accountId, { lastId: first.received.find(({ event }) => event === 'ready')?.id })
    const reason = 'points to a place whose next events the log does not have; start again without it'
    assert.deepEqual([gone.status, gone.body().code, gone.body().details], [410, 'RCS_CURSOR_GONE', [{ path: '/last-event-id', reason }]])
    const wrong = await follow(accountId, { lastId: 'x', cursor: first.lastId() as string })
    assert.deepEqual([wrong.status, wrong.body().code], [400, 'RCS_INVALID_CURSOR'])
    assert.equal((await follow(accountId, { lastId: first.lastId() })).status, 200)
  })

  test('has no HEAD', async () => {
    const { headers } = await tokenOf('operator')
    assert.equal((await fetch(`${service.url}/admin/v1/stream`, { method: 'HEAD', headers })).status, 405)
  })
})

describe('a reader that connects again with Last-Event-ID', () => {
  test('misses and repeats nothing while events are written, on any node, in order', async () => {
    const [accountId, noise] = [await newAccount(), await newAccount()]
    const nodes = [service, await startService()]
    const { headers } = await tokenOf('viewer', [accountId])
    const EVENTS = 80
    let isWritten = false
    async function writeAll(): Promise<void> {
      for (let n = 0; n < EVENTS; n += 2) {
        // Below 50 a second, but some at the same moment.
        await Promise.all([write(accountId, n, n + 1), write(noise, n)])
        await sleep(50)
      }
      isWritten = true
    }

    /** Disconnects after one to nine events, or before the first, again and again. */
    async function read(first: TestStream, seed: number): Promise<string[]> {
      const seen: string[] = []
      let stream = first
      for (let turn = seed; seen.length < EVENTS; turn += 1) {
        const most = (turn * 7) % 10
        await until('there are events', () => stream.logged().length >= Math.min(most, 1) || isWritten)
        if (isWritten) await until('all have arrived', () => stream.logged().length + seen.length >= EVENTS)
        stream.close()
        seen.push(...namesOf(stream))
        assert.equal(stream.received.filter(({ event }) => event === 'busy').length, 0)
        stream = await follow(accountId, { at: nodes[turn % 2] as TestService, headers, lastId: stream.lastId() })
      }
      return seen
    }
    // Without a cursor, a stream begins at the end of the log: all are open before the first event.
    const opening = Array.from({ length: 6 }, (_, seed) => follow(accountId, { at: nodes[seed % 2] as TestService, headers }))
    const readers = (await Promise.all(opening)).map(read)
    await writeAll()
    await untilEnd(accountId, EVENTS)
    const log = await call(`${service.url}/admin/v1/accounts/${accountId}/events?limit=200`, { headers })
    const inLog = log.body.items.map((event: any) => event.data.name)
    assert.equal(inLog.length, EVENTS)
    for (const seen of await Promise.all(readers)) assert.deepEqual(seen, inLog)
  })

  test('gets what it missed, up to 200 events', async () => {
    const accountId = await newAccount()
    const first = await follow(accountId)
    first.close()
    await write(accountId, ...Array.from({ length: 200 }, (_, n) => n))
    await untilEnd(accountId, 200)
    const stream = await follow(accountId, { lastId: first.lastId() })
    await untilNamed(stream, '199')
    assert.deepEqual(
      namesOf(stream),
      Array.from({ length: 200 }, (_, n) => String(n)),
    )
  })
})

/** Waits until the log has so many events. */
const untilEnd = (accountId: number, events: number) =>
  until('all events have their positions', async () => {
    const { rows } = await pool.query('select last_position from log_heads where account_id = $1', [accountId])
    return rows[0]?.last_position === events
  })

describe('above 50 events a second', () => {
  test('a stream gets their number and cursors instead, and the events that follow', async () => {
    const accountId = await newAccount()
    const { headers } = await tokenOf('operator')
    const first = await follow(accountId, { headers })
    first.close()
    await write(accountId, ...Array.from({ length: 300 }, (_, n) => n))
    await untilEnd(accountId, 300)
    const stream = await follow(accountId, { headers, lastId: first.lastId() })
    const busy = await stream.next('busy')
    assert.deepEqual(busy.data, { count: 300, after: first.lastId() })
    await write(accountId, 'last')
    await untilNamed(stream, 'last')
    assert.deepEqual(namesOf(stream), ['last'])
    const feed = `${service.url}/admin/v1/accounts/${accountId}/events`
    assert.equal((await call(`${feed}?after=${busy.data.after}&limit=1`, { headers })).body.items[0].data.name, '0')
    assert.equal((await call(`${feed}?after=${busy.id}&limit=1`, { headers })).body.items[0].data.name, 'last')
  })

  test('counts and events together cover every event exactly once', async () => {
    const accountId = await newAccount()
    const stream = await follow(accountId)
    for (let n = 0; n < 20; n += 1) await write(accountId, ...Array.from({ length: 40 }, (_, m) => 40 * n + m))
    const total = () =>
      stream.received.reduce((sum, { event, data }) => sum + (event === 'busy' ? data.count : event === undefined ? 1 : 0), 0)
    await until('all are counted', () => total() >= 800)
    await write(accountId, 'last')
    await untilNamed(stream, 'last')
    assert.equal(total(), 801)
  })
})

test('streams of an account share the statements that serve them', async () => {
  const own = await startService({ perOwner: 100 })
  const accountId = await newAccount()
  const { headers } = await tokenOf('operator')
  const streams = await Promise.all(Array.from({ length: 40 }, () => follow(accountId, { at: own, headers })))
  const statements: string[] = []
  const { hotPool } = own.database
  const query = hotPool.query.bind(hotPool) as (...args: unknown[]) => unknown
  hotPool.query = ((...args: unknown[]) => {
    statements.push((args[0] as { name?: string }).name ?? '')
    return query(...args)
  }) as Pool['query']
  await write(accountId, 'one')
  await Promise.all(streams.map((stream) => untilNamed(stream, 'one')))
  assert.equal(statements.filter((name) => name === 'read-feed').length, 1)
  await own.stop()
})

describe('a reader', () => {
  const NUMBER = '+48500100200'
  const withNumber = (accountId: number) => writeEvents(pool, [{ accountId, kind: 'webhook.test', data: { name: 'n', recipient: NUMBER } }])
  const numberIn = async (stream: TestStream, nth = 0) =>
    (await until('an event has arrived', () => stream.logged()[nth]))?.data.data.recipient

  test('gets masked phone numbers as a viewer, and whole ones as an admin', async () => {
    const accountId = await newAccount()
    const [viewer, admin] = [await personIn(accountId, 'viewer'), await personIn(accountId, 'admin')]
    const streams = await Promise.all([viewer, admin].map(({ headers }) => follow(accountId, { headers })))
    await withNumber(accountId)
    assert.deepEqual(await Promise.all(streams.map((stream) => numberIn(stream))), ['+48•••••••00', NUMBER])
    const feed = await call(`${service.url}/admin/v1/accounts/${accountId}/events`, { headers: viewer.headers })
    assert.equal(feed.body.items[0].data.recipient, '+48•••••••00')
    // A large response is masked, too.
    for (let n = 0; n < 100; n += 1) await withNumber(accountId)
    await untilEnd(accountId, 101)
    const all = await call(`${service.url}/admin/v1/accounts/${accountId}/events?limit=200`, { headers: viewer.headers })
    assert.deepEqual([all.body.items.length, JSON.stringify(all.body).includes(NUMBER)], [101, false])
  })

  test('gets masked numbers once the role is only viewer', async () => {
    const accountId = await newAccount()
    const { personId, headers } = await personIn(accountId, 'admin')
    const stream = await follow(accountId, { headers })
    await setRole(pool, personId, accountId, 'viewer')
    for (let nth = 0; ; nth += 1) {
      await withNumber(accountId)
      if ((await numberIn(stream, nth)) !== NUMBER) break
    }
    assert.equal(stream.isClosed(), false)
  })

  const LOSSES: [what: string, lose: (personId: number, accountId: number) => Promise<unknown>][] = [
    ['the session is ended', async (personId) => endSession(pool, personId, (await listSessions(pool, personId))[0]?.sessionId as string)],
    ['the person is disabled', (personId) => changePerson(pool, personId, { isDisabled: true })],
    ['the role in the account is removed', (personId, accountId) => removeRole(pool, personId, accountId)],
    [
      'the session expires',
      (personId) => pool.query(`update sessions set last_used_at = now() - interval '13 hours' where person_id = $1`, [personId]),
    ],
  ]
  for (const [what, lose] of LOSSES) {
    test(`gets no more when ${what}`, async () => {
      const accountId = await newAccount()
      const { personId, headers } = await personIn(accountId, 'viewer')
      const other = await personIn(accountId, 'viewer')
      const [stream, kept] = [await follow(accountId, { headers }), await follow(accountId, { headers: other.headers })]
      await lose(personId, accountId)
      assert.deepEqual((await stream.next('end')).data, { code: 'RCS_UNAUTHORIZED' })
      await until('it is closed', stream.isClosed)
      await write(accountId, 'later')
      await untilNamed(kept, 'later')
      assert.notEqual((await follow(accountId, { headers, lastId: stream.lastId() })).status, 200)
    })
  }

  test('gets no more when its token is revoked or expires', async () => {
    const accountId = await newAccount()
    const [revoked, expiring] = [await tokenOf('viewer', [accountId]), await tokenOf('viewer', [accountId])]
    const streams = await Promise.all([revoked, expiring].map(({ headers }) => follow(accountId, { headers })))
    assert.deepEqual(
      streams.map(({ status }) => status),
      [200, 200],
    )
    await revokeToken(pool, revoked.tokenId)
    await pool.query(`update admin_tokens set expires_at = now() - interval '1 ms' where id = $1`, [expiring.tokenId])
    for (const stream of streams) await until('it is closed', stream.isClosed)
  })
})

describe('health', () => {
  test('comes to operators, also without an account, and to nobody else', async () => {
    const accountId = await newAccount()
    const [operator, admin] = [await tokenOf('operator'), await tokenOf('admin', [accountId])]
    const [stream, alone, other] = [
      await follow(accountId, { headers: operator.headers }),
      await openStream(`${service.url}/admin/v1/stream`, operator.headers),
      await follow(accountId, { headers: admin.headers }),
    ]
    for (const each of [stream, alone]) assert.ok((await each.next('health')).data.nodes.length > 0)
    await write(accountId, 'one')
    await untilNamed(other, 'one')
    assert.deepEqual(
      other.received.filter(({ event }) => event === 'health'),
      [],
    )
    assert.deepEqual(namesOf(alone), [])
  })

  test('says what the process knows when the database is lost, and then every stream ends', async () => {
    const database = await cuttableDatabase(HERALD_DATABASE_URL)
    const own = await startService({ uncheckedMs: 2_000, healthEveryMs: 200 }, { HERALD_DATABASE_URL: database.url })
    const accountId = await newAccount()
    const stream = await follow(accountId, { at: own })
    await stream.next('health')
    await database.cut()
    const lost = await until('it is reported', () => stream.received.find(({ event, data }) => event === 'health' && data.code))
    assert.deepEqual([lost.data.code, lost.data.node.pid], ['RCS_UNAVAILABLE', process.pid])
    await until('it is closed', stream.isClosed)
    assert.deepEqual(stream.received.at(-1)?.data, { code: 'RCS_UNAVAILABLE' })
    await database.restore()
    const again = await untilOpen(() => follow(accountId, { at: own, lastId: stream.lastId() }))
    await write(accountId, 'after')
    await untilNamed(again, 'after')
    await own.stop()
  })
})

describe('limits', () => {
  test('a person, a token and a process have a maximum number of streams', async () => {
    const own = await startService({ perOwner: 2, perProcess: 3 })
    const accountId = await newAccount()
    const { headers } = await tokenOf('operator')
    const streams = [await follow(accountId, { at: own, headers }), await follow(accountId, { at: own, headers })]
    const refused = await follow(accountId, { at: own, headers })
    assert.deepEqual([refused.status, refused.headers['retry-after'], refused.body().code], [429, '10', 'RCS_RATE_LIMITED'])
    await follow(accountId, { at: own })
    const full = await follow(accountId, { at: own })
    assert.deepEqual([full.status, full.body().code], [503, 'RCS_UNAVAILABLE'])
    streams[0]?.close()
    const opened = await untilOpen(() => follow(accountId, { at: own, headers }))
    await write(accountId, 'one')
    await untilNamed(opened, 'one')
    await own.stop()
  })

  test('a quiet stream gets comments and pings', async () => {
    const own = await startService({ pingEveryMs: 50 })
    const stream = await follow(await newAccount(), { at: own, headers: (await tokenOf('operator')).headers })
    await until('there are two', () => stream.comments() >= 2)
    assert.deepEqual((await stream.next('ping')).id, undefined)
    await own.stop()
  })

  test('a reader that stops reading is disconnected, and the others are not', async () => {
    const own = await startService({ stalledMs: 500 })
    const accountId = await newAccount()
    const first = await follow(accountId, { at: own })
    // 16 MB, more than the system buffers for a connection.
    const data = { name: 'large', text: 'x'.repeat(160_000) }
    for (let n = 0; n < 100; n += 1) await writeEvents(pool, [{ accountId, kind: 'webhook.test', data }])
    await until('the other reader has something', () => first.received.length > 2)
    const { hostname, port } = new URL(own.url)
    const { authorization } = (await tokenOf('operator')).headers
    const path = `/admin/v1/stream?accountId=${accountId}&cursor=${first.received[0]?.id}`
    const socket = connect(Number(port), hostname).pause()
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`)
    await until('it is disconnected', () => own.log().includes('it read nothing for too long'))
    await write(accountId, 'last')
    await untilNamed(first, 'last')
    assert.equal(first.isClosed(), false)
    assert.equal(own.log().match(/it read nothing for too long/g)?.length, 1)
    socket.resume()
    assert.equal(((await once(socket, 'error')) as [NodeJS.ErrnoException])[0].code, 'ECONNRESET')
    await own.stop()
  })
})

test('a shutdown ends all streams at once', async () => {
  const own = await startService({ perOwner: 250 })
  const accountId = await newAccount()
  const { headers } = await tokenOf('viewer', [accountId])
  const streams = await Promise.all(Array.from({ length: 200 }, () => follow(accountId, { at: own, headers })))
  const startedAt = performance.now()
  await own.stop()
  const stoppedMs = performance.now() - startedAt
  for (const stream of streams) {
    await until('it is closed', stream.isClosed)
    assert.deepEqual(stream.received.at(-1), { event: 'end', id: undefined, data: { code: 'RCS_UNAVAILABLE' } })
  }
  // Connections that are still open after 3 s would be closed by force.
  assert.ok(stoppedMs < 3_000, `${stoppedMs} ms`)
})
