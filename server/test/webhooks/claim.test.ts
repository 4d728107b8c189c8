import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pool } from '../../src/db/pool.ts'
import { disableEndpoint } from '../../src/webhooks/change-endpoint.ts'
import { claimDue } from '../../src/webhooks/claim.ts'
import { createTestDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { emitRouted, endpointAt, newAccount, startSink } from './support.ts'

const { hotPool: pool } = await createTestDatabase()
const sink = await startSink()
const [ONE, TWO] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']

/** How many events of this endpoint a worker claims. */
async function claim(endpointId: number, lease: string, db: Pool = pool): Promise<number> {
  const due = await claimDue(db, { lease, room: new Map(), underWay: [] })
  return due.filter((one) => one.endpointId === endpointId).length
}

async function setLeaseEnd(endpointId: number, seconds: number, db: Pool = pool): Promise<void> {
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
  await emitRouted(pool, accountId, 2)
  return endpointId
}

describe('a lease', () => {
  test('keeps other workers from an endpoint until it expires', async () => {
    const endpointId = await newEndpoint()
    assert.deepEqual([await claim(endpointId, ONE), await claim(endpointId, TWO), await claim(endpointId, ONE)], [2, 0, 2])
    await setLeaseEnd(endpointId, 0)
    assert.deepEqual([await claim(endpointId, TWO), await claim(endpointId, ONE)], [2, 0])
  })

  test('is renewed by its worker after half of its 10 s', async () => {
    const endpointId = await newEndpoint()
    await claim(endpointId, ONE)
    for (let turn = 0; turn < 3; turn += 1) {
      await setLeaseEnd(endpointId, 4.9)
      assert.deepEqual([await claim(endpointId, ONE), await claim(endpointId, TWO)], [2, 0])
      const { lease, seconds } = await leaseOf(endpointId)
      assert.equal(lease, ONE)
      assert.ok(seconds > 5 && seconds <= 10, `for ${seconds} s more`)
    }
  })

  test('is not written in its first half', async () => {
    const endpointId = await newEndpoint()
    await claim(endpointId, ONE)
    await setLeaseEnd(endpointId, 9)
    const read = async () => (await pool.query('select xmin, leased_until::text from webhook_endpoints where id = $1', [endpointId])).rows
    const before = await read()
    assert.equal(await claim(endpointId, ONE), 2)
    assert.deepEqual(await read(), before)
  })

  test('is renewed before new endpoints are claimed, however long these have waited', async () => {
    const own = await createTestDatabase()
    const { endpointId, accountId } = await endpointAt(own.hotPool, sink)
    await emitRouted(own.hotPool, accountId, 2)
    assert.equal(await claim(endpointId, ONE, own.hotPool), 2)
    const another = await newAccount(own.hotPool)
    await own.hotPool.query(
      `insert into webhook_endpoints (account_id, url) select $1, 'https://example.com/' || n from generate_series(1, 150) as n`,
      [another],
    )
    await emitRouted(own.hotPool, another, 1)
    await own.hotPool.query(`update webhook_deliveries set due_at = now() - interval '1 hour' where account_id = $1`, [another])
    await setLeaseEnd(endpointId, 1, own.hotPool)
    assert.equal(await claim(endpointId, ONE, own.hotPool), 2)
  })
})

test('a disabled endpoint is not claimed, with a lease or without', async () => {
  const endpointId = await newEndpoint()
  assert.equal(await claim(endpointId, ONE), 2)
  await disableEndpoint(pool, endpointId)
  assert.equal(await claim(endpointId, ONE), 0)
  await setLeaseEnd(endpointId, 0)
  assert.equal(await claim(endpointId, TWO), 0)
})

test('a claim skips an endpoint that another transaction locks, and waits for none', async () => {
  const [locked, own, free] = [await newEndpoint(), await newEndpoint(), await newEndpoint()]
  await setLeaseEnd(locked, 0)
  await claim(own, ONE)
  await setLeaseEnd(locked, 0)
  await setLeaseEnd(free, 0)
  const [holder, worker] = [await pool.connect(), await pool.connect()]
  await worker.query(`set statement_timeout = '60s'`)
  await holder.query('set idle_in_transaction_session_timeout = 0')
  await holder.query('begin')
  await holder.query('select from webhook_endpoints where id = any ($1) for update', [[locked, own]])
  const counts = async () => {
    const due = await claimDue(worker, { lease: ONE, room: new Map(), underWay: [] })
    return [locked, own, free].map((id) => due.filter(({ endpointId }) => endpointId === id).length)
  }
  try {
    assert.deepEqual(await counts(), [0, 2, 2])
  } finally {
    // Also if the test fails: the pool waits for both at its end.
    holder.release(true)
    worker.release(true)
  }
  await until('the lock is gone', async () => (await claim(locked, ONE)) === 2)
})
