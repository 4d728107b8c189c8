import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { connectEsme, textOf } from './support/esme.ts'
import { AGENT, createDataDir, startTestSimulator } from './support/simulator.ts'
import { until } from './support/until.ts'
import { startWebhook } from './support/webhook.ts'

const simulator = await startTestSimulator()
const { call, sendMessage } = simulator
const webhook = await startWebhook()
await simulator.setWebhook(webhook.url)
const text = { contentMessage: { text: 'Hello' } }
const suggestions = [{ action: { text: 'Call', postbackData: 'p-call', dialAction: { phoneNumber: '112' } } }]

type Network = Pick<typeof simulator, 'call'>
const act = (phone: string, action: string, body: unknown = {}, network: Network = simulator) =>
  network.call('POST', `/simulator/phones/${phone}/${action}`, body)
const ledgerOf = async (phone: string, query = '', network: Network = simulator) =>
  (await network.call('GET', `/simulator/phones/${phone}/ledger?${query}`)).body
const kinds = async (phone: string, network?: Network): Promise<string[]> =>
  (await ledgerOf(phone, '', network)).entries.map(({ kind }: { kind: string }) => kind)

test('the ledger of a phone has what it received and sent, of these agents only', async () => {
  const phone = '+48500600101'
  const [own, foreign] = [randomUUID(), randomUUID()]
  await sendMessage(phone, own, { contentMessage: { text: 'Hello', suggestions } })
  await sendMessage(phone, foreign, text, 'another')
  await simulator.settled()
  await act(phone, 'tap', { messageId: own, button: 'Call' })
  await act(phone, 'reply', { agentId: 'another', text: 'Who is it?' })
  await act(phone, 'share-location', { agentId: AGENT, latitude: 50, longitude: 20 })
  const { entries, next } = await ledgerOf(phone, `agentId=${AGENT}@rbm.goog`)
  assert.deepEqual(
    entries.map(({ kind, messageId, agentId, detail, agentMessage }: any) => [kind, messageId, agentId, detail ?? agentMessage]),
    [
      ['accepted', own, AGENT, { contentMessage: { text: 'Hello', suggestions } }],
      ['delivered', own, AGENT, undefined],
      ['sent', own, AGENT, { event: 'tapped action', text: 'Call', postbackData: 'p-call' }],
      ['sent', '', AGENT, { event: 'location', location: { latitude: 50, longitude: 20 } }],
    ],
  )
  assert.equal(next, entries.at(-1).seq)
  assert.deepEqual(
    (await ledgerOf(phone, 'agentId=another')).entries.map(({ kind }: any) => kind),
    ['accepted', 'delivered', 'sent'],
  )
  assert.equal((await ledgerOf(phone, `agentId=another&agentId=${AGENT}`)).entries.length, 7)
  const last = await ledgerOf(phone, `agentId=${AGENT}&limit=2`)
  assert.deepEqual(last.entries, entries.slice(2), 'without after: the last ones')
  const page = await ledgerOf(phone, `agentId=${AGENT}&limit=2&after=${entries[0].seq}`)
  assert.deepEqual([page.entries, page.next], [entries.slice(1, 3), entries[2].seq])
})

test('a message is read by its id, of these agents only', async () => {
  const phone = '+48500600901'
  const [messageId, refused] = [randomUUID(), randomUUID()]
  await sendMessage(phone, messageId, text)
  await sendMessage('+48500600902', refused, text)
  const read = async (id: string, query = '') => (await call('GET', `/simulator/messages/${id}${query}`)).body.messages
  const [message] = await read(messageId, `?agentId=${AGENT}`)
  assert.deepEqual([message.messageId, message.agentId, message.agentMessage], [messageId, AGENT, text])
  assert.deepEqual(await read(messageId), [message])
  assert.deepEqual(await read(messageId, '?agentId=another'), [])
  assert.deepEqual(await read(refused), [], 'a number without RCS')
  assert.deepEqual(await read('%00'), [])
})

test('the ledger waits for the next entry of these agents, and ends without one after the time', async () => {
  const phone = '+48500600201'
  const after = `agentId=${AGENT}&after=0`
  const empty = await ledgerOf(phone, `${after}&waitMs=50`)
  assert.deepEqual(empty, { phone, entries: [], next: 0 })
  let isOver = false
  const waiting = ledgerOf(phone, `${after}&waitMs=30000`).finally(() => {
    isOver = true
  })
  await sendMessage(phone, randomUUID(), text, 'another')
  await sendMessage('+48500600202', randomUUID(), text)
  await simulator.settled()
  assert.equal(isOver, false)
  const messageId = randomUUID()
  await sendMessage(phone, messageId, text)
  const { entries } = await waiting
  assert.deepEqual([entries[0].kind, entries[0].messageId], ['accepted', messageId])
  assert.equal((await call('GET', `/simulator/phones/${phone}/ledger?waitMs=30001`)).status, 400)
})

test('a page of the ledger ends early if its messages are large', async () => {
  const phone = '+48500600301'
  const file = { contentMessage: { text: 'x'.repeat(3000), suggestions: [{ reply: { text: 'a', postbackData: 'p'.repeat(2000) } }] } }
  for (let sent = 0; sent < 130; sent += 1) await sendMessage(phone, randomUUID(), file)
  await simulator.settled()
  const first = await ledgerOf(phone, 'after=0&limit=1000')
  assert.ok(JSON.stringify(first).length < 1_000_000 && first.entries.length < 260, `${first.entries.length}`)
  const rest = await ledgerOf(phone, `after=${first.next}&limit=1000`)
  assert.equal(first.entries.length + rest.entries.length, 260)
})

test('the summary lists the phones of these agents, the most recent first, with the last text', async () => {
  const agent = 'summary'
  const card = { contentMessage: { richCard: { standaloneCard: { cardOrientation: 'VERTICAL', cardContent: { title: 'A card' } } } } }
  for (const [phone, message] of [
    ['+48500600401', text],
    ['+48500600400', card],
    ['+48500600402', text],
    ['+48500600406', text],
  ] as const) {
    await sendMessage(phone, randomUUID(), message, agent)
    await simulator.settled()
  }
  await act('+48500600401', 'reply', { agentId: agent, text: 'Thanks' })
  await act('+48500600400', 'typing', { agentId: agent })
  await act('+48500600400', 'offline')
  const { phones } = (await call('GET', `/simulator/summary?agentId=${agent}`)).body
  assert.deepEqual(
    phones.map(({ phone, online, last: { kind, text: lastText, agentId } }: any) => [phone, online, kind, lastText, agentId]),
    [
      ['+48500600401', true, 'sent', 'Thanks', agent],
      ['+48500600406', true, 'answered', 'Thank you', agent],
      ['+48500600402', true, 'refused', null, agent],
      ['+48500600400', false, 'accepted', 'A card', agent],
    ],
  )
  assert.deepEqual(phones[1].behaviour, { rcs: 'accepted', delivers: true, reads: true, smsFails: false, replies: 'text' })
  assert.deepEqual((await call('GET', `/simulator/summary?agentId=${agent}&limit=2`)).body.phones, phones.slice(0, 2))
  assert.deepEqual((await call('GET', `/simulator/phones/+48500600406/summary?agentId=${agent}`)).body, phones[1])
  const unknown = (await call('GET', `/simulator/phones/+48500600409/summary?agentId=${agent}`)).body
  assert.deepEqual([unknown.online, unknown.behaviour.replies, unknown.last], [true, 'stop', null])
  assert.deepEqual((await call('GET', '/simulator/summary?agentId=nobody')).body, { phones: [] })
})

test('a phone that is offline gets and does nothing until it is online', async () => {
  const phone = '+48500600506'
  await act(phone, 'offline')
  const [message, revoked] = [randomUUID(), randomUUID()]
  await sendMessage(phone, message, text)
  await sendMessage(phone, revoked, text)
  await call('DELETE', `/v1/phones/${phone}/agentMessages/${revoked}?agentId=${AGENT}`)
  await sendMessage('+48500600501', randomUUID(), text)
  await until('a later message is delivered', async () => (await kinds('+48500600501')).includes('delivered'))
  assert.deepEqual(await kinds(phone), ['accepted', 'accepted', 'revoked'])
  for (const [action, body] of [
    ['deliver', {}],
    ['deliver', { messageId: message }],
    ['reply', { agentId: AGENT, text: 'x' }],
    ['stop', { agentId: AGENT }],
  ] as const) {
    const { status, body: refused } = await act(phone, action, body)
    assert.deepEqual([status, refused.error.message], [400, `${phone} is offline; bring it online first.`])
  }
  assert.deepEqual((await act(phone, 'online')).body, { online: true })
  await simulator.settled()
  assert.deepEqual(await kinds(phone), ['accepted', 'accepted', 'revoked', 'delivered', 'read', 'answered'])
})

test('a message to a phone that is offline expires in time, and is not delivered later', async () => {
  const phone = '+48500600601'
  await act(phone, 'offline')
  await sendMessage(phone, randomUUID(), { ...text, ttl: '0.2s' })
  await until('it expires', async () => (await kinds(phone)).includes('expired'))
  await act(phone, 'online')
  await simulator.settled()
  assert.deepEqual(await kinds(phone), ['accepted', 'expired'])
})

test('an SMS to a phone that is offline is delivered when it is online, or expires in time', async () => {
  const esme = await connectEsme(simulator.carriers)
  await esme.bind()
  await act('+48500600810', 'offline')
  const [id, short] = [
    await esme.submitted({ destination_addr: '48500600810' }),
    await esme.submitted({ destination_addr: '48500600810', validity_period: '000000000001000R' }),
  ]
  assert.match(textOf(await esme.receipt(short)), /stat:EXPIRED/)
  assert.deepEqual(esme.receiptsOf(id), [])
  await act('+48500600810', 'online')
  assert.match(textOf(await esme.receipt(id)), /stat:DELIVRD/)
})

test('the last SMS of a phone are listed in order, beside its RCS messages', async () => {
  const phone = '+48500600901'
  const esme = await connectEsme(simulator.carriers)
  await esme.bind()
  const ids: string[] = []
  for (let sent = 0; sent < 3; sent++) ids.push(await esme.submitted({ destination_addr: phone.slice(1) }))
  await sendMessage(phone, randomUUID(), text)
  await simulator.settled()
  const smsOf = async (limit: number) =>
    (await call('GET', `/simulator/phones/${phone}/sms?limit=${limit}`)).body.messages.map(({ messageIds }: any) => messageIds)
  assert.deepEqual(
    await smsOf(10),
    ids.map((id) => [id]),
  )
  assert.deepEqual(
    await smsOf(2),
    ids.slice(1).map((id) => [id]),
  )
})

test('phones that are offline, and what waits for them, survive a restart; other phones are not delayed', async () => {
  const dataDir = createDataDir()
  const first = await startTestSimulator({ dataDir })
  await first.setWebhook(webhook.url)
  const off = '+48500600701'
  await act(off, 'offline', {}, first)
  await act('+48500600710', 'offline', {}, first)
  await first.sendMessage(off, randomUUID(), text)
  await first.sendMessage('+48500600710', randomUUID(), text)
  await first.sendMessage('+48500600711', randomUUID(), text)
  await until('the other one is read', async () => (await kinds('+48500600711', first)).length === 3)
  await first.stop()
  const second = await startTestSimulator({ dataDir })
  assert.equal((await second.call('GET', `/simulator/phones/${off}/summary`)).body.online, false)
  assert.deepEqual(await kinds(off, second), ['accepted'])
  await act(off, 'online', {}, second)
  await until('it is delivered', async () => (await kinds(off, second)).includes('delivered'))
  assert.deepEqual(await kinds('+48500600710', second), ['accepted'], 'the other one is still offline')
  await act('+48500600710', 'online', {}, second)
  await second.settled()
  assert.deepEqual(await kinds('+48500600710', second), ['accepted', 'delivered', 'read'])
})
