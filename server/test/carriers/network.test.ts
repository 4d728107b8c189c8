import assert from 'node:assert/strict'
import { randomInt, randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CarrierEvent, SendResult } from '../../src/carriers/carrier.ts'
import { createGoogleRbm } from '../../src/carriers/google-rbm/carrier.ts'
import { createSmppCarrier } from '../../src/carriers/smpp/carrier.ts'
import type { MessageContent } from '../../src/content/content.ts'
import { installationSecret } from '../../src/db/secrets.ts'
import { createLogger } from '../../src/http/log.ts'
import { splitText } from '../../src/sms/parts.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { startTestService } from '../support/service.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'

// Both connectors with the simulated network, there and back: what a number's last two digits promise is what the service comes to know.

const logger = createLogger('silent')
const simulator = await startSimulator()
const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const service = await startTestService({ HERALD_DATABASE_URL }, { findCarriers: async () => ({ ...simulator.settings, sms: undefined }) })
await simulator.ask('webhook', { url: `${service.url}/carriers/simulator/webhook` }, 'PUT')

const rcs = createGoogleRbm(simulator.rcs, { postbackKey: await installationSecret(pool, 'postback', keyring), logger })
after(() => rcs.close())
const smsEvents: CarrierEvent[] = []
const sms = createSmppCarrier(simulator.sms, { onEvents: async (events) => void smsEvents.push(...events), logger })
after(() => sms.close())

const CONTENT: MessageContent = {
  type: 'MESSAGE',
  content: 'Shall we come tomorrow?',
  buttons: [
    { id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'yes' },
    { id: 'no', type: 'quick_reply', text: 'No', payload: 'no' },
  ],
}

async function send(recipient: string, { messageId = randomUUID() as string, lifetimeMs = 3_600_000, agentId = 'agent' } = {}) {
  const expiresAt = new Date(Date.now() + lifetimeMs)
  return { messageId, outcome: await rcs.send({ messageId, agentId, recipient, content: CONTENT, traffic: 'TRANSACTION', expiresAt }) }
}

async function eventsOf(phone: string): Promise<any[]> {
  const { rows } = await pool.query<{ event: any }>('select event from carrier_events where phone = $1', [phone])
  return rows.map(({ event }) => event)
}

/** All kinds of events that come in; the simulator owes nothing more then. */
async function kindsOf(phone: string): Promise<string[]> {
  await until('the simulator owes nothing', async () => {
    const { owed } = await simulator.ask('counts')
    return owed.steps + owed.webhooks === 0
  })
  const { rows } = await pool.query<{ kind: string }>('select kind from carrier_events where phone = $1 order by kind', [phone])
  return rows.map(({ kind }) => kind)
}

describe('by RCS, a number that ends in', () => {
  for (const [ending, expected] of Object.entries({
    '01': ['delivered'],
    '06': ['delivered', 'read', 'wrote'],
    '07': ['delivered', 'read', 'tapped'],
    '09': ['delivered', 'wrote'],
    '10': ['delivered', 'read'],
  })) {
    test(`${ending}: ${expected.join(', ')}`, async () => {
      const phone = `+485001001${ending}`
      const { messageId, outcome } = await send(phone)
      assert.deepEqual(outcome, { is: 'sent', carrierMessageId: messageId })
      assert.deepEqual(await kindsOf(phone), expected)
      for (const event of await eventsOf(phone)) if (event.kind !== 'wrote') assert.equal(event.messageId, messageId)
    })
  }

  for (const [ending, reason] of Object.entries({ '02': 'NOT_REACHABLE', '03': 'REJECTED', '08': 'NOT_REACHABLE' })) {
    test(`${ending}: refused, ${reason}`, async () => {
      const { outcome } = await send(`+485001001${ending}`)
      assert.ok(outcome.is === 'failed' && outcome.reason === reason)
      assert.deepEqual(await kindsOf(`+485001001${ending}`), [])
    })
  }

  test('04: sent, never delivered, expired', async () => {
    const { messageId, outcome } = await send('+48500100104', { lifetimeMs: 300 })
    assert.equal(outcome.is, 'sent')
    const [event] = await until('it expires', async () => {
      const events = await eventsOf('+48500100104')
      return events.length > 0 ? events : undefined
    })
    assert.deepEqual([event.kind, event.messageId], ['expired', messageId])
  })

  test('05: two errors that may pass, then delivered and read', async () => {
    const messageId = randomUUID()
    const outcomes: SendResult['is'][] = []
    for (let tries = 0; tries < 3; tries += 1) outcomes.push((await send('+48500100105', { messageId, agentId: 'agent-05' })).outcome.is)
    assert.deepEqual(outcomes, ['unknown', 'unknown', 'sent'])
    assert.deepEqual(await kindsOf('+48500100105'), ['delivered', 'read'])
  })

  test('the tap names the button, and the reply its text', async () => {
    const [tapped] = (await eventsOf('+48500100107')).filter(({ kind }) => kind === 'tapped')
    assert.deepEqual([tapped.buttonId, tapped.text], ['yes', 'Yes'])
    const [wrote] = (await eventsOf('+48500100109')).filter(({ kind }) => kind === 'wrote')
    assert.equal(wrote.text, 'STOP')
  })
})

const seed = randomInt(2 ** 31)
test(`with a network that fails in every way at once, each message arrives once and each receipt is kept once (seed ${seed})`, async () => {
  const phones = Array.from({ length: 60 }, (_, index) => `+4850020${String(index).padStart(2, '0')}10`)
  await simulator.ask(
    'faults',
    {
      seed,
      api: {
        serverError: { rate: 0.1 },
        tooManyRequests: { rate: 0.05, retryAfterSeconds: 0 },
        dropBefore: { rate: 0.1 },
        dropAfter: { rate: 0.1 },
        tokenRefused: { rate: 0.05 },
      },
      webhooks: { duplicated: { rate: 0.3 }, wrongSignature: { rate: 0.2 }, reordered: { rate: 0.5, withinMs: 200 } },
    },
    'PUT',
  )
  async function sendUntilSent(phone: string): Promise<void> {
    const messageId = randomUUID()
    for (;;) {
      // An agent each, or five failures in a row would make the rest wait.
      const { outcome } = await send(phone, { messageId, agentId: `agent${phone}` })
      assert.notEqual(outcome.is, 'failed')
      if (outcome.is === 'sent') return
      if ('afterMs' in outcome) await sleep(outcome.afterMs / 10)
    }
  }
  await Promise.all(phones.map(sendUntilSent))
  await simulator.ask('faults', undefined, 'DELETE')
  // What was refused for its signature is tried again at once.
  await simulator.ask('webhook', { url: `${service.url}/carriers/simulator/webhook` }, 'PUT')
  for (const phone of phones) {
    assert.deepEqual(await kindsOf(phone), ['delivered', 'read'])
    assert.equal((await simulator.ask(`phones/${phone}`)).messages.length, 1)
  }
})

describe('by SMS', () => {
  async function submit(recipient: string, text: string): Promise<string[]> {
    const expiresAt = new Date(Date.now() + 3_600_000)
    const parts = splitText(text, 7).map((part) => ({ ...part, sender: 'Shop', recipient, expiresAt }))
    const outcomes = await Promise.all(parts.map((part) => sms.submit(part)))
    return outcomes.map((outcome) => (outcome.is === 'sent' ? outcome.carrierMessageId : assert.fail(JSON.stringify(outcome))))
  }
  async function receiptsOf(phone: string, count: number): Promise<CarrierEvent[]> {
    return await until(`${count} receipts for ${phone}`, () => {
      const found = smsEvents.filter((event) => event.phone === phone)
      return found.length >= count ? found : undefined
    })
  }
  function isFor(event: CarrierEvent | undefined, id: string | undefined): boolean {
    return event !== undefined && 'carrierMessageIds' in event && event.carrierMessageIds.includes(id ?? '')
  }

  test('a text in every alphabet arrives as it was written, whole, and is delivered', async () => {
    const texts = {
      '+48500300110': 'Zażółć gęślą jaźń 📦 '.repeat(10),
      '+48500300210': 'Grüße, €5 [ok] ^{}\\~| '.repeat(10),
      '+48500300310': 'Hi',
    }
    for (const [phone, text] of Object.entries(texts)) {
      const ids = await submit(phone, text)
      const receipts = await receiptsOf(phone, ids.length)
      assert.ok(receipts.every(({ kind }) => kind === 'sms-delivered'))
      for (const id of ids) assert.equal(receipts.filter((event) => isFor(event, id)).length, 1)
      const [arrived] = (await simulator.ask(`phones/${phone}`)).messages
      assert.deepEqual([arrived.channel, arrived.sender, arrived.text, arrived.parts], ['sms', 'Shop', text, ids.length])
    }
  })

  test('a number that ends in 08: it fails', async () => {
    const [id] = await submit('+48500300108', 'Hi')
    const [receipt] = await receiptsOf('+48500300108', 1)
    assert.ok(receipt?.kind === 'sms-failed' && isFor(receipt, id))
  })

  for (const fault of ['hexInReceipt', 'hexInAnswer', 'receiptBeforeAnswer', 'receiptWithoutTlvs']) {
    test(`a receipt is told to be the message’s own with ${fault}`, async () => {
      await simulator.ask('faults', { smpp: { [fault]: { count: 1 } } }, 'PUT')
      const phone = `+4850040${String(randomInt(10_000)).padStart(4, '0')}`.replace(/0[1-9]$/, '10')
      const [id] = await submit(phone, 'Hi')
      const [receipt] = await receiptsOf(phone, 1)
      assert.ok(receipt?.kind === 'sms-delivered' && isFor(receipt, id), `${JSON.stringify(receipt)} for ${id}`)
    })
  }

  test('a connection that is cut with submits unanswered: each of those is unknown, and no phone gets one twice', async () => {
    await simulator.ask('faults', { smpp: { dropUnanswered: { count: 1, submits: 5 } } }, 'PUT')
    const expiresAt = new Date(Date.now() + 3_600_000)
    const phones = Array.from({ length: 30 }, (_, index) => `+4850050${String(index).padStart(2, '0')}10`)
    const outcomes = await Promise.all(
      phones.map((recipient) => sms.submit({ sender: 'Shop', recipient, encoding: 'GSM7', text: 'Hi', expiresAt })),
    )
    const count = { sent: 0, unknown: 0, 'not-tried': 0, retry: 0, failed: 0, expired: 0 }
    for (const [index, phone] of phones.entries()) {
      const { is } = outcomes[index] as SendResult
      count[is] += 1
      const { messages } = await simulator.ask(`phones/${phone}`)
      // What may have happened happened once or never, what was sent once, what is to be tried again never.
      assert.ok(is === 'unknown' ? messages.length <= 1 : messages.length === (is === 'sent' ? 1 : 0), `${is}: ${messages.length}`)
    }
    assert.ok(count.unknown >= 5 && count.unknown <= 10 && count.failed + count.expired === 0, JSON.stringify(count))
    assert.equal(count.sent + count.unknown + count.retry, phones.length)
  })
})
