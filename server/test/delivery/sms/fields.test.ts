import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { setQuarantine } from '../../../src/accounts/accounts.ts'
import { changeOptOut } from '../../../src/replies/opt-outs.ts'
import { joinGroup, type Known } from '../../support/groups.ts'
import { callerAt, type MessageCaller, smsFallback } from '../../support/messages.ts'
import { createAssignedAgent } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { readOnce, startSimulated } from '../simulated.ts'
import { sendUntilAccepted } from '../support.ts'

// The effect of each field of a fallback, from the request to the phone. Every test has its own numbers; at the end, the network's ledger must
// hold the expected SMS and no other.

const { pool, simulator, service, newCaller, received } = await startSimulated()
const [caller, otherCaller] = [await newCaller(), await newCaller()]
const CONCURRENT = { concurrency: 20 }

let numbers = 0

/** A new number, without RCS by default. */
function newNumber(ending = '02'): string {
  numbers += 1
  return `+48600${String(numbers).padStart(4, '0')}${ending}`
}

type Ended = { messageId: string; recipient: string; body: any }
type Sending = { recipient?: string; by?: MessageCaller; planParams?: object; variant?: object }

let reading: Promise<Set<string>> | undefined

/** The messages whose SMS has ended. All tests share one statement: if each polled by itself, they would be most of the load. */
function readEnded(): Promise<Set<string>> {
  const text = `select m.id from messages m join sms_fallbacks f on f.message_id = m.id
    where m.status in ('DELIVERED', 'READ') or f.status in ('DELIVERED', 'FAILED', 'SKIPPED')`
  reading ??= sleep(20).then(async () => {
    reading = undefined
    return new Set((await pool.query<{ id: string }>(text)).rows.map(({ id }) => id))
  })
  return reading
}

async function accepted({ recipient = newNumber(), by = caller, planParams = {}, variant = {} }: Sending) {
  const body = await sendUntilAccepted(by, { recipient, smsFallback: smsFallback({ ...planParams }, { ...variant }) })
  return { messageId: body.messageId as string, recipient }
}

/** Sends a message, and returns what the caller reads once its SMS has ended. */
async function fallBack(sending: Sending = {}): Promise<Ended> {
  const sent = await accepted(sending)
  await until(`the SMS of ${sent.messageId} has ended`, async () => (await readEnded()).has(sent.messageId))
  return { ...sent, body: (await (sending.by ?? caller).read(sent.messageId)).body }
}

/** By number: how many segments the network must have at the end. */
const expectedSegments = new Map<string, number>()

function expectSegments(number: string, segments: number): void {
  expectedSegments.set(number, (expectedSegments.get(number) ?? 0) + segments)
}

/** Fails unless the caller reads exactly this of the SMS. Returns what the phone shows. */
async function assertDelivered({ recipient, body }: Ended, expected: Record<string, unknown> = {}): Promise<any> {
  const { sentAt, deliveredAt, ...rest } = body.smsFallback
  assert.deepEqual(rest, { status: 'DELIVERED', reason: 'RCS_FAILED', dueAt: body.failedAt, segments: 1, ...expected })
  assert.deepEqual([body.status, body.failure.reason], ['FAILED', 'NOT_REACHABLE'])
  expectSegments(recipient, rest.segments)
  const sms = (await smsOf(recipient)).at(-1)
  assert.deepEqual([sms.parts, sms.totalParts], [rest.segments, rest.segments])
  const times = [rest.dueAt, sms.acceptedAt, sentAt, deliveredAt]
  assert.deepEqual(times, times.toSorted(), 'the times are in order')
  return sms
}

function assertSkipped({ body }: Ended, reason: string): void {
  assert.deepEqual(body.smsFallback, { status: 'SKIPPED', reason, dueAt: body.failedAt, segments: 1 })
}

async function assertEnd(sending: Sending, skippedBecause?: string): Promise<void> {
  const ended = await fallBack(sending)
  if (skippedBecause === undefined) await assertDelivered(ended)
  else assertSkipped(ended, skippedBecause)
}

async function smsOf(number: string): Promise<any[]> {
  return (await received(number)).filter(({ channel }) => channel === 'sms')
}

/** Waits until all SMS of a message are submitted, copies included, and counts them by number. */
async function assertNumberOfSms(messageId: string, expected: Record<string, number>): Promise<void> {
  const queued = 'select from sms_queue where message_id = $1'
  await until('none of its SMS is queued', async () => (await pool.query(queued, [messageId])).rowCount === 0)
  const counts = Object.keys(expected).map(async (number) => [number, (await smsOf(number)).length] as const)
  assert.deepEqual(Object.fromEntries(await Promise.all(counts)), expected)
}

async function segmentsInLedger(): Promise<any[]> {
  const { entries } = await simulator.ask('ledger?limit=10000')
  return entries.filter(({ kind }: { kind: string }) => kind === 'sms-part')
}

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const later = (time: string, ms: number) => new Date(Date.parse(time) + ms).toISOString()
const laterOf = (a: string, b: string) => (a > b ? a : b)

// Numbers, so that segments in another order make another text.
const counting = Array.from({ length: 1_530 }, (_, index) => String(index)).join(' ')
const signs = 'Zażółć gęślą jaźń, čeština, Straße, é'
const letters = 'Line 1\nLine "2" \\ {a}[b]~^| €1 £2 @_ ©😀'
const link = 'Your order: https://shop.example/orders?id=7'

type Variant = { content: string; [field: string]: unknown }

/** Texts as requested, and as the phone shows them if that differs. */
const TEXTS: [planParams: object, variant: Variant, segments?: number, shown?: string][] = [
  ...['My_Shop-1.2', 'a B', '123', '48500600700'].map((sender) => [{ sender }, { content: `From ${sender}` }] as [object, Variant]),
  [{ smsShipmentType: 1 }, { content: letters }],
  [{ campaign: 'Autumn: żółć' }, { content: 'With the label of a campaign' }],
  ...[1, 1, 100].map((abTestDivision) => [{}, { content: 'One variant for all', abTestDivision }] as [object, Variant]),
  [{ mode: 'GSM7' }, { content: 'a'.repeat(160) }],
  [{ mode: 'UNICODE' }, { content: 'a'.repeat(71), multipart: true }, 2],
  [{ mode: 'AUTO' }, { content: 'a'.repeat(71), multipart: true }],
  [{}, { content: counting.slice(0, 160), multipart: true }],
  [{}, { content: counting.slice(0, 161), multipart: true }, 2],
  [{}, { content: counting.slice(0, 307), multipart: true }, 3],
  [{}, { content: counting.slice(0, 1_530), multipart: true }, 10],
  [{}, { content: `${'a'.repeat(152)}€${'b'.repeat(152)}`, multipart: true }, 3],
  [{}, { content: `ж${counting.slice(0, 70)}`, multipart: true }, 2],
  [{}, { content: `${'ж'.repeat(66)}😀${'ж'.repeat(66)}`, multipart: true }, 3],
  [{}, { content: counting.replaceAll(' ', 'ж').slice(0, 670), multipart: true }, 10],
  [{}, { content: signs }, 1, 'Zazolc gesla jazn, cestina, Straße, é'],
  [{}, { content: signs, diacriticalSigns: false }, 1, 'Zazolc gesla jazn, cestina, Straße, é'],
  [{}, { content: signs, diacriticalSigns: true }],
  [{}, { content: link }],
  [{}, { content: link, urlShortening: false }],
]

/** What groups know of the recipient (by default of the caller's account), the request, and why the SMS is skipped, if it is. */
const RULES: Record<string, [known: Known & { by?: MessageCaller }, planParams: object, skippedBecause?: string][]> = {
  controlGroup: [
    [{ controlGroup: true }, { controlGroup: true }, 'CONTROL_GROUP'],
    [{ controlGroup: true }, { controlGroup: false }],
    [{ controlGroup: true }, {}],
    [{ controlGroup: true, by: otherCaller }, { controlGroup: true }],
    [{}, { controlGroup: true }],
  ],
  consentIDS: [
    ...[[7], [11, 3], [3, 7, 11, 7], []].map((consentIDS) => [{ consents: [3, 7, 11] }, { consentIDS }] as [Known, object]),
    ...[[5], [3, 5], [3, 7, 11, 12]].map((consentIDS) => [{ consents: [3, 7, 11] }, { consentIDS }, 'CONSENT'] as [Known, object, string]),
    [{ consents: [3], by: otherCaller }, { consentIDS: [3] }, 'CONSENT'],
    [{ consents: [3], by: otherCaller }, { consentIDS: [] }],
  ],
  ignoreStatus: [
    [{ active: false }, {}, 'INACTIVE'],
    [{ active: false }, { ignoreStatus: false }, 'INACTIVE'],
    [{ active: false }, { ignoreStatus: true }],
    [{ active: false, by: otherCaller }, {}],
  ],
}

describe('a fallback', CONCURRENT, () => {
  for (const [planParams, variant, segments = 1, shown = variant.content] of TEXTS) {
    const request = JSON.stringify({ ...planParams, ...variant }).slice(0, 60)
    test(`shows its sender and text on the phone, in ${segments} segments: ${request} (${variant.content.length})`, async () => {
      const ended = await fallBack({ planParams, variant })
      const { sender = 'MyShop', campaign } = planParams as { sender?: string; campaign?: string }
      const sms = await assertDelivered(ended, { segments, ...(campaign && { campaign }) })
      assert.deepEqual([sms.sender, sms.text], [sender, shown])
      const inLedger = (await segmentsInLedger())
        .filter(({ phone }) => phone === ended.recipient)
        .map(({ detail }) => detail ?? { total: 1, number: 1 })
      const { reference } = inLedger[0]
      const expected = Array.from({ length: segments }, (_, index) => ({
        ...(reference !== undefined && { reference }),
        total: segments,
        number: index + 1,
      }))
      assert.deepEqual(
        inLedger.toSorted((a, b) => a.number - b.number),
        expected,
      )
    })
  }

  for (const [rule, cases] of Object.entries(RULES)) {
    for (const [{ by = caller, ...known }, planParams, reason] of cases) {
      const of = `${JSON.stringify(known)} of ${by === caller ? 'the' : 'another'} account`
      test(`by ${rule} is ${reason ?? 'DELIVERED'} with ${JSON.stringify(planParams)} for ${of}`, async () => {
        const recipient = newNumber()
        await joinGroup(pool, by.accountId, recipient, known)
        await assertEnd({ recipient, planParams }, reason)
      })
    }
  }

  test('is skipped after an opt-out from its agent, even with ignoreStatus, until the recipient opts in', async () => {
    const recipient = newNumber()
    const { accountId, agentId } = caller
    await changeOptOut(pool, { accountId, agentId, phone: recipient }, true)
    await assertEnd({ recipient }, 'OPTED_OUT')
    await assertEnd({ recipient, planParams: { ignoreStatus: true } }, 'OPTED_OUT')
    await assertEnd({ recipient, by: otherCaller })
    await assertEnd({ recipient, by: callerAt(service.url, { ...caller, agentId: await createAssignedAgent(pool, accountId) }) })
    await changeOptOut(pool, { accountId, agentId, phone: recipient }, false)
    await assertEnd({ recipient })
  })

  test('is not needed if the RCS message is delivered', async () => {
    const { body } = await fallBack({ recipient: newNumber('01') })
    assert.deepEqual([body.status, body.smsFallback], ['DELIVERED', { status: 'NOT_NEEDED', reason: 'RCS_DELIVERED', segments: 1 }])
  })

  test('is FAILED if the phone does not get it', async () => {
    const { body, recipient } = await fallBack({ recipient: newNumber('08') })
    const { sentAt, ...rest } = body.smsFallback
    assert.deepEqual(rest, { status: 'FAILED', reason: 'UNDELIVERABLE', dueAt: body.failedAt, segments: 1 })
    assert.ok(sentAt >= body.failedAt)
    expectSegments(recipient, 1)
  })

  for (const [name, { delay, inMs: ms }] of Object.entries<{ delay?: number; inMs?: number }>({
    'at once': {},
    'at once with a delay of 0': { delay: 0 },
    'at once if sendTime has passed': { inMs: -3_600_000 },
    'after the delay': { delay: 1 },
    'at sendTime': { inMs: 2_000 },
    'at sendTime if the delay ends before it': { delay: 1, inMs: 3_000 },
    'after the delay if sendTime is before its end': { delay: 1, inMs: 300 },
  })) {
    test(`is sent ${name}`, async () => {
      const sendTime = ms === undefined ? undefined : inMs(ms)
      const inOtherZone = sendTime && later(sendTime, -3_600_000).replace('Z', '-01:00')
      const ended = await fallBack({ planParams: { ...(delay !== undefined && { delay }), ...(inOtherZone && { sendTime: inOtherZone }) } })
      await assertDelivered(ended, { dueAt: laterOf(sendTime ?? '', later(ended.body.failedAt, 1_000 * (delay ?? 0))) })
    })
  }

  test('shows its due time while it waits, to the millisecond, a week ahead', async () => {
    const { messageId } = await accepted({ planParams: { delay: 604_800, campaign: 'Later' } })
    const body = await readOnce(caller, messageId, 'is scheduled', ({ smsFallback: sms }) => sms.status !== 'WAITING')
    const dueAt = later(body.failedAt, 604_800_000)
    assert.deepEqual(body.smsFallback, { status: 'SCHEDULED', reason: 'RCS_FAILED', campaign: 'Later', dueAt, segments: 1 })
  })

  test('sends each test number one copy with useTestNumbers, however it is written, and the recipient no second SMS', async () => {
    const [recipient, first, second] = [newNumber(), newNumber(), newNumber('10')]
    const testNumbers = [first, second, first.slice(1), second.replace('+48', '+48 '), recipient]
    const ended = await fallBack({ recipient, planParams: { testNumbers, useTestNumbers: true, sender: 'Copy' } })
    const sms = await assertDelivered(ended)
    await assertNumberOfSms(ended.messageId, { [recipient]: 1, [first]: 1, [second]: 1 })
    for (const number of [first, second]) {
      const [copy] = await smsOf(number)
      assert.deepEqual([copy.sender, copy.text], [sms.sender, sms.text])
      expectSegments(number, 1)
    }
    assert.deepEqual((await caller.read(ended.messageId)).body, ended.body, 'copies do not show')
  })

  test('sends test numbers nothing without useTestNumbers, or if the recipient gets nothing', async () => {
    const [testNumber, inactive] = [newNumber(), newNumber()]
    for (const useTestNumbers of [undefined, false]) {
      const ended = await fallBack({ planParams: { testNumbers: [testNumber], useTestNumbers } })
      await assertDelivered(ended)
      await assertNumberOfSms(ended.messageId, { [ended.recipient]: 1, [testNumber]: 0 })
    }
    await joinGroup(pool, caller.accountId, inactive, { active: false })
    const ended = await fallBack({ recipient: inactive, planParams: { testNumbers: [testNumber], useTestNumbers: true } })
    assertSkipped(ended, 'INACTIVE')
    await assertNumberOfSms(ended.messageId, { [inactive]: 0, [testNumber]: 0 })
  })
})

describe('quarantine', CONCURRENT, () => {
  const planParams = { quarantine: true }

  /** Changes the age of the recipient's last SMS from the account. */
  async function age({ accountId }: MessageCaller, recipient: string, minutes: number): Promise<void> {
    const text = `update sms_contacts set sent_at = now() - $3 * interval '1 minute' where account_id = $1 and recipient = $2`
    assert.equal((await pool.query(text, [accountId, recipient, minutes])).rowCount, 1)
  }

  test('skips recipients who had an SMS of the account in the last 24 hours, if it is set', async () => {
    const recipient = newNumber()
    await assertEnd({ recipient, planParams })
    await assertEnd({ recipient, planParams }, 'QUARANTINE')
    await assertEnd({ recipient, planParams: { quarantine: false } })
    await assertEnd({ recipient })
    await assertEnd({ recipient, by: otherCaller, planParams })
    await age(caller, recipient, 24 * 60 - 1)
    await assertEnd({ recipient, planParams }, 'QUARANTINE')
    await age(caller, recipient, 24 * 60 + 1)
    await assertEnd({ recipient, planParams })
  })

  test('lasts as long as the account sets it', async () => {
    const [by, recipient] = [await newCaller(), newNumber()]
    await setQuarantine(pool, by.accountId, 2)
    await assertEnd({ recipient, by, planParams: { sender: 'One' } })
    await age(by, recipient, 119)
    await assertEnd({ recipient, by, planParams: { ...planParams, sender: 'Two' } }, 'QUARANTINE')
    await age(by, recipient, 121)
    await assertEnd({ recipient, by, planParams })
    await setQuarantine(pool, by.accountId, 0)
    await assertEnd({ recipient, by, planParams })
  })

  test('allows one of several concurrent SMS', async () => {
    const recipient = newNumber()
    const all = await Promise.all(Array.from({ length: 6 }, () => fallBack({ recipient, planParams })))
    const { DELIVERED: delivered = [], SKIPPED: skipped = [] } = Object.groupBy(all, ({ body }) => body.smsFallback.status as string)
    assert.deepEqual([delivered.length, skipped.length], [1, 5])
    await assertDelivered(delivered[0] as Ended)
    for (const ended of skipped) assertSkipped(ended, 'QUARANTINE')
    assert.equal((await smsOf(recipient)).length, 1)
  })
})

describe('urlShortening', CONCURRENT, () => {
  const ADDRESS = 'https://shop.example/orders?id=7&x=a%20b#top'
  const PERSON = { 'User-Agent': 'Mozilla/5.0 (Android 14; Mobile; rv:125.0) Gecko/125.0 Firefox/125.0' }

  async function visit(shortLink: string) {
    const { status, headers } = await fetch(shortLink, { redirect: 'manual', headers: PERSON })
    return [status, headers.get('location')]
  }

  async function clicksOf(messageId: string): Promise<unknown[]> {
    const text = 'select recipient, kind, channel, url from recipient_actions where message_id = $1 order by occurred_at'
    return (await pool.query(text, [messageId])).rows
  }

  test('replaces links by short ones of this service, and counts each click once', async () => {
    const content = `Your order: ${ADDRESS}, or http://b.example/.`
    const ended = await fallBack({ variant: { content, urlShortening: true } })
    const { text } = await assertDelivered(ended)
    const [first, second] = text.match(/http:\S+\/l\/[A-Za-z0-9]{11}/g)
    assert.equal(text, `Your order: ${first}, or ${second}.`)
    assert.ok([first, second].every((each: string) => each.startsWith(`${service.url}/l/`)) && first !== second, text)
    for (let time = 0; time < 2; time += 1) assert.deepEqual(await visit(first), [302, ADDRESS])
    const { recipient, messageId } = ended
    assert.deepEqual(await clicksOf(messageId), [{ recipient, kind: 'clicked', channel: 'sms', url: ADDRESS }])
    assert.deepEqual(await visit(second), [302, 'http://b.example/'])
    assert.equal((await clicksOf(messageId)).length, 2)
  })

  test('gives a copy its own link, whose clicks do not count', async () => {
    const copied = newNumber()
    const planParams = { testNumbers: [copied], useTestNumbers: true }
    const ended = await fallBack({ planParams, variant: { content: `See ${ADDRESS}`, urlShortening: true } })
    const { text } = await assertDelivered(ended)
    const copy = await until('the copy has arrived', async () => (await smsOf(copied))[0]?.text)
    expectSegments(copied, 1)
    assert.notEqual(copy, text)
    assert.deepEqual(await visit(copy.slice('See '.length)), [302, ADDRESS])
    assert.deepEqual(await clicksOf(ended.messageId), [])
  })
})

test('the network has exactly the expected segments for each number', async () => {
  const due = `select from sms_queue where due_at < now() + interval '1 day'`
  await until('no SMS is due', async () => (await pool.query(due)).rowCount === 0)
  const segments = Map.groupBy(await segmentsInLedger(), ({ phone }) => phone as string)
  assert.deepEqual(new Map([...segments].map(([phone, entries]) => [phone, entries.length])), expectedSegments)
  assert.doesNotMatch(service.log(), /"level":"error"/)
})
