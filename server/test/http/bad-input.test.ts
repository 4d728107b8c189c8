import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'
import { parseResponse, rawConnection } from '../support/raw.ts'
import { call, createAssignedAgent, createCaller, startTestService } from '../support/service.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const service = await startTestService({ HERALD_DATABASE_URL, HERALD_LIMIT_OTHERS_PER_MINUTE: '1000' }, { roles: ['api'] })
const { url } = service
const caller = await createCaller(pool)
const agentId = await createAssignedAgent(pool, caller.accountId)

const patch = (body: string | Uint8Array) =>
  call(`${url}/v1/agents/${agentId}`, { method: 'PATCH', authorization: caller.authorization, body })

/** Asserts a 400 whose detail matches `reason`, and that nothing has changed. */
async function assertRefused(body: string | Uint8Array, reason: RegExp): Promise<void> {
  const response = await patch(body)
  assert.equal(response.status, 400)
  assert.equal(response.body.code, 'RCS_INVALID_REQUEST')
  assert.match(response.body.details[0].reason, reason)
  const after = await call(`${url}/v1/agents`, { authorization: caller.authorization })
  assert.equal(after.body.items[0].displayName, undefined)
}

describe('an invalid body gets a 400 and changes nothing:', () => {
  const bodies: [string, string | Uint8Array, RegExp][] = [
    ['cut off', '{"displayName":"X"', /^The body is not valid JSON/],
    ['not JSON', 'displayName=X', /^The body is not valid JSON/],
    ['two documents', '{"displayName":"X"}{}', /^The body is not valid JSON: it breaks at character 20/],
    ['a trailing comma', '{"displayName":"X",}', /^The body is not valid JSON/],
    ['empty', new Uint8Array(), /^The body is empty/],
    ['only blanks', '   ', /^The body is not valid JSON/],
    ['not UTF-8', Uint8Array.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), /^The body is not valid UTF-8/],
    ['UTF-16', Buffer.from('{"displayName":"X"}', 'utf16le'), /^The body is not valid JSON/],
    ['33 levels deep', `{"displayName":${'['.repeat(32)}${']'.repeat(32)}}`, /^The body is nested deeper than 32 levels/],
    ['130,000 levels deep', `{"displayName":${'['.repeat(130_000)}${']'.repeat(130_000)}}`, /^The body is nested deeper than 32 levels/],
    ['a name of 101 characters', `{"${'/'.repeat(101)}":"\\u0000"}`, /^The body has a property whose name is over 100 characters long/],
    ['1,001 values', `{"displayName":[${'0,'.repeat(998)}0]}`, /^The body holds more than 1000 values/],
    ['52,000 objects deep, never closed', '{"a":'.repeat(52_000), /^The body is nested deeper than 32 levels/],
    ['a number beyond all numbers', '{"displayName":1e400}', /^must be a string/],
    ['a list of 100,000', `{"displayName":[${'1,'.repeat(99_999)}1]}`, /^The body holds more than 1000 values/],
    [
      '20,000 unknown fields',
      `{${Array.from({ length: 20_000 }, (_, index) => `"f${index}":1`).join(',')}}`,
      /^The body holds more than 1000 values/,
    ],
  ]
  for (const [name, body, reason] of bodies) test(name, () => assertRefused(body, reason))

  // JSON.parse of Node 26.10 corrupts memory when it gets the first of these and then the second, which ends the process.
  test('nested lists, then thousands of names, do not crash the process', async () => {
    const nested = `${'[1,'.repeat(30_000)}[{}`
    const names = `{${Array.from({ length: 5_000 }, (_, index) => `"name${index}":${index}`).join(',')}}`
    const signature = Buffer.alloc(64).toString('base64')
    for (let round = 0; round < 20; round += 1) {
      for (const body of [nested, names]) {
        assert.equal((await patch(body)).status, 400)
        const posted = await call(`${url}/carriers/simulator/webhook`, { method: 'POST', headers: { 'X-Goog-Signature': signature }, body })
        assert.ok([400, 404, 429].includes(posted.status), `${posted.status}`)
        const cursor = Buffer.from(body).toString('base64url').slice(0, 2_000)
        assert.equal((await call(`${url}/v1/templates?cursor=${cursor}`, { authorization: caller.authorization })).status, 400)
      }
    }
  })

  test('at most 50 details are returned', async () => {
    const { body } = await patch(`{${Array.from({ length: 900 }, (_, index) => `"f${index}":1`).join(',')}}`)
    assert.equal(body.details.length, 50)
  })

  test('an unknown query parameter is named, also if the body is invalid', async () => {
    const { status, body } = await call(`${url}/v1/agents/x?verbose=1`, {
      method: 'PATCH',
      authorization: caller.authorization,
      body: { active: 5 },
    })
    assert.equal(status, 400)
    assert.deepEqual(body.details, [{ path: '/verbose', reason: 'is not known here; is it misspelt?' }])
  })

  test('a hostile field name is escaped', async () => {
    const { body } = await patch('{"a/b~c\\u0000\\ud800\\n":1}')
    assert.equal(body.details[0].path, '/a~1b~0c\uFFFD\uFFFD\n')
  })

  test('a byte order mark before valid JSON is accepted', async () => {
    assert.equal((await patch('\uFEFF{"displayName":""}')).status, 200)
  })
})

describe('invalid HTTP gets an error in the documented form:', () => {
  async function sendRaw(text: string) {
    const connection = rawConnection(url)
    connection.send(text)
    return parseResponse(await connection.ended)
  }
  const bearer = `Authorization: ${caller.authorization}`

  test('headers of 64 KiB: 431', async () => {
    const { status, head, body } = await sendRaw(
      `GET /v1/agents HTTP/1.1\r\nHost: x\r\n${bearer}\r\nX-Large: ${'x'.repeat(65_536)}\r\n\r\n`,
    )
    assert.equal(status, 431)
    assert.deepEqual(body, { statusCode: 431, code: 'RCS_HEADERS_TOO_LARGE', message: 'RCS_HEADERS_TOO_LARGE', requestId: body.requestId })
    assert.match(head, new RegExp(`X-Request-Id: ${body.requestId}`))
  })

  test('a request that is followed by garbage in the same packet: 400 once, and no effect', async () => {
    const path = `/v1/agents/${agentId}`
    const body = '{"displayName":"Changed"}'
    const head = `PATCH ${path} HTTP/1.1\r\nHost: x\r\n${bearer}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
    const { status } = await sendRaw(`${head}\r\n\r\n${body}garbage\r\n\r\n`)
    assert.equal(status, 400)
    const agents = await call(`${url}/v1/agents`, { authorization: caller.authorization })
    assert.doesNotMatch(JSON.stringify(agents.body), /Changed/)
  })

  const broken: [string, string][] = [
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['a header without a name', 'GET / HTTP/1.1\r\n: x\r\n\r\n'],
    [
      'both Content-Length and Transfer-Encoding',
      `PATCH /v1/agents/x HTTP/1.1\r\nHost: x\r\n${bearer}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      'a chunk of no size',
      `PATCH /v1/agents/x HTTP/1.1\r\nHost: x\r\n${bearer}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
    ],
    ['NUL in a header', `GET /v1/agents HTTP/1.1\r\nHost: x\r\nX-Nul: a\0b\r\n\r\n`],
  ]
  for (const [name, text] of broken) {
    test(`${name}: 400`, async () => {
      const { status, body } = await sendRaw(text)
      assert.equal(status, 400)
      assert.deepEqual(body, { statusCode: 400, code: 'RCS_INVALID_REQUEST', message: 'RCS_INVALID_REQUEST', requestId: body.requestId })
      assert.equal((await call(`${url}/v1/agents`, { authorization: caller.authorization })).status, 200)
    })
  }

  test('no Host: 400', async () => {
    const { status, body } = await sendRaw(`GET /v1/agents HTTP/1.1\r\n${bearer}\r\nConnection: close\r\n\r\n`)
    assert.equal(status, 400)
    assert.deepEqual(body.details, [{ path: '', reason: 'The header Host is missing.' }])
  })

  test('an absolute URL in the request line is read like a path', async () => {
    const { status } = await sendRaw(
      `GET http://elsewhere.example/v1/agents?x=1#y HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${bearer}\r\n\r\n`,
    )
    assert.equal(status, 400, 'the route exists, the parameter does not')
  })

  test('an unknown expectation is ignored, and CONNECT is rejected', async () => {
    const { status } = await sendRaw(`GET /v1/agents HTTP/1.1\r\nHost: x\r\nExpect: a-miracle\r\nConnection: close\r\n${bearer}\r\n\r\n`)
    assert.equal(status, 200)
    const { status: refused, body } = await sendRaw('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n')
    assert.equal(refused, 400)
    assert.equal(body.code, 'RCS_INVALID_REQUEST')
  })

  test('a client that resets its connection after CONNECT or an invalid request does not affect others', async () => {
    for (const text of [
      'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
      'nonsense\r\n\r\n',
      'POST /v1/agents HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n',
    ]) {
      for (let round = 0; round < 20; round += 1) {
        const connection = rawConnection(url)
        connection.send(`${text}${'x'.repeat(1_000)}`)
        connection.reset()
        await connection.ended
      }
    }
    assert.equal((await call(`${url}/v1/agents`, { authorization: caller.authorization })).status, 200)
  })

  test('a client that disconnects during its body changes nothing', async () => {
    const connection = rawConnection(url)
    connection.send(
      `PATCH /v1/agents/${agentId} HTTP/1.1\r\nHost: x\r\n${bearer}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"displayName":`,
    )
    connection.close()
    await connection.ended
    assert.equal((await call(`${url}/v1/agents`, { authorization: caller.authorization })).body.items[0].displayName, undefined)
    assert.doesNotMatch(service.log(), /the database is out of reach|"level":"error"/)
  })
})
