import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { createPoster } from '../src/webhooks/poster.ts'
import { connectEsme } from './support/esme.ts'
import { AGENT, send, startTestSimulator } from './support/simulator.ts'
import { until } from './support/until.ts'
import { startWebhook } from './support/webhook.ts'

const buttons = [
  { action: { text: 'Track', postbackData: 'track-1', openUrlAction: { url: 'https://example.com' } } },
  { reply: { text: 'Thanks', postbackData: 'thanks-1' } },
]
const text = { contentMessage: { text: 'Hello' } }

const simulator = await startTestSimulator()
const webhook = await startWebhook()
const { call, sendMessage, setWebhook } = simulator
const about = (messageId: string) => webhook.received.filter(({ data }) => data.messageId === messageId)
const from = (phone: string) => webhook.data().filter((data) => (data.senderPhoneNumber ?? data.phoneNumber) === phone)
const kindOf = (data: any): string =>
  data.eventType ?? (data.suggestionResponse ? `tap ${data.suggestionResponse.postbackData}` : `text ${data.text}`)

test('an address that does not answer the challenge is not taken, and the answer says why', async () => {
  const put = setWebhook
  webhook.challenge = (secret) => `secret: ${secret}`
  assert.match((await put(webhook.url)).body.error.message, /bare secret/)
  webhook.challenge = (secret) => secret
  assert.match((await put('http://127.0.0.1:1/webhook')).body.error.message, /could not be reached/)
  assert.match((await put('ftp://127.0.0.1')).body.error.message, /http or https/)
  assert.deepEqual((await call('GET', '/simulator/webhook')).body, { url: null })
})

test('sends no challenge, and so no token, to an address that a caller without the webhook token names', async () => {
  const one = await startTestSimulator()
  const stranger = await startWebhook()
  const challenges: string[] = []
  stranger.challenge = (secret) => {
    challenges.push(secret)
    return secret
  }
  const token = one.carriers.simulator.webhookToken
  const wrong = [undefined, '', token, `Bearer ${one.token}`, `Bearer ${token}x`, `Bearer ${token.slice(1)}`, `Basic ${token}`]
  for (const authorization of wrong) {
    const headers = { 'content-type': 'application/json', ...(authorization !== undefined && { authorization }) }
    const answer = await send('PUT', `${one.url}/simulator/webhook`, { url: stranger.url }, headers)
    assert.deepEqual([answer.status, answer.body.error.status], [401, 'UNAUTHENTICATED'], `${authorization}`)
    assert.match(answer.body.error.message, /webhookToken of carriers\.json/)
  }
  assert.equal((await one.setWebhook(stranger.url)).status, 200)
  assert.equal(challenges.length, 1, 'the challenge of the caller that knows the token is the only one')
})

test('no response of the control port holds a secret of carriers.json', async () => {
  const { simulator: rcs, 'simulator-sms': sms } = simulator.carriers
  const key = rcs.serviceAccount.private_key ?? ''
  const secrets = [rcs.webhookToken, sms.password, key, ...key.split('\n').filter((line) => line.length > 40)]
  const esme = await connectEsme(simulator.carriers)
  await esme.bind('transceiver')
  const number = '+48500100177'
  await sendMessage(number, randomUUID(), text)
  await setWebhook('http://127.0.0.1:1/webhook')
  const paths = [
    'counts',
    'ledger',
    'phones',
    `phones/${number}`,
    `phones/${number}/reply`,
    'agents/x/launch',
    'webhook',
    'faults',
    'nothing',
  ]
  for (const path of paths) {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
      const body = method === 'POST' || method === 'PUT' ? {} : undefined
      const answer = await call(method, `/simulator/${path}`, body)
      const shown = JSON.stringify([answer.body, ...answer.headers])
      for (const secret of secrets) assert.ok(!shown.includes(JSON.stringify(secret).slice(1, -1)), `${method} ${path}`)
    }
  }
})

test('what was owed before there was an address is told at once when there is one', async () => {
  const messageId = randomUUID()
  await sendMessage('+48500100101', messageId, text)
  assert.deepEqual((await setWebhook(webhook.url)).body, { url: webhook.url })
  await until('it is delivered', () => about(messageId).length === 1)
})

test('an event comes in Google’s envelope, signed over the decoded data with the client token', async () => {
  const messageId = randomUUID()
  await sendMessage('+48500100101', messageId, text)
  const { headers, body, data } = await until('the receipt is there', () => about(messageId)[0])
  assert.deepEqual(new Set(Object.keys(body)), new Set(['message', 'subscription']))
  const decoded = Buffer.from(body.message.data, 'base64')
  const expected = createHmac('sha512', simulator.carriers.simulator.webhookToken).update(decoded).digest('base64')
  assert.equal(headers['x-goog-signature'], expected)
  assert.equal(body.message.messageId, body.message.message_id)
  assert.ok(Date.parse(body.message.publishTime) <= Date.now())
  assert.deepEqual(
    { ...data, eventId: typeof data.eventId, sendTime: typeof data.sendTime },
    {
      senderPhoneNumber: '+48500100101',
      agentId: `${AGENT}@rbm.goog`,
      eventType: 'DELIVERED',
      eventId: 'string',
      messageId,
      sendTime: 'string',
    },
  )
})

describe('the last digits choose what comes back', () => {
  const cases: [string, object, string[]][] = [
    ['+48500100201', text, ['DELIVERED']],
    ['+48500100206', text, ['DELIVERED', 'READ', 'text Thank you']],
    ['+48500100207', { contentMessage: { text: 'Hello', suggestions: buttons } }, ['DELIVERED', 'READ', 'tap track-1']],
    ['+48500100209', text, ['DELIVERED', 'text STOP']],
    ['+48500100210', text, ['DELIVERED', 'READ']],
  ]
  for (const [phone, message, expected] of cases) {
    test(`${phone.slice(-2)}: ${expected.join(', ')}`, async () => {
      await sendMessage(phone, randomUUID(), message)
      await until('all of it is told', async () => from(phone).length >= expected.length)
      await until('nothing more is owed', async () => {
        const { owed } = (await call('GET', '/simulator/counts')).body
        return owed.steps === 0 && owed.webhooks === 0
      })
      assert.equal(from(phone).length, expected.length)
      assert.deepEqual(new Set(from(phone).map(kindOf)), new Set(expected))
    })
  }

  test('07 taps the first button of the first card that has one; a reply comes as a message with its text', async () => {
    const cards = [{ title: 'One' }, { title: 'Two', suggestions: buttons.toReversed() }]
    const message = { contentMessage: { richCard: { carouselCard: { cardWidth: 'SMALL', cardContents: cards } } } }
    await sendMessage('+48500100307', randomUUID(), message)
    const tap = await until('it taps', () => from('+48500100307').find((data) => data.suggestionResponse))
    assert.deepEqual(tap.suggestionResponse, { postbackData: 'thanks-1', text: 'Thanks' })
    assert.equal(typeof tap.messageId, 'string')
    assert.equal(tap.eventId, undefined)
  })

  test('07 taps an action: an event with the postback and no text', async () => {
    await sendMessage('+48500100407', randomUUID(), { contentMessage: { text: 'Hello', suggestions: buttons } })
    const tap = await until('it taps', () => from('+48500100407').find((data) => data.suggestionResponse))
    assert.deepEqual(tap.suggestionResponse, { postbackData: 'track-1' })
    assert.equal(typeof tap.eventId, 'string')
    assert.equal(tap.messageId, undefined)
  })

  test('04 is never delivered: at its expiry the platform says that it was revoked', async () => {
    const messageId = randomUUID()
    await sendMessage('+48500100204', messageId, { ...text, ttl: '0.05s' })
    const { data } = await until('it expires', () => about(messageId)[0])
    assert.deepEqual(
      { ...data, eventId: '', sendTime: '' },
      {
        phoneNumber: '+48500100204',
        agentId: `${AGENT}@rbm.goog`,
        eventType: 'TTL_EXPIRATION_REVOKED',
        messageId,
        eventId: '',
        sendTime: '',
      },
    )
  })
})

test('an event is repeated, the same each time, until it is answered with 200', async () => {
  const messageId = randomUUID()
  webhook.status = 202
  await sendMessage('+48500100101', messageId, text)
  await until('it is refused', () => about(messageId).length === 1)
  webhook.status = 200
  await until('it is accepted', async () =>
    (await simulator.ledger()).some(
      (entry) => entry.kind === 'webhook-accepted' && entry.messageId === messageId && entry.detail.tries === 2,
    ),
  )
  assert.equal(new Set(about(messageId).map(({ body }) => JSON.stringify(body))).size, 1)
})

describe('faults of webhooks', () => {
  const deliver = async (faults: object) => {
    const messageId = randomUUID()
    await simulator.faults({ webhooks: faults })
    await sendMessage('+48500100101', messageId, text)
    return messageId
  }

  test('duplicated: it comes twice', async () => {
    const messageId = await deliver({ duplicated: { count: 1 } })
    await until('it has come twice', () => about(messageId).length === 2)
  })

  test('lost: it never comes, and the ledger knows', async () => {
    const messageId = await deliver({ lost: { count: 1 } })
    await until('it is lost', async () =>
      (await simulator.ledger()).some((entry) => entry.kind === 'webhook-lost' && entry.messageId === messageId),
    )
    assert.deepEqual((await call('GET', '/simulator/counts')).body.owed.webhooks, 0)
  })

  test('late: it comes after the given time', async () => {
    const messageId = await deliver({ late: { count: 1, ms: 150 } })
    const sentAt = Date.now()
    await until('it comes', () => about(messageId).length === 1)
    assert.ok(Date.now() - sentAt >= 100)
  })

  test('wrongSignature: the first try is signed wrongly, the next one rightly', async () => {
    webhook.status = 401
    const messageId = await deliver({ wrongSignature: { count: 1 } })
    await until('it is refused', () => about(messageId).length === 1)
    webhook.status = 200
    await until('it comes again', () => about(messageId).length === 2)
    const right = about(messageId).map(({ headers, body }) => {
      const key = simulator.carriers.simulator.webhookToken
      const expected = createHmac('sha512', key).update(Buffer.from(body.message.data, 'base64')).digest('base64')
      return headers['x-goog-signature'] === expected
    })
    assert.deepEqual(right, [false, true])
  })

  test('reordered: events come in another order than they happened', async () => {
    await simulator.faults({ seed: 7, webhooks: { reordered: { rate: 1, withinMs: 100 } } })
    const ids = Array.from({ length: 12 }, () => randomUUID())
    for (const id of ids) await sendMessage('+48500100101', id, text)
    await until('all have come', () => ids.every((id) => about(id).length === 1))
    await simulator.faults({})
    const order = webhook
      .data()
      .map((data) => data.messageId)
      .filter((id) => ids.includes(id))
    assert.notDeepEqual(order, ids)
  })
})

/** Answers the challenge and nothing else. */
async function startSilentWebhook() {
  let received = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { secret } = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    if (secret === undefined) received++
    else response.end(secret)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  after(close)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received: () => received, close }
}

test('64 are under way to an address that is silent; the others wait for it or its successor, and challenges do not', async () => {
  const one = await startTestSimulator()
  const silent = await startSilentWebhook()
  const successor = await startWebhook()
  const put = one.setWebhook
  await put(silent.url)
  const ids = Array.from({ length: 100 }, () => randomUUID())
  for (const id of ids) await one.sendMessage('+48500100101', id, text)
  await until('it has what it gets', () => silent.received() === 64)
  assert.equal((await put(silent.url)).status, 200)
  assert.equal(silent.received(), 64)
  assert.equal((await one.call('GET', '/simulator/counts')).body.owed.webhooks, 100)
  await put(successor.url)
  silent.close()
  await until('the successor has all', () => successor.received.length === ids.length)
  await until('nothing is owed', async () => (await one.call('GET', '/simulator/counts')).body.owed.webhooks === 0)
  assert.deepEqual(new Set(successor.data().map(({ messageId }) => messageId)), new Set(ids))
  const tries = (await one.ledger()).filter(({ kind }) => kind === 'webhook-accepted').map(({ detail }) => detail.tries)
  assert.deepEqual([tries.filter((each) => each === 1).length, tries.filter((each) => each === 2).length], [36, 64])
})

test('stopping does not wait for an address that is silent', async () => {
  const one = await startTestSimulator()
  const silent = await startSilentWebhook()
  await one.setWebhook(silent.url)
  await one.sendMessage('+48500100101', randomUUID(), text)
  await until('it is under way', () => silent.received() === 1)
  const startedAt = performance.now()
  await one.stop()
  assert.ok(performance.now() - startedAt < 2000)
})

test('no two events have the same number, also where nothing is owed in between', async () => {
  const numbers = () => webhook.received.map(({ body, data }) => [body.message.messageId, data.eventId ?? data.messageId])
  for (let round = 0; round < 3; round++) {
    const messageId = randomUUID()
    await sendMessage('+48500100101', messageId, text)
    await until('it is told', () => about(messageId).length === 1)
    await until('nothing is owed', async () => (await call('GET', '/simulator/counts')).body.owed.webhooks === 0)
  }
  const eventsOf = Map.groupBy(numbers(), ([number]) => number)
  for (const events of eventsOf.values()) assert.equal(new Set(events.map(([, event]) => event)).size, 1)
})

test('a launch is told with its own attributes, and an expiry as one that failed where the faults say so', async () => {
  const launch = await call('POST', `/simulator/agents/${AGENT}/launch`, { state: 'REJECTED' })
  assert.equal(launch.status, 200)
  const { body, data } = await until('it is told', () => webhook.received.find((each) => each.data.newLaunchState))
  assert.deepEqual(
    [data.newLaunchState, data.agentId, body.message.attributes.type],
    ['REJECTED', `${AGENT}@rbm.goog`, 'agent_launch_event'],
  )
  assert.equal((await call('POST', `/simulator/agents/${AGENT}/launch`, { state: 'GONE' })).status, 400)
  await simulator.faults({ webhooks: { revokeFailed: { count: 1 } } })
  const messageId = randomUUID()
  await sendMessage('+48500100204', messageId, { ...text, ttl: '0.02s' })
  assert.equal((await until('it expires', () => about(messageId)[0])).data.eventType, 'TTL_EXPIRATION_REVOKE_FAILED')
})

test('posts the next event after a refused connection, over the same client', async () => {
  const poster = createPoster('http://127.0.0.1:1/webhook')
  after(() => poster.destroy())
  const answers: number[] = []
  const post = () =>
    poster.post('{}', undefined, ({ status }) => {
      answers.push(status)
      if (answers.length < 3) post()
    })
  post()
  await until('three posts have failed', () => answers.length === 3)
  assert.deepEqual(answers, [0, 0, 0])
})
