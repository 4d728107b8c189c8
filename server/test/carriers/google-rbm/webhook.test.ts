import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { writePostback } from '../../../src/carriers/google-rbm/postback.ts'
import { installationSecret } from '../../../src/db/secrets.ts'
import { cpuMsOf } from '../../support/cpu.ts'
import { createTestDatabase } from '../../support/database.ts'
import { keyring } from '../../support/keyring.ts'
import { startNetwork } from '../../support/network.ts'
import { cuttableDatabase } from '../../support/proxy.ts'
import { parseResponse, rawConnection } from '../../support/raw.ts'
import { call, startTestService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const { settings } = await startNetwork()
const findCarriers = async () => ({ rcs: [settings], sms: undefined })
// Without workers: they would empty a reply that a test is about to read.
const startService = (env = {}) => startTestService({ HERALD_DATABASE_URL, ...env }, { findCarriers, roles: ['api'] })
const service = await startService({ HERALD_LOG_LEVEL: 'trace' })
const postbackKey = await installationSecret(pool, 'postback', keyring)
const PHONE = '+48500100200'

type Options = { url?: string; carrier?: string; token?: string; signature?: string | null; body?: unknown; from?: string }

/** Posts an event as Google does: in base64 in an envelope, its bytes signed. */
async function deliver(event: unknown, options: Options = {}) {
  const { url = service.url, carrier = 'network', token = settings.webhookToken, signature, body, from } = options
  const bytes = Buffer.from(typeof event === 'string' ? event : JSON.stringify(event))
  const signed = signature === undefined ? createHmac('sha512', token).update(bytes).digest('base64') : signature
  const message = { data: bytes.toString('base64'), attributes: { type: 'event' }, messageId: '1', publishTime: '2026-11-15T08:00:00Z' }
  return await call(`${url}/carriers/${carrier}/webhook`, {
    method: 'POST',
    headers: { ...(signed !== null && { 'X-Goog-Signature': signed }), ...(from && { 'X-Forwarded-For': from }) },
    body: body ?? { message, subscription: 'projects/p/subscriptions/s' },
  })
}

async function statusOf(event: unknown, options?: Options): Promise<number> {
  return (await deliver(event, options)).status
}

function userEvent(fields: object): Record<string, unknown> {
  return { senderPhoneNumber: PHONE, agentId: 'shop@rbm.goog', sendTime: '2026-11-15T08:00:00.123456Z', eventId: randomUUID(), ...fields }
}

const typing = () => userEvent({ eventType: 'IS_TYPING' })

async function storedEvents(): Promise<any[]> {
  const { rows } = await pool.query('select event from carrier_events')
  return rows.map(({ event }) => event)
}

/** Delivers an event and returns it as it was stored. */
async function store(event: Record<string, unknown>): Promise<any> {
  assert.equal(await statusOf(event), 200)
  const id = event.eventId ?? event.messageId
  return (await storedEvents()).find(({ eventId }) => eventId === id)
}

describe('an event with a valid signature is stored', () => {
  const messageId = randomUUID()
  const common = { carrier: 'network', occurredAt: '2026-11-15T08:00:00.123Z', phone: PHONE }
  const named = { senderPhoneNumber: undefined, phoneNumber: PHONE }

  for (const [eventType, kind, fields] of [
    ['DELIVERED', 'delivered', { messageId }],
    ['READ', 'read', { messageId }],
    ['TTL_EXPIRATION_REVOKED', 'expired', { messageId, ...named }],
    ['TTL_EXPIRATION_REVOKE_FAILED', 'expiry-failed', { messageId, ...named }],
    ['IS_TYPING', 'typing', {}],
    ['SUBSCRIBE', 'subscribed', {}],
    ['UNSUBSCRIBE', 'unsubscribed', {}],
  ] as const) {
    test(`as ${kind} for ${eventType}`, async () => {
      const event = userEvent({ eventType, ...fields })
      const about = 'messageId' in fields ? { messageId } : {}
      assert.deepEqual(await store(event), { ...common, eventId: event.eventId, kind, agentId: 'shop', ...about })
    })
  }

  test('as a text, with the characters replaced that PostgreSQL cannot store', async () => {
    const { eventId, ...event } = userEvent({ messageId: randomUUID(), text: 'Yes\0 \ud83d 📦' })
    const expected = { ...common, eventId: event.messageId, kind: 'wrote', agentId: 'shop', text: 'Yes\ufffd \ufffd 📦' }
    assert.deepEqual(await store(event), expected)
    const text = 'x'.repeat(150_000)
    assert.equal((await store(userEvent({ text }))).text, text)
  })

  test('as a tap: on a suggested reply with its text, on an action without one', async () => {
    const postbackData = writePostback(postbackKey, { messageId, buttonId: 'yes.1' })
    const { eventId, ...reply } = userEvent({ messageId: randomUUID(), suggestionResponse: { postbackData, text: 'Yes' } })
    const tap = { ...common, kind: 'tapped', agentId: 'shop', messageId, buttonId: 'yes.1' }
    assert.deepEqual(await store(reply), { ...tap, eventId: reply.messageId, text: 'Yes' })
    const action = userEvent({ suggestionResponse: { postbackData } })
    assert.deepEqual(await store(action), { ...tap, eventId: action.eventId })
  })

  test('as unknown, with a warning in the log, for a tap with a forged postback', async () => {
    const real = writePostback(postbackKey, { messageId, buttonId: 'yes' })
    const others = [real.replace(':yes:', ':no:'), writePostback(Buffer.alloc(32), { messageId, buttonId: 'yes' }), 'yes', '', `${real}x`]
    const description = 'a tap on a button that is not ours'
    for (const postbackData of others) {
      for (const suggestionResponse of [{ postbackData, text: 'CANARY' }, { postbackData }]) {
        const event = userEvent({ suggestionResponse })
        assert.deepEqual(await store(event), { ...common, eventId: event.eventId, kind: 'unknown', description })
      }
    }
    const lines = service.log().split('\n')
    const warnings = lines.filter((line) => line.includes(description))
    assert.equal(warnings.length, 2 * others.length)
    assert.ok(warnings.every((line) => line.includes('"level":"warn"') && line.includes('"carrier":"network"')))
  })

  const payload = { mimeType: 'image/png', fileSizeBytes: 7, fileUri: 'https://example.com/f', fileName: 'f.png' }
  const launch = { oldLaunchState: 'PENDING', newLaunchState: 'LAUNCHED', senderPhoneNumber: undefined }
  for (const [what, fields, expected] of [
    ['a location', { location: { latitude: 52.5 } }, { kind: 'shared-location', latitude: 52.5, longitude: 0 }],
    [
      'a location at the corner of the map',
      { location: { latitude: -90, longitude: 180 } },
      { kind: 'shared-location', latitude: -90, longitude: 180 },
    ],
    ['a file', { userFile: { payload } }, { kind: 'sent-file', url: 'https://example.com/f', mimeType: 'image/png', name: 'f.png' }],
    ['an agent launch, without a phone', launch, { kind: 'agent-launch', state: 'LAUNCHED', phone: '' }],
    [
      'an agent launch, its state cut to 100 characters even within an emoji',
      { newLaunchState: `${'x'.repeat(99)}📦📦` },
      { kind: 'agent-launch', state: `${'x'.repeat(99)}\ufffd` },
    ],
    ['an unknown type', { eventType: 'TELEPATHY' }, { kind: 'unknown' }],
    ['a receipt whose message id is not ours', { eventType: 'DELIVERED', messageId: 'not-ours' }, { kind: 'unknown' }],
    ['no agent', { agentId: undefined, eventType: 'IS_TYPING' }, { kind: 'unknown' }],
    ['no phone number', { senderPhoneNumber: 'nobody', eventType: 'IS_TYPING' }, { kind: 'unknown' }],
    ['an unknown field', { telepathy: {} }, { kind: 'unknown' }],
  ] as [string, object, Record<string, unknown>][]) {
    test(`as ${expected.kind} for ${what}`, async () => {
      const stored = await store(userEvent(fields))
      const known = expected.kind === 'unknown' ? {} : { agentId: 'shop' }
      assert.deepEqual({ ...stored, ...known, ...expected }, stored)
    })
  }

  test('as unknown for an invalid location', async () => {
    const outside = ['{"latitude":90.1}', '{"latitude":-91,"longitude":0}', '{"longitude":180.1}', '{"longitude":-181}']
    const infinite = ['{"latitude":1e999}', '{"latitude":-1e999,"longitude":0}']
    const mistyped = ['null', '"x"', '[]', '7', '{"latitude":"52","longitude":13}', '{"latitude":null,"longitude":13}']
    for (const location of [...outside, ...infinite, ...mistyped]) {
      const { eventId, ...fields } = userEvent({})
      // JSON.stringify cannot write 1e999.
      const event = `{"eventId":"${eventId}","location":${location},${JSON.stringify(fields).slice(1)}`
      assert.equal(await statusOf(event), 200)
      assert.equal((await storedEvents()).find((stored) => stored.eventId === eventId)?.kind, 'unknown', location)
    }
  })

  test('even if it is not an event, since Google would send it again for a week', async () => {
    const before = (await storedEvents()).length
    for (const event of ['', 'null', '[]', '7', 'not json', '{"eventType":{}}']) assert.equal(await statusOf(event), 200)
    assert.equal((await storedEvents()).length, before + 6)
  })

  test('once for each kind of receipt, if receipts for one message have no id of their own', async () => {
    const sent = { messageId: randomUUID(), eventId: undefined }
    const [read, delivered] = [userEvent({ ...sent, eventType: 'READ' }), userEvent({ ...sent, eventType: 'DELIVERED' })]
    for (const event of [read, delivered, read]) assert.equal(await statusOf(event), 200)
    const events = (await storedEvents()).filter((stored) => stored.messageId === sent.messageId)
    assert.equal(events.length, 2)
    assert.deepEqual(new Set(events.map(({ kind }) => kind)), new Set(['delivered', 'read']))
  })

  test('once if it is delivered 20 times at once', async () => {
    const event = userEvent({ eventType: 'READ', messageId })
    const statuses = await Promise.all(Array.from({ length: 20 }, () => statusOf(event)))
    assert.deepEqual(new Set(statuses), new Set([200]))
    assert.equal((await storedEvents()).filter(({ eventId }) => eventId === event.eventId).length, 1)
  })
})

test('rejects an event with an invalid signature', async () => {
  const before = await storedEvents()
  const event = userEvent({ eventType: 'READ', messageId: randomUUID() })
  const right = createHmac('sha512', settings.webhookToken).update(JSON.stringify(event)).digest()
  for (const options of [
    { token: 'x'.repeat(16) },
    { signature: null },
    { signature: '' },
    { signature: right.toString('hex') },
    { signature: right.subarray(0, 63).toString('base64') },
    { signature: Buffer.concat([right, Buffer.alloc(1)]).toString('base64') },
    { signature: createHmac('sha256', settings.webhookToken).update(JSON.stringify(event)).digest('base64') },
  ]) {
    const { status, body } = await deliver(event, options)
    assert.deepEqual([status, body.statusCode, body.code], [401, 401, 'RCS_UNAUTHORIZED'])
  }
  assert.deepEqual(await storedEvents(), before)
})

test('responds to the set-up challenge with the bare secret, if the token is right', async () => {
  const { status, headers, body } = await deliver('', { body: { clientToken: settings.webhookToken, secret: 'a secret' } })
  assert.deepEqual([status, headers.get('content-type'), body], [200, 'text/plain; charset=utf-8', 'a secret'])
  const refused = await deliver('', { body: { clientToken: 'another', secret: 'CANARY' } })
  assert.equal(refused.status, 401)
  assert.ok(!JSON.stringify(refused.body).includes('CANARY'))
})

test('rejects a body that is neither an event nor a challenge, and an unknown carrier', async () => {
  for (const body of ['{', '[]', '"text"', {}, { message: {} }, { message: { data: 7 } }, { clientToken: 1, secret: 2 }]) {
    assert.equal(await statusOf('', { body }), 400, JSON.stringify(body))
  }
  for (const carrier of ['nobody', 'constructor']) assert.equal(await statusOf('{}', { carrier }), 404)
})

describe('rejects, in the order of cost,', () => {
  /** Sends the head of a request with a large body, and nothing of the body. */
  async function responseBeforeBody(
    carrier: string,
    { headers = [] as string[], url = service.url, length = 'Content-Length: 200000' } = {},
  ) {
    const connection = rawConnection(url)
    const head = [`POST /carriers/${carrier}/webhook HTTP/1.1`, 'Host: x', 'Content-Type: application/json', length, ...headers]
    connection.send(`${head.join('\r\n')}\r\n\r\n`)
    const response = await until('a response before any byte of the body', () => {
      const received = connection.received()
      return received.includes('\r\n\r\n') && received.endsWith('}') ? parseResponse(received) : undefined
    })
    connection.close()
    return response
  }

  test('an unknown carrier before the body is read', async () => {
    assert.equal((await responseBeforeBody('nobody')).status, 404)
  })

  test('a body of brackets before it is parsed', async () => {
    const signature = Buffer.alloc(64).toString('base64')
    const costOf = (body: string) =>
      cpuMsOf(async () => {
        for (let sent = 0; sent < 10; sent += 1) assert.equal(await statusOf('', { body, signature }), 400)
      })
    // A text costs as much to send and to receive, and little to parse.
    const [text, brackets] = [`"${'x'.repeat(250_000)}"`, '['.repeat(250_000)]
    let [textMs, bracketsMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    for (let iteration = 0; iteration < 5; iteration += 1) {
      textMs = Math.min(textMs, await costOf(text))
      bracketsMs = Math.min(bracketsMs, await costOf(brackets))
    }
    // Parsing the brackets took 150 ms more.
    assert.ok(bracketsMs < 2 * textMs, `${bracketsMs} ms, and ${textMs} ms for a text`)
  })

  test('a large or chunked body without a signature before it is read, and one over 256 KiB with a signature', async () => {
    assert.equal((await responseBeforeBody('network')).status, 413)
    assert.equal((await responseBeforeBody('network', { length: 'Transfer-Encoding: chunked' })).status, 413)
    assert.equal(await statusOf('x'.repeat(250_000)), 413)
  })

  test('an address with 30 failures in a minute before its body is read, and no other address', async () => {
    const { url } = await startService({ HERALD_TRUST_PROXY: '127.0.0.1' })
    const from = '192.0.2.1'
    for (let sent = 0; sent < 30; sent += 1) assert.equal(await statusOf('{}', { token: 'wrong', url, from }), 401)
    const refused = await responseBeforeBody('network', { headers: [`X-Forwarded-For: ${from}`], url })
    assert.deepEqual([refused.status, refused.body.code], [429, 'RCS_RATE_LIMITED'])
    assert.match(refused.head, /retry-after: \d+/i)
    assert.equal(await statusOf(typing(), { url, from }), 429)
    assert.equal(await statusOf(typing(), { url, from: '192.0.2.2' }), 200)
  })

  test('an address with 100 requests in progress; a request that it drops counts as a failure', async () => {
    const { url } = await startService({ HERALD_TRUST_PROXY: '127.0.0.1' })
    const from = '192.0.2.3'
    const head = ['POST /carriers/network/webhook HTTP/1.1', 'Host: x', `X-Forwarded-For: ${from}`, 'Content-Type: application/json']
    const connections = Array.from({ length: 101 }, () => rawConnection(url))
    for (const { send } of connections) send(`${head.join('\r\n')}\r\nContent-Length: 20\r\n\r\n`)
    const refused = () => connections.filter(({ received }) => received().startsWith('HTTP/1.1 429')).length
    await until('one is refused', () => refused() === 1)
    for (const { close } of connections) close()
    await until('their end counts as failures', async () => (await statusOf('{}', { url, from })) === 429)
    assert.equal(await statusOf(typing(), { url, from: '192.0.2.4' }), 200)
  })

  test('no address that sent a valid event within the hour: an attacker may share it with the network', async () => {
    const { url } = await startService()
    assert.equal(await statusOf(typing(), { url }), 200)
    for (let sent = 0; sent < 40; sent += 1) assert.equal(await statusOf('{}', { token: 'wrong', url }), 401)
    assert.equal(await statusOf(typing(), { url }), 200)
  })
})

test('serves events, and nothing else, on HERALD_CARRIER_WEBHOOK_PORT', async () => {
  const { url, carrierWebhookUrl } = await startService({ HERALD_CARRIER_WEBHOOK_PORT: '0' })
  assert.notEqual(carrierWebhookUrl, url)
  assert.equal(await statusOf(typing(), { url }), 404)
  assert.equal(await statusOf(typing(), { url: carrierWebhookUrl }), 200)
  for (const path of ['/v1/agents', '/docs', '/metrics', '/l/x'])
    assert.equal((await call(`${carrierWebhookUrl}${path}`)).status, 404, path)
})

test('does not acknowledge an event while the database is unavailable', async () => {
  const proxy = await cuttableDatabase(HERALD_DATABASE_URL)
  const { url } = await startService({ HERALD_DATABASE_URL: proxy.url })
  const event = userEvent({ eventType: 'READ', messageId: randomUUID() })
  await proxy.cut()
  assert.equal(await statusOf(event, { url }), 503)
  assert.ok(!(await storedEvents()).some(({ eventId }) => eventId === event.eventId))
})

test('logs no event, number or token', () => {
  assert.match(service.log(), /carriers\/:carrier\/webhook/)
  assert.ok(!service.log().includes(settings.webhookToken))
  assert.doesNotMatch(service.log(), /48500100\d{3}|CANARY/)
})
