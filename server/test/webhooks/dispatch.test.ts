import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { createPool } from '../../src/db/pool.ts'
import { routeEvents } from '../../src/events/router.ts'
import { rotateSecret } from '../../src/webhooks/endpoints.ts'
import { takeDue } from '../../src/webhooks/take.ts'
import { createTestDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { deliveriesOf, endpointAt, passTime, routeAll, startSink, startWorker, tellMany, tellRouted } from './support.ts'

const { url, pool } = await createTestDatabase()

async function attemptsOf(endpointId: number) {
  const { rows } = await pool.query(
    `select attempt, status, error, answer, duration_ms >= 0 as timed from webhook_attempts where endpoint_id = $1 order by attempted_at, attempt`,
    [endpointId],
  )
  return rows
}

async function isDone(endpointId: number): Promise<boolean> {
  return (await deliveriesOf(pool, endpointId)).length === 0
}

describe('an event', () => {
  test('is posted once, signed, as the log has it; what came of it is written down', async (t) => {
    const sink = await startSink((_, response) => void response.writeHead(201).end('thanks'))
    const { endpointId, accountId, secret } = await endpointAt(pool, sink)
    startWorker(t, url)
    await tellRouted(pool, accountId, 1)
    await until('it is taken', () => isDone(endpointId))
    const { rows } = await pool.query(`select event_id, kind, occurred_at from events where account_id = $1`, [accountId])
    const [arrived] = sink.arrived
    const { event_id: eventId, kind: type, occurred_at: occurredAt } = rows[0]
    assert.deepEqual(arrived?.event, { eventId, type, occurredAt: occurredAt.toISOString(), data: { n: 1 } })
    assert.deepEqual(new Webhook(secret).verify(arrived?.body ?? '', arrived?.headers as Record<string, string>), arrived?.event)
    assert.deepEqual(
      [arrived?.path, arrived?.headers['webhook-id'], arrived?.headers['content-type']],
      ['/hook', eventId, 'application/json'],
    )
    assert.deepEqual(await attemptsOf(endpointId), [{ attempt: 1, status: 201, error: null, answer: 'thanks', timed: true }])
    assert.equal(sink.arrived.length, 1)
  })

  test('goes to the endpoints of its account that want its kind, and to no others', async (t) => {
    const [all, some, others] = [await startSink(), await startSink(), await startSink()]
    const { accountId, endpointId } = await endpointAt(pool, all)
    await pool.query(`insert into webhook_endpoints (account_id, url, kinds) values ($1, $2, '{message.read}')`, [accountId, some.url])
    await pool.query(
      `insert into webhook_secrets select id, 'whsec_' || encode(sha256('x'), 'base64') from webhook_endpoints where url = $1`,
      [some.url],
    )
    await endpointAt(pool, others)
    startWorker(t, url)
    await tellMany(pool, accountId, 1, { kind: 'message.sent' })
    await tellRouted(pool, accountId, 1, { kind: 'message.read' })
    await until('all are taken', async () => (await isDone(endpointId)) && all.arrived.length === 2 && some.arrived.length === 1)
    assert.deepEqual([some.arrived[0]?.event.type, others.arrived.length], ['message.read', 0])
  })

  test('is signed with both secrets for a day after a rotation, then with the new one alone', async (t) => {
    const sink = await startSink()
    const { endpointId, accountId, secret } = await endpointAt(pool, sink)
    const { secret: next } = await rotateSecret(pool, endpointId)
    startWorker(t, url)
    await tellRouted(pool, accountId, 1)
    await until('it is taken', () => sink.arrived.length === 1)
    await pool.query(`update webhook_secrets set ends_at = now() where endpoint_id = $1 and ends_at is not null`, [endpointId])
    await tellRouted(pool, accountId, 1)
    await until('the second is taken', () => sink.arrived.length === 2)
    const verifiedBy = sink.arrived.map(({ body, headers }) =>
      [secret, next].map((one) => {
        try {
          return Boolean(new Webhook(one).verify(body, headers as Record<string, string>))
        } catch {
          return false
        }
      }),
    )
    assert.deepEqual(verifiedBy, [
      [true, true],
      [false, true],
    ])
  })

  test('that is not taken comes again, the same, after 5 to 6 seconds, then 5 to 6 minutes, and goes when it is taken', async (t) => {
    const sink = await startSink(() => 500)
    const { endpointId, accountId } = await endpointAt(pool, sink)
    startWorker(t, url)
    await tellRouted(pool, accountId, 1)
    for (const [attempts, seconds] of [
      [1, 5],
      [2, 300],
    ] as const) {
      const [put] = await until('it is put off', async () => {
        const all = await deliveriesOf(pool, endpointId)
        return all[0]?.attempts === attempts ? all : undefined
      })
      assert.ok((put?.inS ?? 0) > seconds - 2 && (put?.inS ?? 0) <= seconds * 1.2, `${put?.inS} s`)
      if (attempts === 2) sink.answer(() => 200)
      await passTime(pool, endpointId)
    }
    await until('it is taken', () => isDone(endpointId))
    assert.deepEqual(
      (await attemptsOf(endpointId)).map(({ attempt, status }) => [attempt, status]),
      [
        [1, 500],
        [2, 500],
        [3, 200],
      ],
    )
    assert.equal(new Set(sink.arrived.map(({ body, headers }) => `${headers['webhook-id']} ${body}`)).size, 1)
  })

  test('is kept as failed once its tenth try has failed; a redirect is a failure and is not followed', async (t) => {
    const elsewhere = await startSink()
    const sink = await startSink((_, response) => void response.writeHead(307, { location: elsewhere.url }).end())
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await tellRouted(pool, accountId, 1)
    await pool.query('update webhook_deliveries set attempts = 9 where endpoint_id = $1', [endpointId])
    startWorker(t, url)
    await until('it was tried', async () => (await deliveriesOf(pool, endpointId))[0]?.attempts === 10)
    assert.deepEqual(await deliveriesOf(pool, endpointId), [{ n: 1, attempts: 10, inS: null }])
    assert.deepEqual([sink.arrived.length, elsewhere.arrived.length], [1, 0])
  })

  test('of one message comes after the one before it has been answered, however slow that is, while others pass by', async (t) => {
    const open = new Map<string, number>()
    let overlaps = 0
    const sink = await startSink(async ({ event }) => {
      const subject = String(event.data.n % 3)
      overlaps += open.has(subject) ? 1 : 0
      open.set(subject, event.data.n)
      await sleep(event.data.n % 3 === 0 ? 40 : 1)
      open.delete(subject)
      return 204
    })
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await tellRouted(pool, accountId, 30, { subjects: 3 })
    startWorker(t, url)
    await until('all are taken', () => isDone(endpointId))
    const order = Map.groupBy(sink.arrived, ({ event }) => event.data.n % 3)
    for (const group of order.values()) {
      const numbers = group.map(({ event }) => event.data.n)
      assert.deepEqual(
        numbers,
        numbers.toSorted((a, b) => a - b),
      )
    }
    assert.equal(overlaps, 0)
    const [slow, quick] = [0, 1].map((subject) => order.get(subject)?.at(-1)?.at ?? Number.NaN) as [number, number]
    assert.ok(quick < slow, 'the quick ones did not wait for the slow ones')
  })
})

test('events of one message are due in their order, also where a router had begun before another did them all', async () => {
  const sink = await startSink()
  const { endpointId, accountId } = await endpointAt(pool, sink)
  const hasBegun = Promise.withResolvers<void>()
  const mayGoOn = Promise.withResolvers<void>()
  const slow = createPool({ connectionString: url }, () => {})
  slow.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>
    client.query = (async (...args: [{ name?: string }]) => {
      if (args[0].name === 'hold-router') {
        hasBegun.resolve()
        await mayGoOn.promise
      }
      return await query(...args)
    }) as typeof client.query
  })
  await tellMany(pool, accountId, 1, { subjects: 1 })
  const begun = routeEvents(slow)
  await hasBegun.promise
  await routeAll(pool)
  await tellMany(pool, accountId, 1, { kind: 'message.delivered', subjects: 1 })
  mayGoOn.resolve()
  await begun
  await slow.end()
  const { rows } = await pool.query<{ kind: string }>(
    'select kind from webhook_deliveries join events using (account_id, position) where endpoint_id = $1 order by due_at, position',
    [endpointId],
  )
  assert.deepEqual(
    rows.map(({ kind }) => kind),
    ['message.sent', 'message.delivered'],
  )
})

describe('workers', () => {
  test('two at once post each event once', async (t) => {
    const sink = await startSink()
    const endpoints = await Promise.all(Array.from({ length: 6 }, () => endpointAt(pool, sink)))
    for (const { accountId } of endpoints) await tellMany(pool, accountId, 200)
    await routeAll(pool)
    const workers = [startWorker(t, url), startWorker(t, url)]
    await until('all are taken', async () => {
      for (const { wake } of workers) wake()
      return (await Promise.all(endpoints.map(({ endpointId }) => isDone(endpointId)))).every(Boolean)
    })
    const ids = sink.arrived.map(({ headers }) => headers['webhook-id'])
    assert.deepEqual([ids.length, new Set(ids).size], [1_200, 1_200])
  })

  test('nobody else serves an endpoint under a lease; once it has run out, anybody does', async () => {
    const sink = await startSink()
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await tellRouted(pool, accountId, 2)
    const take = async (lease: string) =>
      (await takeDue(pool, { lease, room: new Map(), underWay: [] })).filter((one) => one.endpointId === endpointId).length
    const [one, two] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
    assert.deepEqual([await take(one), await take(two), await take(one)], [2, 0, 2])
    await pool.query('update webhook_endpoints set leased_until = now() where id = $1', [endpointId])
    assert.deepEqual([await take(two), await take(one)], [2, 0])
  })

  test('one that stops breaks off what hangs, lets go of its endpoints, and loses nothing: the next one posts it again', async (t) => {
    const sink = await startSink(() => undefined)
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await tellRouted(pool, accountId, 3)
    const first = startWorker(t, url)
    await until('they hang', () => sink.arrived.length === 3)
    const from = performance.now()
    await first.stop()
    assert.ok(performance.now() - from < 5_000)
    assert.deepEqual(
      (await deliveriesOf(pool, endpointId)).map(({ attempts }) => attempts),
      [0, 0, 0],
    )
    sink.answer(() => 204)
    startWorker(t, url)
    await until('all are taken', () => isDone(endpointId), 5_000)
    assert.equal(sink.arrived.length, 6)
  })

  test('an endpoint that hangs, and one that refuses all, hold up nobody else', async (t) => {
    const [hanging, refusing, good] = [await startSink(() => undefined), await startSink(() => 500), await startSink()]
    const endpoints = await Promise.all([hanging, refusing, good].map((sink) => endpointAt(pool, sink)))
    for (const { accountId } of endpoints.slice(0, 2)) await tellMany(pool, accountId, 500)
    await routeAll(pool)
    startWorker(t, url)
    await until('both are at it', () => hanging.arrived.length > 0 && refusing.arrived.length > 10)
    await tellRouted(pool, endpoints[2]?.accountId as number, 100)
    await until('the good one has its own', () => good.arrived.length === 100, 5_000)
    assert.ok(hanging.arrived.length <= 4, `${hanging.arrived.length} calls hang at once`)
  })
})

test('a result that can’t be written for a while is written later, and its event is not posted again meanwhile', async (t) => {
  const own = await createTestDatabase()
  let isHeld = false
  const blocker = createPool({ connectionString: own.url }, () => {})
  const holder = await blocker.connect()
  const sink = await startSink(async () => {
    if (!isHeld) await holder.query('begin; lock table webhook_attempts in exclusive mode')
    isHeld = true
    return 204
  })
  const { endpointId, accountId } = await endpointAt(own.pool, sink)
  await tellRouted(own.pool, accountId, 1)
  const worker = startWorker(t, own.url)
  await until('it has arrived', () => isHeld)
  for (let look = 0; look < 5; look += 1) {
    worker.wake()
    await takeDue(own.pool, { lease: '00000000-0000-4000-8000-000000000009', room: new Map(), underWay: [] })
  }
  await holder.query('rollback')
  holder.release()
  await blocker.end()
  await until('it is written', async () => (await deliveriesOf(own.pool, endpointId)).length === 0)
  assert.equal(sink.arrived.length, 1)
})
