import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pool } from '../../src/db/pool.ts'
import { claimDue } from '../../src/webhooks/claim.ts'
import { disableEndpoint } from '../../src/webhooks/endpoints.ts'
import { createTestDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { endpointAt, newAccount, startSink, tellRouted } from './support.ts'

const { hotPool: pool } = await createTestDatabase()
const sink = await startSink()
const [ONE, TWO] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']

/** How many events of this endpoint a worker gets. */
async function take(endpointId: number, lease: string, db: Pool = pool): Promise<number> {
  const due = await claimDue(db, { lease, room: new Map(), underWay: [] })
  return due.filter((one) => one.endpointId === endpointId).length
}

/** Time moves by data. */
async function endsIn(endpointId: number, seconds: number, db: Pool = pool): Promise<void> {
  await db.query(`update webhook_endpoints set leased_until = now() + $2 * interval '1 second' where id = $1`, [endpointId, seconds])
}

async function leaseOf(endpointId: number): Promise<{ lease: string; seconds: number }> {
  const { rows } = await pool.query(
    'select lease, extract(epoch from leased_until - now())::float8 as seconds from webhook_endpoints where id = $1',
    [endpointId],
  )
  return rows[0]
}

async function newEndpoint() {
  const { endpointId, accountId } = await endpointAt(pool, sink)
  await tellRouted(pool, accountId, 2)
  return endpointId
}

describe('a lease', () => {
  test('keeps everybody else away from an endpoint; once it has run out, anybody gets it', async () => {
    const endpointId = await newEndpoint()
    assert.deepEqual([await take(endpointId, ONE), await take(endpointId, TWO), await take(endpointId, ONE)], [2, 0, 2])
    await endsIn(endpointId, 0)
    assert.deepEqual([await take(endpointId, TWO), await take(endpointId, ONE)], [2, 0])
  })

  test('is renewed when half of its 10 s are over, so that an endpoint is served on without a pause, and by nobody else', async () => {
    const endpointId = await newEndpoint()
    await take(endpointId, ONE)
    for (let turn = 0; turn < 3; turn += 1) {
      await endsIn(endpointId, 4.9)
      assert.deepEqual([await take(endpointId, ONE), await take(endpointId, TWO)], [2, 0])
      const { lease, seconds } = await leaseOf(endpointId)
      assert.equal(lease, ONE)
      assert.ok(seconds > 5 && seconds <= 10, `for ${seconds} s more`)
    }
  })

  test('that is young is left as it is: reading writes nothing', async () => {
    const endpointId = await newEndpoint()
    await take(endpointId, ONE)
    await endsIn(endpointId, 9)
    const read = async () => (await pool.query('select xmin, leased_until::text from webhook_endpoints where id = $1', [endpointId])).rows
    const before = await read()
    assert.equal(await take(endpointId, ONE), 2)
    assert.deepEqual(await read(), before)
  })

  test('is renewed before new endpoints are taken up, however many of those have waited for longer', async () => {
    const own = await createTestDatabase()
    const { endpointId, accountId } = await endpointAt(own.hotPool, sink)
    await tellRouted(own.hotPool, accountId, 2)
    assert.equal(await take(endpointId, ONE, own.hotPool), 2)
    const another = await newAccount(own.hotPool)
    await own.hotPool.query(
      `insert into webhook_endpoints (account_id, url) select $1, 'https://example.com/' || n from generate_series(1, 150) as n`,
      [another],
    )
    await tellRouted(own.hotPool, another, 1)
    await own.hotPool.query(`update webhook_deliveries set due_at = now() - interval '1 hour' where account_id = $1`, [another])
    await endsIn(endpointId, 1, own.hotPool)
    assert.equal(await take(endpointId, ONE, own.hotPool), 2)
  })
})

test('an endpoint that is disabled is not taken, under a lease or without one', async () => {
  const endpointId = await newEndpoint()
  assert.equal(await take(endpointId, ONE), 2)
  await disableEndpoint(pool, endpointId)
  assert.equal(await take(endpointId, ONE), 0)
  await endsIn(endpointId, 0)
  assert.equal(await take(endpointId, TWO), 0)
})

test('taking waits for nobody: an endpoint that another transaction holds is left out, others are not, and one’s own goes on', async () => {
  const [locked, own, free] = [await newEndpoint(), await newEndpoint(), await newEndpoint()]
  await endsIn(locked, 0)
  await take(own, ONE)
  await endsIn(locked, 0)
  await endsIn(free, 0)
  const [holder, worker] = [await pool.connect(), await pool.connect()]
  // Sooner than the holder would be ended for doing nothing.
  await worker.query('set statement_timeout = 1000')
  await holder.query('begin')
  await holder.query('select from webhook_endpoints where id = any ($1) for update', [[locked, own]])
  const counts = async () => {
    const due = await claimDue(worker, { lease: ONE, room: new Map(), underWay: [] })
    return [locked, own, free].map((id) => due.filter(({ endpointId }) => endpointId === id).length)
  }
  try {
    assert.deepEqual(await counts(), [0, 2, 2])
  } finally {
    // Whatever has become of them: the pool waits for both at the end.
    holder.release(true)
    worker.release(true)
  }
  await until('the lock is gone', async () => (await take(locked, ONE)) === 2)
})
