import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assertAllCounted } from '../../test/support/counted.ts'
import { newKey } from '../../test/support/messages.ts'
import { until } from '../../test/support/until.ts'
import { createRandom, endLeases, endSmsLeases, inParallel, isFull, kill, readEntries, say, setScene, startNode } from './support.ts'

const MESSAGES = isFull ? 3_000 : 120
const KILLS = isFull ? 60 : 4
// From the first SMS that the network gets of it. The network answers a submit after 100 ms.
const LONGEST_LIFE_MS = 300
// Some die so soon that all they have done is to find what the one before has left.
const DEAD_AT_ONCE = 0.3
const CLAIM_TIMEOUT_MS = 1_500
const TIMEOUT_MS = isFull ? 120_000 : 20_000
const PARTS = 3
// Three parts in GSM-7, of 153 characters at most.
const LONG_TEXT = 'Your parcel waits for you at the counter. '.repeat(10)

const random = createRandom()
const { env, pool, simulator, callerAt } = await setScene()
const api = await startNode(env, 'api')
const caller = callerAt(api.url)
// So that much is under way whenever a worker is killed: answers come 100 ms after the network has the SMS, and receipts come before them.
await simulator.ask('faults', { smpp: { receiptBeforeAnswer: { rate: 1 } } }, 'PUT')

type Sent = { messageId: string; phone: string; parts: number }
const messages: Sent[] = []

async function acceptAll(): Promise<void> {
  await inParallel(Array(MESSAGES).keys(), 20, async (n) => {
    const phone = `+4860${String(n).padStart(5, '0')}02`
    const parts = n % 5 === 0 ? PARTS : 1
    const content = parts === 1 ? 'Your parcel is there.' : LONG_TEXT
    const smsFallback = { planParams: { sender: 'MyShop' }, smsMessagesPlan: [{ content, multipart: true }] }
    const { status, body } = await caller.send(newKey(), caller.request({ recipient: phone, smsFallback }))
    assert.equal(status, 202, JSON.stringify(body))
    messages.push({ messageId: body.messageId, phone, parts })
  })
}

async function readLeases(): Promise<Set<string>> {
  const { rows } = await pool.query<{ lease: string }>('select distinct lease from sms_queue where lease is not null')
  return new Set(rows.map(({ lease }) => lease))
}

async function countParts(): Promise<number> {
  return (await simulator.ask('counts'))['sms-part'] ?? 0
}

/** A worker that lives until it is in the midst of SMS. */
async function liveAndDie(): Promise<void> {
  const before = await readLeases()
  const worker = await startNode(env, 'delivery')
  const deadline = performance.now() + CLAIM_TIMEOUT_MS
  await until('it has claimed something', async () => {
    return performance.now() > deadline || [...(await readLeases())].some((lease) => !before.has(lease))
  })
  if (random() > DEAD_AT_ONCE) {
    const had = await countParts()
    await until('the network has one of it', async () => performance.now() > deadline || (await countParts()) > had)
    await sleep(random() * LONGEST_LIFE_MS)
  }
  await kill(worker)
}

/** Starts workers and kills them, one after the other. Returns the messages whose SMS were under way at a kill. */
async function killWorkers(): Promise<Set<string>> {
  const underWay = new Set<string>()
  for (let kills = 1; kills <= KILLS; kills++) {
    await liveAndDie()
    // Those of the killed end after more than a minute, and nobody waits for that.
    await endLeases(pool)
    const held = await endSmsLeases(pool)
    for (const messageId of held) underWay.add(messageId)
    const { rowCount } = await pool.query(`select from sms_fallbacks where status in ('WAITING', 'SCHEDULED')`)
    if (!isFull || kills % 10 === 0) say(`${kills} kills: ${rowCount} SMS left, ${held.length} of them were being submitted`)
  }
  return underWay
}

/** By phone: the numbers of the parts that the network took; 1 where the SMS has one part. */
async function readParts(): Promise<Map<string, number[]>> {
  const parts = (await readEntries(simulator)).filter(({ kind }) => kind === 'sms-part')
  const byPhone = Map.groupBy(parts, ({ phone }) => phone)
  return new Map([...byPhone].map(([phone, entries]) => [phone, entries.map(({ detail }) => Number(detail?.number ?? 1))]))
}

const FINAL = ['DELIVERED', 'FAILED']

test(`kill -9 of the worker in a loop while ${MESSAGES} messages fall back to SMS: nobody gets one twice, and what is not known to be sent says so`, async () => {
  const [, underWay] = await Promise.all([acceptAll(), killWorkers()])
  await startNode(env, 'delivery')
  await until(
    'all are final',
    async () => {
      const { rowCount } = await pool.query('select from sms_fallbacks where status <> all ($1) limit 1', [FINAL])
      return rowCount === 0
    },
    TIMEOUT_MS,
  )
  const parts = await readParts()
  assert.equal([...parts.keys()].filter((phone) => !messages.some((message) => message.phone === phone)).length, 0)
  const endings = { delivered: 0, unknown: 0, arrived: 0 }
  await inParallel(messages, 20, async ({ messageId, phone, parts: total }) => {
    const { body } = await caller.read(messageId)
    const had = parts.get(phone) ?? []
    const { status, reason } = body.smsFallback
    const told = JSON.stringify({ messageId, phone, had, status, reason })
    assert.equal(body.status, 'FAILED', told)
    assert.equal(new Set(had).size, had.length, `a part came twice: ${told}`)
    if (status === 'DELIVERED') {
      assert.equal(had.length, total, `not all of it was submitted: ${told}`)
      endings.delivered += 1
    } else {
      assert.deepEqual([status, reason], ['FAILED', 'OUTCOME_UNKNOWN'], told)
      assert.ok(underWay.has(messageId), `nobody was killed while it was under way: ${told}`)
      endings.unknown += 1
      if (had.length === total) endings.arrived += 1
    }
  })
  assert.ok(underWay.size > 0, 'no worker was killed in the midst of anything')
  assert.ok((await assertAllCounted(pool)) > 0)
  const { delivered, unknown, arrived } = endings
  say(
    `${delivered} delivered once; of ${underWay.size} that were under way at a kill ${unknown} are not known, ${arrived} of which have arrived`,
  )
})
