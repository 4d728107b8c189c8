import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
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

test('rejects an address that fails the challenge, with the reason', async () => {
  webhook.challenge = (secret) => `secret: ${secret}`
  assert.match((await setWebhook(webhook.url)).body.error.message, /bare secret/)
  webhook.challenge = (secret) => secret
  assert.match((await setWebhook('http://127.0.0.1:1/webhook')).body.error.message, /could not be reached/)
  assert.match((await setWebhook('ftp://127.0.0.1')).body.error.message, /http or https/)
  assert.deepEqual((await call('GET', '/simulator/webhook')).body, { url: null })
})

test('sends no challenge, and so no token, for a caller without the webhook token', async () => {
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
    const { status, body } = await send('PUT', `${one.url}/simulator/webhook`, { url: stranger.url }, headers)
    assert.deepEqual([status, body.error.status], [401, 'UNAUTHENTICATED'], `${authorization}`)
    assert.match(body.error.message, /webhookToken of carriers\.json/)
  }
  assert.equal((await one.setWebhook(stranger.url)).status, 200)
  assert.equal(challenges.length, 1, 'the challenge of the caller that knows the token is the only one')
})

test('returns no secret of carriers.json on the control port', async () => {
  const { simulator: rcs, 'simulator-sms': sms } = simulator.carriers
  const key = rcs.serviceAccount.private_key ?? ''
  const secrets = [rcs.webhookToken, sms.password, key, ...key.split('\n').filter((line) => line.length > 40)]
  const esme = await connectEsme(simulator.carriers)
  await esme.bind('transceiver')
  const number = '+48500100177'
  await sendMessage(number, randomUUID(), text)
  await setWebhook('http://127.0.0.1:1/webhook')
  const lists = ['counts', 'ledger', 'phones', 'webhook', 'faults', 'nothing']
  for (const path of [...lists, `phones/${number}`, `phones/${number}/reply`, 'agents/x/launch']) {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
      const body = method === 'POST' || method === 'PUT' ? {} : undefined
      const response = await call(method, `/simulator/${path}`, body)
      const shown = JSON.stringify([response.body, ...response.headers])
      for (const secret of secrets) assert.ok(!shown.includes(JSON.stringify(secret).slice(1, -1)), `${method} ${path}`)
    }
  }
})

test('posts earlier events as soon as a webhook is registered', async () => {
  const messageId = randomUUID()
  await sendMessage('+48500100101', messageId, text)
  assert.deepEqual((await setWebhook(webhook.url)).body, { url: webhook.url })
  await until('it is delivered', () => about(messageId).length === 1)
})

test('posts an event in Google’s envelope, its decoded data signed with the client token', async () => {
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

describe('a number that ends in', () => {
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
      await simulator.settled()
      assert.equal(from(phone).length, expected.length)
      assert.deepEqual(new Set(from(phone).map(kindOf)), new Set(expected))
    })
  }

  test('07 taps the first button of the first card that has one: a reply is a message with its text', async () => {
    const cards = [{ title: 'One' }, { title: 'Two', suggestions: buttons.toReversed() }]
    const message = { contentMessage: { richCard: { carouselCard: { cardWidth: 'SMALL', cardContents: cards } } } }
    await sendMessage('+48500100307', randomUUID(), message)
    const tap = await until('it taps', () => from('+48500100307').find((data) => data.suggestionResponse))
    assert.deepEqual(tap.suggestionResponse, { postbackData: 'thanks-1', text: 'Thanks' })
    assert.equal(typeof tap.messageId, 'string')
    assert.equal(tap.eventId, undefined)
  })

  test('07 taps an action: an event with the postback and without a text', async () => {
    await sendMessage('+48500100407', randomUUID(), { contentMessage: { text: 'Hello', suggestions: buttons } })
    const tap = await until('it taps', () => from('+48500100407').find((data) => data.suggestionResponse))
    assert.deepEqual(tap.suggestionResponse, { postbackData: 'track-1' })
    assert.equal(typeof tap.eventId, 'string')
    assert.equal(tap.messageId, undefined)
  })

  test('04 is never delivered, and revoked at its expiry', async () => {
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

test('repeats an event unchanged until the response is 200', async () => {
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

describe('the webhook fault', () => {
  const deliver = async (faults: object) => {
    const messageId = randomUUID()
    await simulator.faults({ webhooks: faults })
    await sendMessage('+48500100101', messageId, text)
    return messageId
  }

  test('duplicated posts an event twice', async () => {
    const messageId = await deliver({ duplicated: { count: 1 } })
    await until('it has come twice', () => about(messageId).length === 2)
  })

  test('lost posts no event, and notes it in the ledger', async () => {
    const messageId = await deliver({ lost: { count: 1 } })
    await until('it is lost', async () =>
      (await simulator.ledger()).some((entry) => entry.kind === 'webhook-lost' && entry.messageId === messageId),
    )
    assert.deepEqual((await simulator.counts()).owed.webhooks, 0)
  })

  test('late posts an event after the given time', async () => {
    const beforeMs = performance.now()
    const messageId = await deliver({ late: { count: 1, ms: 150 } })
    await until('it comes', () => about(messageId).length === 1)
    assert.ok(performance.now() - beforeMs >= 150)
  })

  test('wrongSignature signs the first post wrongly, and the next one correctly', async () => {
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

  test('reordered posts events in another order', async () => {
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

test('posts 64 events at once to a silent webhook, and the others to the next webhook; a challenge does not wait', async () => {
  const own = await startTestSimulator()
  const [silent, successor] = [await startWebhook(), await startWebhook()]
  silent.status = 0
  await own.setWebhook(silent.url)
  const ids = Array.from({ length: 100 }, () => randomUUID())
  for (const id of ids) await own.sendMessage('+48500100101', id, text)
  await until('64 posts', () => silent.received.length === 64)
  assert.equal((await own.setWebhook(silent.url)).status, 200)
  assert.equal(silent.received.length, 64)
  assert.equal((await own.counts()).owed.webhooks, 100)
  await own.setWebhook(successor.url)
  silent.close()
  await own.settled()
  assert.equal(successor.received.length, ids.length)
  assert.deepEqual(new Set(successor.data().map(({ messageId }) => messageId)), new Set(ids))
  const tries = (await own.ledger()).filter(({ kind }) => kind === 'webhook-accepted').map(({ detail }) => detail.tries)
  assert.deepEqual([tries.filter((each) => each === 1).length, tries.filter((each) => each === 2).length], [36, 64])
})

test('stops without waiting for a silent webhook', async () => {
  // The simulator itself ends a post after 10 s. On a busy machine one stop can take that long, but not every one.
  await until('a stop that ends before the deadline of the post', async () => {
    const own = await startTestSimulator()
    const silent = await startWebhook()
    silent.status = 0
    await own.setWebhook(silent.url)
    await own.sendMessage('+48500100101', randomUUID(), text)
    const postedAt = await until('a post', () => silent.received.length === 1 && performance.now())
    await own.stop()
    return performance.now() - (postedAt as number) < 10_000
  })
})

test('gives each event a new number, even if nothing is pending in between', async () => {
  const numbers = () => webhook.received.map(({ body, data }) => [body.message.messageId, data.eventId ?? data.messageId])
  for (let round = 0; round < 3; round++) {
    const messageId = randomUUID()
    await sendMessage('+48500100101', messageId, text)
    await simulator.settled()
  }
  const eventsOf = Map.groupBy(numbers(), ([number]) => number)
  for (const events of eventsOf.values()) assert.equal(new Set(events.map(([, event]) => event)).size, 1)
})

test('posts a launch with its own attributes, and an expiry that failed with revokeFailed', async () => {
  const launch = await call('POST', `/simulator/agents/${AGENT}/launch`, { state: 'REJECTED' })
  assert.equal(launch.status, 200)
  const { body, data } = await until('the event', () => webhook.received.find((each) => each.data.newLaunchState))
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
  const statuses: number[] = []
  const post = () =>
    poster.post('{}', undefined, ({ status }) => {
      statuses.push(status)
      if (statuses.length < 3) post()
    })
  post()
  await until('three posts have failed', () => statuses.length === 3)
  assert.deepEqual(statuses, [0, 0, 0])
})
