import assert from 'node:assert/strict'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { AGENT, requestToken, send, startTestSimulator } from './support/simulator.ts'

const text = { contentMessage: { text: 'Hello' } }
// With an hour between the steps, nothing happens by itself.
const simulator = await startTestSimulator({ delayMs: 3_600_000 })
const { call, sendMessage, url, carriers } = simulator

describe('a token', () => {
  test('is issued for an hour for a grant signed with the key', async () => {
    const { status, body } = await requestToken(carriers)
    assert.equal(status, 200)
    assert.deepEqual(
      { ...body, access_token: typeof body.access_token },
      { access_token: 'string', expires_in: 3600, token_type: 'Bearer' },
    )
  })

  const now = Math.floor(Date.now() / 1000)
  const cases: [string, Record<string, unknown>, string, string][] = [
    ['an unknown issuer', { iss: 'else@simulator.invalid' }, 'invalid_grant', 'Invalid grant: account not found'],
    ['another audience', { aud: 'https://oauth2.googleapis.com/token' }, 'invalid_grant', 'Invalid JWT: Failed audience check'],
    ['an expiry in the past', { iat: now - 7200, exp: now - 3600 }, 'invalid_grant', 'Invalid JWT: Token must be a short-lived token'],
    ['an expiry two hours ahead', { exp: now + 7200 }, 'invalid_grant', 'Invalid JWT: Token must be a short-lived token'],
    ['a start in the future', { iat: now + 1800, exp: now + 3600 }, 'invalid_grant', 'Invalid JWT: Token must be a short-lived token'],
    ['no scope', { scope: undefined }, 'invalid_scope', 'Invalid OAuth scope'],
  ]
  for (const [name, claims, error, description] of cases) {
    test(`is refused for a grant with ${name}`, async () => {
      const { status, body } = await requestToken(carriers, claims)
      assert.equal(status, 400)
      assert.equal(body.error, error)
      assert.ok(body.error_description.startsWith(description), body.error_description)
    })
  }

  test('is refused for a grant signed with another key', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const { status, body } = await requestToken(carriers, {}, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
    assert.equal(status, 400)
    assert.deepEqual(body, { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' })
  })

  test('is required for everything under /v1', async () => {
    for (const authorization of ['', 'Bearer nonsense', `Basic ${simulator.token}`]) {
      const { status, body } = await send('GET', `${url}/v1/phones/+48500100100/capabilities`, undefined, { authorization })
      assert.equal(status, 401)
      assert.equal(body.error.status, 'UNAUTHENTICATED')
    }
  })
})

describe('POST agentMessages', () => {
  test('responds with the message, its name and its time, and delivers it to the phone', async () => {
    const messageId = randomUUID()
    const { status, body } = await sendMessage('+48500100110', messageId, text)
    assert.equal(status, 200)
    assert.ok(Math.abs(Date.parse(body.sendTime) - Date.now()) < 60_000)
    assert.deepEqual({ ...body, sendTime: '' }, { ...text, name: `phones/+48500100110/agentMessages/${messageId}`, sendTime: '' })
    const [message] = await simulator.phone('+48500100110')
    assert.equal(message.messageId, messageId)
    assert.equal(message.agentId, AGENT)
    assert.deepEqual(message.agentMessage, text)
  })

  test('responds with each key once, even if the caller set the network’s own keys', async () => {
    const messageId = randomUUID()
    const body = JSON.stringify({ name: 'x', sendTime: 'y', ...text })
    const path = `/v1/phones/+48500100116/agentMessages?messageId=${messageId}&agentId=${AGENT}`
    const headers = { authorization: `Bearer ${simulator.token}`, 'content-type': 'application/json' }
    const echoed = await (await fetch(`${url}${path}`, { method: 'POST', headers, body })).text()
    assert.equal(echoed.match(/"(name|sendTime)":/g)?.length, 2)
    assert.deepEqual((await simulator.phone('+48500100116'))[0].agentMessage, text)
    const refused = async (bytes: Buffer, more: Record<string, string> = {}) =>
      (await fetch(`${url}${path}`, { method: 'POST', headers: { ...headers, ...more }, body: new Uint8Array(bytes) })).status
    assert.equal(await refused(Buffer.from('{"contentMessage":{"text":"\xff"}}', 'latin1')), 400)
    assert.equal(await refused(Buffer.from(body), { 'content-encoding': 'gzip' }), 415)
  })

  test('accepts a number with its plus encoded, and an agent with its full name', async () => {
    const { status } = await sendMessage('%2B48500100111', randomUUID(), text, `${AGENT}@rbm.goog`)
    assert.equal(status, 200)
    assert.equal((await simulator.phone('+48500100111'))[0].agentId, AGENT)
  })

  test('ignores a repeated id of an agent, and counts the attempt', async () => {
    const messageId = randomUUID()
    await sendMessage('+48500100112', messageId, text)
    assert.equal((await sendMessage('+48500100112', messageId, text)).status, 200)
    assert.equal((await sendMessage('+48500100112', messageId, text, 'another-agent')).status, 200)
    const messages = await simulator.phone('+48500100112')
    assert.deepEqual(
      messages.map(({ agentId, attempts }) => ({ agentId, attempts })),
      [
        { agentId: AGENT, attempts: 2 },
        { agentId: 'another-agent', attempts: 1 },
      ],
    )
    const kinds = (await simulator.ledger()).filter((entry) => entry.messageId === messageId).map(({ kind }) => kind)
    assert.deepEqual(kinds, ['accepted', 'repeated', 'accepted'])
  })

  test('rejects a message over a limit with an error like Google’s', async () => {
    const { status, body } = await sendMessage('+48500100110', randomUUID(), { contentMessage: { text: 'x'.repeat(3073) } })
    const description = 'contentMessage.text must not be longer than 3072 characters.'
    assert.equal(status, 400)
    assert.deepEqual(body, {
      error: {
        code: 400,
        message: description,
        status: 'INVALID_ARGUMENT',
        details: [
          { '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [{ field: 'contentMessage.text', description }] },
        ],
      },
    })
  })

  const wrong: [string, string, number, string][] = [
    ['a message id that is no UUID', `/v1/phones/+48500100110/agentMessages?messageId=1&agentId=${AGENT}`, 400, 'INVALID_ARGUMENT'],
    ['no message id', `/v1/phones/+48500100110/agentMessages?agentId=${AGENT}`, 400, 'INVALID_ARGUMENT'],
    ['no agent', `/v1/phones/+48500100110/agentMessages?messageId=${randomUUID()}`, 403, 'PERMISSION_DENIED'],
    ['a number without a plus', `/v1/phones/48500100110/agentMessages?messageId=${randomUUID()}&agentId=${AGENT}`, 400, 'INVALID_ARGUMENT'],
    ['an unknown path', `/v1/phones/+48500100110/messages?agentId=${AGENT}`, 404, 'NOT_FOUND'],
  ]
  for (const [name, path, status, code] of wrong) {
    test(`rejects ${name}`, async () => {
      const response = await call('POST', path, text)
      assert.deepEqual([response.status, response.body.error.status], [status, code])
    })
  }

  test('rejects invalid JSON, another content type, and a body that is too large', async () => {
    const path = `/v1/phones/+48500100110/agentMessages?messageId=${randomUUID()}&agentId=${AGENT}`
    assert.equal((await call('POST', path, '{')).status, 400)
    assert.equal((await call('POST', path, text, { 'content-type': 'text/plain' })).status, 400)
    assert.equal((await call('POST', path, JSON.stringify(text) + ' '.repeat(250_000))).status, 400)
    assert.equal((await call('POST', path, ' '.repeat(2_000_000))).status, 413)
  })
})

describe('a number that ends in', () => {
  for (const phone of ['+48500100102', '+48500100108']) {
    test(`${phone.slice(-2)} has no RCS: 404 for messages, capabilities and events`, async () => {
      assert.equal((await sendMessage(phone, randomUUID(), text)).body.error.status, 'NOT_FOUND')
      assert.equal((await call('GET', `/v1/phones/${phone}/capabilities?requestId=${randomUUID()}&agentId=${AGENT}`)).status, 404)
      const event = await call('POST', `/v1/phones/${phone}/agentEvents?eventId=${randomUUID()}&agentId=${AGENT}`, {
        eventType: 'IS_TYPING',
      })
      assert.equal(event.status, 404)
      assert.deepEqual(await simulator.phone(phone), [])
    })
  }

  test('03 is refused permanently, without the details of a limit', async () => {
    const { status, body } = await sendMessage('+48500100103', randomUUID(), text)
    assert.equal(status, 400)
    assert.equal(body.error.status, 'FAILED_PRECONDITION')
    assert.equal(body.error.details, undefined)
  })

  test('05 fails twice for each message, then accepts it', async () => {
    for (const messageId of [randomUUID(), randomUUID()]) {
      const statuses: number[] = []
      for (let attempt = 0; attempt < 4; attempt++) statuses.push((await sendMessage('+48500100105', messageId, text)).status)
      assert.deepEqual(statuses, [503, 503, 200, 200])
    }
    assert.equal((await simulator.phone('+48500100105')).length, 2)
  })
})

describe('the API', () => {
  test('revokes a message before its delivery, and not an unknown one', async () => {
    const messageId = randomUUID()
    const path = `/v1/phones/+48500100113/agentMessages/${messageId}?agentId=${AGENT}`
    assert.equal((await call('DELETE', path)).status, 404)
    await sendMessage('+48500100113', messageId, text)
    assert.deepEqual((await call('DELETE', path)).body, {})
    assert.notEqual((await simulator.phone('+48500100113'))[0].revokedAt, null)
    const delivered = await call('POST', '/simulator/phones/+48500100113/deliver', { messageId })
    assert.equal(delivered.status, 400)
  })

  test('does not revoke a delivered message', async () => {
    const messageId = randomUUID()
    await sendMessage('+48500100114', messageId, text)
    assert.equal((await call('POST', '/simulator/phones/+48500100114/deliver', { messageId })).status, 200)
    assert.equal((await call('DELETE', `/v1/phones/+48500100114/agentMessages/${messageId}?agentId=${AGENT}`)).status, 404)
  })

  test('lists capabilities for a request id', async () => {
    const path = `/v1/phones/+48500100110/capabilities?agentId=${AGENT}`
    assert.equal((await call('GET', path)).status, 400)
    const { status, body } = await call('GET', `${path}&requestId=${randomUUID()}`)
    assert.equal(status, 200)
    assert.ok(body.features.includes('RICHCARD_CAROUSEL'))
  })

  test('returns the reachable numbers of up to 10,000', async () => {
    const users = ['+48500100102', '+48500100108', '+48500100110']
    const { body } = await call('POST', '/v1/users:batchGet', { users, agentId: AGENT })
    assert.deepEqual(body, { reachableUsers: ['+48500100110'], totalRandomSampleUserCount: 0, reachableRandomSampleUserCount: 0 })
    const many = Array.from({ length: 10_001 }, (_, index) => `+4850${String(1_000_000 + index)}`)
    const sampled = await call('POST', '/v1/users:batchGet', { users: many.slice(1), agentId: AGENT })
    assert.equal(sampled.body.totalRandomSampleUserCount, 7500)
    assert.equal((await call('POST', '/v1/users:batchGet', { users: many, agentId: AGENT })).status, 400)
    assert.equal((await call('POST', '/v1/users:batchGet', { users: ['48500100110'], agentId: AGENT })).status, 400)
    assert.equal((await call('POST', '/v1/users:batchGet', { users })).status, 403)
  })

  test('delivers an agent’s events, whose ids count as those of messages', async () => {
    const eventId = randomUUID()
    const path = `/v1/phones/+48500100115/agentEvents?eventId=${eventId}&agentId=${AGENT}`
    assert.equal((await call('POST', path, { eventType: 'READ' })).status, 400)
    assert.equal((await call('POST', path, { eventType: 'IS_TYPING', messageId: 'x' })).status, 400)
    assert.equal((await call('POST', path, { eventType: 'IS_TYPING' })).status, 200)
    assert.equal((await sendMessage('+48500100115', eventId, text)).status, 200)
    const shown = await simulator.phone('+48500100115')
    assert.deepEqual(
      shown.map(({ channel, attempts }) => ({ channel, attempts })),
      [{ channel: 'rcs-event', attempts: 2 }],
    )
  })

  test('counts what the ledger lists', async () => {
    const { owed, ...totals } = await simulator.counts()
    assert.ok(owed.steps > 0)
    const kinds = Map.groupBy(await simulator.ledger(), ({ kind }) => kind).entries()
    assert.deepEqual(totals, Object.fromEntries(kinds.map(([kind, rows]) => [kind, rows.length])))
    const { body } = await call('GET', '/simulator/ledger?after=1&limit=1')
    assert.deepEqual([body.entries.length, body.entries[0].seq, body.next], [1, 2, 2])
  })
})
