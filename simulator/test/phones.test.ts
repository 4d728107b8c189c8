import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { AGENT, startTestSimulator } from './support/simulator.ts'
import { until } from './support/until.ts'
import { startWebhook } from './support/webhook.ts'

const simulator = await startTestSimulator()
const webhook = await startWebhook()
const { call, sendMessage, setWebhook } = simulator
await setWebhook(webhook.url)

const act = (phone: string, action: string, body: unknown) => call('POST', `/simulator/phones/${phone}/${action}`, body)
const from = (phone: string, what: (data: any) => boolean) =>
  until('the event', () => webhook.data().find((data) => data.senderPhoneNumber === phone && what(data)))
const suggestions = [
  { reply: { text: 'Yes', postbackData: 'p-yes' } },
  { action: { text: 'Call', postbackData: 'p-call', dialAction: { phoneNumber: '112' } } },
]

test('deliver brings a phone online, even after the expiry', async () => {
  const messageId = randomUUID()
  await sendMessage('+48500200104', messageId, { contentMessage: { text: 'Hello' }, ttl: '0.05s' })
  await until('it expires', async () => (await simulator.phone('+48500200104'))[0].expiredAt)
  assert.deepEqual((await act('+48500200104', 'deliver', {})).body, { delivered: [messageId] })
  await from('+48500200104', (data) => data.eventType === 'DELIVERED')
  const again = await act('+48500200104', 'deliver', { messageId })
  assert.deepEqual([again.status, again.body.error.message], [400, 'The message is already delivered.'])
})

test('read reads a message that the phone has, once', async () => {
  const messageId = randomUUID()
  assert.equal((await act('+48500200101', 'read', { messageId })).status, 404)
  await sendMessage('+48500200101', messageId, { contentMessage: { text: 'Hello' } })
  await until('it has it', async () => (await simulator.phone('+48500200101'))[0].deliveredAt)
  assert.equal((await act('+48500200101', 'read', { messageId })).status, 200)
  assert.equal((await act('+48500200101', 'read', { messageId })).status, 400)
  await from('+48500200101', (data) => data.eventType === 'READ' && data.messageId === messageId)
})

test('tap taps a button by its text, its postback or its index', async () => {
  const messageId = randomUUID()
  await sendMessage('+48500200201', messageId, { contentMessage: { text: 'Hello', suggestions } })
  await until('it has it', async () => (await simulator.phone('+48500200201'))[0].deliveredAt)
  const reply = (await act('+48500200201', 'tap', { messageId, button: 'Yes' })).body.events[0]
  assert.deepEqual(reply.suggestionResponse, { postbackData: 'p-yes', text: 'Yes' })
  for (const button of ['p-call', 1]) {
    const event = (await act('+48500200201', 'tap', { messageId, button })).body.events[0]
    assert.deepEqual(event.suggestionResponse, { postbackData: 'p-call' })
  }
  const wrong = await act('+48500200201', 'tap', { messageId, button: 'No' })
  assert.equal(wrong.body.error.message, 'The message has no such button; it has Yes, Call.')
  await from('+48500200201', (data) => data.suggestionResponse?.text === 'Yes')
})

test('reply, stop, unsubscribe and share-location emit their events', async () => {
  const phone = '+48500200301'
  assert.equal((await act(phone, 'reply', { agentId: AGENT, text: 'Zażółć' })).status, 200)
  await from(phone, (data) => data.text === 'Zażółć' && data.agentId === `${AGENT}@rbm.goog`)
  await act(phone, 'stop', { agentId: AGENT })
  await from(phone, (data) => data.text === 'STOP')
  const { body } = await act(phone, 'unsubscribe', { agentId: AGENT })
  assert.deepEqual([body.events[0].eventType, body.events[1].text], ['UNSUBSCRIBE', 'STOP'])
  await act(phone, 'share-location', { agentId: AGENT, latitude: 50.06, longitude: 19.94 })
  const { location } = await from(phone, (data) => data.location)
  assert.deepEqual(location, { latitude: 50.06, longitude: 19.94 })
})

test('typing, subscribe and send-file emit their events', async () => {
  const phone = '+48500200401'
  await act(phone, 'typing', { agentId: `${AGENT}@rbm.goog` })
  await from(phone, (data) => data.eventType === 'IS_TYPING' && data.agentId === `${AGENT}@rbm.goog`)
  const { body } = await act(phone, 'subscribe', { agentId: AGENT })
  assert.deepEqual([body.events[0].eventType, body.events[1].text], ['SUBSCRIBE', 'START'])
  await act(phone, 'send-file', { agentId: AGENT, url: 'https://example.com/a.png', mimeType: 'image/png', fileName: 'a.png' })
  const { userFile } = await from(phone, (data) => data.userFile)
  assert.deepEqual(userFile.payload, {
    mimeType: 'image/png',
    fileSizeBytes: 1024,
    fileUri: 'https://example.com/a.png',
    fileName: 'a.png',
  })
})

test('an invalid action gets an error with the reason', async () => {
  assert.equal((await act('+48500200301', 'dance', {})).status, 404)
  assert.match((await act('+48500200301', 'reply', { agentId: AGENT })).body.error.message, /text is required/)
  assert.match((await act('+48500200301', 'reply', { agentId: AGENT, text: 'x', more: 1 })).body.error.message, /Unknown name "more"/)
  assert.match((await act('48500200301', 'stop', { agentId: AGENT })).body.error.message, /E\.164/)
  const plain = await call('POST', '/simulator/phones/+48500200301/stop', '{}', { 'content-type': 'text/plain' })
  assert.equal(plain.status, 415)
})

test('GET phones lists the phones that received anything, in pages', async () => {
  const all = (await call('GET', '/simulator/phones')).body
  assert.deepEqual(all, { phones: ['+48500200101', '+48500200104', '+48500200201'], next: null })
  const first = (await call('GET', '/simulator/phones?limit=2')).body
  assert.deepEqual(first, { phones: all.phones.slice(0, 2), next: '+48500200104' })
  const second = (await call('GET', `/simulator/phones?limit=2&after=${encodeURIComponent(first.next)}`)).body
  assert.deepEqual(second, { phones: all.phones.slice(2), next: null })
})
