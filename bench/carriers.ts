import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { Pool } from 'undici'
import type { RcsCarrier, SmsCarrier } from '../server/src/carriers/carrier.ts'
import { createAccessTokens } from '../server/src/carriers/google-rbm/access-token.ts'
import { createGoogleRbm } from '../server/src/carriers/google-rbm/carrier.ts'
import { createHttp } from '../server/src/carriers/google-rbm/http.ts'
import { readCarriers } from '../server/src/carriers/settings.ts'
import { createSmppCarrier } from '../server/src/carriers/smpp/carrier.ts'
import { type Figure, measure, measureAll, print } from './measure.ts'
import { type SimulatorProcess, startPeer, startSimulator } from './processes.ts'
import { putWebhook } from './service.ts'
import { owesNothing } from './simulator-rate.ts'

// How much the simulator and the connectors can take, each alone: `npm run bench:carriers`. The first line is the yardstick: a bare client
// and a bare server, which do nothing. Figures of one run can be compared with one another, not with those of another machine.

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const seconds = values.quick ? 1 : 5
const CONNECTIONS = 64
const WINDOW = 100

const logger = pino({ level: 'silent' })
const expiresAt = new Date(Date.now() + 86_400_000)
const BUTTONS = [
  { id: 'track', type: 'url', text: 'Track it', url: 'https://example.com/track' },
  { id: 'change', type: 'quick_reply', text: 'Another day', payload: 'change-day' },
] as const
const CARD = {
  type: 'CARD' as const,
  content: 'It should be with you tomorrow before noon.',
  data: { title: 'Your order is on its way', imageUrl: 'https://example.com/parcel.jpg' },
  buttons: [...BUTTONS],
}
const BODY = JSON.stringify({
  contentMessage: { text: 'Your order is on its way.', suggestions: [{ reply: { text: 'Thanks', postbackData: 'thanks' } }] },
  messageTrafficType: 'TRANSACTION',
  expireTime: expiresAt.toISOString(),
})

let numbers = 0
/** Ever another one; all of them are delivered and read. */
function nextNumber(): string {
  numbers += 1
  return `+4850${String(numbers % 100_000).padStart(5, '0')}10`
}

async function post(pool: Pool, token: string): Promise<void> {
  const path = `/v1/phones/${nextNumber()}/agentMessages?messageId=${randomUUID()}&agentId=bench`
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const { statusCode, body } = await pool.request({ method: 'POST', path, headers, body: BODY })
  await body.dump()
  if (statusCode !== 200) throw new Error(`the answer was ${statusCode}`)
}

async function yardstick(): Promise<Figure> {
  const peer = await startPeer('rbm-peer.ts')
  const pool = new Pool(`http://127.0.0.1:${peer.port}`, { connections: CONNECTIONS })
  const figure = await measure('bare HTTP', { seconds, concurrency: CONNECTIONS, of: peer.child, call: () => post(pool, 't') })
  await pool.destroy()
  await peer.stop()
  return figure
}

async function loadOf(simulator: SimulatorProcess) {
  const [settings] = readCarriers(simulator.carriersFile).rcs
  if (settings === undefined) throw new Error('the simulator is an RCS network')
  const tokens = createAccessTokens(settings.serviceAccount, createHttp(settings.address, 1))
  const token = await tokens.renew()
  const pool = new Pool(settings.address, { connections: CONNECTIONS })
  return { call: () => post(pool, token), stop: () => pool.destroy() }
}

async function simulatorRbm(): Promise<Figure> {
  const simulator = await startSimulator()
  const { call, stop } = await loadOf(simulator)
  const figure = await measure('simulator: RCS messages taken', { seconds, concurrency: CONNECTIONS, of: simulator.child, call })
  await stop()
  await simulator.stop()
  return figure
}

async function simulatorReceipts(): Promise<Figure> {
  const simulator = await startSimulator()
  const peer = await startPeer('webhook-peer.ts')
  const { call, stop } = await loadOf(simulator)
  await putWebhook(simulator, `http://127.0.0.1:${peer.port}`)
  const work = { count: seconds * 3_000, concurrency: CONNECTIONS, call, isDone: () => owesNothing(simulator) }
  const figure = await measureAll('simulator: RCS messages taken, both receipts accepted', simulator.child, work)
  await stop()
  await peer.stop()
  await simulator.stop()
  return figure
}

async function sendCard(carrier: RcsCarrier): Promise<void> {
  const message = { messageId: randomUUID(), agentId: 'bench', recipient: nextNumber(), content: CARD, expiresAt }
  const outcome = await carrier.send({ ...message, traffic: 'TRANSACTION' })
  if (outcome.is !== 'sent') throw new Error(`it was ${outcome.is}`)
}

async function connectorRbm(): Promise<Figure> {
  const peer = await startPeer('rbm-peer.ts')
  const simulator = await startSimulator()
  const [settings] = readCarriers(simulator.carriersFile).rcs
  await simulator.stop()
  if (settings === undefined) throw new Error('the simulator is an RCS network')
  const address = `http://127.0.0.1:${peer.port}`
  const serviceAccount = { ...settings.serviceAccount, token_uri: `${address}/token` }
  const carrier = createGoogleRbm(
    { ...settings, address, serviceAccount, connections: CONNECTIONS },
    { postbackKey: Buffer.alloc(32), logger },
  )
  const call = () => sendCard(carrier)
  const figure = await measure('connector: RCS messages sent', { seconds, concurrency: CONNECTIONS, of: process, call })
  await carrier.close()
  await peer.stop()
  return figure
}

async function submit(carrier: SmsCarrier): Promise<void> {
  const text = 'Your order is on its way. It should be with you tomorrow before noon.'
  const outcome = await carrier.submit({ sender: 'Shop', recipient: nextNumber(), encoding: 'GSM7', text, expiresAt })
  if (outcome.is !== 'sent') throw new Error(`it was ${outcome.is}: ${'detail' in outcome ? outcome.detail : ''}`)
}

async function connectorSmpp(): Promise<Figure> {
  const peer = await startPeer('smsc-peer.ts')
  const settings = { name: 'bench', host: '127.0.0.1', port: peer.port, tls: false, systemId: 'bench', password: 'bench', window: WINDOW }
  const carrier = createSmppCarrier(settings, { onEvents: async () => {}, logger })
  const call = () => submit(carrier)
  const figure = await measure('connector: SMS submitted', { seconds, concurrency: WINDOW, of: process, call })
  await carrier.close()
  await peer.stop()
  return figure
}

async function simulatorSmpp(): Promise<Figure> {
  const simulator = await startSimulator()
  const { sms } = readCarriers(simulator.carriersFile)
  if (sms === undefined) throw new Error('the simulator is an SMS network')
  const carrier = createSmppCarrier({ ...sms, window: WINDOW }, { onEvents: async () => {}, logger })
  const work = { count: seconds * 5_000, concurrency: WINDOW, call: () => submit(carrier), isDone: () => owesNothing(simulator) }
  const figure = await measureAll('simulator: SMS taken, receipt accepted', simulator.child, work)
  await carrier.close()
  await simulator.stop()
  return figure
}

const figures: Figure[] = []
for (const run of [yardstick, simulatorRbm, simulatorReceipts, connectorRbm, simulatorSmpp, connectorSmpp]) figures.push(await run())
print(figures)
process.exit(0)
