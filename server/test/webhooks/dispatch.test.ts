import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { createHotPool } from '../../src/db/pool.ts'
import { routeEvents } from '../../src/events/router.ts'
import { addEndpoint, rotateSecret } from '../../src/webhooks/endpoints.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { LOGGED_EVENTS, routeUntilDone } from '../support/log.ts'
import { until } from '../support/until.ts'
import { deliveriesOf, emitRouted, endpointAt, isDone, makeDue, startSink, startWorker, writeMany } from './support.ts'

const { url, hotPool: pool } = await createTestDatabase()

async function attemptsOf(endpointId: number) {
  const { rows } = await pool.query(
    `select attempt, status, error, response, duration_ms >= 0 as timed from webhook_attempts where endpoint_id = $1 order by attempted_at, attempt`,
    [endpointId],
  )
  return rows
}

describe('an event', () => {
  test('is posted once, signed, and its result recorded', async (t) => {
    const sink = await startSink((_, response) => void response.writeHead(201).end('thanks'))
    const { endpointId, accountId, secret } = await endpointAt(pool, sink)
    startWorker(t, url)
    await emitRouted(pool, accountId, 1)
    await until('it is posted', () => isDone(pool, endpointId))
    const { rows } = await pool.query(`select event_id, kind, occurred_at from ${LOGGED_EVENTS} as e where account_id = $1`, [accountId])
    const [arrived] = sink.arrived
    const { event_id: eventId, kind: type, occurred_at: occurredAt } = rows[0]
    assert.deepEqual(arrived?.event, { eventId, type, occurredAt: occurredAt.toISOString(), data: { n: 1 } })
    assert.deepEqual(new Webhook(secret).verify(arrived?.body ?? '', arrived?.headers as Record<string, string>), arrived?.event)
    assert.deepEqual(
      [arrived?.path, arrived?.headers['webhook-id'], arrived?.headers['content-type']],
      ['/hook', eventId, 'application/json'],
    )
    assert.deepEqual(await attemptsOf(endpointId), [{ attempt: 1, status: 201, error: null, response: 'thanks', timed: true }])
    assert.equal(sink.arrived.length, 1)
  })

  test('is posted to the endpoints of its account that want its kind, and to no others', async (t) => {
    const [all, some, others] = [await startSink(), await startSink(), await startSink()]
    const { accountId, endpointId } = await endpointAt(pool, all)
    await addEndpoint(pool, { accountId, url: some.url, types: ['message.read'] }, keyring)
    await endpointAt(pool, others)
    startWorker(t, url)
    await writeMany(pool, accountId, 1, { kind: 'message.sent' })
    await emitRouted(pool, accountId, 1, { kind: 'message.read' })
    await until('all are posted', async () => (await isDone(pool, endpointId)) && all.arrived.length === 2 && some.arrived.length === 1)
    assert.deepEqual([some.arrived[0]?.event.type, others.arrived.length], ['message.read', 0])
  })

  test('is signed with both secrets for a day after a rotation, then with the new one alone', async (t) => {
    const sink = await startSink()
    const { endpointId, accountId, secret } = await endpointAt(pool, sink)
    const { secret: next } = await rotateSecret(pool, endpointId, keyring)
    startWorker(t, url)
    await emitRouted(pool, accountId, 1)
    await until('it is posted', () => sink.arrived.length === 1)
    await pool.query(`update webhook_secrets set ends_at = now() where endpoint_id = $1 and ends_at is not null`, [endpointId])
    await emitRouted(pool, accountId, 1)
    await until('the second is posted', () => sink.arrived.length === 2)
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

  test('is signed with the time of the database, not of this machine', async (t) => {
    const sink = await startSink()
    const { endpointId, accountId, secret } = await endpointAt(pool, sink)
    const databaseTime = async () => (await pool.query('select extract(epoch from clock_timestamp())::float8 as now')).rows[0].now as number
    await emitRouted(pool, accountId, 1)
    const from = await databaseTime()
    t.mock.timers.enable({ apis: ['Date'], now: new Date('2001-02-03T04:05:06Z') })
    startWorker(t, url)
    await until('it is posted', () => isDone(pool, endpointId))
    t.mock.timers.reset()
    const [{ body, headers } = assert.fail('nothing came')] = sink.arrived
    const timestamp = Number(headers['webhook-timestamp'])
    const { rows } = await pool.query(
      'select extract(epoch from attempted_at)::float8 as at from webhook_attempts where endpoint_id = $1',
      [endpointId],
    )
    const to = await databaseTime()
    assert.ok(timestamp >= Math.floor(from) && timestamp <= to, `${timestamp}, between ${from} and ${to}`)
    assert.ok(rows[0].at >= from - 0.001 && rows[0].at <= to, `${rows[0].at}, between ${from} and ${to}`)
    assert.ok(new Webhook(secret).verify(body, headers as Record<string, string>))
  })

  test('that is rejected is posted again unchanged after 5 to 6 s, then 5 to 6 min, until it is accepted', async (t) => {
    const sink = await startSink(() => 500)
    const { endpointId, accountId } = await endpointAt(pool, sink)
    startWorker(t, url)
    await emitRouted(pool, accountId, 1)
    for (const [attempts, seconds] of [
      [1, 5],
      [2, 300],
    ] as const) {
      const [put] = await until('it is postponed', async () => {
        const all = await deliveriesOf(pool, endpointId)
        return all[0]?.attempts === attempts ? all : undefined
      })
      assert.ok((put?.inS ?? 0) > 0 && (put?.inS ?? 0) > seconds - 60 && (put?.inS ?? 0) <= seconds * 1.2, `${put?.inS} s`)
      if (attempts === 2) sink.respondWith(() => 200)
      await makeDue(pool, endpointId)
    }
    await until('it is posted', () => isDone(pool, endpointId))
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

  test('fails permanently with its tenth attempt; a redirect is a failure and is not followed', async (t) => {
    const elsewhere = await startSink()
    const sink = await startSink((_, response) => void response.writeHead(307, { location: elsewhere.url }).end())
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await emitRouted(pool, accountId, 1)
    await pool.query('update webhook_deliveries set attempts = 9 where endpoint_id = $1', [endpointId])
    startWorker(t, url)
    await until('it was tried', async () => (await deliveriesOf(pool, endpointId))[0]?.attempts === 10)
    assert.deepEqual(await deliveriesOf(pool, endpointId), [{ n: 1, attempts: 10, inS: null }])
    assert.deepEqual([sink.arrived.length, elsewhere.arrived.length], [1, 0])
  })

  test('of one message is posted after the response to the one before; other messages do not wait', async (t) => {
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
    await emitRouted(pool, accountId, 30, { subjects: 3 })
    startWorker(t, url)
    await until('all are posted', () => isDone(pool, endpointId))
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

  test('overtakes a message with many events whose first one hangs; these are posted in order, one at a time', async (t) => {
    const mayGoOn = Promise.withResolvers<void>()
    const [open, numbers]: [Set<number>, number[]] = [new Set(), []]
    let overlaps = 0
    const sink = await startSink(async ({ event: { type, data } }) => {
      if (type === 'message.read') return 204
      overlaps += open.size
      open.add(data.n)
      numbers.push(data.n)
      await mayGoOn.promise
      await sleep(1)
      open.delete(data.n)
      return 204
    })
    const { endpointId, accountId } = await endpointAt(pool, sink)
    await writeMany(pool, accountId, 20, { subjects: 1 })
    await emitRouted(pool, accountId, 1, { kind: 'message.read', subjects: 2 })
    const worker = startWorker(t, url)
    await until('the other one has come', () => sink.arrived.some(({ event }) => event.type === 'message.read'))
    assert.deepEqual(numbers, [1])
    mayGoOn.resolve()
    await until('all are posted', () => {
      worker.wake()
      return isDone(pool, endpointId)
    })
    assert.deepEqual(
      numbers,
      Array.from({ length: 20 }, (_, index) => index + 1),
    )
    assert.equal(overlaps, 0)
  })
})

test('events of one message are due in order, also if a router was held while another routed them', async () => {
  const sink = await startSink()
  const { endpointId, accountId } = await endpointAt(pool, sink)
  const hasBegun = Promise.withResolvers<void>()
  const mayGoOn = Promise.withResolvers<void>()
  const slow = createHotPool({ connectionString: url }, () => {})
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
  await writeMany(pool, accountId, 1, { subjects: 1 })
  const begun = routeEvents(slow)
  await hasBegun.promise
  await routeUntilDone(pool)
  await writeMany(pool, accountId, 1, { kind: 'message.delivered', subjects: 1 })
  mayGoOn.resolve()
  await begun
  await slow.end()
  const { rows } = await pool.query<{ kind: string }>(
    `select kind from webhook_deliveries join ${LOGGED_EVENTS} as e using (account_id, position) where endpoint_id = $1 order by due_at, position`,
    [endpointId],
  )
  assert.deepEqual(
    rows.map(({ kind }) => kind),
    ['message.sent', 'message.delivered'],
  )
})
