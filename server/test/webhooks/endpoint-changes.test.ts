import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Registry } from 'prom-client'
import { Webhook } from 'standardwebhooks'
import { createHotPool } from '../../src/db/pool.ts'
import { OperatorError } from '../../src/errors.ts'
import { routeEvents } from '../../src/events/router.ts'
import { createLogger } from '../../src/http/log.ts'
import { changeEndpoint, disableEndpoint, enableEndpoint } from '../../src/webhooks/change-endpoint.ts'
import { createDispatcher } from '../../src/webhooks/dispatcher.ts'
import { addEndpoint, rotateSecret } from '../../src/webhooks/endpoints.ts'
import { createWebhookMetrics } from '../../src/webhooks/metrics.ts'
import { removeEndpoint } from '../../src/webhooks/remove-endpoint.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { LOGGED_EVENTS, routeUntilDone } from '../support/log.ts'
import { until } from '../support/until.ts'
import {
  countBlocked,
  deliveriesOf,
  emitRouted,
  endpointAt,
  missedBy,
  NO_INSERTS,
  newAccount,
  startBlocked,
  startSink,
  startWorker,
  writeAgo,
} from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()

async function kindsWaiting(endpointId: number): Promise<string[]> {
  const { rows } = await pool.query<{ kind: string }>(
    `select kind from webhook_deliveries join ${LOGGED_EVENTS} as e using (account_id, position) where endpoint_id = $1 order by position`,
    [endpointId],
  )
  return rows.map(({ kind }) => kind)
}

describe('changing the event types of an endpoint', () => {
  test('applies to events that are routed later, and keeps pending events', async () => {
    const { endpointId, accountId, url: address } = await endpointAt(pool, await startSink())
    await emitRouted(pool, accountId, 1, { kind: 'message.sent' })
    const updated = await changeEndpoint(pool, endpointId, { types: ['message.read', 'sms.sent'] })
    const { createdAt, ...known } = updated
    const well = { status: 'ACTIVE', failingSince: null, disabledAt: null, disabledBecause: null }
    assert.deepEqual(known, { endpointId, accountId, url: address, types: ['message.read', 'sms.sent'], ...well })
    for (const kind of ['message.sent', 'message.read', 'message.failed', 'sms.sent']) await emitRouted(pool, accountId, 1, { kind })
    assert.deepEqual(await kindsWaiting(endpointId), ['message.sent', 'message.read', 'sms.sent'])
    assert.equal((await changeEndpoint(pool, endpointId, { types: null })).types, null)
    await emitRouted(pool, accountId, 1, { kind: 'message.failed' })
    assert.equal((await kindsWaiting(endpointId)).at(-1), 'message.failed')
  })

  test('changes no other endpoint, keeps it disabled, and fails if it does not exist', async () => {
    const sink = await startSink()
    const [one, other] = [await endpointAt(pool, sink), await endpointAt(pool, sink)]
    await disableEndpoint(pool, one.endpointId)
    const { status, disabledBecause } = await changeEndpoint(pool, one.endpointId, { types: ['sms.sent'] })
    assert.deepEqual([status, disabledBecause], ['DISABLED', 'OPERATOR'])
    await emitRouted(pool, other.accountId, 1, { kind: 'message.read' })
    assert.deepEqual(await kindsWaiting(other.endpointId), ['message.read'])
    await assert.rejects(changeEndpoint(pool, 2_000_000_000, { types: null }), OperatorError)
  })

  test('leaves the types as they are if the new URL is taken', async () => {
    const { endpointId, accountId } = await endpointAt(pool, await startSink())
    await addEndpoint(pool, { accountId, url: 'https://hooks.example.com/taken' }, keyring)
    const change = { types: ['sms.sent' as const], url: 'https://hooks.example.com/taken', disable: 'CALLER' as const }
    await assert.rejects(changeEndpoint(pool, endpointId, change), /already has this URL/)
    const { types, status } = await changeEndpoint(pool, endpointId, {})
    assert.deepEqual([types, status], [null, 'ACTIVE'])
  })
})

describe('a change takes effect at the next post:', () => {
  /** An endpoint that has received the first of three events of one message. `respond` responds to it and waits for three polls. */
  async function atTheFirst(t: TestContext) {
    const response = Promise.withResolvers<number>()
    const sink = await startSink(() => response.promise)
    const good = await startSink()
    const { endpointId, accountId } = await endpointAt(pool, sink)
    const { accountId: another } = await endpointAt(pool, good)
    await emitRouted(pool, accountId, 3, { subjects: 1 })
    const worker = startWorker(t, url)
    await until('the first has come', () => sink.arrived.length === 1)
    const waitForPolls = async (count: number) => {
      for (let poll = 0; poll < count; poll += 1) {
        const before = good.arrived.length
        await emitRouted(pool, another, 1)
        worker.wake()
        await until('the worker has polled', () => good.arrived.length > before)
      }
    }
    const respond = async () => {
      response.resolve(204)
      await until('the first is recorded or deleted', async () => (await deliveriesOf(pool, endpointId)).every(({ n }) => n !== 1))
      await waitForPolls(3)
    }
    return { endpointId, sink, respond, wake: worker.wake }
  }

  test('a removed endpoint gets no more events', async (t) => {
    const { endpointId, sink, respond } = await atTheFirst(t)
    await removeEndpoint(pool, endpointId)
    await respond()
    assert.deepEqual(sink.subjects(), [1])
  })

  test('a disabled endpoint gets no more events, and the rest once it is enabled', async (t) => {
    const { endpointId, sink, respond, wake } = await atTheFirst(t)
    await disableEndpoint(pool, endpointId)
    await respond()
    assert.deepEqual(sink.subjects(), [1])
    await enableEndpoint(pool, endpointId)
    await until('the rest has come', () => {
      wake()
      return sink.arrived.length === 3
    })
    assert.deepEqual(sink.subjects(), [1, 2, 3])
  })

  test('a rotated secret signs the next event', async (t) => {
    const { endpointId, sink, respond, wake } = await atTheFirst(t)
    const { secret } = await rotateSecret(pool, endpointId, keyring)
    await respond()
    const next = await until('the next has come', () => {
      wake()
      return sink.arrived[1]
    })
    assert.ok(new Webhook(secret).verify(next.body, next.headers as Record<string, string>))
    assert.throws(() => new Webhook(secret).verify(sink.arrived[0]?.body ?? '', sink.arrived[0]?.headers as Record<string, string>))
  })
})

describe('a change between the claim and the call takes effect:', () => {
  /** A worker during which `change` runs each time it has claimed events, before it reads their endpoints. */
  function startInterrupted(t: TestContext, change: () => Promise<unknown>): void {
    const own = createHotPool({ connectionString: url }, () => {})
    const query = own.query.bind(own) as (...args: unknown[]) => Promise<unknown>
    own.query = (async (...args: [{ name?: string }]) => {
      if (args[0].name === 'read-webhook-endpoints') await change()
      return await query(...args)
    }) as typeof own.query
    const metrics = createWebhookMetrics(new Registry())
    const dispatcher = createDispatcher({ pool: own, keyring, logger: createLogger('silent'), metrics, hosts: 'any' })
    t.after(async () => {
      await dispatcher.stop()
      await own.end()
    })
  }

  test('a disabled endpoint gets nothing', async (t) => {
    const [sink, good] = [await startSink(), await startSink()]
    const [{ endpointId, accountId }, another] = [await endpointAt(pool, sink), await endpointAt(pool, good)]
    await emitRouted(pool, accountId, 2)
    await emitRouted(pool, another.accountId, 2)
    startInterrupted(t, () => disableEndpoint(pool, endpointId))
    await until('the other one has its own', () => good.arrived.length === 2)
    assert.equal(sink.arrived.length, 0)
  })

  test('a rotated secret signs the event', async (t) => {
    const sink = await startSink()
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await emitRouted(pool, accountId, 1)
    let secret = ''
    startInterrupted(t, async () => {
      if (secret === '') ({ secret } = await rotateSecret(pool, endpointId, keyring))
    })
    const { body, headers } = await until('it has come', () => sink.arrived[0])
    assert.ok(new Webhook(secret).verify(body, headers as Record<string, string>))
  })
})

describe('the replay that enabling returns', () => {
  const SENT = ['message.sent']

  test('includes an event that was written before the endpoint was disabled and routed after', async () => {
    const { endpointId, accountId } = await endpointAt(pool, await startSink())
    await emitRouted(pool, accountId, 2)
    await writeAgo(pool, accountId, '1 second')
    await disableEndpoint(pool, endpointId)
    await routeUntilDone(pool)
    assert.deepEqual(await missedBy(pool, endpointId), { kinds: SENT, alreadyDue: 2, hoursAgo: 0 })
  })

  test('includes the events of a router that was down long before the endpoint was disabled', async () => {
    const { endpointId, accountId } = await endpointAt(pool, await startSink())
    for (const ago of ['9 hours', '5 hours', '1 hour']) await writeAgo(pool, accountId, ago)
    await disableEndpoint(pool, endpointId)
    await routeUntilDone(pool)
    assert.deepEqual(await missedBy(pool, endpointId), { kinds: [...SENT, ...SENT, ...SENT], alreadyDue: 0, hoursAgo: 9 })
  })

  test('includes an event that was routed after a later one', async () => {
    const { endpointId, accountId } = await endpointAt(pool, await startSink())
    await disableEndpoint(pool, endpointId)
    for (const ago of ['60 seconds', '100 seconds']) {
      await writeAgo(pool, accountId, ago)
      await routeUntilDone(pool)
    }
    assert.deepEqual((await missedBy(pool, endpointId)).kinds, [...SENT, ...SENT])
  })

  test('starts when the endpoint was disabled if nothing was routed since', async () => {
    const { endpointId, accountId } = await endpointAt(pool, await startSink())
    await emitRouted(pool, accountId, 1)
    await writeAgo(pool, accountId, '5 hours')
    const { disabledAt } = await disableEndpoint(pool, endpointId)
    assert.deepEqual((await enableEndpoint(pool, endpointId)).missedSince, disabledAt)
    await routeUntilDone(pool)
    assert.deepEqual(await kindsWaiting(endpointId), [...SENT, ...SENT])
  })

  test('starts when the endpoint was last disabled', async () => {
    const { endpointId, accountId } = await endpointAt(pool, await startSink())
    for (const [ago, hoursAgo] of [
      ['5 hours', 5],
      ['2 hours', 2],
    ] as const) {
      await disableEndpoint(pool, endpointId)
      await writeAgo(pool, accountId, ago)
      await routeUntilDone(pool)
      assert.deepEqual((await missedBy(pool, endpointId)).hoursAgo, hoursAgo)
    }
  })

  /** A router that is held in its transaction, before or after it reads which endpoints are active, until `goOn`. */
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
    // The pool itself passes a callback.
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
    const which = hasHead ? 'with events before it' : 'without events before it'
    const disabledAfter = async () => {
      const { endpointId, accountId } = await endpointAt(pool, await startSink(), ['message.sent'])
      if (hasHead) await emitRouted(pool, accountId, 1, { kind: 'message.read' })
      await writeAgo(pool, accountId, '4 hours')
      return endpointId
    }

    test(`includes a page for which the router read the endpoints after this one was disabled, ${which}`, async (t) => {
      const endpointId = await disabledAfter()
      const { goOn } = await startHeldRouter(t, 'before')
      await disableEndpoint(pool, endpointId)
      await goOn()
      assert.deepEqual(await kindsWaiting(endpointId), [])
      assert.deepEqual(await missedBy(pool, endpointId), { kinds: SENT, alreadyDue: 0, hoursAgo: 4 })
    })

    test(`skips a page for which the router read the endpoints before this one was disabled, ${which}`, async (t) => {
      const endpointId = await disabledAfter()
      const { goOn } = await startHeldRouter(t, 'after')
      await disableEndpoint(pool, endpointId)
      await goOn()
      assert.deepEqual(await missedBy(pool, endpointId), { kinds: [], alreadyDue: 1, hoursAgo: 4 })
    })

    for (const place of ['before', 'after'] as const) {
      test(`includes a page that is being routed when the endpoint is enabled, ${place} the router reads the endpoints, ${which}`, async (t) => {
        const endpointId = await disabledAfter()
        await disableEndpoint(pool, endpointId)
        const { goOn } = await startHeldRouter(t, place)
        let isEnabled = false
        const missed = missedBy(pool, endpointId).finally(() => (isEnabled = true))
        await until('enabling waits for the router, or for nothing', async () => (await countBlocked(pool)) === 1 || isEnabled)
        await goOn()
        assert.deepEqual(await missed, { kinds: SENT, alreadyDue: 0, hoursAgo: 4 })
      })
    }
  }
})

test('an account has at most 20 endpoints, also if two are added at the same time', async () => {
  const accountId = await newAccount(pool)
  await pool.query(
    `insert into webhook_endpoints (account_id, url) select $1, 'https://example.com/' || n from generate_series(1, 19) as n`,
    [accountId],
  )
  const add = (path: string) => addEndpoint(pool, { accountId, url: `https://example.com/${path}` }, keyring)
  const added = await startBlocked(pool, NO_INSERTS, [() => add('a'), () => add('b')])
  const [error, ...others] = added.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  assert.ok(error instanceof OperatorError && /already has 20 endpoints/.test(error.message), `${error}`)
  assert.deepEqual(others, [])
  await assert.rejects(add('c'), /already has 20 endpoints/)
  assert.equal((await endpointAt(pool, await startSink())).status, 'ACTIVE')
})
