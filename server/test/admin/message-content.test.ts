import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assignAgent, createAgent } from '../../src/agents/agents.ts'
import { call, createCaller } from '../support/service.ts'
import { pool, service, signedIn } from './shared.ts'

const { accountId, authorization } = await createCaller(pool)
await createAgent(pool, { agentId: 'content', name: 'content', billingType: 'single', carrier: 'simulator' })
await assignAgent(pool, 'content', accountId)
let sent = 0

async function send(message: object, more: object = {}): Promise<string> {
  sent += 1
  const { body } = await call(`${service.url}/v1/messages`, {
    method: 'POST',
    authorization,
    headers: { 'idempotency-key': `content-${sent}` },
    body: { agentId: 'content', recipient: '+48500100200', message, ...more },
  })
  return body.messageId
}

const CARD = { type: 'CARD', content: 'Call +48500100299', data: { title: 'Offer' }, buttons: [] }

test('returns the content of a message and its SMS as it is sent, with the links of the request', async () => {
  const ask = await signedIn('admin', accountId)
  const link = 'https://example.com/ą'
  const smsFallback = {
    planParams: { sender: 'Shop', smsShipmentType: 1 },
    smsMessagesPlan: [{ content: `Paczka w drodze: żółw ${link}`, urlShortening: true, multipart: true }],
  }
  const messageId = await send({ inline: CARD }, { smsFallback })
  assert.deepEqual((await ask('GET', `/accounts/${accountId}/messages/${messageId}/content`)).body, {
    messageId,
    content: CARD,
    sms: { sender: 'Shop', text: `Paczka w drodze: zolw ${link}`, hasShortLinks: true },
  })
})

test('returns the content that the template had when the message was accepted', async () => {
  const ask = await signedIn('admin', accountId)
  const text = (content: string) => ({ type: 'MESSAGE', content })
  const template = { name: 'Greeting', status: 'APPROVED', message: text('before') }
  const { body } = await ask('POST', `/accounts/${accountId}/templates`, template)
  const messageId = await send({ templateId: body.id })
  await ask('PUT', `/accounts/${accountId}/templates/${body.id}`, { ...template, message: text('after') })
  const { body: read } = await ask('GET', `/accounts/${accountId}/messages/${messageId}/content`)
  assert.deepEqual(read, { messageId, content: text('before') })
})

test('masks phone numbers in the content for viewers, and does not know a message of another account', async () => {
  const messageId = await send({ inline: CARD })
  const viewer = await signedIn('viewer', accountId)
  const { body } = await viewer('GET', `/accounts/${accountId}/messages/${messageId}/content`)
  assert.equal(body.content.content, 'Call +48•••••••99')
  const contact = { type: 'CONTACT', content: 'Or 0048511222399', data: { name: 'Jan Nowak', phoneNumbers: ['48511222399'] } }
  const { body: bare } = await viewer('GET', `/accounts/${accountId}/messages/${await send({ inline: contact })}/content`)
  assert.deepEqual([bare.content.content, bare.content.data.phoneNumbers], ['Or 00•••••••••99', ['48•••••••99']])
  const other = await createCaller(pool)
  const stranger = await signedIn('admin', other.accountId)
  assert.equal((await stranger('GET', `/accounts/${other.accountId}/messages/${messageId}/content`)).status, 404)
})
