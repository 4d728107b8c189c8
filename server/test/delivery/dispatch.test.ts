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
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { moveExpiry } from '../support/expiring.ts'
import { keyring } from '../support/keyring.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'
import { createReceiver, createSender, kindsOf, queueMessage, queueMessages, readAll, receipt, statusOf } from './support.ts'
import { assertPostponed, CARRIER, createCarrier, createHold, logger, sent, startWorker } from './worker.ts'

const { url, hotPool: pool } = await createTestDatabase()
const [one, two] = [await createSender(pool), await createSender(pool)]
const simulator = await startSimulator()

beforeEach(async () => {
  await ownerOf(pool).query('truncate queue')
})

async function queueRows(): Promise<{ attempts: number; lease: string | null }[]> {
  return (await pool.query('select attempts, lease from queue order by due_at')).rows
}

const untilSent = (messageId: string) => until('it is sent', async () => (await statusOf(pool, messageId)) === 'SENT')

describe('a message that could not be sent', () => {
  test('is retried after a time that doubles up to a minute, with jitter, and never earlier than the network asked', () => {
    for (let attempts = 1; attempts <= 40; attempts += 1) {
      const full = Math.min(60_000, 500 * 2 ** (attempts - 1))
      const waits = Array.from({ length: 200 }, () => retryMs(attempts, 0))
      assert.ok(Math.min(...waits) >= full / 2 && Math.max(...waits) <= full)
      assert.ok(Math.max(...waits) - Math.min(...waits) > full / 4, 'workers do not retry at the same moment')
      assert.ok(retryMs(attempts, 120_000) >= 120_000)
    }
  })

  for (const [is, attempts, steps] of [
    ['retry', 1, ['attempt-failed']],
    ['unknown', 1, ['attempt-failed']],
    ['not-tried', 0, []],
  ] as const) {
    test(`is postponed for as long as the network asked, with ${attempts} attempts, if the response is ${is}`, async (t) => {
      const since = Date.now()
      const messageId = await queueMessage(pool, one)
      startWorker(t, url, createCarrier({ onSend: () => ({ is, afterMs: 90_000, detail: '429' }) }))
      const { queue } = await until('it is postponed', async () => {
        const all = await readAll(pool, messageId)
        return all.queue.claimed && all.queue.lease === null ? all : undefined
      })
      assert.deepEqual([queue.attempts, await kindsOf(pool, messageId)], [attempts, steps])
      assertPostponed(queue, 90_000, since)
      await moveExpiry(pool, [messageId])
      await expireDue(pool)
      const expired = await readAll(pool, messageId)
      assert.equal(expired.message.status, 'EXPIRED')
      assert.equal(expired.queue?.task, attempts === 0 ? undefined : 'revoke', 'the network may have what was tried')
    })
  }

  test('is released without an attempt if it could not be read', async (t) => {
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
    await untilSent(messageId)
    assert.equal(carrier.seen.length, 1)
  })

  test('is sent as soon as the database responds, not at the end of its lease', async (t) => {
    const messageId = await queueMessage(pool, one)
    await ownerOf(pool).query('alter table contents rename to contents_away')
    // With calls of up to ten minutes, the lease lasts longer than this test may.
    startWorker(t, url, createCarrier({ longestCallMs: 600_000 }))
    await until('it is claimed', async () => (await queueRows())[0]?.lease !== null)
    await ownerOf(pool).query('alter table contents_away rename to contents')
    await untilSent(messageId)
  })

  test('is retried until it is sent, after growing waits', async (t) => {
    const messageId = await queueMessage(pool, one)
    const carrier = createCarrier({
      onSend: (message) => (carrier.seen.length < 3 ? { is: 'retry', afterMs: 0, detail: '503' } : sent(message)),
    })
    startWorker(t, url, carrier)
    await untilSent(messageId)
    const [first, second, third] = carrier.seen.map(({ at }) => at) as [number, number, number]
    assert.ok(second - first >= 249 && third - second >= 499, `after ${second - first} and ${third - second} ms`)
    assert.deepEqual(await kindsOf(pool, messageId), ['attempt-failed', 'attempt-failed', 'sent'])
  })

  test('is sent again under the same id after a lost response, so that the network has it once', async (t) => {
    const recipient = '+48500100204'
    const messageId = await queueMessage(pool, one, { recipient })
    await simulator.ask('faults', { api: { dropAfter: { count: 1 } } }, 'PUT')
    const carrier = createGoogleRbm(simulator.rcs, { postbackKey: await installationSecret(pool, 'postback', keyring), logger })
    t.after(() => carrier.close())
    startWorker(t, url, carrier)
    await untilSent(messageId)
    assert.deepEqual(await kindsOf(pool, messageId), ['attempt-failed', 'sent'])
    const { entries } = await simulator.ask('ledger')
    const ledger = entries.filter((entry: any) => entry.messageId === messageId).map(({ kind }: any) => kind)
    assert.deepEqual(ledger, ['accepted', 'repeated'])
    assert.equal((await simulator.ask(`phones/${recipient}`)).messages.length, 1)
  })
})

describe('a call is not made', () => {
  const carrier = createCarrier()
  const metrics = createDeliveryMetrics(new Registry())
  const send = createSend({ carrier, metrics, logger, route: async () => undefined, stopping: new AbortController().signal })
  const content = { type: 'MESSAGE', content: 'Hi' } as const
  const facts = {
    expiresAt: new Date(),
    capability: null,
    stoppedBy: null,
    isErased: false,
    heldBackForMs: 0,
    traffic: 'TRANSACTION',
  } as const
  const message = { messageId: 'm', recipient: '+48500100200', content, ...facts }
  const entry = { messageId: 'm', accountId: 1, agentId: 'agent', attempts: 1, lease: 'l', slotAt: 0, expiresInMs: 60_000 } as const
  const common = { ...entry, window: null, nowMs: 0 }

  /** The kind of the result, and the calls that were made. */
  async function sendHeldFor(heldMs: number, fields: Partial<Entry> & Pick<Entry, 'task'>) {
    carrier.seen.length = 0
    const { is } = await send({ ...common, ...fields }, message, performance.now() - heldMs)
    return [is, carrier.seen.map(({ task }) => task)]
  }

  for (const [task, is] of [
    ['send', 'sent'],
    ['revoke', 'revoke-asked'],
  ] as const) {
    test(`if the task ${task} was claimed so long ago that the call could outlast the lease`, async () => {
      assert.deepEqual(await sendHeldFor(LATEST_BEGIN_MS + 1, { task }), ['not-tried', []])
      assert.deepEqual(await sendHeldFor(LATEST_BEGIN_MS / 2, { task }), [is, [task]])
    })
  }

  test('if the message has expired since the claim, unless the task is to revoke it', async () => {
    assert.deepEqual(await sendHeldFor(101, { task: 'send', expiresInMs: 100 }), ['not-tried', []])
    assert.deepEqual(await sendHeldFor(0, { task: 'revoke', expiresInMs: -60_000 }), ['revoke-asked', ['revoke']])
  })

  test('before its slot', async () => {
    const slotAt = performance.now() + 50
    assert.deepEqual(await sendHeldFor(0, { task: 'send', slotAt }), ['sent', ['send']])
    const at = carrier.seen[0]?.at as number
    // Node truncates a delay to whole milliseconds.
    assert.ok(at > slotAt - 2, `${at} is before ${slotAt}`)
  })

  test('for a message whose month has been dropped; its entry is deleted', async (t) => {
    await queueMessage(pool, one)
    await pool.query('update queue set message_id = $1', ['00000000-0000-7000-8000-000000000001'])
    const unused = createCarrier()
    startWorker(t, url, unused)
    await until('the entry is gone', async () => (await queueRows()).length === 0)
    assert.deepEqual(unused.seen, [])
  })
})

describe('a worker that is stopped', () => {
  test('claims nothing more, waits for its running calls, records their results, and leaves no lease', async (t) => {
    for (const sender of [one, two]) await queueMessages(pool, sender, { count: 20 })
    const { released, release } = createHold(t)
    const carrier = createCarrier({ concurrency: 4, onSend: (message) => released.then(() => sent(message)) })
    const worker = startWorker(t, url, carrier)
    await until('all calls run', () => carrier.seen.length === 4)
    let hasStopped = false
    const stopped = worker.stop().then(() => {
      hasStopped = true
    })
    worker.wake()
    assert.equal((await queueRows()).filter(({ lease }) => lease !== null).length, 4)
    assert.equal(hasStopped, false)
    release()
    await stopped
    assert.equal(carrier.seen.length, 4)
    for (const { messageId } of carrier.seen) assert.equal(await statusOf(pool, messageId), 'SENT')
    const rows = await queueRows()
    assert.deepEqual([rows.length, rows.filter(({ lease }) => lease !== null).length], [36, 0])
  })

  test('releases entries that wait for their slot', async (t) => {
    await queueMessages(pool, one, { count: 10 })
    const carrier = createCarrier({ messagesPerSecond: 11 })
    const worker = startWorker(t, url, carrier)
    await until('an entry waits for its slot', async () => (await queueRows()).some(({ lease }) => lease !== null))
    await worker.stop()
    const rows = await queueRows()
    assert.equal(rows.length, 10 - carrier.seen.length)
    assert.ok(rows.every(({ lease }) => lease === null))
  })
})

describe('results', () => {
  test('of the same moment are recorded together', async (t) => {
    const COUNT = 60
    const ids = [...(await queueMessages(pool, one, { count: COUNT / 2 })), ...(await queueMessages(pool, two, { count: COUNT / 2 }))]
    const { released, release } = createHold(t)
    const carrier = createCarrier({
      concurrency: COUNT,
      onSend: (message) => {
        if (carrier.seen.length === COUNT) release()
        return released.then(() => sent(message))
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

  test('after the receipt are refused and counted', async (t) => {
    const messageId = await queueMessage(pool, one)
    const receive = createReceiver(pool)
    const onSend = async (message: { messageId: string }) => {
      await receive([receipt(message)])
      return sent(message)
    }
    const { registry } = startWorker(t, url, createCarrier({ onSend }))
    const refused = `herald_results_refused_total{carrier="${CARRIER}"} 1`
    await until('it is counted', async () => (await registry.metrics()).includes(refused))
    assert.equal(await statusOf(pool, messageId), 'DELIVERED')
  })
})
