import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Registry } from 'prom-client'
import type { Reach } from '../../src/carriers/carrier.ts'
import { createGoogleRbm } from '../../src/carriers/google-rbm/carrier.ts'
import { installationSecret } from '../../src/db/secrets.ts'
import { storeCapabilities } from '../../src/delivery/capabilities.ts'
import type { Entry } from '../../src/delivery/claim.ts'
import { createRoute } from '../../src/delivery/look-up.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { readClaimed } from '../../src/delivery/read-claimed.ts'
import { applyRetention } from '../../src/delivery/retention.ts'
import { erasePerson } from '../../src/privacy/erase.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { erased } from '../support/erased.ts'
import { keyring } from '../support/keyring.ts'
import { echo, failure, startNetwork } from '../support/network.ts'
import { until } from '../support/until.ts'
import { nextPhone } from './sms/support.ts'
import { createReceiver, createSender, queueMessages, readAll, receipt, type Sender, statusOf } from './support.ts'
import { CARRIER, type CarrierOptions, claimNow, createCarrier, createHold, logger, makeDue, record, startWorker } from './worker.ts'

// The look-ups of the send step, with a network that a test controls.

const { url, hotPool: pool } = await createTestDatabase({ uncounted: 'some messages are moved by hand' })

/** Queues messages with the routing `capability`, and returns their ids and numbers in due order. */
async function queueRouted(sender: Sender, recipients: string[]): Promise<{ messageId: string; recipient: string }[]> {
  // Not due before they have their routing.
  const ids = await queueMessages(pool, sender, { count: recipients.length, dueInMs: 3_600_000 })
  await pool.query(
    `update messages m set recipient = r.phone, routing = 'capability' from unnest($1::uuid[], $2::text[]) as r (id, phone) where m.id = r.id`,
    [ids, recipients],
  )
  await pool.query(`update queue set due_at = due_at - interval '1 hour' where message_id = any ($1)`, [ids])
  return ids.map((messageId, index) => ({ messageId, recipient: recipients[index] as string }))
}

async function queueOne(sender: Sender, recipient = nextPhone()): Promise<string> {
  return (await queueRouted(sender, [recipient]))[0]?.messageId as string
}

const reach = (recipient: string, reachable: boolean | undefined): Reach => ({
  recipient,
  reachable,
  features: undefined,
  checkedAt: new Date(),
})

type Lookup = { agentId: string; recipients: string[] }

/** A network on which these numbers have no RCS. `lookUps`: the numbers of each look-up, in order. */
function createNetwork(withoutRcs: (phone: string) => boolean, options: CarrierOptions = {}) {
  const lookUps: Lookup[] = []
  const carrier = createCarrier({
    reach: async (agentId, recipients) => {
      lookUps.push({ agentId, recipients })
      return recipients.map((recipient) => reach(recipient, !withoutRcs(recipient)))
    },
    ...options,
  })
  return { carrier, lookUps, seenIds: () => carrier.seen.map(({ messageId }) => messageId) }
}

const untilOver = (ids: string[]) =>
  until('all are sent or failed', async () => {
    const { rows } = await pool.query('select from messages where id = any ($1) and status in ($2, $3)', [ids, 'SENT', 'FAILED'])
    return rows.length === ids.length
  })

async function setKnown({ agentId }: Sender, phone: string, fields: { reachable: boolean; age?: string; carrier?: string }): Promise<void> {
  const { reachable, age = '0', carrier = CARRIER } = fields
  await pool.query(`insert into capabilities values ($1, $2, $3, $4, now() - $5::interval)`, [phone, agentId, carrier, reachable, age])
}

async function known({ agentId }: Sender, phone: string): Promise<boolean | undefined> {
  const { rows } = await pool.query<{ reachable: boolean }>('select reachable from capabilities where phone = $1 and agent_id = $2', [
    phone,
    agentId,
  ])
  return rows[0]?.reachable
}

/** Fails unless both lists have the same texts, in any order. */
function assertSame(actual: string[], expected: string[]): void {
  assert.deepEqual(Map.groupBy(actual, String), Map.groupBy(expected, String))
}

const half = (phone: string) => Number(phone.at(-1)) % 2 === 0

describe('a worker', () => {
  test('asks about the next messages of the lane in one look-up, and sends nothing to numbers without RCS', async (t) => {
    const sender = await createSender(pool)
    const messages = await queueRouted(sender, Array.from({ length: 200 }, nextPhone))
    const { carrier, lookUps, seenIds } = createNetwork(half, { concurrency: 4 })
    startWorker(t, url, carrier)
    await untilOver(messages.map(({ messageId }) => messageId))
    const reachable = messages.filter(({ recipient }) => !half(recipient)).map(({ messageId }) => messageId)
    assertSame(seenIds(), reachable)
    assert.equal(lookUps.length, 1)
    assert.deepEqual(new Set(lookUps[0]?.recipients), new Set(messages.map(({ recipient }) => recipient)))
  })

  test('asks nothing about messages with the routing attempt, or about what was looked up before', async (t) => {
    const sender = await createSender(pool)
    const [one, two] = [nextPhone(), nextPhone()]
    await setKnown(sender, one, { reachable: false })
    await setKnown(sender, two, { reachable: true })
    const routed = await queueRouted(sender, [one, two])
    const others = await queueMessages(pool, sender, { count: 5 })
    const { carrier, lookUps, seenIds } = createNetwork(() => true)
    startWorker(t, url, carrier)
    await untilOver([...others, ...routed.map(({ messageId }) => messageId)])
    assertSame(seenIds(), [...others, routed[1]?.messageId as string])
    assert.deepEqual(lookUps, [])
  })

  test('asks again after 24 hours, or if the agent has moved to another network', async (t) => {
    const sender = await createSender(pool)
    const [young, old, elsewhere] = [nextPhone(), nextPhone(), nextPhone()]
    await setKnown(sender, young, { reachable: true, age: '23:59' })
    await setKnown(sender, old, { reachable: false, age: '24:00' })
    await setKnown(sender, elsewhere, { reachable: false, carrier: 'another' })
    const messages = await queueRouted(sender, [young, old, elsewhere])
    const ids = messages.map(({ messageId }) => messageId)
    const { carrier, lookUps, seenIds } = createNetwork(() => false)
    startWorker(t, url, carrier)
    await untilOver(ids)
    assertSame(seenIds(), ids)
    assert.equal(lookUps.length, 1)
    assertSame(lookUps[0]?.recipients ?? [], [old, elsewhere])
    assert.deepEqual([await known(sender, old), await known(sender, elsewhere)], [true, true])
  })

  test('shares the results of another worker, and two workers at once send every message once', async (t) => {
    const sender = await createSender(pool)
    const messages = await queueRouted(sender, Array.from({ length: 300 }, nextPhone))
    const networks = [createNetwork(half, { concurrency: 10 }), createNetwork(half, { concurrency: 10 })]
    for (const { carrier } of networks) startWorker(t, url, carrier)
    await untilOver(messages.map(({ messageId }) => messageId))
    const reachable = messages.filter(({ recipient }) => !half(recipient)).map(({ messageId }) => messageId)
    assertSame(
      networks.flatMap(({ seenIds }) => seenIds()),
      reachable,
    )
    assert.ok(networks.every(({ lookUps }) => lookUps.length <= 1))
  })

  test('asks about each number for each agent', async (t) => {
    const [one, two] = [await createSender(pool), await createSender(pool)]
    const phone = nextPhone()
    const ids = [await queueOne(one, phone), await queueOne(two, phone)]
    const { carrier, lookUps } = createNetwork(() => false)
    startWorker(t, url, carrier)
    await untilOver(ids)
    assertSame(
      lookUps.map(({ agentId }) => agentId),
      [one.agentId, two.agentId],
    )
  })

  test('sends a message by attempt that another worker may have sent before it died', async (t) => {
    const sender = await createSender(pool)
    const phone = nextPhone()
    const messageId = await queueOne(sender, phone)
    // A worker claimed it, stored the result of the look-up, and was killed.
    await claimNow(pool)
    await setKnown(sender, phone, { reachable: false })
    await makeDue(pool, [messageId])
    const { carrier, lookUps, seenIds } = createNetwork(() => true)
    startWorker(t, url, carrier)
    await untilOver([messageId])
    assert.deepEqual([seenIds(), lookUps, await statusOf(pool, messageId)], [[messageId], [], 'SENT'])
  })

  test('takes a new slot of the rate if a look-up took longer than the wait for the slot', async () => {
    const sender = await createSender(pool)
    const [message] = await queueRouted(sender, [nextPhone()])
    const [entry] = (await claimNow(pool)).entries.filter(({ messageId }) => messageId === message?.messageId)
    const { carrier, lookUps } = createNetwork(() => false)
    const stopping = new AbortController().signal
    const route = createRoute({ pool, carrier, erased, logger, metrics: createDeliveryMetrics(new Registry()), stopping })
    const routeAt = async (slotAt: number) => {
      const [claimed] = await readClaimed(pool, [entry as Entry], erased)
      return await route({ ...(entry as Entry), slotAt }, claimed)
    }
    assert.deepEqual(await routeAt(performance.now()), { is: 'not-tried', afterMs: 0 })
    assert.deepEqual(await routeAt(performance.now()), undefined)
    assert.equal(lookUps.length, 1)
  })

  test('keeps the rate of the network', async (t) => {
    const sender = await createSender(pool)
    const messages = await queueRouted(sender, Array.from({ length: 8 }, nextPhone))
    const { carrier, lookUps, seenIds } = createNetwork(() => false, { messagesPerSecond: 100 })
    startWorker(t, url, carrier)
    const ids = messages.map(({ messageId }) => messageId)
    await untilOver(ids)
    assertSame(seenIds(), ids)
    assert.equal(lookUps.length, 1)
  })
})

describe('a message is attempted', () => {
  const cases: [what: string, reach: (recipients: string[]) => Promise<Reach[]>][] = [
    ['the network does not say, or not in time', async (recipients) => recipients.map((recipient) => reach(recipient, undefined))],
    ['the carrier has no look-up', async () => []],
    ['the look-up fails', async () => Promise.reject(new Error('a fault'))],
    ['the network denies the agent', async (all) => all.map((recipient) => ({ ...reach(recipient, false), isDenied: true }))],
  ]
  for (const [what, ask] of cases) {
    test(`if ${what}; the next ones without another look-up`, async (t) => {
      const sender = await createSender(pool)
      let asked = 0
      const { carrier, seenIds } = createNetwork(() => true, {
        reach: async (_agentId, recipients) => {
          asked += 1
          return await ask(recipients)
        },
      })
      const worker = startWorker(t, url, carrier)
      const first = await queueOne(sender)
      worker.wake()
      await untilOver([first])
      const next = await queueOne(sender)
      worker.wake()
      await untilOver([next])
      assert.deepEqual([seenIds(), asked], [[first, next], 1])
    })
  }

  test('if the database fails to store the result', async (t) => {
    const sender = await createSender(pool)
    const owner = ownerOf(pool)
    await owner.query(`alter table capabilities add constraint no_row check (phone = '') not valid`)
    t.after(() => owner.query('alter table capabilities drop constraint no_row'))
    const { carrier, seenIds } = createNetwork(() => true)
    const messageId = await queueOne(sender)
    startWorker(t, url, carrier)
    await untilOver([messageId])
    assert.deepEqual(seenIds(), [messageId])
  })

  test('while the look-ups of another account hang', async (t) => {
    const [slow, other] = [await createSender(pool), await createSender(pool)]
    const { released, release } = createHold(t)
    const { carrier, seenIds } = createNetwork(() => false)
    const { reach: ask } = carrier
    carrier.reach = async (agentId, ...args) => {
      if (agentId === slow.agentId) await released
      return await ask(agentId, ...args)
    }
    const [held, sooner] = [await queueOne(slow), await queueOne(other)]
    startWorker(t, url, carrier)
    await untilOver([sooner])
    assert.deepEqual(seenIds(), [sooner])
    release()
    await untilOver([held])
  })

  for (const [what, respond] of [
    ['exceeds its limit of look-ups', () => failure(429, 'RESOURCE_EXHAUSTED', { 'retry-after': '60' })],
    ['fails', () => failure(500, 'INTERNAL')],
    ['does not respond to look-ups within five seconds', () => undefined],
  ] as const) {
    test(`if RBM ${what}`, async (t) => {
      const sender = await createSender(pool)
      const network = await startNetwork()
      network.respondWith((request) => (request.path.includes('agentMessages') ? echo(request) : respond()))
      const settings = { ...network.settings, name: CARRIER }
      const carrier = createGoogleRbm(settings, { postbackKey: await installationSecret(pool, 'postback', keyring), logger })
      t.after(() => carrier.close())
      const messages = await queueRouted(sender, Array.from({ length: 10 }, nextPhone))
      startWorker(t, url, carrier)
      const ids = messages.map(({ messageId }) => messageId)
      await untilOver(ids)
      for (const id of ids) assert.equal(await statusOf(pool, id), 'SENT')
      assert.ok(network.requests.some(({ path }) => path === '/v1/users:batchGet'))
    })
  }
})

describe('what is known about a number', () => {
  const receive = createReceiver(pool)

  async function sentTo(sender: Sender, phone: string): Promise<string> {
    const [messageId] = (await queueMessages(pool, sender, { recipient: phone })) as [string]
    const entry = (await claimNow(pool)).entries.find((each) => each.messageId === messageId)
    await record(pool, entry as { messageId: string; lease: string }, { is: 'sent' })
    return messageId
  }

  async function checkedAt(phone: string): Promise<string> {
    return (await pool.query<{ at: string }>('select checked_at::text as at from capabilities where phone = $1', [phone])).rows[0]
      ?.at as string
  }

  test('is corrected by a receipt, also if the message has expired, and not by an older one', async () => {
    const sender = await createSender(pool)
    const phone = nextPhone()
    const messageId = await sentTo(sender, phone)
    await setKnown(sender, phone, { reachable: false, age: '-1 minute' })
    await receive([receipt({ messageId, phone })])
    assert.equal(await known(sender, phone), false, 'the look-up was after the delivery')
    await pool.query(`update capabilities set checked_at = now() - interval '1 minute' where phone = $1`, [phone])
    const late = await sentTo(sender, phone)
    await pool.query(`update messages set status = 'EXPIRED', expires_at = now() where id = $1`, [late])
    await receive([receipt({ messageId: late, phone })])
    assert.equal(await known(sender, phone), true)
  })

  test('is confirmed by a receipt after twelve hours, and before that nothing is written', async () => {
    const sender = await createSender(pool)
    const [young, old] = [nextPhone(), nextPhone()]
    await setKnown(sender, young, { reachable: true, age: '11:59' })
    await setKnown(sender, old, { reachable: true, age: '12:01' })
    const [youngAt, oldAt] = [await checkedAt(young), await checkedAt(old)]
    for (const phone of [young, old]) await receive([receipt({ messageId: await sentTo(sender, phone), phone })])
    assert.equal(await checkedAt(young), youngAt)
    assert.notEqual(await checkedAt(old), oldAt)
  })

  for (const [what, detail, expected] of [
    ['is corrected by a refusal of the number', { hasNoRcs: true }, false],
    ['stays after the network has denied the agent', {}, true],
  ] as const) {
    test(what, async () => {
      const sender = await createSender(pool)
      const phone = nextPhone()
      await setKnown(sender, phone, { reachable: true, age: '1 minute' })
      const messageId = await queueOne(sender, phone)
      const entry = (await claimNow(pool)).entries.find((each) => each.messageId === messageId)
      await record(pool, entry as { messageId: string; lease: string }, { is: 'failed', reason: 'NOT_REACHABLE', detail: '', ...detail })
      assert.equal(await known(sender, phone), expected)
    })
  }

  test('is not confirmed by the messages that it failed', async (t) => {
    const sender = await createSender(pool)
    const phone = nextPhone()
    await setKnown(sender, phone, { reachable: false, age: '23:00' })
    const before = await checkedAt(phone)
    const messageId = await queueOne(sender, phone)
    startWorker(t, url, createNetwork(() => false).carrier)
    await untilOver([messageId])
    assert.deepEqual([(await readAll(pool, messageId)).message.failure_reason, await checkedAt(phone)], ['NOT_REACHABLE', before])
  })

  test('is kept if it is newer than the question to the network', async () => {
    const sender = await createSender(pool)
    const [older, newer] = [nextPhone(), nextPhone()]
    await setKnown(sender, older, { reachable: true, age: '1 minute' })
    await setKnown(sender, newer, { reachable: true, age: '1 second' })
    const asked = { agentId: sender.agentId, accountId: sender.accountId, carrier: CARRIER, askedMsAgo: 30_000 }
    await storeCapabilities(
      pool,
      erased,
      asked,
      [older, newer].map((phone) => ({ phone, reachable: false })),
    )
    assert.deepEqual([await known(sender, older), await known(sender, newer)], [false, true])
  })

  test('is deleted after 24 hours', async () => {
    const sender = await createSender(pool)
    const [young, old] = [nextPhone(), nextPhone()]
    await setKnown(sender, young, { reachable: true, age: '23:59' })
    await setKnown(sender, old, { reachable: true, age: '24:01' })
    await applyRetention(pool)
    assert.deepEqual([await known(sender, young), await known(sender, old)], [true, undefined])
  })
})

describe('an erased person', () => {
  /** Erases a number as an operator does. */
  const erase = (phone: string, sender?: Sender) => erasePerson(pool, erased, { phone, ...(sender && { accountId: sender.accountId }) })

  test('is not asked about, neither for a message to them nor ahead', async (t) => {
    const sender = await createSender(pool)
    const [one, person, other] = [nextPhone(), nextPhone(), nextPhone()]
    await erase(person)
    const messages = await queueRouted(sender, [one, other, person])
    const { carrier, lookUps } = createNetwork(() => false, { concurrency: 1 })
    startWorker(t, url, carrier)
    await untilOver(messages.map(({ messageId }) => messageId))
    assertSame(
      lookUps.flatMap(({ recipients }) => recipients),
      [one, other],
    )
  })

  test('loses what is known about the number, also in one account unless others have the agent', async () => {
    const [one, two] = [await createSender(pool), await createSender(pool)]
    const phone = nextPhone()
    await setKnown(one, phone, { reachable: true })
    await setKnown(two, phone, { reachable: true })
    assert.equal((await erase(phone, one)).capabilities, 1)
    assert.deepEqual([await known(one, phone), await known(two, phone)], [undefined, true])
    assert.equal((await erase(phone)).capabilities, 1)
    assert.equal(await known(two, phone), undefined)
  })

  test('is left out of results that come after the erasure', async () => {
    const sender = await createSender(pool)
    const [person, other] = [nextPhone(), nextPhone()]
    await erase(person, sender)
    const asked = { agentId: sender.agentId, accountId: sender.accountId, carrier: CARRIER, askedMsAgo: 0 }
    await storeCapabilities(
      pool,
      erased,
      asked,
      [person, other].map((phone) => ({ phone, reachable: true })),
    )
    assert.deepEqual([await known(sender, person), await known(sender, other)], [undefined, true])
  })
})
