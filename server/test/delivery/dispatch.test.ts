import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import pg from 'pg'
import { Registry } from 'prom-client'
import { createGoogleRbm } from '../../src/carriers/google-rbm/carrier.ts'
import { installationSecret } from '../../src/db/secrets.ts'
import type { Entry } from '../../src/delivery/claim.ts'
import { expireDue } from '../../src/delivery/expiry.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { createSend } from '../../src/delivery/send.ts'
import { LATEST_BEGIN_MS, retryMs } from '../../src/delivery/worker.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'
import {
  CARRIER,
  createCarrier,
  createReceiver,
  createSender,
  kindsOf,
  logger,
  queueMessage,
  queueMessages,
  readAll,
  receipt,
  sent,
  startWorker,
  statusOf,
} from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()
const [one, two] = [await createSender(pool), await createSender(pool)]
const simulator = await startSimulator()

beforeEach(async () => {
  await pool.query('truncate queue')
})

async function queueRows(): Promise<{ attempts: number; lease: string | null }[]> {
  return (await pool.query('select attempts, lease from queue order by due_at')).rows
}

describe('what could not be sent is tried again', () => {
  test('after a time that doubles up to a minute, with jitter, and never earlier than the network asked', () => {
    for (let attempts = 1; attempts <= 40; attempts += 1) {
      const full = Math.min(60_000, 500 * 2 ** (attempts - 1))
      const waits = Array.from({ length: 200 }, () => retryMs(attempts, 0))
      assert.ok(Math.min(...waits) >= full / 2 && Math.max(...waits) <= full)
      assert.ok(Math.max(...waits) - Math.min(...waits) > full / 4, 'no two workers come back at one moment')
      assert.ok(retryMs(attempts, 120_000) >= 120_000)
    }
  })

  for (const is of ['retry', 'unknown'] as const) {
    test(`and put off for as long as the network asked, where the outcome is ${is}`, async (t) => {
      const messageId = await queueMessage(pool, one)
      startWorker(t, url, createCarrier({ onSend: () => ({ is, afterMs: 90_000, detail: '429' }) }))
      const { queue } = await until('it is put off', async () => {
        const all = await readAll(pool, messageId)
        return all.events.length > 0 ? all : undefined
      })
      assert.deepEqual([queue.lease, queue.attempts], [null, 1])
      const inMs = Date.parse(queue.due_at) - Date.now()
      assert.ok(inMs > 80_000 && inMs < 91_000, `${inMs}`)
    })
  }

  test('if it could not be read, which counts no attempt', async (t) => {
    const messageId = await queueMessage(pool, one)
    // A plain client: the pool's idle-in-transaction timeout (3.5 s) would release the lock too early.
    const blocker = new pg.Client({ connectionString: url })
    await blocker.connect()
    t.after(() => blocker.end())
    await blocker.query('begin; lock table messages in access exclusive mode')
    const carrier = createCarrier()
    startWorker(t, url, carrier)
    await until('it is claimed', async () => (await queueRows())[0]?.lease !== null)
    await until('it is released', async () => (await queueRows())[0]?.lease === null)
    assert.deepEqual([await queueRows(), carrier.seen], [[{ attempts: 0, lease: null }], []])
    await blocker.query('rollback')
    await until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT')
    assert.equal(carrier.seen.length, 1)
  })

  test('until it is sent, by whichever worker, the second wait longer than the first', async (t) => {
    const messageId = await queueMessage(pool, one)
    let tries = 0
    const carrier = createCarrier({
      onSend: (message) => {
        tries += 1
        return tries < 3 ? { is: 'retry', afterMs: 0, detail: '503' } : sent(message)
      },
    })
    startWorker(t, url, carrier)
    await until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT')
    const [first, second, third] = carrier.seen.map(({ at }) => at) as [number, number, number]
    assert.ok(second - first >= 249 && second - first < 1_500, `${second - first}`)
    assert.ok(third - second >= 499 && third - second < 2_500, `${third - second}`)
    assert.deepEqual(await kindsOf(pool, messageId), ['attempt-failed', 'attempt-failed', 'sent'])
  })

  test('where the answer was lost, under the same id: the network has it once', async (t) => {
    const recipient = '+48500100204'
    const messageId = await queueMessage(pool, one, { recipient })
    await simulator.ask('faults', { api: { dropAfter: { count: 1 } } }, 'PUT')
    const carrier = createGoogleRbm(simulator.rcs, { postbackKey: await installationSecret(pool, 'postback', keyring), logger })
    t.after(() => carrier.close())
    startWorker(t, url, carrier)
    await until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT')
    assert.deepEqual(await kindsOf(pool, messageId), ['attempt-failed', 'sent'])
    const { entries } = await simulator.ask('ledger')
    const kinds = entries.filter((entry: any) => entry.messageId === messageId).map(({ kind }: any) => kind)
    assert.deepEqual(kinds, ['accepted', 'repeated'])
    assert.equal((await simulator.ask(`phones/${recipient}`)).messages.length, 1)
  })
})

test('what the network was not asked waits as long as the carrier says, with no attempt counted or noted; running out, it is not taken back', async (t) => {
  const messageId = await queueMessage(pool, one)
  startWorker(t, url, createCarrier({ onSend: () => ({ is: 'not-tried', afterMs: 90_000 }) }))
  const { queue, events } = await until('it is put back', async () => {
    const all = await readAll(pool, messageId)
    return all.queue?.claimed && all.queue.lease === null ? all : undefined
  })
  assert.deepEqual([queue.attempts, events], [0, []])
  const inMs = Date.parse(queue.due_at) - Date.now()
  assert.ok(inMs > 80_000 && inMs < 91_000, `${inMs}`)
  for (const table of ['messages', 'expiries']) {
    await pool.query(`update ${table} set expires_at = now() where ${table === 'messages' ? 'id' : 'message_id'} = $1`, [messageId])
  }
  await expireDue(pool)
  assert.deepEqual([(await readAll(pool, messageId)).queue, await statusOf(pool, messageId)], [null, 'EXPIRED'])
})

describe('a call is not made', () => {
  const carrier = createCarrier()
  const stopping = new AbortController()
  const metrics = createDeliveryMetrics(new Registry())
  const send = createSend({ carrier, metrics, logger, stopping: stopping.signal })
  const content = { type: 'MESSAGE', content: 'Hi' } as const
  const traffic = 'TRANSACTION' as const
  const message = {
    messageId: 'm',
    recipient: '+48500100200',
    content,
    traffic,
    expiresAt: new Date(),
    isOptedOut: false,
    heldBackForMs: 0,
  }
  function entry(fields: Partial<Entry> = {}): Entry {
    const common = { messageId: 'm', accountId: 1, agentId: 'agent', task: 'send', attempts: 1, lease: 'l', turnAt: 0 } as const
    return { ...common, expiresInMs: 60_000, ...fields }
  }

  for (const task of ['send', 'revoke'] as const) {
    test(`that would begin so late that it could outlast its lease: it is put back, if it is still ours: ${task}`, async () => {
      carrier.seen.splice(0)
      const late = performance.now() - LATEST_BEGIN_MS - 1
      assert.deepEqual(await send(entry({ task }), message, late), { is: 'not-tried', afterMs: 0 })
      assert.equal(carrier.seen.length, 0)
      assert.notEqual((await send(entry({ task }), message, performance.now() - LATEST_BEGIN_MS / 2)).is, 'not-tried')
      assert.deepEqual(
        carrier.seen.map((seen) => seen.task),
        [task],
      )
    })
  }

  test('for a message that ran out since it was claimed; taking one back has no such limit', async () => {
    carrier.seen.splice(0)
    assert.deepEqual(await send(entry({ expiresInMs: 100 }), message, performance.now() - 101), { is: 'not-tried', afterMs: 0 })
    assert.deepEqual(carrier.seen, [])
    const verdict = await send(entry({ expiresInMs: -60_000, task: 'revoke' }), message, performance.now())
    assert.deepEqual(verdict, { is: 'revoke-asked', detail: '' })
  })
})

describe('a worker that is stopped', () => {
  test('takes nothing more up, waits for the calls under way, writes what came of them, and leaves no lease', async (t) => {
    for (const sender of [one, two]) await queueMessages(pool, sender, { count: 20 })
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    const carrier = createCarrier({
      concurrency: 4,
      onSend: async (message) => {
        await over
        return sent(message)
      },
    })
    const worker = startWorker(t, url, carrier)
    await until('all calls are under way', () => carrier.seen.length === 4)
    let hasStopped = false
    const stopped = worker.stop().then(() => {
      hasStopped = true
    })
    worker.wake()
    assert.equal((await queueRows()).filter(({ lease }) => lease !== null).length, 4)
    assert.equal(hasStopped, false)
    end()
    await stopped
    assert.equal(carrier.seen.length, 4)
    for (const { messageId } of carrier.seen) assert.equal(await statusOf(pool, messageId), 'SENT')
    const rows = await queueRows()
    assert.deepEqual([rows.length, rows.filter(({ lease }) => lease !== null).length], [36, 0])
  })

  test('puts back what waits for its turn, unsent', async (t) => {
    await queueMessages(pool, one, { count: 10 })
    const carrier = createCarrier({ messagesPerSecond: 11 })
    const worker = startWorker(t, url, carrier)
    await until('one waits for its turn', async () => (await queueRows()).some(({ lease }) => lease !== null))
    await worker.stop()
    const rows = await queueRows()
    assert.equal(rows.length, 10 - carrier.seen.length)
    assert.ok(rows.every(({ lease }) => lease === null))
  })
})

test('results of the same moment are written together', async (t) => {
  const COUNT = 60
  const ids = [...(await queueMessages(pool, one, { count: COUNT / 2 })), ...(await queueMessages(pool, two, { count: COUNT / 2 }))]
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const carrier = createCarrier({
    concurrency: COUNT,
    onSend: async (message) => {
      if (carrier.seen.length === COUNT) end()
      await over
      return sent(message)
    },
  })
  startWorker(t, url, carrier)
  await until('all are sent', async () => (await queueRows()).length === 0)
  const { rows } = await pool.query<{ sent: number; commits: number }>(
    `select count(*) as sent, count(distinct page_id) as commits from ${LOGGED_EVENTS} as e where kind = 'message.sent' and subject_id = any ($1)`,
    [ids],
  )
  assert.equal(rows[0]?.sent, COUNT)
  assert.ok((rows[0]?.commits ?? COUNT) <= 3, `${rows[0]?.commits} commits`)
})

test('a result that comes after the receipt is refused and counted', async (t) => {
  const messageId = await queueMessage(pool, one)
  const take = createReceiver(pool)
  const carrier = createCarrier({
    onSend: async (message) => {
      await take([receipt(message)])
      return sent(message)
    },
  })
  const { registry } = startWorker(t, url, carrier)
  const refused = `herald_results_refused_total{carrier="${CARRIER}"} 1`
  await until('it is counted', async () => (await registry.metrics()).includes(refused))
  assert.equal(await statusOf(pool, messageId), 'DELIVERED')
})

test('what was claimed and could not be read goes out as soon as the database answers, not at the end of its lease', async (t) => {
  const messageId = await queueMessage(pool, one)
  const contents = 'alter table contents rename to'
  await pool.query(`${contents} contents_away`)
  startWorker(t, url, createCarrier())
  await until('it was claimed', async () => (await queueRows())[0]?.lease !== null)
  await pool.query('alter table contents_away rename to contents')
  await until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT', 5_000)
})

test('of a message whose month has been dropped, nothing is asked, and its entry goes', async (t) => {
  const dropped = '00000000-0000-7000-8000-000000000001'
  await queueMessage(pool, one)
  await pool.query('update queue set message_id = $1', [dropped])
  const carrier = createCarrier()
  startWorker(t, url, carrier)
  await until('the entry is gone', async () => (await queueRows()).length === 0)
  assert.deepEqual(carrier.seen, [])
})
