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
import { parseAnswer, rawConnection } from '../../support/raw.ts'
import { call, startTestService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const { settings } = await startNetwork()
const findCarriers = async () => ({ rcs: [settings], sms: undefined })
const service = await startTestService({ HERALD_DATABASE_URL, HERALD_LOG_LEVEL: 'trace' }, { findCarriers })
const postbackKey = await installationSecret(pool, 'postback', keyring)
const PHONE = '+48500100200'

type Sent = {
  url?: string
  carrier?: string
  token?: string
  signature?: string | null
  body?: unknown
  headers?: Record<string, string>
}

/** As Google sends it: the event in base64 in an envelope, its bytes signed. */
async function deliver(
  event: unknown,
  { url = service.url, carrier = 'network', token = settings.webhookToken, signature, body, headers }: Sent = {},
) {
  const bytes = Buffer.from(typeof event === 'string' ? event : JSON.stringify(event))
  const signed = signature === undefined ? createHmac('sha512', token).update(bytes).digest('base64') : signature
  const envelope = {
    message: { data: bytes.toString('base64'), attributes: { type: 'event' }, messageId: '1', publishTime: '2026-11-15T08:00:00Z' },
    subscription: 'projects/p/subscriptions/s',
  }
  return await call(`${url}/carriers/${carrier}/webhook`, {
    method: 'POST',
    headers: { ...(signed !== null && { 'X-Goog-Signature': signed }), ...headers },
    body: body ?? envelope,
  })
}

function userEvent(fields: object): Record<string, unknown> {
  return { senderPhoneNumber: PHONE, agentId: 'shop@rbm.goog', sendTime: '2026-11-15T08:00:00.123456Z', eventId: randomUUID(), ...fields }
}

async function keptEvents(): Promise<any[]> {
  const { rows } = await pool.query('select event from carrier_events')
  return rows.map(({ event }) => event)
}

async function kept(event: Record<string, unknown>): Promise<any> {
  assert.equal((await deliver(event)).status, 200)
  const id = event.eventId ?? event.messageId
  return (await keptEvents()).find(({ eventId }) => eventId === id)
}

describe('an event whose signature is right is kept, whatever its kind', () => {
  const messageId = randomUUID()
  const common = { carrier: 'network', occurredAt: '2026-11-15T08:00:00.123Z', phone: PHONE }

  for (const [eventType, kind] of [
    ['DELIVERED', 'delivered'],
    ['READ', 'read'],
  ] as const) {
    test(eventType, async () => {
      const event = userEvent({ eventType, messageId })
      assert.deepEqual(await kept(event), { ...common, eventId: event.eventId, kind, agentId: 'shop', messageId })
    })
  }

  for (const [eventType, kind] of [
    ['TTL_EXPIRATION_REVOKED', 'expired'],
    ['TTL_EXPIRATION_REVOKE_FAILED', 'expiry-failed'],
  ] as const) {
    test(`${eventType}, which names the phone in another field`, async () => {
      const { senderPhoneNumber, ...event } = userEvent({ eventType, messageId, phoneNumber: PHONE })
      assert.deepEqual(await kept(event), { ...common, eventId: event.eventId, kind, agentId: 'shop', messageId })
    })
  }

  for (const [eventType, kind] of [
    ['IS_TYPING', 'typing'],
    ['SUBSCRIBE', 'subscribed'],
    ['UNSUBSCRIBE', 'unsubscribed'],
  ] as const) {
    test(eventType, async () => {
      const event = userEvent({ eventType })
      assert.deepEqual(await kept(event), { ...common, eventId: event.eventId, kind, agentId: 'shop' })
    })
  }

  test('a text, with what no database stores replaced', async () => {
    const { eventId, ...event } = userEvent({ messageId: randomUUID(), text: 'Yes\0 \ud83d 📦' })
    const expected = { ...common, eventId: event.messageId, kind: 'wrote', agentId: 'shop', text: 'Yes\ufffd \ufffd 📦' }
    assert.deepEqual(await kept(event), expected)
  })

  test('a tap on a suggested reply, which has a text, and on an action, which has none', async () => {
    const postbackData = writePostback(postbackKey, { messageId, buttonId: 'yes.1' })
    const { eventId, ...reply } = userEvent({ messageId: randomUUID(), suggestionResponse: { postbackData, text: 'Yes' } })
    const tap = { ...common, kind: 'tapped', agentId: 'shop', messageId, buttonId: 'yes.1' }
    assert.deepEqual(await kept(reply), { ...tap, eventId: reply.messageId, text: 'Yes' })
    const action = userEvent({ suggestionResponse: { postbackData } })
    assert.deepEqual(await kept(action), { ...tap, eventId: action.eventId })
  })

  test('a tap whose postback is forged is nothing that we know, not even a text, and is told in the log', async () => {
    const real = writePostback(postbackKey, { messageId, buttonId: 'yes' })
    const others = [real.replace(':yes:', ':no:'), writePostback(Buffer.alloc(32), { messageId, buttonId: 'yes' }), 'yes', '', `${real}x`]
    const description = 'a tap on a button that is not ours'
    for (const postbackData of others) {
      for (const suggestionResponse of [{ postbackData, text: 'CANARY' }, { postbackData }]) {
        const event = userEvent({ suggestionResponse })
        assert.deepEqual(await kept(event), { ...common, eventId: event.eventId, kind: 'unknown', description })
      }
    }
    const warnings = service
      .log()
      .split('\n')
      .filter((line) => line.includes(description))
    assert.equal(warnings.length, 2 * others.length)
    assert.ok(warnings.every((line) => line.includes('"level":"warn"') && line.includes('"carrier":"network"')))
  })

  test('a place and a file', async () => {
    const place = await kept(userEvent({ location: { latitude: 52.5 } }))
    assert.deepEqual([place.kind, place.latitude, place.longitude], ['shared-location', 52.5, 0])
    const payload = { mimeType: 'image/png', fileSizeBytes: 7, fileUri: 'https://example.com/f', fileName: 'f.png' }
    const file = await kept(userEvent({ userFile: { payload } }))
    assert.deepEqual([file.kind, file.url, file.mimeType, file.name], ['sent-file', 'https://example.com/f', 'image/png', 'f.png'])
  })

  test('a place that is none', async () => {
    for (const location of [
      'null',
      '"x"',
      '[]',
      '7',
      '{"latitude":1e999}',
      '{"latitude":-1e999,"longitude":0}',
      '{"latitude":90.1}',
      '{"latitude":-91,"longitude":0}',
      '{"longitude":180.1}',
      '{"longitude":-181}',
      '{"latitude":"52","longitude":13}',
      '{"latitude":null,"longitude":13}',
    ]) {
      const { eventId, ...fields } = userEvent({})
      // By hand, since JSON.stringify writes no number that is too large for one.
      const event = `{"eventId":"${eventId}","location":${location},${JSON.stringify(fields).slice(1)}`
      assert.equal((await deliver(event)).status, 200)
      assert.equal((await keptEvents()).find((one) => one.eventId === eventId)?.kind, 'unknown', location)
    }
    const corner = await kept(userEvent({ location: { latitude: -90, longitude: 180 } }))
    assert.deepEqual([corner.kind, corner.latitude, corner.longitude], ['shared-location', -90, 180])
  })

  test('receipts for one message that have no id of their own are one each', async () => {
    const sent = { messageId: randomUUID(), eventId: undefined }
    const [read, delivered] = [userEvent({ ...sent, eventType: 'READ' }), userEvent({ ...sent, eventType: 'DELIVERED' })]
    for (const event of [read, delivered, read]) assert.equal((await deliver(event)).status, 200)
    const events = (await keptEvents()).filter((one) => one.messageId === sent.messageId)
    assert.equal(events.length, 2)
    assert.deepEqual(new Set(events.map(({ kind }) => kind)), new Set(['delivered', 'read']))
  })

  test('one of 150 KB', async () => {
    const text = 'x'.repeat(150_000)
    assert.equal((await kept(userEvent({ text }))).text, text)
  })

  test('a launch state of any length, which is cut to 100 characters of which the last may be half of one', async () => {
    const launch = await kept(userEvent({ newLaunchState: `${'x'.repeat(99)}📦📦` }))
    assert.deepEqual([launch.kind, launch.state], ['agent-launch', `${'x'.repeat(99)}\ufffd`])
  })

  test('the launch of an agent, which is about no phone', async () => {
    const { senderPhoneNumber, ...event } = userEvent({ oldLaunchState: 'PENDING', newLaunchState: 'LAUNCHED' })
    const launch = await kept(event)
    assert.deepEqual([launch.kind, launch.agentId, launch.state, launch.phone], ['agent-launch', 'shop', 'LAUNCHED', ''])
  })

  test('what is not known yet, or is no event at all: Google would send it again for a week', async () => {
    for (const event of [
      userEvent({ eventType: 'TELEPATHY' }),
      userEvent({ eventType: 'DELIVERED', messageId: 'not-ours' }),
      userEvent({ agentId: undefined, eventType: 'IS_TYPING' }),
      userEvent({ senderPhoneNumber: 'nobody', eventType: 'IS_TYPING' }),
      userEvent({ telepathy: {} }),
    ]) {
      assert.equal((await kept(event)).kind, 'unknown')
    }
    const before = (await keptEvents()).length
    for (const event of ['', 'null', '[]', '7', 'not json', '{"eventType":{}}']) assert.equal((await deliver(event)).status, 200)
    assert.equal((await keptEvents()).length, before + 6)
  })

  test('an event that comes again is kept once', async () => {
    const event = userEvent({ eventType: 'READ', messageId })
    const answers = await Promise.all(Array.from({ length: 20 }, () => deliver(event)))
    assert.ok(answers.every(({ status }) => status === 200))
    assert.equal((await keptEvents()).filter(({ eventId }) => eventId === event.eventId).length, 1)
  })
})

test('an event whose signature is wrong changes nothing', async () => {
  const before = await keptEvents()
  const event = userEvent({ eventType: 'READ', messageId: randomUUID() })
  const right = createHmac('sha512', settings.webhookToken).update(JSON.stringify(event)).digest()
  const wrong: Sent[] = [
    { token: 'x'.repeat(16) },
    { signature: null },
    { signature: '' },
    { signature: right.toString('hex') },
    { signature: right.subarray(0, 63).toString('base64') },
    { signature: Buffer.concat([right, Buffer.alloc(1)]).toString('base64') },
    { signature: createHmac('sha256', settings.webhookToken).update(JSON.stringify(event)).digest('base64') },
  ]
  for (const sent of wrong) {
    const { status, body } = await deliver(event, sent)
    assert.equal(status, 401)
    assert.deepEqual([body.statusCode, body.code], [401, 'RCS_UNAUTHORIZED'])
  }
  assert.deepEqual(await keptEvents(), before)
})

describe('the set-up challenge', () => {
  test('is answered with the bare secret, by one that has the right token', async () => {
    const { status, headers, body } = await deliver('', { body: { clientToken: settings.webhookToken, secret: 'a secret' } })
    assert.deepEqual([status, headers.get('content-type'), body], [200, 'text/plain; charset=utf-8', 'a secret'])
  })

  test('is refused to one that has another', async () => {
    const { status, body } = await deliver('', { body: { clientToken: 'another', secret: 'CANARY' } })
    assert.equal(status, 401)
    assert.ok(!JSON.stringify(body).includes('CANARY'))
  })
})

test('what is neither an event nor a challenge is refused, and so is a carrier that there is not', async () => {
  for (const body of ['{', '[]', '"text"', {}, { message: {} }, { message: { data: 7 } }, { clientToken: 1, secret: 2 }]) {
    assert.equal((await deliver('', { body })).status, 400, JSON.stringify(body))
  }
  assert.equal((await deliver('{}', { carrier: 'nobody' })).status, 404)
  assert.equal((await deliver('{}', { carrier: 'constructor' })).status, 404)
  assert.equal((await call(`${service.url}/carriers/network/webhook`)).status, 405)
})

describe('a request is refused in order of cost:', () => {
  const from = ({ url }: { url: string }, address: string) => ({ url, headers: { 'X-Forwarded-For': address } })

  /** Sends the head of a request with a large body, and none of the body. */
  async function answerBeforeBody(carrier: string, headers: string[] = [], { url = service.url, length = 'Content-Length: 200000' } = {}) {
    const connection = rawConnection(url)
    const head = [`POST /carriers/${carrier}/webhook HTTP/1.1`, 'Host: x', 'Content-Type: application/json', length, ...headers]
    connection.send(`${head.join('\r\n')}\r\n\r\n`)
    const answer = await until('a response before any byte of the body', () => {
      const received = connection.received()
      return received.includes('\r\n\r\n') && received.endsWith('}') ? parseAnswer(received) : undefined
    })
    connection.close()
    return answer
  }

  test('an unknown carrier before the body is read', async () => {
    assert.equal((await answerBeforeBody('nobody')).status, 404)
  })

  test('a body of brackets before it is parsed, at no cost that others could feel', async () => {
    const signature = Buffer.alloc(64).toString('base64')
    const costOf = (body: string) =>
      cpuMsOf(async () => {
        for (let sent = 0; sent < 10; sent += 1) assert.equal((await deliver('', { body, signature })).status, 400)
      })
    // A text costs as much to send and to receive, and little to parse.
    const [text, brackets] = [`"${'x'.repeat(250_000)}"`, '['.repeat(250_000)]
    let [textMs, bracketsMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    for (let round = 0; round < 5; round += 1) {
      textMs = Math.min(textMs, await costOf(text))
      bracketsMs = Math.min(bracketsMs, await costOf(brackets))
    }
    // Parsing the brackets took 150 ms more.
    assert.ok(bracketsMs < 2 * textMs, `${bracketsMs} ms, and ${textMs} ms for a text`)
  })

  test('a body without a signature that is large, or may be, before it is read; and one over 256 KiB that has a signature', async () => {
    assert.equal((await answerBeforeBody('network')).status, 413)
    assert.equal((await answerBeforeBody('network', [], { length: 'Transfer-Encoding: chunked' })).status, 413)
    assert.equal((await deliver('x'.repeat(250_000))).status, 413)
  })

  test('an address that failed 30 times in a minute before its body is read; another address is not', async () => {
    const proxied = await startTestService({ HERALD_DATABASE_URL, HERALD_TRUST_PROXY: '127.0.0.1' }, { findCarriers })
    for (let sent = 0; sent < 30; sent += 1)
      assert.equal((await deliver('{}', { token: 'wrong', ...from(proxied, '192.0.2.1') })).status, 401)
    const refused = await answerBeforeBody('network', ['X-Forwarded-For: 192.0.2.1'], proxied)
    assert.deepEqual([refused.status, refused.body.code], [429, 'RCS_RATE_LIMITED'])
    assert.match(refused.head, /retry-after: \d+/i)
    assert.equal((await deliver(userEvent({ eventType: 'IS_TYPING' }), from(proxied, '192.0.2.1'))).status, 429)
    assert.equal((await deliver(userEvent({ eventType: 'IS_TYPING' }), from(proxied, '192.0.2.2'))).status, 200)
  })

  test('an address with 100 requests under way; a request that it drops counts as a failure', async () => {
    const proxied = await startTestService({ HERALD_DATABASE_URL, HERALD_TRUST_PROXY: '127.0.0.1' }, { findCarriers })
    const head = (address: string) =>
      `POST /carriers/network/webhook HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${address}\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n`
    const connections = Array.from({ length: 101 }, () => rawConnection(proxied.url))
    for (const { send } of connections) send(head('192.0.2.3'))
    const refused = () => connections.filter(({ received }) => received().startsWith('HTTP/1.1 429')).length
    await until('one is refused', () => refused() === 1)
    for (const { close } of connections) close()
    await until('their end counts as failures', async () => (await deliver('{}', from(proxied, '192.0.2.3'))).status === 429)
    assert.equal((await deliver(userEvent({ eventType: 'IS_TYPING' }), from(proxied, '192.0.2.4'))).status, 200)
  })

  test('but no address that has sent a valid event within the hour: a network may share it with an attacker', async () => {
    const shared = await startTestService({ HERALD_DATABASE_URL }, { findCarriers })
    assert.equal((await deliver(userEvent({ eventType: 'IS_TYPING' }), { url: shared.url })).status, 200)
    for (let sent = 0; sent < 40; sent += 1) assert.equal((await deliver('{}', { token: 'wrong', url: shared.url })).status, 401)
    assert.equal((await deliver(userEvent({ eventType: 'IS_TYPING' }), { url: shared.url })).status, 200)
  })
})

test('with HERALD_CARRIER_WEBHOOK_PORT, events are taken on a port of their own, and nothing else is there', async () => {
  const apart = await startTestService({ HERALD_DATABASE_URL, HERALD_CARRIER_WEBHOOK_PORT: '0' }, { findCarriers })
  assert.notEqual(apart.carrierWebhookUrl, apart.url)
  const event = userEvent({ eventType: 'IS_TYPING' })
  assert.equal((await deliver(event, { url: apart.url })).status, 404)
  assert.equal((await deliver(event, { url: apart.carrierWebhookUrl })).status, 200)
  for (const path of ['/v1/agents', '/docs', '/metrics', '/l/x']) {
    assert.equal((await call(`${apart.carrierWebhookUrl}${path}`)).status, 404, path)
  }
})

test('with the database away an event is not acknowledged, so that it comes again', async () => {
  const proxy = await cuttableDatabase(HERALD_DATABASE_URL)
  const cut = await startTestService({ HERALD_DATABASE_URL: proxy.url }, { findCarriers })
  const event = userEvent({ eventType: 'READ', messageId: randomUUID() })
  await proxy.cut()
  assert.equal((await deliver(event, { url: cut.url })).status, 503)
  assert.ok(!(await keptEvents()).some(({ eventId }) => eventId === event.eventId))
})

test('no event, number or token reaches the log', () => {
  assert.match(service.log(), /carriers\/:carrier\/webhook/)
  assert.ok(!service.log().includes(settings.webhookToken))
  assert.doesNotMatch(service.log(), /48500100\d{3}|CANARY/)
})
