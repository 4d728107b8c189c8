import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assignAgent, createAgent } from '../../src/agents/agents.ts'
import type { Role } from '../../src/people/roles.ts'
import { createToken } from '../../src/people/tokens.ts'
import { createTestDatabase } from '../support/database.ts'
import { startNetwork } from '../support/network.ts'
import { freePort } from '../support/ports.ts'
import { assertError, call, createAssignedAgent, createCaller, startTestService } from '../support/service.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'

// A database of its own: this service delivers.
const { pool, url: HERALD_DATABASE_URL } = await createTestDatabase({ unlogged: 'nothing here concerns crashes' })
const simulator = await startSimulator()
const closed = `http://127.0.0.1:${await freePort()}`
const slow = await startNetwork()
const rcs = [
  simulator.rcs,
  { ...simulator.rcs, name: 'google', address: closed, isSimulator: false },
  { ...simulator.rcs, name: 'gone', address: closed },
  { ...simulator.rcs, name: 'slow', address: slow.settings.address },
]
const service = await startTestService(
  { HERALD_DATABASE_URL, HERALD_PUBLIC_URL: 'https://m.example' },
  { findCarriers: async () => ({ rcs, sms: simulator.sms }) },
)
await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')

async function newToken(role: Role, ...accountIds: number[]): Promise<string> {
  const expiresAt = new Date(Date.now() + 3_600_000)
  return (await createToken(pool, { name: role, role, accountIds, expiresAt })).secret
}
const OPERATOR = await newToken('operator')

/** An account with an agent of a carrier, and requests about its phones. */
async function newAccount(carrier = 'simulator') {
  const { accountId } = await createCaller(pool)
  const agentId = carrier === 'simulator' ? await createAssignedAgent(pool, accountId) : `${carrier}-of-${accountId}`
  if (carrier !== 'simulator') {
    await createAgent(pool, { agentId, name: carrier, billingType: 'single', carrier })
    await assignAgent(pool, agentId, accountId)
  }
  const [admin, viewer] = [await newToken('admin', accountId), await newToken('viewer', accountId)]
  const asking = (token: string) => (path: string, body?: unknown, method?: string) =>
    call(`${service.url}/admin/v1/accounts/${accountId}/${path}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      authorization: `Bearer ${token}`,
      body,
      headers: { 'idempotency-key': String(Math.random()) },
    })
  const ask = asking(admin)
  const send = async (recipient: string, message: object): Promise<string> =>
    (await ask('messages', { agentId, recipient, message: { inline: message } })).body.messageId
  const history = async (phone: string, query = '') => (await ask(`phones/${phone}/ledger?${query}`)).body
  /** Waits until the last entry of the phone's ledger is this one. */
  const reaches = (phone: string, kind: string) => until(kind, async () => (await history(phone)).entries.at(-1)?.kind === kind)
  return { accountId, agentId, ask, asViewer: asking(viewer), send, history, reaches }
}

const one = await newAccount()
const CARD = {
  type: 'CARD',
  content: 'Tomorrow',
  data: { title: 'Your order' },
  buttons: [{ id: 'yes', type: 'quick_reply', text: 'Yes, please', payload: 'yes' }],
}

test('a message is seen on the phone, and a tap on the phone reaches Herald', async () => {
  const phone = '+48500300101'
  const messageId = await one.send(phone, CARD)
  await one.reaches(phone, 'delivered')
  const { body: list } = await one.ask('phones')
  const { phoneId, last, ...seen } = list.items[0]
  assert.deepEqual(seen, { phone, online: true, behaviour: { rcs: 'accepted', delivers: true, reads: false, smsFails: false } })
  const { position, at, ...text } = last
  assert.deepEqual(text, { kind: 'accepted', agentId: one.agentId, messageId, text: 'Your order' })
  assert.ok(Number.isInteger(position) && !Number.isNaN(Date.parse(at)))
  assert.deepEqual((await one.ask(`phones/${phone}`)).body, { ...list.items[0], messageIds: [messageId] })
  const before = await one.history(phone)
  assert.equal(before.entries[0].agentMessage.contentMessage.richCard.standaloneCard.cardContent.title, 'Your order')

  const waiting = one.history(phoneId, `after=${before.next}&wait=25`)
  const tapped = await one.ask(`phones/${phoneId}/tap`, { agentId: one.agentId, messageId, button: 'Yes, please' })
  assert.deepEqual([tapped.status, tapped.body], [204, ''])
  const [{ kind, detail }] = (await waiting).entries
  assert.deepEqual([kind, detail.event, detail.text], ['sent', 'tapped reply', 'Yes, please'])
  await until('Herald has the reply', async () =>
    JSON.stringify((await one.ask(`messages/${messageId}/timeline`)).body).includes('Yes, please'),
  )
})

test('every action does on the phone what its name says', async () => {
  const phone = '+48500300201'
  const messageId = await one.send(phone, CARD)
  await one.reaches(phone, 'delivered')
  const never = '+48500300204'
  const undelivered = await one.send(never, CARD)
  await one.reaches(never, 'accepted')
  const actions: [to: string, action: string, body: object, event: string][] = [
    [phone, 'read', { messageId }, 'read'],
    [phone, 'reply', { text: 'Hello' }, 'sent text'],
    [phone, 'stop', {}, 'sent text'],
    [phone, 'subscribe', {}, 'sent text'],
    [phone, 'unsubscribe', {}, 'sent text'],
    [phone, 'typing', {}, 'sent IS_TYPING'],
    [phone, 'share-location', { latitude: 50, longitude: 20 }, 'sent location'],
    [phone, 'send-file', { url: 'https://example.com/a.png', mimeType: 'image/png', fileName: 'a.png' }, 'sent file'],
    [never, 'deliver', { messageId: undelivered }, 'delivered'],
  ]
  for (const [to, action, body, event] of actions) {
    const { next } = await one.history(to)
    const { status, body: refused } = await one.ask(`phones/${to}/${action}`, { agentId: one.agentId, ...body })
    assert.equal(status, 204, `${action}: ${JSON.stringify(refused)}`)
    const { entries } = await one.history(to, `after=${next}`)
    assert.ok(entries.map(({ kind, detail }: any) => (detail ? `${kind} ${detail.event}` : kind)).includes(event), action)
  }
})

test('a phone that is offline gets its messages when it is online', async () => {
  const phone = '+48500300301'
  assert.equal((await one.ask(`phones/${phone}/offline`, {})).status, 204)
  const messageId = await one.send(phone, CARD)
  await one.reaches(phone, 'accepted')
  assert.equal((await one.ask(`phones/${phone}`)).body.online, false)
  assertError(await one.ask(`phones/${phone}/tap`, { agentId: one.agentId, messageId, button: 0 }), 409, 'RCS_REFUSED', [
    ['', `${phone} is offline; bring it online first.`],
  ])
  for (const _ of ['', 'again']) assert.equal((await one.ask(`phones/${phone}/online`, {})).status, 204)
  const entries = `select action, subject, before, after from audit_log where account_id = $1 and action like '%Phone%' order by id`
  const masked = `${phone.slice(0, 3)}•••••••${phone.slice(-2)}`
  const [on, off] = [{ online: true }, { online: false }]
  assert.deepEqual((await pool.query(entries, [one.accountId])).rows, [
    { action: 'takePhoneOffline', subject: masked, before: on, after: off },
    { action: 'bringPhoneOnline', subject: masked, before: off, after: on },
  ])
  await one.reaches(phone, 'delivered')
})

test('an account sees and acts on what its own agents sent, and nothing else', async () => {
  const phone = '+48500300401'
  const messageId = await one.send(phone, CARD)
  await one.reaches(phone, 'delivered')
  const other = await newAccount()
  assert.deepEqual((await other.ask('phones')).body, { items: [] })
  assert.equal((await other.ask(`phones/${phone}`)).body.last, null)
  assert.deepEqual(await other.history(phone), { entries: [], next: 0 })
  const tap = { messageId, button: 0 }
  assertError(await other.ask(`phones/${phone}/tap`, { agentId: other.agentId, ...tap }), 404, 'RCS_NOT_FOUND', [
    ['', `${phone} was sent no RCS message with this id.`],
  ])
  assertError(await other.ask(`phones/${phone}/tap`, { agentId: one.agentId, ...tap }), 404, 'RCS_AGENT_NOT_FOUND', [
    ['/agentId', 'names no agent of this account whose carrier is the simulator'],
  ])
})

test('an account sees its own SMS on a phone, once each, and no SMS of another account', async () => {
  const phone = '+48500300402'
  const [own, other] = [await newAccount(), await newAccount()]
  const fallback = (content: string) => ({
    message: { inline: CARD },
    smsFallback: { planParams: { sender: 'HERALD' }, smsMessagesPlan: [{ content, multipart: true }] },
  })
  const long = `Zażółć gęślą jaźń. ${'A long text. '.repeat(20)}`
  const sent: string[] = []
  for (const [account, content] of [
    [own, long],
    [other, 'Secret of the other'],
    [other, 'The same text'],
    [own, 'The same text'],
  ] as const) {
    const { body } = await account.ask('messages', { agentId: account.agentId, recipient: phone, ...fallback(content) })
    await until(
      'the SMS is delivered',
      async () => (await account.ask(`messages/${body.messageId}`)).body.smsFallback?.status === 'DELIVERED',
    )
    sent.push(body.messageId)
  }
  const list = async (account: typeof own) =>
    (await account.ask(`phones/${phone}/sms`)).body.items.map(({ messageId, sender, text }: any) => [messageId, sender, text])
  const folded = long.replace('Zażółć gęślą jaźń', 'Zazolc gesla jazn')
  assert.deepEqual(await list(own), [
    [sent[0], 'HERALD', folded],
    [sent[3], 'HERALD', 'The same text'],
  ])
  assert.deepEqual(await list(other), [
    [sent[1], 'HERALD', 'Secret of the other'],
    [sent[2], 'HERALD', 'The same text'],
  ])
  assert.deepEqual(await list(await newAccount()), [])
})

test('an SMS with a short link is seen by the account whose link it is', async () => {
  const phone = '+48500301402'
  const [own, other] = [await newAccount(), await newAccount()]
  for (const account of [own, other]) {
    const { body } = await account.ask('messages', {
      agentId: account.agentId,
      recipient: phone,
      message: { inline: CARD },
      smsFallback: {
        planParams: { sender: 'HERALD' },
        smsMessagesPlan: [{ content: 'See https://example.com/a', urlShortening: true }],
      },
    })
    await until(
      'the SMS is delivered',
      async () => (await account.ask(`messages/${body.messageId}`)).body.smsFallback?.status === 'DELIVERED',
    )
    const { items } = (await account.ask(`phones/${phone}/sms`)).body
    assert.deepEqual([items.length, items[0].messageId], [1, body.messageId])
    assert.match(items[0].text, /^See https:\/\/m\.example\/l\/\w{11}$/)
    const { body: received } = await account.ask(`messages/${body.messageId}/received`)
    assert.deepEqual(received, { messageId: body.messageId, isSimulated: true, sms: items[0] }, 'the network refused the RCS message')
    const [listed] = (await account.ask('phones')).body.items
    assert.deepEqual([listed.phone, listed.last.kind, listed.lastSms], [phone, 'refused', items[0]], 'the SMS came after the refusal')
  }
})

test('a list of phones has no SMS that came before the last text, even if a later one has not arrived', async () => {
  const phone = '+48500301502'
  const { agentId, ask } = await newAccount()
  const sendUntil = async (content: string, status: string) => {
    const plan = { planParams: { sender: 'HERALD' }, smsMessagesPlan: [{ content }] }
    const { body } = await ask('messages', { agentId, recipient: phone, message: { inline: CARD }, smsFallback: plan })
    await until(status, async () => (await ask(`messages/${body.messageId}`)).body.smsFallback?.status === status)
  }
  await sendUntil('The first', 'DELIVERED')
  assert.equal((await ask('phones')).body.items[0].lastSms.text, 'The first')
  await ask(`phones/${phone}/offline`, {})
  await sendUntil('The second', 'SENT')
  const [listed] = (await ask('phones')).body.items
  assert.deepEqual([listed.phone, listed.last.kind, listed.lastSms], [phone, 'refused', undefined])
})

test('a viewer sees masked numbers, and reads a phone by its id', async () => {
  const phone = '+48500300501'
  await one.send(phone, { type: 'MESSAGE', content: `Call +48500300599` })
  await one.reaches(phone, 'delivered')
  const { body } = await one.asViewer('phones')
  const [seen] = body.items
  assert.deepEqual([seen.phone, seen.last.text], ['+48•••••••01', 'Call +48•••••••99'])
  const { body: read } = await one.asViewer(`phones/${seen.phoneId}`)
  assert.deepEqual({ ...read, messageIds: undefined }, { ...seen, messageIds: undefined })
  const ledger = await one.asViewer(`phones/${seen.phoneId}/ledger`)
  assert.deepEqual(ledger.body.entries[0].agentMessage.contentMessage.text, 'Call +48•••••••99')
  assert.ok(!JSON.stringify([body, ledger.body]).includes('500300'))
  const forged = Buffer.from(seen.phoneId, 'base64url')
  forged[0] = (forged[0] ?? 0) ^ 1
  assertError(await one.asViewer(`phones/${forged.toString('base64url')}`), 404, 'RCS_NOT_FOUND', [
    ['/phone', 'is neither a phoneId nor a phone number'],
  ])
})

test('a message says what the network received, masked for viewers, and only to its own account', async () => {
  const phone = '+48500300500'
  const messageId = await one.send(phone, { type: 'MESSAGE', content: `Call +48500300599` })
  await one.reaches(phone, 'read')
  const { body } = await one.ask(`messages/${messageId}/received`)
  const { agentMessage, deliveredAt, ...more } = body
  const delivered = (await one.history(phone)).entries.find(({ kind }: any) => kind === 'delivered')
  assert.equal(deliveredAt, delivered.at)
  assert.deepEqual([more, agentMessage.contentMessage.text], [{ messageId, isSimulated: true }, 'Call +48500300599'])
  const seen = (await one.asViewer(`messages/${messageId}/received`)).body
  assert.equal(seen.agentMessage.contentMessage.text, 'Call +48•••••••99')
  const other = await newAccount()
  assertError(await other.ask(`messages/${messageId}/received`), 404, 'RCS_MESSAGE_NOT_FOUND', [
    ['/messageId', 'names no message of this account'],
  ])
})

test('the carriers of an account say whether they are simulated, and a real one says nothing of a message', async () => {
  assert.deepEqual((await one.asViewer('carriers')).body, {
    items: [{ carrier: 'simulator', isSimulated: true, agentIds: [one.agentId] }],
  })
  const real = await newAccount('google')
  assert.deepEqual((await real.ask('carriers')).body, {
    items: [{ carrier: 'google', isSimulated: false, agentIds: [real.agentId] }],
  })
  const messageId = await real.send('+48500300700', CARD)
  assert.deepEqual((await real.ask(`messages/${messageId}/received`)).body, { messageId, isSimulated: false })
})

test('only the listed paths and checked bodies reach the simulator', async () => {
  const phone = '+48500300601'
  for (const [path, body, status, code] of [
    [`phones/${phone}/webhook`, {}, 404, 'RCS_ROUTE_NOT_FOUND'],
    [`phones/..%2F..%2Fsimulator%2Fwebhook/stop`, { agentId: one.agentId }, 404, 'RCS_NOT_FOUND'],
    [`phones/${phone}/reply`, { agentId: one.agentId }, 400, 'RCS_INVALID_REQUEST'],
    [`phones/${phone}/reply`, { agentId: one.agentId, text: 'x', number: '123' }, 400, 'RCS_INVALID_REQUEST'],
    [`phones/${phone}/stop`, { number: '123' }, 400, 'RCS_INVALID_REQUEST'],
    [`phones/${phone}/deliver`, { agentId: one.agentId }, 400, 'RCS_INVALID_REQUEST'],
    [`phones/${phone}/send-file`, { agentId: one.agentId, url: 'x', mimeType: 'y', fileName: 'z' }, 400, 'RCS_INVALID_REQUEST'],
  ] as const) {
    const response = await one.ask(path, body)
    assert.deepEqual([response.status, response.body.code], [status, code], path)
  }
  assert.deepEqual(await one.history(phone), { entries: [], next: 0 })
})

test('the phones of a real carrier do not exist, and a simulator that is gone is unavailable', async () => {
  const real = await newAccount('google')
  const sentence =
    'This account has no agent whose carrier is the simulator; its agents use google. Phones exist only where the carrier is the simulator.'
  for (const [path, body] of [['phones'], ['phones/+48500300700'], ['phones/+48500300700/online', {}]] as const) {
    assertError(await real.ask(path, body), 409, 'RCS_NOT_SIMULATED', [['', sentence]])
  }
  const gone = await newAccount('gone')
  const response = await gone.ask('phones')
  assertError(response, 503, 'RCS_UNAVAILABLE', [['', 'The simulator does not respond.']])
  assert.equal(response.headers.get('retry-after'), '1')
})

test('operators read, set and end the faults of a simulator', async () => {
  const faults = (carrier: string, method = 'GET', body?: unknown) =>
    call(`${service.url}/admin/v1/carriers/${carrier}/faults`, { method, authorization: `Bearer ${OPERATOR}`, body })
  const set = { seed: 7, webhooks: { duplicated: { rate: 0.5 } }, api: { serverError: { count: 2, status: 503 } } }
  assert.equal((await faults('simulator', 'PUT', set)).status, 200)
  const { body } = await faults('simulator')
  assert.deepEqual([body.seed, body.webhooks, body.api], [set.seed, set.webhooks, set.api])
  const wrong = await faults('simulator', 'PUT', { api: { nonsense: { count: 1 } } })
  assert.deepEqual([wrong.status, wrong.body.code], [400, 'RCS_INVALID_REQUEST'])
  assert.match(wrong.body.details[0].reason, /nonsense/)
  for (const [body, path] of [
    [{ other: {} }, '/other'],
    [{ api: { latency: { ms: { deep: 1 } } } }, '/api/latency'],
    [{ api: { latency: 1 } }, '/api/latency'],
  ] as const) {
    assert.equal((await faults('simulator', 'PUT', body)).body.details[0].path, path)
  }
  assert.equal((await faults('simulator', 'PUT', set)).status, 200)
  assert.equal((await faults('simulator', 'DELETE')).status, 204)
  assert.equal((await faults('simulator', 'DELETE')).status, 204)
  const { rows } = await pool.query(
    `select action, subject, account_id, before, after from audit_log where action like '%Faults' order by id`,
  )
  assert.deepEqual(
    rows.map(({ action, subject, account_id }) => [action, subject, account_id]),
    [
      ['setFaults', 'simulator', null],
      ['clearFaults', 'simulator', null],
    ],
    'what changes nothing leaves no entry',
  )
  assert.deepEqual(rows[1].before, rows[0].after)
  assert.deepEqual((await faults('simulator')).body.webhooks, undefined)
  assertError(await faults('google'), 409, 'RCS_NOT_SIMULATED', [
    ['', 'The carrier google is a real network. Phones exist only where the carrier is the simulator.'],
  ])
  assertError(await faults('nobody'), 404, 'RCS_NOT_FOUND', [['/carrier', 'names no RCS carrier of this process']])
})

test('a person or token has at most eight waiting requests for phones, and a request ends with its connection', async () => {
  const { accountId } = await newAccount()
  const [own, other] = [await newToken('viewer', accountId), await newToken('viewer', accountId)]
  const wait = (token: string, seconds: number, signal?: AbortSignal) =>
    fetch(`${service.url}/admin/v1/accounts/${accountId}/phones/+48500300811/ledger?after=0&wait=${seconds}`, {
      headers: { authorization: `Bearer ${token}` },
      ...(signal && { signal }),
    })
  const client = new AbortController()
  const ended: number[] = []
  const waiting = Array.from({ length: 12 }, () =>
    wait(own, 25, client.signal).then(
      ({ status }) => ended.push(status),
      () => {},
    ),
  )
  await until('four are refused', () => ended.length === 4)
  assert.deepEqual(ended, [503, 503, 503, 503])
  assert.equal((await wait(own, 0)).status, 200)
  assert.equal((await wait(other, 1)).status, 200)
  client.abort()
  await Promise.all(waiting)
  // Before their 25 s are over.
  await until('further ones are allowed', async () => (await wait(own, 1)).status === 200, 20_000)
})

test('the end of the service ends requests that wait for a phone', async () => {
  const { accountId } = await newAccount('slow')
  slow.respondWith(() => undefined)
  const waiting = call(`${service.url}/admin/v1/accounts/${accountId}/phones/+48500300801/ledger?after=0&wait=25`, {
    authorization: `Bearer ${OPERATOR}`,
  })
  await until('it waits', () => slow.requests.length === 1)
  const startedAt = performance.now()
  await service.stop()
  assert.equal((await waiting).body.code, 'RCS_UNAVAILABLE')
  assert.ok(performance.now() - startedAt < 2_500, 'before the deadline of 3 s')
})
