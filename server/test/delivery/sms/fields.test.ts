import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { setQuarantine } from '../../../src/accounts/accounts.ts'
import { changeOptOut } from '../../../src/replies/opt-outs.ts'
import { foreign } from '../../carriers/smpp/foreign.ts'
import { createTestDatabase } from '../../support/database.ts'
import { joinGroup, type Known } from '../../support/groups.ts'
import { callerAt, type MessageCaller, newKey, smsFallback } from '../../support/messages.ts'
import { createAssignedAgent, startTestService } from '../../support/service.ts'
import { startSimulator } from '../../support/simulator.ts'
import { until } from '../../support/until.ts'
import { createSender, NO_LIMITS } from '../support.ts'

// What each field of a fallback does, from the request to the phone. Every test has numbers of its own; at the end, the network's ledger
// must hold the SMS that were expected, and no other.

const { url, hotPool: pool } = await createTestDatabase()
const simulator = await startSimulator()
const wire = await listenIn(simulator.sms.host, simulator.sms.port)
const carriers = { ...simulator.settings, sms: { ...simulator.sms, port: wire.port } }
const service = await startTestService({ HERALD_DATABASE_URL: url, ...NO_LIMITS }, { findCarriers: async () => carriers })
await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
const newCaller = async () => callerAt(service.url, await createSender(pool))
const caller = await newCaller()
const otherCaller = await newCaller()

// A worker looks for what is due once a second; the rest is for a machine that is busy with other tests.
const SOON_MS = 5_000
const SIDE_BY_SIDE = { concurrency: 20 }
const GSM7 = 0
const UCS2 = 8

/** On the way to the network, and out of it: what is really said on the wire, as the npm package reads it. */
async function listenIn(host: string, port: number) {
  const codings: { phone: string; coding: number }[] = []
  const sockets = new Set<Socket>()
  function note(octets: Buffer): void {
    const pdu = new foreign.PDU(octets)
    if (pdu.command === 'submit_sm') codings.push({ phone: `+${pdu.destination_addr}`, coding: pdu.data_coding })
  }
  const server = createServer((client) => {
    const network = connect(port, host)
    for (const [from, to] of [
      [client, network],
      [network, client],
    ] as const) {
      sockets.add(from)
      from.setNoDelay(true)
      from.on('error', () => {})
      from.on('close', () => to.destroy())
      from.pipe(to)
    }
    let held = Buffer.alloc(0)
    client.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      while (held.length >= 4 && held.length >= held.readUInt32BE(0)) {
        note(held.subarray(0, held.readUInt32BE(0)))
        held = held.subarray(held.readUInt32BE(0))
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    port: (server.address() as AddressInfo).port,
    codingsOf: (number: string) => codings.filter(({ phone }) => phone === number).map(({ coding }) => coding),
  }
}

let numbers = 0

/** One that nobody else has; without RCS, where its ending is not another one. */
function newNumber(ending = '02'): string {
  numbers += 1
  return `+48600${String(numbers).padStart(4, '0')}${ending}`
}

const ENDS = new Set(['DELIVERED', 'FAILED', 'SKIPPED', 'NOT_NEEDED'])
type Ended = { messageId: string; recipient: string; body: any }
type Sending = { recipient?: string; by?: MessageCaller; planParams?: object; variant?: object }

async function accepted({ recipient = newNumber(), by = caller, planParams = {}, variant = {} }: Sending) {
  const request = by.request({ recipient, smsFallback: smsFallback({ ...planParams }, { ...variant }) })
  const { status, body } = await by.send(newKey(), request)
  assert.equal(status, 202, JSON.stringify(body))
  return { messageId: body.messageId as string, recipient }
}

/** What a caller reads once the SMS has ended. */
async function fallBack(sending: Sending = {}): Promise<Ended> {
  const { by = caller } = sending
  const { messageId, recipient } = await accepted(sending)
  const body = await until(`the SMS of ${messageId} has ended`, async () => {
    const { body: message } = await by.read(messageId)
    return ENDS.has(message.smsFallback?.status) ? message : undefined
  })
  return { messageId, recipient, body }
}

/** By number: how many SMS the network is to have at the end. */
const expectedParts = new Map<string, number>()

function expectParts(number: string, parts: number): void {
  expectedParts.set(number, (expectedParts.get(number) ?? 0) + parts)
}

/** All that a caller reads of the SMS, and what the phone shows of it. */
async function assertDelivered({ recipient, body }: Ended, expected: Record<string, unknown> = {}): Promise<any> {
  const { sentAt, deliveredAt, ...rest } = body.smsFallback
  assert.deepEqual(rest, { status: 'DELIVERED', reason: 'RCS_FAILED', dueAt: body.failedAt, segments: 1, ...expected })
  assert.ok(rest.dueAt <= sentAt && sentAt <= deliveredAt, JSON.stringify(body.smsFallback))
  assert.deepEqual([body.status, body.failure.reason], ['FAILED', 'NOT_REACHABLE'])
  expectParts(recipient, rest.segments)
  const sms = (await smsOf(recipient)).at(-1)
  assert.deepEqual([sms.parts, sms.totalParts], [rest.segments, rest.segments])
  return sms
}

function assertSkipped({ body }: Ended, reason: string): void {
  assert.deepEqual(body.smsFallback, { status: 'SKIPPED', reason, dueAt: body.failedAt, segments: 1 })
}

async function smsOf(number: string): Promise<any[]> {
  const { messages } = await simulator.ask(`phones/${number}`)
  return messages.filter(({ channel }: { channel: string }) => channel === 'sms')
}

/** Once all its SMS have been handed over, copies included: what is not there by then does not come. */
async function assertNumberOfSms(messageId: string, expected: Record<string, number>): Promise<void> {
  await until('none of its SMS is left', async () => {
    return (await pool.query('select from sms_queue where message_id = $1', [messageId])).rowCount === 0
  })
  const counts = Object.keys(expected).map(async (number) => [number, (await smsOf(number)).length] as const)
  assert.deepEqual(Object.fromEntries(await Promise.all(counts)), expected)
}

async function smsPartsInLedger(): Promise<any[]> {
  const { entries } = await simulator.ask('ledger?limit=10000')
  return entries.filter(({ kind }: { kind: string }) => kind === 'sms-part')
}

/** What an account knows of a person. */
async function know(phone: string, { by = caller, ...known }: Known & { by?: MessageCaller }): Promise<void> {
  await joinGroup(pool, by.accountId, phone, known)
}

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const later = (time: string, ms: number) => new Date(Date.parse(time) + ms).toISOString()
const laterOf = (a: string, b: string) => (a > b ? a : b)

describe('of a fallback', SIDE_BY_SIDE, () => {
  describe('an SMS', SIDE_BY_SIDE, () => {
    for (const sender of ['My_Shop-1.2', 'a B', '123', '48500600700']) {
      test(`comes from its sender: ${sender}`, async () => {
        const sms = await assertDelivered(await fallBack({ planParams: { sender } }))
        assert.equal(sms.sender, sender)
      })
    }

    const encodings: [planParams: object, variant: object, coding: number, segments: number][] = [
      [{}, { content: 'Crème brûlée? No: è, é, €' }, UCS2, 1],
      [{ mode: 'AUTO' }, { content: 'è, é, € and {brackets}' }, GSM7, 1],
      [{ mode: 'AUTO' }, { content: 'ж' }, UCS2, 1],
      [{ mode: 'GSM7' }, { content: 'a'.repeat(160) }, GSM7, 1],
      [{ mode: 'UNICODE' }, { content: 'Hello' }, UCS2, 1],
      [{ mode: 'UNICODE' }, { content: 'a'.repeat(71), multipart: true }, UCS2, 2],
      [{ mode: 'AUTO' }, { content: 'a'.repeat(71), multipart: true }, GSM7, 1],
    ]
    for (const [planParams, variant, coding, segments] of encodings) {
      const name = `${JSON.stringify(planParams)} ${JSON.stringify(variant).slice(0, 60)}`
      test(`is in ${coding === GSM7 ? 'GSM-7' : 'UCS-2'} on the wire: ${name}`, async () => {
        const ended = await fallBack({ planParams, variant: { diacriticalSigns: true, ...variant } })
        const { text } = await assertDelivered(ended, { segments })
        assert.equal(text, (variant as { content: string }).content)
        assert.deepEqual(wire.codingsOf(ended.recipient), Array(segments).fill(coding))
      })
    }

    test('says its content to the letter', async () => {
      const content = 'Line 1\nLine "2" \\ {a}[b]~^| €1 £2 @_ ©😀'
      assert.equal((await assertDelivered(await fallBack({ variant: { content } }))).text, content)
    })

    test('has the label of its campaign, where it has one', async () => {
      await assertDelivered(await fallBack({ planParams: { campaign: 'Autumn: żółć' } }), { campaign: 'Autumn: żółć' })
    })

    test('is of shipment type 1, which changes nothing', async () => {
      await assertDelivered(await fallBack({ planParams: { smsShipmentType: 1 } }))
    })

    test('whose one variant has a share of 1 percent goes to everybody', async () => {
      const all = await Promise.all([1, 1, 1, 100].map((abTestDivision) => fallBack({ variant: { abTestDivision } })))
      for (const ended of all) await assertDelivered(ended)
    })

    test('is not sent where the RCS message is delivered', async () => {
      const { body } = await fallBack({ recipient: newNumber('01') })
      assert.deepEqual([body.status, body.smsFallback], ['DELIVERED', { status: 'NOT_NEEDED', reason: 'RCS_DELIVERED', segments: 1 }])
    })

    test('that the phone does not get is FAILED', async () => {
      const recipient = newNumber('08')
      const { body } = await fallBack({ recipient })
      const { sentAt, ...rest } = body.smsFallback
      assert.deepEqual(rest, { status: 'FAILED', reason: 'UNDELIVERABLE', dueAt: body.failedAt, segments: 1 })
      assert.ok(sentAt >= body.failedAt)
      expectParts(recipient, 1)
    })
  })

  describe('its time', SIDE_BY_SIDE, () => {
    /** When the network had it, by its own clock, which is that of this machine. */
    async function assertSentAt(ended: Ended, dueAt: string): Promise<void> {
      const { acceptedAt } = await assertDelivered(ended, { dueAt })
      const lateMs = Date.parse(acceptedAt) - Date.parse(dueAt)
      assert.ok(lateMs >= 0 && lateMs < SOON_MS, `${lateMs} ms after ${dueAt}`)
    }

    test('is at once where neither sendTime nor delay is given, and where sendTime has passed', async () => {
      const all = await Promise.all([{}, { sendTime: inMs(-3_600_000) }, { delay: 0 }].map((planParams) => fallBack({ planParams })))
      for (const ended of all) await assertSentAt(ended, ended.body.failedAt)
    })

    test('is so many seconds after the failure as delay says', async () => {
      const ended = await fallBack({ planParams: { delay: 1 } })
      await assertSentAt(ended, later(ended.body.failedAt, 1_000))
    })

    test('is not before sendTime, in whichever zone that is written', async () => {
      const sendTime = inMs(2_000)
      const written = later(sendTime, -3_600_000).replace('Z', '-01:00')
      const ended = await fallBack({ planParams: { sendTime: written } })
      await assertSentAt(ended, laterOf(sendTime, ended.body.failedAt))
    })

    test('is the later of the two', async () => {
      // One of them by a second or more, on a machine that is not too busy to fail the message by then.
      const all = [3_000, 300].map(async (ms) => {
        const sendTime = inMs(ms)
        const ended = await fallBack({ planParams: { sendTime, delay: 1 } })
        await assertSentAt(ended, laterOf(sendTime, later(ended.body.failedAt, 1_000)))
      })
      await Promise.all(all)
    })

    test('shows while it waits: to the millisecond, a week ahead', async () => {
      const { messageId } = await accepted({ planParams: { delay: 604_800, campaign: 'Later' } })
      const body = await until('it is scheduled', async () => {
        const { body: message } = await caller.read(messageId)
        return message.smsFallback.status === 'WAITING' ? undefined : message
      })
      const dueAt = later(body.failedAt, 604_800_000)
      assert.deepEqual(body.smsFallback, { status: 'SCHEDULED', reason: 'RCS_FAILED', campaign: 'Later', dueAt, segments: 1 })
    })
  })

  describe('test numbers', SIDE_BY_SIDE, () => {
    test('get a copy each with useTestNumbers, once, however they are written; the recipient gets no second SMS', async () => {
      const recipient = newNumber()
      const [first, second] = [newNumber(), newNumber('10')]
      const testNumbers = [first, second, first.slice(1), second.replace('+48', '+48 '), recipient]
      const ended = await fallBack({ recipient, planParams: { testNumbers, useTestNumbers: true, sender: 'Copy' } })
      const sms = await assertDelivered(ended)
      await assertNumberOfSms(ended.messageId, { [recipient]: 1, [first]: 1, [second]: 1 })
      for (const number of [first, second]) {
        const [copy] = await smsOf(number)
        assert.deepEqual([copy.sender, copy.text], [sms.sender, sms.text])
        expectParts(number, 1)
      }
      const { body } = await caller.read(ended.messageId)
      assert.deepEqual(body, ended.body, 'what is read of the message counts none of them')
    })

    test('get nothing without useTestNumbers', async () => {
      const testNumber = newNumber()
      for (const useTestNumbers of [undefined, false]) {
        const ended = await fallBack({ planParams: { testNumbers: [testNumber], useTestNumbers } })
        await assertDelivered(ended)
        await assertNumberOfSms(ended.messageId, { [ended.recipient]: 1, [testNumber]: 0 })
      }
    })

    test('get nothing where the recipient gets nothing', async () => {
      const recipient = newNumber()
      await know(recipient, { active: false })
      const testNumber = newNumber()
      const ended = await fallBack({ recipient, planParams: { testNumbers: [testNumber], useTestNumbers: true } })
      assertSkipped(ended, 'INACTIVE')
      await assertNumberOfSms(ended.messageId, { [recipient]: 0, [testNumber]: 0 })
    })
  })

  describe('who gets it', SIDE_BY_SIDE, () => {
    test('controlGroup leaves out those whom the account has marked, and nobody else', async () => {
      const marked = newNumber()
      const markedElsewhere = newNumber()
      await know(marked, { controlGroup: true })
      await know(markedElsewhere, { by: otherCaller, controlGroup: true })
      const planParams = { controlGroup: true }
      assertSkipped(await fallBack({ recipient: marked, planParams }), 'CONTROL_GROUP')
      await assertDelivered(await fallBack({ recipient: marked, planParams: { controlGroup: false } }))
      await assertDelivered(await fallBack({ recipient: marked }))
      await assertDelivered(await fallBack({ recipient: markedElsewhere, planParams }))
      await assertDelivered(await fallBack({ planParams }))
    })

    test('consentIDS leaves out those who lack one of them', async () => {
      const holder = newNumber()
      await know(holder, { consents: [3, 7, 11] })
      for (const consentIDS of [[7], [11, 3], [3, 7, 11, 7], []]) {
        await assertDelivered(await fallBack({ recipient: holder, planParams: { consentIDS } }))
      }
      for (const consentIDS of [[5], [3, 5], [3, 7, 11, 12]]) {
        assertSkipped(await fallBack({ recipient: holder, planParams: { consentIDS } }), 'CONSENT')
      }
      const unknown = newNumber()
      await know(unknown, { by: otherCaller, consents: [3] })
      assertSkipped(await fallBack({ recipient: unknown, planParams: { consentIDS: [3] } }), 'CONSENT')
      await assertDelivered(await fallBack({ recipient: unknown, planParams: { consentIDS: [] } }))
    })

    test('the inactive get it with ignoreStatus only', async () => {
      const inactive = newNumber()
      await know(inactive, { active: false })
      assertSkipped(await fallBack({ recipient: inactive }), 'INACTIVE')
      assertSkipped(await fallBack({ recipient: inactive, planParams: { ignoreStatus: false } }), 'INACTIVE')
      await assertDelivered(await fallBack({ recipient: inactive, planParams: { ignoreStatus: true } }))
      await assertDelivered(await fallBack({ recipient: inactive, by: otherCaller }))
    })

    test('those who opted out of the agent don’t get it, ignoreStatus or not, until they are back', async () => {
      const phone = newNumber()
      const { accountId, agentId } = caller
      await changeOptOut(pool, { accountId, agentId, phone }, true)
      assertSkipped(await fallBack({ recipient: phone }), 'OPTED_OUT')
      assertSkipped(await fallBack({ recipient: phone, planParams: { ignoreStatus: true } }), 'OPTED_OUT')
      await assertDelivered(await fallBack({ recipient: phone, by: otherCaller }))
      const otherAgent = callerAt(service.url, { ...caller, agentId: await createAssignedAgent(pool, accountId) })
      await assertDelivered(await fallBack({ recipient: phone, by: otherAgent }))
      await changeOptOut(pool, { accountId, agentId, phone }, false)
      await assertDelivered(await fallBack({ recipient: phone }))
    })
  })

  describe('quarantine', SIDE_BY_SIDE, () => {
    const planParams = { quarantine: true }
    /** As if the SMS that somebody had from the account were so old. */
    async function age({ accountId }: MessageCaller, recipient: string, minutes: number): Promise<void> {
      const { rowCount } = await pool.query(
        `update sms_contacts set sent_at = now() - $3 * interval '1 minute' where account_id = $1 and recipient = $2`,
        [accountId, recipient, minutes],
      )
      assert.equal(rowCount, 1)
    }

    test('leaves out those who had an SMS of the account in the last 24 hours, where it is asked for', async () => {
      const recipient = newNumber()
      await assertDelivered(await fallBack({ recipient, planParams }))
      assertSkipped(await fallBack({ recipient, planParams }), 'QUARANTINE')
      await assertDelivered(await fallBack({ recipient, planParams: { quarantine: false } }))
      await assertDelivered(await fallBack({ recipient }))
      await assertDelivered(await fallBack({ recipient, by: otherCaller, planParams }))
      await age(caller, recipient, 24 * 60 - 1)
      assertSkipped(await fallBack({ recipient, planParams }), 'QUARANTINE')
      await age(caller, recipient, 24 * 60 + 1)
      await assertDelivered(await fallBack({ recipient, planParams }))
    })

    test('lasts as long as the account has it', async () => {
      const by = await newCaller()
      const recipient = newNumber()
      await setQuarantine(pool, by.accountId, 2)
      await assertDelivered(await fallBack({ recipient, by, planParams: { sender: 'One' } }))
      await age(by, recipient, 119)
      assertSkipped(await fallBack({ recipient, by, planParams: { ...planParams, sender: 'Two' } }), 'QUARANTINE')
      await age(by, recipient, 121)
      await assertDelivered(await fallBack({ recipient, by, planParams }))
      await setQuarantine(pool, by.accountId, 0)
      await assertDelivered(await fallBack({ recipient, by, planParams }))
    })

    test('of several at once lets one through', async () => {
      const recipient = newNumber()
      const all = await Promise.all(Array.from({ length: 6 }, () => fallBack({ recipient, planParams })))
      const [delivered, ...others] = all.toSorted((a, b) => (a.body.smsFallback.status < b.body.smsFallback.status ? -1 : 1)) as [Ended]
      await assertDelivered(delivered)
      for (const ended of others as Ended[]) assertSkipped(ended, 'QUARANTINE')
      assert.equal((await smsOf(recipient)).length, 1)
    })
  })

  describe('its text', SIDE_BY_SIDE, () => {
    // Counting, so that parts in another order make another text.
    const counting = Array.from({ length: 1_530 }, (_, index) => String(index)).join(' ')
    const long: [content: string, segments: number][] = [
      [counting.slice(0, 160), 1],
      [counting.slice(0, 161), 2],
      [counting.slice(0, 307), 3],
      [counting.slice(0, 1_530), 10],
      [`${'a'.repeat(152)}€${'b'.repeat(152)}`, 3],
      [`ж${counting.slice(0, 70)}`, 2],
      [`${'ж'.repeat(66)}😀${'ж'.repeat(66)}`, 3],
      [counting.replaceAll(' ', 'ж').slice(0, 670), 10],
    ]
    for (const [content, segments] of long) {
      const name = `${content.slice(0, 10)}… of ${content.length} characters`
      test(`with multipart takes as many SMS as are shown, which make it up: ${name}, ${segments}`, async () => {
        const ended = await fallBack({ variant: { content, multipart: true } })
        assert.equal((await assertDelivered(ended, { segments })).text, content)
        const parts = (await smsPartsInLedger()).filter(({ phone }) => phone === ended.recipient)
        assert.equal(parts.length, segments)
        if (segments === 1) return
        const details = parts.map(({ detail }) => detail).toSorted((a, b) => a.number - b.number)
        const { reference } = details[0]
        assert.deepEqual(
          details,
          Array.from({ length: segments }, (_, index) => ({ reference, total: segments, number: index + 1 })),
        )
      })
    }

    const signs = 'Zażółć gęślą jaźń, čeština, Straße, é'
    test('loses the signs that GSM-7 has not, where they are not asked for', async () => {
      for (const variant of [{ content: signs }, { content: signs, diacriticalSigns: false }]) {
        const ended = await fallBack({ variant })
        assert.equal((await assertDelivered(ended)).text, 'Zazolc gesla jazn, cestina, Straße, é')
        assert.deepEqual(wire.codingsOf(ended.recipient), [GSM7])
      }
    })

    test('keeps them with diacriticalSigns', async () => {
      const ended = await fallBack({ variant: { content: signs, diacriticalSigns: true } })
      assert.equal((await assertDelivered(ended)).text, signs)
      assert.deepEqual(wire.codingsOf(ended.recipient), [UCS2])
    })
  })

  describe('a link in it', SIDE_BY_SIDE, () => {
    const ADDRESS = 'https://shop.example/orders?id=7&x=a%20b#top'
    const content = `Your order: ${ADDRESS}, or http://b.example/.`
    const PERSON = { 'User-Agent': 'Mozilla/5.0 (Android 14; Mobile; rv:125.0) Gecko/125.0 Firefox/125.0' }
    const visit = (link: string) => fetch(link, { redirect: 'manual', headers: PERSON })

    async function clicksOf(messageId: string): Promise<unknown[]> {
      const text = 'select recipient, kind, channel, url from recipient_actions where message_id = $1 order by occurred_at'
      return (await pool.query(text, [messageId])).rows
    }

    test('with urlShortening is a short one of this service, which leads there; the click is counted once', async () => {
      const { recipient, messageId, body } = await fallBack({ variant: { content, urlShortening: true } })
      const { text } = await assertDelivered({ recipient, messageId, body })
      const links = text.match(/http:\S+\/l\/[A-Za-z0-9]{11}/g)
      assert.equal(text, `Your order: ${links[0]}, or ${links[1]}.`)
      assert.ok(links.every((link: string) => link.startsWith(`${service.url}/l/`)) && links[0] !== links[1], text)
      for (let times = 0; times < 2; times += 1) {
        const answer = await visit(links[0])
        assert.deepEqual([answer.status, answer.headers.get('location')], [302, ADDRESS])
      }
      assert.deepEqual(await clicksOf(messageId), [{ recipient, kind: 'clicked', channel: 'sms', url: ADDRESS }])
      assert.equal((await visit(links[1])).headers.get('location'), 'http://b.example/')
      assert.equal((await clicksOf(messageId)).length, 2)
    })

    test('in a copy to a test number is another one, and its click is counted for nobody', async () => {
      const copied = newNumber()
      const planParams = { testNumbers: [copied], useTestNumbers: true }
      const ended = await fallBack({ planParams, variant: { content: `See ${ADDRESS}`, urlShortening: true } })
      const { text } = await assertDelivered(ended)
      const copy = await until('the copy is there', async () => (await smsOf(copied))[0]?.text)
      expectParts(copied, 1)
      assert.notEqual(copy, text)
      assert.equal((await visit(copy.slice('See '.length))).headers.get('location'), ADDRESS)
      assert.deepEqual(await clicksOf(ended.messageId), [])
    })

    test('stays as it is without urlShortening', async () => {
      for (const variant of [{ content }, { content, urlShortening: false }]) {
        assert.equal((await assertDelivered(await fallBack({ variant }))).text, content)
      }
    })
  })
})

test('the network has those SMS and no other', async () => {
  await until('nothing is due any more', async () => {
    return (await pool.query(`select from sms_queue where due_at < now() + interval '1 day'`)).rowCount === 0
  })
  const counted = Map.groupBy(await smsPartsInLedger(), ({ phone }) => phone)
  const parts = [...counted].map(([phone, entries]) => [phone, entries.length] as const)
  assert.deepEqual(new Map(parts), expectedParts)
  assert.doesNotMatch(service.log(), /"level":"error"/)
})
