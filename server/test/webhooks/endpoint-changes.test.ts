import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Registry } from 'prom-client'
import { Webhook } from 'standardwebhooks'
import { createHotPool } from '../../src/db/pool.ts'
import { OperatorError } from '../../src/errors.ts'
import { routeEvents } from '../../src/events/router.ts'
import { createLogger } from '../../src/http/log.ts'
import { createDispatcher } from '../../src/webhooks/dispatcher.ts'
import { addEndpoint, disableEndpoint, enableEndpoint, removeEndpoint, rotateSecret, updateEndpoint } from '../../src/webhooks/endpoints.ts'
import { createWebhookMetrics } from '../../src/webhooks/metrics.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { LOGGED_EVENTS } from '../support/log.ts'
import { until } from '../support/until.ts'
import { deliveriesOf, endpointAt, missedBy, newAccount, routeAll, startSink, startWorker, tellAgo, tellRouted } from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()

async function kindsWaiting(endpointId: number): Promise<string[]> {
  const { rows } = await pool.query<{ kind: string }>(
    `select kind from webhook_deliveries join ${LOGGED_EVENTS} as e using (account_id, position) where endpoint_id = $1 order by position`,
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
    const own = createHotPool({ connectionString: url }, () => {})
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

describe('the replay that enabling names', () => {
  const SENT = ['message.sent']

  test('posts an event that was written before the endpoint was disabled, and placed after', async () => {
    const { endpointId, accountId } = await endpointAt(pool, await startSink())
    await tellRouted(pool, accountId, 2)
    await tellAgo(pool, accountId, '1 second')
    await disableEndpoint(pool, endpointId)
    await routeAll(pool)
    assert.deepEqual(await missedBy(pool, endpointId), { kinds: SENT, alreadyDue: 2, hoursAgo: 0 })
  })

  test('posts the events of a router that was down for long before the endpoint was disabled', async () => {
    const { endpointId, accountId } = await endpointAt(pool, await startSink())
    for (const ago of ['9 hours', '5 hours', '1 hour']) await tellAgo(pool, accountId, ago)
    await disableEndpoint(pool, endpointId)
    await routeAll(pool)
    assert.deepEqual(await missedBy(pool, endpointId), { kinds: [...SENT, ...SENT, ...SENT], alreadyDue: 0, hoursAgo: 9 })
  })

  test('posts an event that was placed behind a later one, since its transaction took longer', async () => {
    const { endpointId, accountId } = await endpointAt(pool, await startSink())
    await disableEndpoint(pool, endpointId)
    for (const ago of ['60 seconds', '100 seconds']) {
      await tellAgo(pool, accountId, ago)
      await routeAll(pool)
    }
    assert.deepEqual((await missedBy(pool, endpointId)).kinds, [...SENT, ...SENT])
  })

  test('begins when the endpoint was disabled, where nothing was placed since; what the router places later goes out by itself', async () => {
    const { endpointId, accountId } = await endpointAt(pool, await startSink())
    await tellRouted(pool, accountId, 1)
    await tellAgo(pool, accountId, '5 hours')
    const { disabledAt } = await disableEndpoint(pool, endpointId)
    assert.deepEqual((await enableEndpoint(pool, endpointId)).missedSince, disabledAt)
    await routeAll(pool)
    assert.deepEqual(await kindsWaiting(endpointId), [...SENT, ...SENT])
  })

  test('counts from the last time that the endpoint was disabled', async () => {
    const { endpointId, accountId } = await endpointAt(pool, await startSink())
    for (const [ago, hoursAgo] of [
      ['5 hours', 5],
      ['2 hours', 2],
    ] as const) {
      await disableEndpoint(pool, endpointId)
      await tellAgo(pool, accountId, ago)
      await routeAll(pool)
      assert.deepEqual((await missedBy(pool, endpointId)).hoursAgo, hoursAgo)
    }
  })

  /** A router that stops in its transaction, before or after it reads which endpoints are active. `goOn` ends that. */
  async function startHeldRouter(t: TestContext, place: 'before' | 'after') {
    const own = createHotPool({ connectionString: url }, () => {})
    t.after(() => own.end())
    const [isHeld, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const hold = async () => {
      isHeld.resolve()
      await goesOn.promise
    }
    const client = await own.connect()
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>
    client.query = (async (...args: [{ name?: string }]) => {
      const isPlace = args[0].name === 'address-events'
      if (isPlace && place === 'before') await hold()
      const result = await query(...args)
      if (isPlace && place === 'after') await hold()
      return result
    }) as typeof client.query
    const connect = own.connect.bind(own) as (...args: unknown[]) => unknown
    // With a callback, the pool asks for a connection for a statement of its own.
    own.connect = ((...args: unknown[]) => (args.length > 0 ? connect(...args) : Promise.resolve(client))) as typeof own.connect
    const routing = routeEvents(own)
    await Promise.race([isHeld.promise, routing])
    return {
      goOn: async () => {
        goesOn.resolve()
        assert.equal((await routing).routed, 1)
      },
    }
  }

  for (const hasHead of [true, false]) {
    const which = hasHead ? 'of an account with events' : 'of an account without any'
    const disabledAfter = async () => {
      const { endpointId, accountId } = await endpointAt(pool, await startSink(), ['message.sent'])
      if (hasHead) await tellRouted(pool, accountId, 1, { kind: 'message.read' })
      await tellAgo(pool, accountId, '4 hours')
      return endpointId
    }

    test(`posts a page that the router placed before the endpoint was disabled and addressed after, ${which}`, async (t) => {
      const endpointId = await disabledAfter()
      const { goOn } = await startHeldRouter(t, 'before')
      await disableEndpoint(pool, endpointId)
      await goOn()
      assert.deepEqual(await kindsWaiting(endpointId), [])
      assert.deepEqual(await missedBy(pool, endpointId), { kinds: SENT, alreadyDue: 0, hoursAgo: 4 })
    })

    test(`leaves a page alone that the router addressed while the endpoint was disabled, ${which}`, async (t) => {
      const endpointId = await disabledAfter()
      const { goOn } = await startHeldRouter(t, 'after')
      await disableEndpoint(pool, endpointId)
      await goOn()
      assert.deepEqual(await missedBy(pool, endpointId), { kinds: [], alreadyDue: 1, hoursAgo: 4 })
    })

    for (const place of ['before', 'after'] as const) {
      test(`includes a page of a router that is at work when the endpoint is enabled, ${place} it reads the endpoints, ${which}`, async (t) => {
        const endpointId = await disabledAfter()
        await disableEndpoint(pool, endpointId)
        const { goOn } = await startHeldRouter(t, place)
        let isEnabled = false
        const missed = missedBy(pool, endpointId).finally(() => (isEnabled = true))
        await until('enabling waits for the router, or for nothing', async () => {
          const { rowCount } = await pool.query(
            `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
          )
          return rowCount === 1 || isEnabled
        })
        await goOn()
        assert.deepEqual(await missed, { kinds: SENT, alreadyDue: 0, hoursAgo: 4 })
      })
    }
  }
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
  assert.ok(refused[0] instanceof OperatorError && /already has 20 endpoints/.test(refused[0].message), `${refused[0]}`)
  await assert.rejects(addEndpoint(pool, { accountId, url: 'https://example.com/c' }, keyring), /already has 20 endpoints/)
  assert.equal((await endpointAt(pool, await startSink())).status, 'ACTIVE')
})
