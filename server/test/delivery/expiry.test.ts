import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, type TestContext, test } from 'node:test'
import { Registry } from 'prom-client'
import type { RcsCarrier } from '../../src/carriers/carrier.ts'
import { createGoogleRbm } from '../../src/carriers/google-rbm/carrier.ts'
import { installationSecret } from '../../src/db/secrets.ts'
import { startDelivery } from '../../src/delivery/delivery.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { recordResults } from '../../src/delivery/results.ts'
import { recordChanges } from '../../src/events/changes.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'
import {
  createCarrier,
  createSender,
  kindsOf,
  logger,
  PAGE_TIME,
  queueMessage,
  queueMessages,
  readAll,
  sent,
  startWorker,
  statusOf,
  whileOthersCommit,
} from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()
const [sender, crowd] = [await createSender(pool), await createSender(pool)]
const simulator = await startSimulator()

beforeEach(async () => {
  await pool.query('truncate queue, expiries')
})

/** Moves its expiry into the past, everywhere. */
async function runOut(messageId: string): Promise<void> {
  for (const [table, id] of Object.entries({ messages: 'id', queue: 'message_id', expiries: 'message_id' })) {
    await pool.query(`update ${table} set expires_at = now() - interval '1 millisecond' where ${id} = $1`, [messageId])
  }
}

async function sentAndExpired(): Promise<string> {
  const messageId = await queueMessage(pool, sender, { expiresInMs: -1 })
  const send = `with sent as (update messages set status = 'SENT', sent_at = accepted_at where id = $1 returning *)`
  await pool.query(`${send}, ${recordChanges('sent', [{ kind: 'message.sent', at: 'sent_at' }])} select`, [messageId])
  await pool.query('delete from queue where message_id = $1', [messageId])
  await expireDue(pool)
  return messageId
}

/** Everything that moves messages, as a process has it. */
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
    announce: () => {},
  })
  t.after(() => delivery.stop())
}

test('never before its time, and within two seconds after it, though 5,000 messages wait to be sent and 3,000 run out at once', async (t) => {
  await queueMessages(pool, crowd, { count: 5_000 })
  const slow = async (message: { messageId: string }) => {
    await new Promise((resolve) => setTimeout(resolve, 10))
    return sent(message)
  }
  const carrier = createCarrier({ concurrency: 8, onSend: slow })
  deliver(t, carrier)
  const ids = await queueMessages(pool, sender, { count: 3_000, expiresInMs: 2_000, dueInMs: 60_000 })
  await until('none of them is left to expire', async () => {
    return (await pool.query(`select from expiries where expires_at < now() + interval '1 minute' limit 1`)).rowCount === 0
  })
  const { rows } = await pool.query<{ count: number; earliest: number; latest: number; left: number }>(
    `select count(*) as count, (select count(*) from queue where account_id = $2) as left,
       min(extract(epoch from ${PAGE_TIME} - occurred_at))::float8 as earliest, max(extract(epoch from ${PAGE_TIME} - occurred_at))::float8 as latest
     from ${LOGGED_EVENTS} as e where kind = 'message.expired' and subject_id = any ($1)`,
    [ids, crowd.accountId],
  )
  const { count, earliest, latest, left } = rows[0] as (typeof rows)[number]
  t.diagnostic(`marked ${earliest} to ${latest} s after their time, beside ${left} that wait`)
  assert.equal(count, ids.length)
  assert.ok(earliest >= 0 && latest < 2, `${earliest} to ${latest}`)
  assert.ok(left > 2_000, 'there was still a backlog')
  const asked = new Set(ids)
  assert.equal(carrier.seen.filter(({ messageId }) => asked.has(messageId)).length, 0)
  await pool.query('delete from queue where lease is null')
})

describe('a message that ran out', () => {
  test('while it was queued is never sent, and there is nothing to take back', async (t) => {
    const messageId = await queueMessage(pool, sender, { expiresInMs: -1 })
    const other = await queueMessage(pool, sender)
    const carrier = createCarrier()
    deliver(t, carrier)
    await until('it is marked', async () => (await statusOf(pool, messageId)) === 'EXPIRED')
    await until('the other one is sent', async () => (await statusOf(pool, other)) === 'SENT')
    const { queue, expiry, events } = await readAll(pool, messageId)
    assert.deepEqual([queue, expiry, events.map(({ kind }) => kind)], [null, null, ['expired']])
    assert.deepEqual(
      carrier.seen.map((seen) => seen.messageId),
      [other],
    )
  })

  test('once it was sent is taken back at the network', async (t) => {
    const recipient = '+48500100204'
    const messageId = await queueMessage(pool, sender, { recipient })
    const carrier = createGoogleRbm(simulator.rcs, { postbackKey: await installationSecret(pool, 'postback', keyring), logger })
    t.after(() => carrier.close())
    deliver(t, carrier)
    await until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT')
    await runOut(messageId)
    await until('the network has it no more', async () => {
      const { entries } = await simulator.ask('ledger')
      return entries.some((entry: any) => entry.kind === 'revoked' && entry.messageId === messageId)
    })
    await until('that is written down', async () => (await kindsOf(pool, messageId)).includes('revoke-asked'))
    const { message, queue, expiry } = await readAll(pool, messageId)
    assert.deepEqual([message.status, queue, expiry], ['EXPIRED', null, null])
    assert.deepEqual(await kindsOf(pool, messageId), ['sent', 'expired', 'revoke-asked'])
  })

  test('while it waited to be tried again may be at the network, and is taken back at once', async () => {
    const messageId = await queueMessage(pool, sender, { attempts: 2, dueInMs: 60_000, expiresInMs: -1 })
    await expireDue(pool)
    const { queue } = await readAll(pool, messageId)
    assert.deepEqual([queue.task, queue.attempts, queue.lease], ['revoke', 0, null])
    assert.ok(Date.parse(queue.due_at) <= Date.now())
  })

  test('during a call stays expired whatever the call brings, and is taken back when the call has surely ended', async (t) => {
    const messageId = await queueMessage(pool, sender)
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    const carrier = createCarrier({
      onSend: async (message) => {
        await over
        return sent(message)
      },
    })
    const { registry, wake } = startWorker(t, url, carrier)
    await until('the call is under way', () => carrier.seen.length === 1)
    const { leased_until: leaseEndsAt } = (await readAll(pool, messageId)).queue
    await runOut(messageId)
    await expireDue(pool)
    const { queue } = await readAll(pool, messageId)
    assert.deepEqual([queue.task, queue.lease, queue.due_at], ['revoke', null, leaseEndsAt])
    end()
    await until('its result is refused', async () =>
      (await registry.metrics()).includes('herald_results_refused_total{carrier="simulator"} 1'),
    )
    const { message } = await readAll(pool, messageId)
    assert.deepEqual([message.status, message.sent_at], ['EXPIRED', null])
    assert.equal(carrier.seen.length, 1)
    await pool.query('update queue set due_at = now(), leased_until = now() where message_id = $1', [messageId])
    wake()
    await until('it is taken back', async () => (await readAll(pool, messageId)).queue === null)
    assert.deepEqual(
      carrier.seen.map(({ task }) => task),
      ['send', 'revoke'],
    )
    assert.deepEqual(await kindsOf(pool, messageId), ['expired', 'revoke-asked'])
  })

  test('is asked back ten times at the most, and then left to the network, which knows its expiry', async (t) => {
    const messageId = await sentAndExpired()
    const carrier = createCarrier({ onRevoke: () => ({ is: 'retry', afterMs: 0, detail: '503' }) })
    const { wake } = startWorker(t, url, carrier)
    await until('it is given up', async () => {
      await pool.query('update queue set due_at = now() where lease is null')
      wake()
      return (await readAll(pool, messageId)).queue === null
    })
    assert.equal(carrier.seen.length, 10)
    const { message, events } = await readAll(pool, messageId)
    assert.equal(message.status, 'EXPIRED')
    const kinds = events.map(({ kind }) => kind)
    assert.deepEqual(kinds, ['sent', 'expired', ...Array.from({ length: 9 }, () => 'attempt-failed'), 'revoke-refused'])
    assert.equal(events.at(-1).detail, '503')
  })

  test('and that the network no longer has is not asked back again', async (t) => {
    const messageId = await sentAndExpired()
    startWorker(t, url, createCarrier({ onRevoke: () => ({ is: 'too-late' }) }))
    await until('nothing is left to do', async () => (await readAll(pool, messageId)).queue === null)
    assert.deepEqual(await kindsOf(pool, messageId), ['sent', 'expired', 'revoke-refused'])
  })
})

test('what runs out while its result is being written is marked and taken back once that is committed', async () => {
  for (const [table, id] of Object.entries({ queue: 'message_id', messages: 'id' })) {
    const messageId = await queueMessage(pool, sender, { attempts: 1, expiresInMs: -1 })
    await whileOthersCommit(
      pool,
      (tx) => tx.query(`update ${table} set expires_at = expires_at where ${id} = $1`, [messageId]),
      () => expireDue(pool),
    )
    const { message, queue, expiry } = await readAll(pool, messageId)
    assert.deepEqual([message.status, queue.task, expiry], ['EXPIRED', 'revoke', null], `after waiting for ${table}`)
  }
})

test('what is claimed at the moment it runs out is taken back, and its result refused', async () => {
  const messageId = await queueMessage(pool, sender)
  const lease = randomUUID()
  await runOut(messageId)
  // A claim that began before, and commits while the expiry waits for the entry.
  const claimed = 'update queue set lease = $2, attempts = 1, claimed = true where message_id = $1'
  await whileOthersCommit(
    pool,
    (tx) => tx.query(claimed, [messageId, lease]),
    () => expireDue(pool),
  )
  const { message, queue, expiry } = await readAll(pool, messageId)
  assert.deepEqual([message.status, queue.task, queue.lease, expiry], ['EXPIRED', 'revoke', null, null])
  assert.deepEqual(await recordResults(pool, [{ messageId, lease, is: 'sent' }]), [false])
})

test('of a month that has been dropped, nothing is left, and what else ran out is marked', async () => {
  const messageId = await queueMessage(pool, sender, { expiresInMs: -1 })
  const dropped = '00000000-0000-7000-8000-000000000001'
  await pool.query(`insert into expiries values ($1, now() - interval '1 hour')`, [dropped])
  await expireDue(pool)
  assert.equal(await statusOf(pool, messageId), 'EXPIRED')
  assert.equal((await pool.query('select from expiries')).rowCount, 0)
})

test('two that mark at once mark each message once', async () => {
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
