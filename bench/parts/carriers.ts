import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import type { RcsCarrier, SmsCarrier } from '../../server/src/carriers/carrier.ts'
import { createGoogleRbm } from '../../server/src/carriers/google-rbm/carrier.ts'
import { createSmppCarrier } from '../../server/src/carriers/smpp/carrier.ts'
import { openConnections } from '../load/connections.ts'
import { cpuMs } from '../measure/process-usage.ts'
import { type Rate, reportRates, saturate, showRate, sideOf, takeTurns } from '../measure/rounds.ts'
import type { Bench } from '../part.ts'
import { randomRecipient } from '../setup/accounts.ts'
import { CONNECTIONS, rbmRequest, rbmSettingsOf, startNetwork } from '../setup/network.ts'
import { startPeer, startSimulator } from '../setup/processes.ts'

// The simulator and the connectors, each alone with a minimal peer. The limit is bare HTTP: the same client and a server that does nothing.

const WINDOW = 100

export async function measureCarriers(bench: Bench): Promise<void> {
  const seconds = bench.quick ? 1 : 5
  const bare = sideOf('bare HTTP', () => bareHttp(seconds))
  const sides = [
    sideOf('simulator: RCS messages and both receipts', () => simulatorReceipts(seconds * 3_000)),
    sideOf('connector: RCS messages sent', () => connectorRbm(seconds)),
    sideOf('connector: SMS submitted', () => connectorSmpp(seconds)),
  ]
  await takeTurns(bench, [bare, ...sides], { rounds: 1, show: showRate })
  reportRates(bench, bare, undefined)
  for (const side of sides) reportRates(bench, side, bare)
}

const logger = pino({ level: 'silent' })
const expiresAt = new Date(Date.now() + 86_400_000)
const CARD = {
  type: 'CARD' as const,
  content: 'It should be with you tomorrow before noon.',
  data: { title: 'Your order is on its way', imageUrl: 'https://example.com/parcel.jpg' },
  buttons: [
    { id: 'track', type: 'url' as const, text: 'Track it', url: 'https://example.com/track' },
    { id: 'change', type: 'quick_reply' as const, text: 'Another day', payload: 'change-day' },
  ],
}
const SMS = {
  sender: 'Shop',
  encoding: 'GSM7' as const,
  text: 'Your order is on its way. It should be with you tomorrow before noon.',
  expiresAt,
}

async function bareHttp(seconds: number): Promise<Rate> {
  const peer = await startPeer('rbm')
  const connections = await openConnections(peer.url, CONNECTIONS, 200)
  const cpu = () => ({ server: cpuMs(peer.child) })
  const rate = await saturate({ seconds, concurrency: CONNECTIONS, cpu }, () => connections.send(rbmRequest('t')))
  connections.close()
  await peer.stop()
  return rate
}

async function simulatorReceipts(count: number): Promise<Rate> {
  const network = await startNetwork(0)
  await network.run(count / 2)
  const rate = await network.run(count)
  await network.stop()
  return rate
}

const connectorCpu = () => ({ connector: cpuMs(process) })

async function connectorRbm(seconds: number): Promise<Rate> {
  const peer = await startPeer('rbm')
  const simulator = await startSimulator()
  const settings = rbmSettingsOf(simulator)
  await simulator.stop()
  const serviceAccount = { ...settings.serviceAccount, token_uri: `${peer.url}/token` }
  const own = { ...settings, address: peer.url, serviceAccount, connections: CONNECTIONS }
  const carrier = createGoogleRbm(own, { postbackKey: Buffer.alloc(32), logger })
  const rate = await saturate({ seconds, concurrency: CONNECTIONS, cpu: connectorCpu }, () => sendCard(carrier))
  await carrier.close()
  await peer.stop()
  return rate
}

async function sendCard(carrier: RcsCarrier): Promise<void> {
  const message = { messageId: randomUUID(), agentId: 'bench', recipient: randomRecipient(), content: CARD, expiresAt }
  const outcome = await carrier.send({ ...message, traffic: 'TRANSACTION' })
  if (outcome.is !== 'sent') throw new Error(`the outcome of the message was ${outcome.is}`)
}

async function connectorSmpp(seconds: number): Promise<Rate> {
  const peer = await startPeer('smsc')
  const settings = { name: 'bench', host: '127.0.0.1', port: peer.port, tls: false, systemId: 'bench', password: 'bench', window: WINDOW }
  const carrier = createSmppCarrier(settings, { onEvents: async () => {}, logger })
  const rate = await saturate({ seconds, concurrency: WINDOW, cpu: connectorCpu }, () => submit(carrier))
  await carrier.close()
  await peer.stop()
  return rate
}

async function submit(carrier: SmsCarrier): Promise<void> {
  const outcome = await carrier.submit({ ...SMS, recipient: randomRecipient() })
  if (outcome.is !== 'sent') throw new Error(`the outcome of the SMS was ${outcome.is}: ${'detail' in outcome ? outcome.detail : ''}`)
}
