import assert from 'node:assert/strict'
import { randomInt, randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CarrierEvent, SendResult } from '../../src/carriers/carrier.ts'
import { createGoogleRbm } from '../../src/carriers/google-rbm/carrier.ts'
import { createSmppCarrier } from '../../src/carriers/smpp/carrier.ts'
import { installationSecret } from '../../src/db/secrets.ts'
import { createLogger } from '../../src/http/log.ts'
import { splitText } from '../../src/sms/segments.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { startTestService } from '../support/service.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'

// Both connectors with the simulated network, in both directions. The last two digits of a number decide what its phone does; the tests in
// delivery/end-to-end.test.ts go through all of them.

const logger = createLogger('silent')
const simulator = await startSimulator()
const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const service = await startTestService({ HERALD_DATABASE_URL }, { findCarriers: async () => ({ ...simulator.settings, sms: undefined }) })
const setWebhook = () => simulator.ask('webhook', { url: `${service.url}/carriers/simulator/webhook` }, 'PUT')
await setWebhook()

const rcs = createGoogleRbm(simulator.rcs, { postbackKey: await installationSecret(pool, 'postback', keyring), logger })
after(() => rcs.close())
const smsEvents: CarrierEvent[] = []
const sms = createSmppCarrier(simulator.sms, { onEvents: async (events) => void smsEvents.push(...events), logger })
after(() => sms.close())

const inAnHour = () => new Date(Date.now() + 3_600_000)

async function send(recipient: string, agentId = 'agent', messageId: string = randomUUID()) {
  const content = { type: 'MESSAGE', content: 'Hello' } as const
  const message = { messageId, agentId, recipient, content, traffic: 'TRANSACTION', expiresAt: inAnHour() } as const
  return { messageId, outcome: await rcs.send(message) }
}

async function messagesOf(phone: string): Promise<any[]> {
  return (await simulator.ask(`phones/${phone}`)).messages
}

/** The kinds of all events of a phone, once the simulator owes no more. */
async function kindsOf(phone: string): Promise<string[]> {
  await until('the simulator owes nothing', async () => {
    const { owed } = await simulator.ask('counts')
    return owed.steps + owed.webhooks === 0
  })
  const { rows } = await pool.query<{ kind: string }>('select kind from carrier_events where phone = $1 order by kind', [phone])
  return rows.map(({ kind }) => kind)
}

const seed = randomInt(2 ** 31)
test(`each message arrives once and each receipt is stored once if the network fails in every way (seed ${seed})`, async () => {
  const phones = Array.from({ length: 60 }, (_, index) => `+4850020${String(index).padStart(2, '0')}10`)
  const api = {
    serverError: { rate: 0.1 },
    tooManyRequests: { rate: 0.05, retryAfterSeconds: 0 },
    dropBefore: { rate: 0.1 },
    dropAfter: { rate: 0.1 },
    tokenRefused: { rate: 0.05 },
  }
  const webhooks = { duplicated: { rate: 0.3 }, wrongSignature: { rate: 0.2 }, reordered: { rate: 0.5, withinMs: 200 } }
  await simulator.ask('faults', { seed, api, webhooks }, 'PUT')
  async function sendUntilSent(phone: string): Promise<void> {
    const messageId = randomUUID()
    for (;;) {
      // Each from its own agent: five failures in a row pause an agent.
      const { outcome } = await send(phone, `agent${phone}`, messageId)
      assert.notEqual(outcome.is, 'failed')
      if (outcome.is === 'sent') return
      if ('afterMs' in outcome) await sleep(outcome.afterMs / 10)
    }
  }
  await Promise.all(phones.map(sendUntilSent))
  await simulator.ask('faults', undefined, 'DELETE')
  // The simulator posts again at once what was rejected for its signature.
  await setWebhook()
  for (const phone of phones) {
    assert.deepEqual(await kindsOf(phone), ['delivered', 'read'])
    assert.equal((await messagesOf(phone)).length, 1)
  }
})

test('revokes an RCS message before its delivery, and is too late after it', async () => {
  const revoke = async (messageId: string, recipient: string) => (await rcs.revoke({ messageId, agentId: 'agent', recipient })).is
  const waiting = await send('+48500100204')
  assert.equal(await revoke(waiting.messageId, '+48500100204'), 'accepted')
  assert.notEqual((await messagesOf('+48500100204'))[0].revokedAt, null)
  const delivered = await send('+48500100310')
  await until('it is delivered', async () => (await messagesOf('+48500100310'))[0].deliveredAt)
  assert.equal(await revoke(delivered.messageId, '+48500100310'), 'too-late')
})

describe('by SMS', () => {
  async function submit(recipient: string, text: string): Promise<string[]> {
    const segments = splitText(text, 7).map((segment) => ({ ...segment, sender: 'Shop', recipient, expiresAt: inAnHour() }))
    const outcomes = await Promise.all(segments.map((segment) => sms.submit(segment)))
    return outcomes.map((outcome) => (outcome.is === 'sent' ? outcome.carrierMessageId : assert.fail(JSON.stringify(outcome))))
  }
  /** Asserts one receipt of this kind for each id. */
  async function assertReceipts(phone: string, ids: string[], kind: 'sms-delivered' | 'sms-failed'): Promise<void> {
    const receipts = await until(`${ids.length} receipts for ${phone}`, () => {
      const found = smsEvents.filter((event) => event.phone === phone)
      return found.length >= ids.length ? found : undefined
    })
    for (const id of ids) {
      const ofId = receipts.filter((event) => event.kind === kind && event.carrierMessageIds.includes(id))
      assert.equal(ofId.length, 1, `${JSON.stringify(receipts)} for ${id}`)
    }
  }

  test('a text in every alphabet arrives whole, and is delivered', async () => {
    for (const [phone, text] of Object.entries({
      '+48500300110': 'Zażółć gęślą jaźń 📦 '.repeat(10),
      '+48500300210': 'Grüße, €5 [ok] ^{}\\~| '.repeat(10),
      '+48500300310': 'Hi',
    })) {
      const ids = await submit(phone, text)
      await assertReceipts(phone, ids, 'sms-delivered')
      const [arrived] = await messagesOf(phone)
      assert.deepEqual([arrived.channel, arrived.sender, arrived.text, arrived.parts], ['sms', 'Shop', text, ids.length])
    }
  })

  test('a text to a number that ends in 08 fails', async () => {
    await assertReceipts('+48500300108', await submit('+48500300108', 'Hi'), 'sms-failed')
  })

  for (const [index, fault] of ['hexInReceipt', 'hexInAnswer', 'receiptBeforeAnswer', 'receiptWithoutTlvs'].entries()) {
    test(`a receipt matches its message with the fault ${fault}`, async () => {
      await simulator.ask('faults', { smpp: { [fault]: { count: 1 } } }, 'PUT')
      const phone = `+485004000${index}10`
      await assertReceipts(phone, await submit(phone, 'Hi'), 'sms-delivered')
    })
  }

  test('a submit without a response when the connection breaks is unknown, and no phone gets it twice', async () => {
    await simulator.ask('faults', { smpp: { dropUnanswered: { count: 1, submits: 5 } } }, 'PUT')
    const phones = Array.from({ length: 30 }, (_, index) => `+4850050${String(index).padStart(2, '0')}10`)
    const segment = { sender: 'Shop', encoding: 'GSM7', text: 'Hi', expiresAt: inAnHour() } as const
    const outcomes = await Promise.all(phones.map((recipient) => sms.submit({ ...segment, recipient })))
    const count = { sent: 0, unknown: 0, 'not-tried': 0, retry: 0, failed: 0, expired: 0 }
    const arrivals = { sent: [1], unknown: [0, 1], 'not-tried': [], retry: [0], failed: [], expired: [] }
    for (const [index, phone] of phones.entries()) {
      const { is } = outcomes[index] as SendResult
      count[is] += 1
      const { length } = await messagesOf(phone)
      assert.ok((arrivals[is] as number[]).includes(length), `${is}: ${length}`)
    }
    assert.ok(count.unknown >= 5 && count.unknown <= 10, JSON.stringify(count))
  })
})
