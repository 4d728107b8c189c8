import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Registry } from 'prom-client'
import { Webhook } from 'standardwebhooks'
import { createPool } from '../../src/db/pool.ts'
import { OperatorError } from '../../src/errors.ts'
import { createLogger } from '../../src/http/log.ts'
import { createDispatcher } from '../../src/webhooks/dispatcher.ts'
import { addEndpoint, disableEndpoint, enableEndpoint, removeEndpoint, rotateSecret, updateEndpoint } from '../../src/webhooks/endpoints.ts'
import { createWebhookMetrics } from '../../src/webhooks/metrics.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { until } from '../support/until.ts'
import { deliveriesOf, endpointAt, newAccount, startSink, startWorker, tellRouted } from './support.ts'

const { url, pool } = await createTestDatabase()

async function kindsWaiting(endpointId: number): Promise<string[]> {
  const { rows } = await pool.query<{ kind: string }>(
    'select kind from webhook_deliveries join events using (account_id, position) where endpoint_id = $1 order by position',
    [endpointId],
  )
  return rows.map(({ kind }) => kind)
}

describe('an endpoint that wants other kinds of events', () => {
  test('gets those from the next one that is routed on, and still what waits for it', async () => {
    const { endpointId, accountId, url: address } = await endpointAt(pool, await startSink())
    await tellRouted(pool, accountId, 1, { kind: 'message.sent' })
    const updated = await updateEndpoint(pool, endpointId, ['message.read', 'sms.sent'])
    const { createdAt, ...known } = updated
    const well = { status: 'ACTIVE', failingSince: null, disabledAt: null, disabledBecause: null }
    assert.deepEqual(known, { endpointId, accountId, url: address, events: ['message.read', 'sms.sent'], ...well })
    for (const kind of ['message.sent', 'message.read', 'message.failed', 'sms.sent']) await tellRouted(pool, accountId, 1, { kind })
    assert.deepEqual(await kindsWaiting(endpointId), ['message.sent', 'message.read', 'sms.sent'])
    assert.equal((await updateEndpoint(pool, endpointId, null)).events, null)
    await tellRouted(pool, accountId, 1, { kind: 'message.failed' })
    assert.equal((await kindsWaiting(endpointId)).at(-1), 'message.failed')
  })

  test('changes nothing of another one, nor whether it is disabled; one that does not exist is one sentence', async () => {
    const sink = await startSink()
    const [one, other] = [await endpointAt(pool, sink), await endpointAt(pool, sink)]
    await disableEndpoint(pool, one.endpointId)
    const { status, disabledBecause } = await updateEndpoint(pool, one.endpointId, ['sms.sent'])
    assert.deepEqual([status, disabledBecause], ['DISABLED', 'OPERATOR'])
    await tellRouted(pool, other.accountId, 1, { kind: 'message.read' })
    assert.deepEqual(await kindsWaiting(other.endpointId), ['message.read'])
    await assert.rejects(updateEndpoint(pool, 2_000_000_000, null), OperatorError)
  })
})

describe('a change counts for the very next post:', () => {
  /** An endpoint that has the first of three events of one message, and answers it when told to. */
  async function atTheFirst(t: TestContext) {
    const answer = Promise.withResolvers<number>()
    const sink = await startSink(() => answer.promise)
    const good = await startSink()
    const { endpointId, accountId } = await endpointAt(pool, sink)
    const { accountId: another } = await endpointAt(pool, good)
    await tellRouted(pool, accountId, 3, { subjects: 1 })
    const worker = startWorker(t, url)
    await until('the first has come', () => sink.arrived.length === 1)
    /** Rounds of the worker that begin after this was called. */
    const rounds = async (count: number) => {
      for (let round = 0; round < count; round += 1) {
        const before = good.arrived.length
        await tellRouted(pool, another, 1)
        worker.wake()
        await until('the worker has been through', () => good.arrived.length > before)
      }
    }
    const isAnswered = async () => {
      answer.resolve(204)
      await until('the first is written down, or forgotten', async () => (await deliveriesOf(pool, endpointId)).every(({ n }) => n !== 1))
      await rounds(3)
    }
    return { endpointId, sink, isAnswered, wake: worker.wake }
  }

  test('once an endpoint is removed, nothing is posted any more but what was on its way', async (t) => {
    const { endpointId, sink, isAnswered } = await atTheFirst(t)
    await removeEndpoint(pool, endpointId)
    await isAnswered()
    assert.deepEqual(sink.subjects(), [1])
  })

  test('once it is disabled, neither; and all of the rest comes when it is enabled', async (t) => {
    const { endpointId, sink, isAnswered, wake } = await atTheFirst(t)
    await disableEndpoint(pool, endpointId)
    await isAnswered()
    assert.deepEqual(sink.subjects(), [1])
    await enableEndpoint(pool, endpointId)
    await until('the rest has come', () => {
      wake()
      return sink.arrived.length === 3
    })
    assert.deepEqual(sink.subjects(), [1, 2, 3])
  })

  test('once its secret is rotated, the next post is signed with the new one', async (t) => {
    const { endpointId, sink, isAnswered, wake } = await atTheFirst(t)
    const { secret } = await rotateSecret(pool, endpointId, keyring)
    await isAnswered()
    const next = await until('the next has come', () => {
      wake()
      return sink.arrived[1]
    })
    assert.ok(new Webhook(secret).verify(next.body, next.headers as Record<string, string>))
    assert.throws(() => new Webhook(secret).verify(sink.arrived[0]?.body ?? '', sink.arrived[0]?.headers as Record<string, string>))
  })
})

describe('a change between the look for what is due and the call', () => {
  /** A worker that does so each time it has found something, before it asks where that goes. */
  function startHeldUp(t: TestContext, change: () => Promise<unknown>): void {
    const own = createPool({ connectionString: url }, () => {})
    const query = own.query.bind(own) as (...args: unknown[]) => Promise<unknown>
    own.query = (async (...args: [{ name?: string }]) => {
      if (args[0].name === 'read-webhook-endpoints') await change()
      return await query(...args)
    }) as typeof own.query
    const metrics = createWebhookMetrics(new Registry())
    const dispatcher = createDispatcher({ pool: own, keyring, logger: createLogger('silent'), metrics, allowPrivate: true })
    t.after(async () => {
      await dispatcher.stop()
      await own.end()
    })
  }

  test('counts: one that is disabled then gets nothing', async (t) => {
    const [sink, good] = [await startSink(), await startSink()]
    const [{ endpointId, accountId }, another] = [await endpointAt(pool, sink), await endpointAt(pool, good)]
    await tellRouted(pool, accountId, 2)
    await tellRouted(pool, another.accountId, 2)
    startHeldUp(t, () => disableEndpoint(pool, endpointId))
    await until('the other one has its own', () => good.arrived.length === 2)
    assert.equal(sink.arrived.length, 0)
  })

  test('counts: one whose secret is replaced then gets it signed with the new one', async (t) => {
    const sink = await startSink()
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await tellRouted(pool, accountId, 1)
    let secret = ''
    startHeldUp(t, async () => {
      if (secret === '') ({ secret } = await rotateSecret(pool, endpointId, keyring))
    })
    const { body, headers } = await until('it has come', () => sink.arrived[0])
    assert.ok(new Webhook(secret).verify(body, headers as Record<string, string>))
  })
})

test('an account has 20 endpoints at the most, also where two are added at once; another account is not concerned', async () => {
  const accountId = await newAccount(pool)
  await pool.query(
    `insert into webhook_endpoints (account_id, url) select $1, 'https://example.com/' || n from generate_series(1, 19) as n`,
    [accountId],
  )
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('select from accounts where id = $1 for no key update', [accountId])
  let ended = 0
  const adding = ['a', 'b'].map((path) =>
    addEndpoint(pool, { accountId, url: `https://example.com/${path}` }, keyring).finally(() => {
      ended += 1
    }),
  )
  const settled = Promise.allSettled(adding)
  await until('both wait, or wait for nothing', async () => {
    const { rows } = await pool.query<{ waiting: number }>(
      `select count(*) as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows[0]?.waiting === 2 || ended === 2
  })
  await holder.query('commit')
  holder.release()
  const refused = (await settled).flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  assert.equal(refused.length, 1)
  assert.ok(refused[0] instanceof OperatorError && /has 20 endpoints already/.test(refused[0].message), `${refused[0]}`)
  await assert.rejects(addEndpoint(pool, { accountId, url: 'https://example.com/c' }, keyring), /has 20 endpoints already/)
  assert.equal((await endpointAt(pool, await startSink())).status, 'ACTIVE')
})
