import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Registry } from 'prom-client'
import type { RcsCarrier } from '../../src/carriers/carrier.ts'
import { createGoogleRbm } from '../../src/carriers/google-rbm/carrier.ts'
import { installationSecret } from '../../src/db/secrets.ts'
import { startDelivery } from '../../src/delivery/delivery.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { erased } from '../support/erased.ts'
import { moveExpiry } from '../support/expiring.ts'
import { keyring } from '../support/keyring.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { startSimulator } from '../support/simulator.ts'
import { watchStalls } from '../support/stalls.ts'
import { until } from '../support/until.ts'
import { whileOthersCommit } from './locks.ts'
import { createSender, kinds, kindsOf, PAGE_TIME, queueMessage, queueMessages, readAll, sentMessage, statusOf } from './support.ts'
import { createCarrier, createHold, logger, makeDue, record, sent, startWorker } from './worker.ts'

const { url, hotPool: pool } = await createTestDatabase()
const [sender, crowd] = [await createSender(pool), await createSender(pool)]
const simulator = await startSimulator()

beforeEach(async () => {
  await ownerOf(pool).query('truncate queue, expiries')
})

async function sentAndExpired(): Promise<string> {
  const messageId = await sentMessage(pool, sender)
  await moveExpiry(pool, [messageId])
  await expireDue(pool)
  return messageId
}

/** Starts all loops of delivery, as a process does. */
function deliver(t: TestContext, carrier: RcsCarrier): void {
  const carriers = { rcs: new Map([[carrier.name, carrier]]), sms: undefined, close: async () => {} }
  const links = { key: Buffer.alloc(32), publicUrl: 'http://localhost' }
  const delivery = startDelivery({
    pool,
    hotPool: pool,
    carriers,
    logger,
    metrics: createDeliveryMetrics(new Registry()),
    links,
    erased,
    announce: () => {},
  })
  t.after(() => delivery.stop())
}

test('messages expire at their time and within two seconds after it, though 5,000 wait to be sent and 3,000 expire together', async (t) => {
  await queueMessages(pool, crowd, { count: 5_000 })
  const carrier = createCarrier({ concurrency: 8, onSend: (message) => sleep(10, sent(message)) })
  deliver(t, carrier)
  const stalls = watchStalls(pool)
  const ids = await queueMessages(pool, sender, { count: 3_000, expiresInMs: 2_000, dueInMs: 60_000 })
  await until('all of them have expired', async () => {
    return (await pool.query(`select from expiries where expires_at < now() + interval '1 minute' limit 1`)).rowCount === 0
  })
  const lateness = `extract(epoch from ${PAGE_TIME} - occurred_at)`
  const { rows } = await pool.query<{ count: number; earliest: number; latest: number; left: number }>(
    `select count(*), (select count(*) from queue where account_id = $2) as left, min(${lateness})::float8 as earliest, max(${lateness})::float8 as latest
     from ${LOGGED_EVENTS} as e where kind = 'message.expired' and subject_id = any ($1)`,
    [ids, crowd.accountId],
  )
  const { count, earliest, latest, left } = rows[0] as (typeof rows)[number]
  // Three batches of about ten steps each: a machine that stands still delays each of them.
  const allowed = 2 + (30 * (await stalls.end())) / 1_000
  t.diagnostic(`marked ${earliest} to ${latest} s after their time, beside ${left} that wait; ${allowed} s are allowed`)
  assert.equal(count, ids.length)
  assert.ok(earliest >= 0 && latest < allowed, `${earliest} to ${latest}`)
  assert.ok(left > 0, 'there was still a backlog')
  const expired = new Set(ids)
  assert.ok(!carrier.seen.some(({ messageId }) => expired.has(messageId)))
  await pool.query('delete from queue where lease is null')
})

describe('a message that expires', () => {
  test('in the queue is neither sent nor revoked', async (t) => {
    const messageId = await queueMessage(pool, sender, { expiresInMs: -1 })
    const other = await queueMessage(pool, sender)
    const carrier = createCarrier()
    deliver(t, carrier)
    await until('it has expired', async () => (await statusOf(pool, messageId)) === 'EXPIRED')
    await until('the other message is sent', async () => (await statusOf(pool, other)) === 'SENT')
    const { queue, expiry, events } = await readAll(pool, messageId)
    assert.deepEqual([queue, expiry, kinds(events)], [null, null, ['expired']])
    assert.deepEqual(
      carrier.seen.map((seen) => seen.messageId),
      [other],
    )
  })

  test('at the network is revoked there', async (t) => {
    const messageId = await queueMessage(pool, sender, { recipient: '+48500100204' })
    const carrier = createGoogleRbm(simulator.rcs, { postbackKey: await installationSecret(pool, 'postback', keyring), logger })
    t.after(() => carrier.close())
    deliver(t, carrier)
    await until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT')
    await moveExpiry(pool, [messageId])
    await until('it is revoked at the network', async () => {
      const { entries } = await simulator.ask('ledger')
      return entries.some((entry: any) => entry.kind === 'revoked' && entry.messageId === messageId)
    })
    await until('that is recorded', async () => (await kindsOf(pool, messageId)).includes('revoke-asked'))
    const { message, queue, expiry, events } = await readAll(pool, messageId)
    assert.deepEqual([message.status, queue, expiry, kinds(events)], ['EXPIRED', null, null, ['sent', 'expired', 'revoke-asked']])
  })

  test('before a retry is revoked at once, since the network may have it', async () => {
    const messageId = await queueMessage(pool, sender, { attempts: 2, dueInMs: 60_000, expiresInMs: -1 })
    await expireDue(pool)
    const { queue } = await readAll(pool, messageId)
    assert.deepEqual([queue.task, queue.attempts, queue.lease], ['revoke', 0, null])
    assert.ok(Date.parse(queue.due_at) <= Date.now())
  })

  test('during a call stays expired whatever the result, and is revoked when the lease has ended', async (t) => {
    const messageId = await queueMessage(pool, sender)
    const { released, release } = createHold(t)
    // The lease lasts longer than the longest call, which is longer than this test may take.
    const carrier = createCarrier({ longestCallMs: 600_000, onSend: (message) => released.then(() => sent(message)) })
    const { registry, wake } = startWorker(t, url, carrier)
    await until('the call runs', () => carrier.seen.length === 1)
    const { leased_until: leaseEndsAt } = (await readAll(pool, messageId)).queue
    await moveExpiry(pool, [messageId])
    await expireDue(pool)
    const { queue } = await readAll(pool, messageId)
    assert.deepEqual([queue.task, queue.lease, queue.due_at], ['revoke', null, leaseEndsAt])
    release()
    const refused = 'herald_results_refused_total{carrier="simulator"} 1'
    await until('its result is refused', async () => (await registry.metrics()).includes(refused))
    const { message } = await readAll(pool, messageId)
    assert.deepEqual([message.status, message.sent_at], ['EXPIRED', null])
    await makeDue(pool, [messageId])
    wake()
    await until('it is revoked', async () => (await readAll(pool, messageId)).queue === null)
    assert.deepEqual(
      carrier.seen.map(({ task }) => task),
      ['send', 'revoke'],
    )
    assert.deepEqual(await kindsOf(pool, messageId), ['expired', 'revoke-asked'])
  })

  for (const [response, calls] of [
    [{ is: 'retry', afterMs: 0, detail: '503' }, 10],
    [{ is: 'too-late' }, 1],
  ] as const) {
    test(`is revoked in at most ${calls} attempts if the response is ${response.is}`, async (t) => {
      const messageId = await sentAndExpired()
      const carrier = createCarrier({ onRevoke: () => response })
      const { wake } = startWorker(t, url, carrier)
      await until('the revocation has ended', async () => {
        await pool.query('update queue set due_at = now() where lease is null')
        wake()
        return (await readAll(pool, messageId)).queue === null
      })
      const { message, events } = await readAll(pool, messageId)
      assert.deepEqual([message.status, carrier.seen.length], ['EXPIRED', calls])
      assert.deepEqual(kinds(events), ['sent', 'expired', ...Array(calls - 1).fill('attempt-failed'), 'revoke-refused'])
      if ('detail' in response) assert.equal(events.at(-1).detail, '503')
    })
  }

  for (const [table, id] of Object.entries({ queue: 'message_id', messages: 'id' })) {
    test(`while its result is recorded is marked and revoked after a wait for a lock on ${table}`, async () => {
      const messageId = await queueMessage(pool, sender, { attempts: 1, expiresInMs: -1 })
      const touch = `update ${table} set expires_at = expires_at where ${id} = $1`
      await whileOthersCommit(
        pool,
        (tx) => tx.query(touch, [messageId]),
        () => expireDue(pool),
      )
      const { message, queue, expiry } = await readAll(pool, messageId)
      assert.deepEqual([message.status, queue.task, expiry], ['EXPIRED', 'revoke', null])
    })
  }

  test('while it is claimed is revoked, and its result refused', async () => {
    const messageId = await queueMessage(pool, sender)
    const lease = randomUUID()
    await moveExpiry(pool, [messageId])
    // A claim that began before, and commits while the expiry waits for the entry.
    const claimed = 'update queue set lease = $2, attempts = 1, claimed = true where message_id = $1'
    await whileOthersCommit(
      pool,
      (tx) => tx.query(claimed, [messageId, lease]),
      () => expireDue(pool),
    )
    const { message, queue, expiry } = await readAll(pool, messageId)
    assert.deepEqual([message.status, queue.task, queue.lease, expiry], ['EXPIRED', 'revoke', null, null])
    assert.equal(await record(pool, { messageId, lease }, { is: 'sent' }), false)
  })

  test('is marked even if another message of the batch was dropped with its month', async () => {
    const messageId = await queueMessage(pool, sender, { expiresInMs: -1 })
    const dropped = '00000000-0000-7000-8000-000000000001'
    await pool.query(`insert into expiries values ($1, now() - interval '1 hour')`, [dropped])
    await expireDue(pool)
    assert.equal(await statusOf(pool, messageId), 'EXPIRED')
    assert.equal((await pool.query('select from expiries')).rowCount, 0)
  })

  test('is marked once by concurrent workers', async () => {
    const ids = await queueMessages(pool, sender, { count: 1_500, expiresInMs: -1, attempts: 1 })
    let marked = 0
    async function work(): Promise<void> {
      for (let isOver = false; !isOver; ) {
        const { expired } = await expireDue(pool)
        marked += expired
        isOver = (await pool.query('select from expiries limit 1')).rowCount === 0
      }
    }
    await Promise.all([work(), work(), work()])
    assert.equal(marked, ids.length)
    const { rows } = await pool.query<{ events: number; revokes: number }>(
      `select (select count(*) from ${LOGGED_EVENTS} as e where kind = 'message.expired' and subject_id = any ($1)) as events,
         (select count(*) from queue where task = 'revoke') as revokes`,
      [ids],
    )
    assert.deepEqual(rows[0], { events: ids.length, revokes: ids.length })
  })
})
