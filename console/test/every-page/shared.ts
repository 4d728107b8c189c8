import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import { hashPassword } from '../../../server/src/people/passwords.ts'
import { createPerson } from '../../../server/src/people/people.ts'
import type { Role } from '../../../server/src/people/roles.ts'
import { openSession } from '../../../server/src/people/sessions.ts'
import { type ApiResponse, call, createCaller } from '../../../server/test/support/service.ts'
import { until } from '../../../server/test/support/until.ts'
import '../support/browser.ts'
import { startHerald } from '../support/herald.ts'

// One Herald for all tests of this folder, with something to see on every page.

export const herald = await startHerald()
export const PASSWORD = 'correct horse battery'
/** An account without agents and messages. */
export const emptyAccount = await createCaller(herald.pool)

/** Their last two digits say what they do. No page names them by itself. */
export const PHONES = {
  reads: '+48511222310',
  keeps: '+48511222301',
  fails: '+48511222303',
  off: '+48511222304',
  sms: '+48511222302',
  heldBack: '+48511222402',
  written: '+48511222399',
}
/** A number as people write it, and as programs do. */
const WRITTEN = PHONES.written.replace(/^(...)(...)(...)/, '$1 $2 $3 ')
const BARE = PHONES.written.slice(1)

const CARD = {
  type: 'CARD',
  content: 'It comes tomorrow between 9 and 12.',
  data: { title: 'Your order is on its way' },
  buttons: [
    { id: 'track', type: 'url', text: 'Track the parcel', url: 'https://example.com/track' },
    { id: 'day', type: 'quick_reply', text: 'Another day, please', payload: 'another-day' },
    { id: 'where', type: 'location', text: 'Share my location' },
    { id: 'call', type: 'call', text: 'Call the courier', phoneNumber: BARE },
  ],
}
const CONTACT = { type: 'CONTACT', content: `Your courier: ${WRITTEN}`, data: { name: 'Jan Nowak', phoneNumbers: [BARE] } }
/** Numbers also stand in texts. */
const TEXT = { type: 'MESSAGE', content: `Your parcel is on its way. Call ${PHONES.reads} if you are not at home.` }
const REFERENCE = 'order-2027-01-31-a-reference-as-long-as-those-of-some-shops-4711'
const SMS = { planParams: { sender: 'Greenhouse', smsShipmentType: 1 }, smsMessagesPlan: [{ content: `By SMS: call ${PHONES.reads}.` }] }

/** A request as a caller of the API. */
async function ask(method: string, path: string, body?: unknown): Promise<ApiResponse['body']> {
  const response = await call(`${herald.url}/v1/${path}`, { method, authorization: herald.authorization, body })
  if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
  return response.body
}

async function settled(messageId: string, status: string, sms?: string): Promise<string> {
  await until(`${messageId} is ${status} ${sms}`, async () => {
    const message = await ask('GET', `messages/${messageId}`)
    return message.status === status && (sms === undefined || message.smsFallback.status === sms)
  })
  return messageId
}

/** A server for events: one path accepts them, the other one fails. No retry comes soon: it would change a page while the page is checked. */
async function createEndpoints() {
  const server = createServer((request, response) => {
    response.setHeader('retry-after', 3_600)
    request.resume().on('end', () => response.writeHead(request.url === '/accepts' ? 200 : 503).end(`out of disk for ${PHONES.reads}`))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => server.close())
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const accepting = (await ask('POST', 'webhook-endpoints', { url: `${base}/accepts` })).endpointId as number
  const failing = (await ask('POST', 'webhook-endpoints', { url: `${base}/fails/with-a-path/as-long-as-those/of-some-servers` })).endpointId
  return { accepting, failing: failing as number }
}

async function sendAll() {
  const { send } = herald
  const ids = {
    read: await send(PHONES.reads, TEXT, { clientReferenceId: REFERENCE }),
    kept: await send(PHONES.keeps, CARD),
    failed: await send(PHONES.fails, TEXT),
    waiting: await send(PHONES.off, TEXT, { smsFallback: SMS }),
    bySms: await send(PHONES.sms, TEXT, { smsFallback: SMS }),
    written: await send(PHONES.written, CONTACT),
    heldBack: await send(PHONES.heldBack, TEXT, {
      smsFallback: { ...SMS, planParams: { ...SMS.planParams, consentIDS: [1, 12] } },
    }),
  }
  await settled(ids.read, 'READ')
  await settled(ids.kept, 'DELIVERED')
  await settled(ids.failed, 'FAILED')
  await settled(ids.written, 'READ')
  await settled(ids.waiting, 'SENT')
  await settled(ids.bySms, 'FAILED', 'DELIVERED')
  await settled(ids.heldBack, 'FAILED', 'SKIPPED')
  // The owner of a phone writes back, with a number.
  const { agentId } = herald
  const { keeps } = PHONES
  await herald.simulator.ask(`phones/${keeps}/reply`, { agentId, text: `Call me at ${keeps}` })
  await herald.simulator.ask(`phones/${keeps}/reply`, { agentId, text: `Or at ${WRITTEN},\n${BARE} or 00${BARE}` })
  return ids
}

async function createData() {
  const endpoints = await createEndpoints()
  await ask('POST', 'templates', { name: 'parcel', status: 'APPROVED', message: CARD })
  const messages = await sendAll()
  await until('an endpoint fails', async () => (await ask('GET', `webhook-endpoints/${endpoints.failing}`)).failingSince !== undefined)
  return { endpoints, messages }
}

export const { endpoints, messages } = await createData()

const cookies = new Map<string, Promise<string>>()

/** The cookie of the person with this role, who has a password. A stranger has no role. */
export function cookieOf(role: Role | 'stranger'): Promise<string> {
  const known = cookies.get(role) ?? signIn(role)
  cookies.set(role, known)
  return known
}

async function signIn(role: Role | 'stranger'): Promise<string> {
  const cookie = role === 'stranger' ? await signInStranger() : await herald.signIn(role)
  await herald.pool.query('update people set password_hash = $1', [await hashPassword(PASSWORD)])
  return cookie
}

async function signInStranger(): Promise<string> {
  const { personId } = await createPerson(herald.pool, { email: 'stranger@example.com', name: 'Jan Nowak' })
  return await openSession(herald.pool, personId, { address: '127.0.0.1', userAgent: 'test' })
}
