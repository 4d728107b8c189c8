import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { importGroup } from '../../src/groups/import.ts'
import type { UploadLimits } from '../../src/groups/upload.ts'
import { createToken } from '../../src/people/tokens.ts'
import { createTestDatabase } from '../support/database.ts'
import { assertError, call, createCaller, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const LIMITS: UploadLimits = { windowMs: 700, windowBytes: 1_024, longestMs: 60_000, lingerMs: 200 }
const timeouts = { headersMs: 400, requestMs: 500, keepAliveMs: 5_000 }
const env = { HERALD_DATABASE_URL, HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000', HERALD_LIMITS: 'memory' }
const start = (limits = {}) => startTestService(env, { roles: ['api'], timeouts, uploadLimits: { ...LIMITS, ...limits } })
const { url } = await start()

const CSV = { 'content-type': 'text/csv' }
const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, n) => `+48${500_000_000 + from + n}`)
const file = (lines: string[]) => `phone,city\n${lines.map((line) => `${line},Gdynia\n`).join('')}`

type Upload = { request: ClientRequest; response: Promise<{ status: number; body: any }>; closed: Promise<unknown> }

async function setUp(base = url) {
  const { accountId, authorization } = await createCaller(pool)
  /** Begins an upload of unknown length, whose bytes the test writes itself. */
  function begin(id: number, at = base): Upload {
    const sent = request(`${at}/v1/segments/${id}/import`, { method: 'PUT', headers: { ...CSV, authorization } })
    sent.on('error', () => {})
    const response = once(sent, 'response').then(async ([incoming]) => ({ status: incoming.statusCode, body: await readBody(incoming) }))
    response.catch(() => {})
    // It may be closed before a test waits for that.
    const closed = new Promise((resolve) => sent.once('close', resolve))
    return { request: sent, response, closed }
  }
  const send = (id: number | string, body: string | undefined, headers: Record<string, string> = CSV) =>
    call(`${base}/v1/segments/${id}/import`, { method: 'PUT', authorization, headers, body })
  const read = (id: number) => call(`${base}/v1/segments/${id}`, { authorization })
  return { accountId, authorization, begin, send, read }
}

async function readBody(response: IncomingMessage): Promise<any> {
  return JSON.parse(Buffer.concat(await response.toArray()).toString())
}

/** The connections of imports. Each ends with its import. */
async function connections(): Promise<number> {
  const { rows } = await pool.query(
    `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'herald-long'`,
  )
  return rows[0].count
}

const untilFree = () => until('no import has a connection', async () => (await connections()) === 0)

describe('PUT /segments/{segmentId}/import', () => {
  test('imports a file of more than 256 KiB, creates the segment, and returns the first 1,000 rejections', async () => {
    const { send, read } = await setUp()
    const { status, body } = await send(42, file([...numbers(20_000), ...Array.from({ length: 1_200 }, () => 'x')]))
    const rejected = Array.from({ length: 1_000 }, (_, n) => ({
      line: 20_002 + n,
      reason: '"x" is not a possible international phone number',
    }))
    assert.deepEqual([status, body], [200, { imported: 20_000, rejected }])
    const segment = (await read(42)).body
    assert.deepEqual([segment.segmentId, segment.members, 'name' in segment], [42, 20_000, false])
  })

  test('stores what the command stores, time zones included, and adds to what is there', async () => {
    const { accountId, send, authorization } = await setUp()
    const lines =
      'phone;consents;controlGroup;status;timeZone;city\n48500100200;"1;7";yes;inactive;asia/tokyo;"X ""Y"""\n+48500100201;;;;;\n+48500100202;;;;Nowhere/Land;\n'
    const { body } = await send(1, lines)
    const { rejected, imported } = await importGroup(pool, { accountId, number: 2, source: Readable.from([Buffer.from(lines)]) })
    const reason = 'timeZone is "Nowhere/Land", and must be the IANA name of a time zone, such as Europe/Warsaw'
    assert.deepEqual(body, { imported, rejected })
    assert.deepEqual(body, { imported: 2, rejected: [{ line: 4, reason }] })
    assert.deepEqual((await send(1, 'phone\n+48500100209\n')).body, { imported: 1, rejected: [] })
    const members = async (id: number) => (await call(`${url}/v1/segments/${id}/members`, { authorization })).body.items
    const [first, second, third] = await members(1)
    assert.deepEqual([first, second], await members(2))
    assert.deepEqual(first, {
      phone: '+48500100200',
      consents: [1, 7],
      controlGroup: true,
      status: 'inactive',
      timeZone: 'Asia/Tokyo',
      attributes: { city: 'X "Y"' },
    })
    assert.equal(third.phone, '+48500100209')
  })

  test('responds 200 to a file without a valid line, and creates no segment', async () => {
    const { send, read } = await setUp()
    assert.deepEqual((await send(1, 'phone\n')).body, { imported: 0, rejected: [] })
    assert.equal((await read(1)).status, 404)
  })

  for (const [name, body, headers, status, code, reason] of [
    ['an empty file', '', CSV, 400, 'RCS_INVALID_REQUEST', 'The file is empty; its first line must name the columns.'],
    [
      'a file without the column phone',
      `name\n${'x'.repeat(400_000)}`,
      CSV,
      400,
      'RCS_INVALID_REQUEST',
      'The header has no column "phone"; the first line of the file must name the columns.',
    ],
    ['JSON', '{}', { 'content-type': 'application/json' }, 415, 'RCS_UNSUPPORTED_MEDIA_TYPE', 'Content-Type must be text/csv'],
    ['a request without a body', undefined, {}, 415, 'RCS_UNSUPPORTED_MEDIA_TYPE', 'Content-Type must be text/csv'],
    [
      'Latin-1',
      'phone\n',
      { 'content-type': 'text/csv; charset=iso-8859-1' },
      415,
      'RCS_UNSUPPORTED_MEDIA_TYPE',
      'the file must be UTF-8 and not compressed',
    ],
    [
      'gzip',
      'phone\n',
      { ...CSV, 'content-encoding': 'gzip' },
      415,
      'RCS_UNSUPPORTED_MEDIA_TYPE',
      'the file must be UTF-8 and not compressed',
    ],
  ] as const) {
    test(`rejects ${name}`, async () => {
      const { send, read } = await setUp()
      assertError(await send(1, body, headers), status, code, [['', reason]])
      assert.equal((await read(1)).status, 404)
    })
  }

  test('rejects a segment that can’t be created, and unknown parameters', async () => {
    const { send } = await setUp()
    const details = [['/segmentId', 'must be a whole number from 1 to 2147483647']] as const
    for (const id of ['0', '2147483648', 'x']) assertError(await send(id, 'phone\n'), 400, 'RCS_INVALID_REQUEST', details, id)
    assertError(await send('1/import?name=A#', 'phone\n'), 400, 'RCS_INVALID_REQUEST', [['/name', 'is not known here; is it misspelt?']])
    assert.equal((await send('1', 'phone\n', { 'content-type': 'text/csv; charset="UTF-8"' })).status, 200)
  })
})

describe('an upload', () => {
  test('may take longer than the request timeout while its bytes keep coming', async () => {
    const { begin, read } = await setUp()
    const upload = begin(1)
    upload.request.write('phone,city\n')
    const ends = performance.now() + 3 * timeouts.requestMs
    let sent = 0
    while (performance.now() < ends) {
      for (const number of numbers(30, sent)) upload.request.write(`${number},${'x'.repeat(40)}\n`)
      sent += 30
      await sleep(50)
    }
    upload.request.end()
    const { status, body } = await upload.response
    assert.deepEqual([status, body], [200, { imported: sent, rejected: [] }])
    assert.equal((await read(1)).body.members, sent)
  })

  for (const [name, writeMore] of [
    ['stops sending', () => {}],
    ['sends a byte now and then', (upload: Upload) => void upload.request.write('1')],
  ] as const) {
    test(`of a client that ${name} gets 408, and changes nothing`, async () => {
      const { begin, read, send } = await setUp()
      const upload = begin(1)
      upload.request.write(file(numbers(3)))
      const timer = setInterval(() => writeMore(upload), 50)
      const { status, body } = await upload.response.finally(() => clearInterval(timer))
      assert.deepEqual([status, body.code], [408, 'RCS_REQUEST_TIMEOUT'])
      assert.deepEqual(body.details, [{ path: '', reason: 'the client must send 1 KiB every 0.7 s, and the whole file in 1 min' }])
      await untilFree()
      await upload.closed
      assert.equal((await read(1)).status, 404)
      assert.equal((await send(1, file(numbers(3)))).status, 200)
    })
  }

  test('that breaks off changes nothing and frees its connection', async () => {
    const { begin, read } = await setUp()
    const upload = begin(1)
    upload.request.write(file(numbers(40_000)))
    await until('some of it is stored', async () => (await connections()) === 1)
    upload.request.destroy()
    await untilFree()
    assert.equal((await read(1)).status, 404)
  })

  test('with an error in its header gets the response while the client still sends', async () => {
    const { begin } = await setUp()
    const upload = begin(1)
    upload.request.write(`name\n${'x'.repeat(300_000)}\n`)
    const { status, body } = await upload.response
    assert.deepEqual([status, body.code], [400, 'RCS_INVALID_REQUEST'])
    upload.request.write('more')
    await upload.closed
  })

  test('waits for another one of the same segment, and both are imported', async () => {
    const { begin, read } = await setUp()
    const both = [0, 5_000].map((from) => {
      const upload = begin(1)
      upload.request.end(file(numbers(10_000, from)))
      return upload.response
    })
    assert.deepEqual(
      (await Promise.all(both)).map(({ status, body }) => [status, body.imported]),
      [
        [200, 10_000],
        [200, 10_000],
      ],
    )
    assert.equal((await read(1)).body.members, 15_000)
  })

  test('is refused while the account has two of them, or the node four, also through /admin/v1', async () => {
    // The uploads of this test wait for each other.
    const node = await start({ windowMs: 60_000 })
    const [mine, other, third] = [await setUp(node.url), await setUp(node.url), await setUp(node.url)]
    const expiresAt = new Date(Date.now() + 60_000)
    const { secret } = await createToken(pool, { name: 'import', role: 'operator', accountIds: [], expiresAt })
    const sendAsAdmin = (accountId: number) =>
      call(`${node.url}/admin/v1/accounts/${accountId}/segments/3/import`, {
        method: 'PUT',
        authorization: `Bearer ${secret}`,
        headers: CSV,
        body: 'phone\n',
      })
    const open = [mine.begin(1), mine.begin(2)]
    for (const { request } of open) request.write('phone\n')
    await until('both run', async () => (await connections()) === 2)
    const busy = await mine.send(3, 'phone\n')
    assertError(busy, 503, 'RCS_UNAVAILABLE', [['', 'The account already runs 2 imports on this node, the maximum; try again later.']])
    assert.equal(busy.headers.get('retry-after'), '10')
    assert.deepEqual((await sendAsAdmin(mine.accountId)).body.details, busy.body.details)
    for (const id of [1, 2]) open.push(other.begin(id))
    for (const { request } of open.slice(2)) request.write('phone\n')
    await until('all run', async () => (await connections()) === 4)
    const full = await third.send(1, 'phone\n')
    assertError(full, 503, 'RCS_UNAVAILABLE', [['', 'This node already runs 4 imports, the maximum; try again later.']])
    assert.deepEqual((await sendAsAdmin(third.accountId)).body.details, full.body.details)
    for (const { request } of open) request.end('+48500100200\n')
    for (const { response } of open) assert.equal((await response).status, 200)
    assert.equal((await third.send(1, 'phone\n')).status, 200)
  })

  test('does not keep a node from stopping', async () => {
    const node = await start()
    const { begin, read } = await setUp(node.url)
    const upload = begin(1, node.url)
    upload.request.write('phone\n+48500100200\n')
    await until('it runs', async () => (await connections()) === 1)
    const closed = once(upload.request, 'close')
    await node.stop()
    await closed
    await untilFree()
    await assert.rejects(read(1))
    const { rows } = await pool.query('select from groups where number = 1 and members = 1 and account_id = (select max(id) from accounts)')
    assert.deepEqual(rows, [])
  })
})
