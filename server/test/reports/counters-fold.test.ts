import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Registry } from 'prom-client'
import { createHotPool, type Executor, type Pool, transaction } from '../../src/db/pool.ts'
import { startDelivery } from '../../src/delivery/delivery.ts'
import { createDeliveryMetrics } from '../../src/delivery/metrics.ts'
import { NO_CAMPAIGN } from '../../src/ids.ts'
import { COUNTED, foldReports } from '../../src/reports/counters.ts'
import { readSummary } from '../../src/reports/summary.ts'
import { createSender, type Sender } from '../delivery/support.ts'
import { logger } from '../delivery/worker.ts'
import { readCounted } from '../support/counted.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { erased } from '../support/erased.ts'
import { createSteps } from '../support/steps.ts'
import { until } from '../support/until.ts'

// Reports say the same before, during and after a fold, whatever else runs concurrently, and when a fold fails.

const { url, hotPool: pool } = await createTestDatabase({ uncounted: 'deltas are invented' })
const otherNode = createHotPool({ connectionString: url }, () => {})
after(() => otherNode.end())

const HOUR = '2026-11-15T10:00:00.000Z'
const CAMPAIGN = '01a1e000-0000-7000-8000-000000000001'

/** Each counter has another number, so that none can stand for another. */
const each = (first: number) => Object.fromEntries(COUNTED.map((counter, place) => [counter, first + place]))

async function addDelta(accountId: number, campaignId: string, hour: string, counts: Record<string, number>): Promise<void> {
  const columns = Object.keys(counts)
  const values = [accountId, campaignId, hour, ...Object.values(counts)]
  const places = values.map((_, index) => `$${index + 1}`)
  await pool.query(`insert into report_deltas (account_id, campaign_id, hour, ${columns.join(', ')}) values (${places.join(', ')})`, values)
}

/** Deltas over fifty keys, in no order. */
async function addMany(accountId: number, count: number): Promise<void> {
  await pool.query(
    `insert into report_deltas (account_id, campaign_id, hour, accepted, sms_skipped)
     select $1, $2, $3::timestamptz + (n * 7 % 50) * interval '1 hour', 1, 2 from generate_series(1, $4::int) as n`,
    [accountId, CAMPAIGN, HOUR, count],
  )
}

async function countDeltas(db: Executor): Promise<number> {
  return (await db.query('select count(*) from report_deltas')).rows[0].count
}

let accounts = 1_000
const nextAccount = () => {
  accounts += 1
  return { accountId: accounts }
}

describe('a fold', () => {
  test('adds each counter to the total of its account, campaign and hour', async () => {
    const [one, two] = [nextAccount(), nextAccount()]
    for (const from of [100, 2_000]) {
      await addDelta(one.accountId, CAMPAIGN, HOUR, each(from))
      await addDelta(one.accountId, CAMPAIGN, HOUR, each(from))
      await addDelta(one.accountId, CAMPAIGN, '2026-11-15T11:00:00.000Z', { read: 1 })
      await addDelta(one.accountId, NO_CAMPAIGN, HOUR, { sent: 2 })
      await addDelta(two.accountId, CAMPAIGN, HOUR, { failed: 3 })
      await foldReports(pool)
      assert.equal(await countDeltas(pool), 0)
    }
    const sums = Object.fromEntries(COUNTED.map((counter, place) => [counter, 2 * (100 + place) + 2 * (2_000 + place)]))
    assert.deepEqual(await readCounted(pool, one), [
      { campaignId: NO_CAMPAIGN, hour: HOUR, counts: { sent: 4 } },
      { campaignId: CAMPAIGN, hour: HOUR, counts: sums },
      { campaignId: CAMPAIGN, hour: '2026-11-15T11:00:00.000Z', counts: { read: 2 } },
    ])
    assert.deepEqual(await readCounted(pool, two), [{ campaignId: CAMPAIGN, hour: HOUR, counts: { failed: 6 } }])
  })

  test('reports that there may be more after a full batch', async () => {
    const account = nextAccount()
    await addMany(account.accountId, 10_001)
    const before = await readCounted(pool, account)
    const rounds = [await foldReports(pool), await foldReports(pool)]
    assert.deepEqual(
      rounds.map(({ mayBeMore }) => mayBeMore),
      [true, false],
    )
    assert.equal(await countDeltas(pool), 0)
    assert.deepEqual(await readCounted(pool, account), before)
  })

  test('adds each delta once during concurrent folds of the same keys', async () => {
    const account = nextAccount()
    await addMany(account.accountId, 25_000)
    const before = await readCounted(pool, account)
    for (let round = 0; round < 2; round += 1) {
      await Promise.all([pool, otherNode, pool, otherNode].map(foldReports))
      assert.deepEqual(await readCounted(pool, account), before)
    }
    assert.equal(await countDeltas(pool), 0)
  })

  test('runs in every process that delivers', async (t) => {
    await addMany(nextAccount().accountId, 100)
    const carriers = { rcs: new Map(), sms: undefined, close: async () => {} }
    const links = { key: Buffer.alloc(32), publicUrl: 'http://localhost' }
    const delivery = startDelivery({
      pool,
      hotPool: pool,
      carriers,
      logger,
      metrics: createDeliveryMetrics(new Registry()),
      links,
      erased,
      announce: () => {},
    })
    t.after(() => delivery.stop())
    await until('all are folded', async () => (await countDeltas(pool)) === 0)
    await addMany(nextAccount().accountId, 100)
    await until('all that come later are folded, too', async () => (await countDeltas(pool)) === 0)
  })
})

const WAITING = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`

/** Holds a fold after it has taken its deltas and before it adds them. `meanwhile` gets the id of its backend process. */
async function holdFold(accountId: number, meanwhile: (pid: number) => Promise<void>): Promise<{ folding: Promise<unknown> }> {
  let folding: Promise<unknown> | undefined
  await transaction(pool, async (tx) => {
    await tx.query('select from report_totals where account_id = $1 for update', [accountId])
    folding = foldReports(otherNode)
    folding.catch(() => {})
    const { pid } = await until('it waits', async () => (await ownerOf(pool).query<{ pid: number }>(WAITING)).rows[0])
    await meanwhile(pid)
  })
  return { folding: folding as Promise<unknown> }
}

describe('a fold that waits for a lock', () => {
  /** An account with totals and further deltas. */
  async function accountWithTotals(): Promise<{ accountId: number }> {
    const account = nextAccount()
    await addDelta(account.accountId, CAMPAIGN, HOUR, each(1))
    await foldReports(pool)
    await addDelta(account.accountId, CAMPAIGN, HOUR, each(50))
    return account
  }

  test('is invisible to readers, and blocks neither writers nor folds of other keys', async () => {
    const account = await accountWithTotals()
    const other = nextAccount()
    const before = await readCounted(pool, account)
    const { folding } = await holdFold(account.accountId, async () => {
      assert.deepEqual(await readCounted(pool, account), before)
      await addDelta(other.accountId, CAMPAIGN, HOUR, { read: 1 })
      await foldReports(pool)
      assert.equal(await countDeltas(pool), 1, 'only the deltas of the first fold, which has not committed')
      assert.deepEqual(await readCounted(pool, account), before)
    })
    await folding
    assert.equal(await countDeltas(pool), 0)
    assert.deepEqual(await readCounted(pool, account), before)
    assert.deepEqual(await readCounted(pool, other), [{ campaignId: CAMPAIGN, hour: HOUR, counts: { read: 1 } }])
  })

  for (const how of ['pg_cancel_backend', 'pg_terminate_backend']) {
    test(`leaves everything to the next fold after ${how}`, async () => {
      const account = await accountWithTotals()
      const before = await readCounted(pool, account)
      const { folding } = await holdFold(account.accountId, async (pid) => {
        await ownerOf(pool).query(`select ${how}($1)`, [pid])
        await until('it no longer waits', async () => (await ownerOf(pool).query(WAITING)).rowCount === 0)
      })
      await assert.rejects(folding)
      assert.deepEqual([await countDeltas(pool), await readCounted(pool, account)], [1, before])
      await foldReports(pool)
      assert.deepEqual([await countDeltas(pool), await readCounted(pool, account)], [0, before])
    })
  }

  test('leaves everything to the next fold when it fails', async () => {
    const account = await accountWithTotals()
    const before = await readCounted(pool, account)
    await ownerOf(pool).query('alter table report_totals add constraint no check (sent < 50) not valid')
    await assert.rejects(foldReports(pool))
    assert.deepEqual([await countDeltas(pool), await readCounted(pool, account)], [1, before])
    await ownerOf(pool).query('alter table report_totals drop constraint no')
    await foldReports(pool)
    assert.deepEqual([await countDeltas(pool), await readCounted(pool, account)], [0, before])
  })
})

test('counters equal the rows at every moment while messages are sent and two nodes fold', async () => {
  const own = await createTestDatabase()
  const nodes = [own.hotPool, createHotPool({ connectionString: own.url }, () => {})] as [Pool, Pool]
  const { makeAllOf, handOver } = await createSteps(nodes[0])
  const sender: Sender = await createSender(nodes[0])
  let isOver = false
  let looks = 0
  async function write(): Promise<void> {
    for (let round = 0; round < 8; round += 1) for (const made of await makeAllOf('single', { sender, count: 3 })) await handOver(made)
    isOver = true
  }
  async function fold(node: Pool): Promise<void> {
    while (!isOver) await foldReports(node)
  }
  const both = `(select accepted, sent from report_totals union all select accepted, sent from report_deltas) as counters`
  async function look(): Promise<void> {
    for (let last = 0; !isOver; looks += 1) {
      const { rows } = await nodes[1].query(
        `select (select coalesce(sum(accepted), 0)::int from ${both}) - (select count(*) from messages) as accepted,
           (select coalesce(sum(sent), 0)::int from ${both}) - (select count(*) from messages where sent_at is not null) as sent`,
      )
      assert.deepEqual(rows, [{ accepted: 0, sent: 0 }])
      const { accepted } = await readSummary(nodes[1], sender.accountId, undefined, {})
      assert.ok(accepted >= last, `${accepted} after ${last}`)
      last = accepted
    }
  }
  await Promise.all([write(), ...nodes.map(fold), look()])
  assert.ok(looks > 10, `${looks} looks`)
  assert.deepEqual((await readSummary(nodes[0], sender.accountId, undefined, {})).sent, 24)
  await nodes[1].end()
})
