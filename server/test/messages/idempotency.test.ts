import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createKey, rotateKey } from '../../src/accounts/keys.ts'
import { requestHash } from '../../src/messages/request-hash.ts'
import { createTestDatabase } from '../support/database.ts'
import { callerAt, countRows, type MessageCaller, NOTHING, newKey, ONE_MESSAGE, startMessageService } from '../support/messages.ts'
import { parseResponse, rawConnection } from '../support/raw.ts'
import type { ApiResponse } from '../support/service.ts'
import { TEXT } from '../support/templates.ts'

const database = await createTestDatabase()
const { pool } = database
const { url, newCaller } = await startMessageService(database)
const { url: otherUrl } = await startMessageService(database)

const text = (content: string) => ({ message: { inline: { type: 'MESSAGE', content } } })

function assertReplayed(first: ApiResponse, again: ApiResponse): void {
  assert.equal(again.status, 202)
  assert.deepEqual(again.body, first.body)
  assert.equal(again.headers.get('location'), first.headers.get('location'))
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
}

function assertConflict({ status, body }: ApiResponse): void {
  const code = 'RCS_IDEMPOTENCY_CONFLICT'
  const details = [{ path: '', reason: 'The Idempotency-Key was used before, with another body.' }]
  assert.deepEqual(body, { statusCode: 409, code, message: code, requestId: body.requestId, details })
  assert.equal(status, 409)
}

/** Equal requests have the same response, and at most one of them created the message. */
function assertOneMade(responses: ApiResponse[]): void {
  const [first] = responses as [ApiResponse]
  for (const { status, body, headers } of responses) {
    assert.deepEqual([status, body], [202, first.body])
    assert.equal(headers.get('location'), `/v1/messages/${first.body.messageId}`)
  }
  const made = responses.filter(({ headers }) => headers.get('idempotent-replayed') === null)
  assert.ok(made.length <= 1)
}

/** A request with exactly these header lines for the key. */
async function sendWithHeaders({ authorization, request }: MessageCaller, lines: Buffer[]) {
  const body = JSON.stringify(request())
  const connection = rawConnection(url)
  connection.send(
    Buffer.concat([
      Buffer.from(`POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${authorization}\r\n`),
      Buffer.from(`Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`),
      ...lines.flatMap((line) => [line, Buffer.from('\r\n')]),
      Buffer.from(`\r\n${body}`),
    ]),
  )
  return parseResponse(await connection.ended)
}

describe('the header Idempotency-Key', () => {
  const wrong = 'must be 1 to 255 printable ASCII characters, new for every message; the same ones again only to try the same request again'
  const refused: [name: string, lines: (string | Buffer)[], reason: string][] = [
    ['missing', [], 'is required'],
    ['empty', ['Idempotency-Key:'], wrong],
    ['of blanks', ['Idempotency-Key:    '], wrong],
    ['of 256 characters', [`Idempotency-Key: ${'k'.repeat(256)}`], wrong],
    ['in Latin-1', [Buffer.from('Idempotency-Key: é', 'latin1')], wrong],
    ['in UTF-8', ['Idempotency-Key: ą😀'], wrong],
    ['with a tab inside', ['Idempotency-Key: a\tb'], wrong],
    ['there twice', ['Idempotency-Key: a', 'Idempotency-Key: b'], 'must appear exactly once'],
    ['there twice, alike', ['Idempotency-Key: a', 'idempotency-key: a'], 'must appear exactly once'],
  ]
  for (const [name, lines, reason] of refused) {
    test(`${name} is a 400 with the reason, and nothing is stored`, async () => {
      const caller = await newCaller()
      const { status, body } = await sendWithHeaders(
        caller,
        lines.map((line) => Buffer.from(line)),
      )
      const code = 'RCS_IDEMPOTENCY_KEY_REQUIRED'
      const details = [{ path: '/idempotency-key', reason }]
      assert.deepEqual(body, { statusCode: 400, code, message: code, requestId: body.requestId, details })
      assert.equal(status, 400)
      assert.deepEqual(await countRows(pool, caller.accountId), NOTHING)
    })
  }

  test('takes 1 to 255 printable characters, and distinguishes case and inner blanks', async () => {
    const { accountId, request, send } = await newCaller()
    const keys = ['k', 'K', 'k k', 'k  k', 'x'.repeat(255), '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~', 'a, b', '%00', "' or 1=1"]
    for (const key of keys) assert.equal((await send(key, request())).headers.get('idempotent-replayed'), null, key)
    for (const key of keys) assert.equal((await send(key, request())).headers.get('idempotent-replayed'), 'true', key)
    assert.equal((await countRows(pool, accountId)).messages, keys.length)
  })
})

describe('a key that was used', () => {
  test('replays the response for the same body in any order of fields and with any white space', async () => {
    const { accountId, agentId, send, request } = await newCaller()
    const buttons = [{ id: 'a', type: 'url', text: 'Open', url: 'https://example.com' }]
    const body = request({ clientReferenceId: 'x', message: { inline: { ...TEXT, buttons } } })
    const first = await send('k', body)
    assert.equal(first.headers.get('idempotent-replayed'), null)
    const button = '{"url":"https://example.com",\n"text":"\\u004fpen","type":"url","id":"a"}'
    const reordered = `\n{"message": {"inline": {"buttons": [ ${button} ], "content":"Hello","type":"MESSAGE"}},\t"recipient":"+48500100200",
      "clientReferenceId":"x", "agentId":"${agentId}", "basic": null } `
    for (const again of [body, reordered]) assertReplayed(first, await send('k', again))
    assert.deepEqual(await countRows(pool, accountId), ONE_MESSAGE)
  })

  test('is a 409 with any other body, and keeps its message', async () => {
    const { accountId, send, request } = await newCaller()
    const first = await send('k', request())
    const others = [text('hello'), { clientReferenceId: 'x' }, { recipient: '48500100200' }, { basic: false }]
    for (const fields of [...others, { expiresAt: new Date(Date.now() + 60_000).toISOString() }])
      assertConflict(await send('k', request(fields)))
    assertReplayed(first, await send('k', request()))
    assert.deepEqual(await countRows(pool, accountId), ONE_MESSAGE)
  })

  test('belongs to the account, with all its keys and secrets', async () => {
    const caller = await newCaller()
    const first = await caller.send('k', caller.request())
    const stranger = await newCaller()
    const theirs = await stranger.send('k', stranger.request())
    assert.equal(theirs.headers.get('idempotent-replayed'), null)
    assert.notEqual(theirs.body.messageId, first.body.messageId)

    const second = await createKey(pool, caller.accountId)
    const rotated = await rotateKey(pool, caller.integrationKey)
    for (const { integrationKey, secret } of [second, rotated]) {
      const again = callerAt(url, { ...caller, authorization: `Bearer ${integrationKey}:${secret}` })
      assertReplayed(first, await again.send('k', caller.request()))
      assertConflict(await again.send('k', caller.request(text('other'))))
    }
    assert.equal((await caller.send('k', caller.request())).status, 401)
  })

  test('replays after the template is replaced or deleted and the agent deactivated', async () => {
    const { agentId, send, request, ask, template } = await newCaller()
    const templateId = await template()
    const target = await template()
    const trigger = { ...TEXT, buttons: [{ id: 'a', type: 'trigger_template', text: 'More', templateId: target }] }
    const bodies = [request({ message: { templateId } }), request({ message: { inline: trigger } })]
    const firsts = await Promise.all(bodies.map((body, index) => send(`k${index}`, body)))
    const replay = async () => {
      for (const [index, body] of bodies.entries()) assertReplayed(firsts[index] as ApiResponse, await send(`k${index}`, body))
    }
    await ask('PUT', `/templates/${templateId}`, { name: 'X', basic: true, status: 'DRAFT', message: TEXT })
    await replay()
    for (const id of [templateId, target]) assert.equal((await ask('DELETE', `/templates/${id}`)).status, 204)
    await replay()
    assert.equal((await ask('PATCH', `/agents/${agentId}`, { active: false })).status, 200)
    await replay()
    assert.equal((await send(newKey(), bodies[0])).body.code, 'RCS_AGENT_NOT_FOUND')
  })

  test('replays after expiresAt has passed', async () => {
    const { accountId, send, request } = await newCaller()
    const first = await send('k', request({ expiresAt: new Date(Date.now() + 60_000).toISOString() }))
    // As if the request had been accepted an hour ago.
    const body = request({ expiresAt: new Date(Date.now() - 3_540_000).toISOString() })
    await pool.query('update idempotency_keys set request_hash = $2 where account_id = $1', [accountId, requestHash(body)])
    assertReplayed(first, await send('k', body))
    const { status, body: late } = await send(newKey(), body)
    assert.deepEqual([status, late.details], [400, [{ path: '/expiresAt', reason: 'must be in the future' }]])
  })

  test('stays free after a rejected request', async () => {
    const { accountId, send, request, template } = await newCaller()
    const draft = await template(TEXT, { status: 'DRAFT' })
    const refused = [
      { recipient: '123' },
      { agentId: 'nobody' },
      { message: { templateId: draft } },
      { message: { templateId: 2 ** 40 } },
      { expiresAt: '2020-01-01T00:00:00Z' },
    ]
    for (const fields of refused) assert.ok([400, 404].includes((await send('k', request(fields))).status))
    assert.deepEqual(await countRows(pool, accountId), NOTHING)
    assert.equal((await send('k', request())).headers.get('idempotent-replayed'), null)
    assert.deepEqual(await countRows(pool, accountId), ONE_MESSAGE)
  })
})

for (const [nodes, urls] of Object.entries({ 'one node': [url], 'two nodes': [url, otherUrl] })) {
  describe(`concurrent requests at ${nodes}`, () => {
    const at = (caller: MessageCaller) => urls.map((each) => callerAt(each, caller))
    const sendAll = (caller: MessageCaller, key: string, bodies: unknown[]) => {
      const callers = at(caller)
      return Promise.all(bodies.map((body, index) => (callers[Math.floor(index / 2) % callers.length] as MessageCaller).send(key, body)))
    }

    test('create one message for a hundred equal requests', async () => {
      const caller = await newCaller()
      assertOneMade(await sendAll(caller, 'k', Array(100).fill(caller.request())))
      assert.deepEqual(await countRows(pool, caller.accountId), ONE_MESSAGE)
    })

    test('create one message for two contents, and are a 409 for the other', async () => {
      for (let round = 0; round < urls.length; round += 1) {
        const caller = await newCaller()
        const [a, b] = [caller.request(text('a')), caller.request(text('b'))]
        const responses = await sendAll(
          caller,
          'k',
          Array.from({ length: 100 }, (_, index) => (index % 2 ? a : b)),
        )
        const sides = [responses.filter((_, index) => index % 2), responses.filter((_, index) => index % 2 === 0)] as [
          ApiResponse[],
          ApiResponse[],
        ]
        const [winners, losers] = sides[0][0]?.status === 202 ? sides : sides.toReversed()
        assertOneMade(winners as ApiResponse[])
        for (const response of losers as ApiResponse[]) assertConflict(response)
        assert.deepEqual(await countRows(pool, caller.accountId), ONE_MESSAGE)
      }
    })

    test('create a message when only some of them are valid', async () => {
      const caller = await newCaller()
      const bodies = Array.from({ length: 20 }, (_, index) => caller.request(index % 2 ? {} : { agentId: 'nobody' }))
      const responses = await sendAll(caller, 'k', bodies)
      assertOneMade(responses.filter((_, index) => index % 2))
      assert.ok(responses.every(({ body }, index) => index % 2 || body.code === 'RCS_AGENT_NOT_FOUND'))
      assert.deepEqual(await countRows(pool, caller.accountId), ONE_MESSAGE)
    })
  })
}
