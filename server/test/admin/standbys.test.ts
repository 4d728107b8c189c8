import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHighest, READ_STANDBYS, readStandbys, standbysOf } from '../../src/health/standbys.ts'
import { createTestDatabase } from '../support/database.ts'

// console/test/journeys/healthy.test.ts loses a real standby.

const ALONE = { connected: 0, synchronous: 0, names: '', inactiveSlots: 0 }

test('reports no lost standby of a database that never had one', async () => {
  const { pool } = await createTestDatabase()
  assert.deepEqual(await readStandbys(pool, 0), { connected: 0, missing: 0, commitsWait: false })
})

test('waits for no standby with a weaker synchronous_commit', async () => {
  const { pool } = await createTestDatabase()
  const client = await pool.connect()
  await client.query('set synchronous_commit = local')
  // As if synchronous_standby_names were set, which would hold back the commits of all tests.
  const { rows } = await client.query(READ_STANDBYS.replace("current_setting('synchronous_standby_names')", `'standby'`))
  client.release(true)
  assert.equal(rows[0].names, '')
})

test('reports a standby as lost if it was connected, or if it has a slot', () => {
  assert.deepEqual(standbysOf({ ...ALONE, connected: 1 }, 2), { connected: 1, missing: 1, commitsWait: false })
  assert.deepEqual(standbysOf({ ...ALONE, inactiveSlots: 1 }, 0), { connected: 0, missing: 1, commitsWait: false })
  assert.equal(standbysOf({ ...ALONE, connected: 3 }, 2).missing, 0, 'one more than before')
})

for (const [names, needed] of [
  ['standby', 1],
  ['*', 1],
  ['FIRST 2 (a, b, c)', 2],
  ['any 3 (*)', 3],
  ['2 (a, b)', 2],
] as const) {
  test(`misses ${needed} if commits wait for ${names}, and says that they do`, () => {
    assert.deepEqual(standbysOf({ ...ALONE, names }, 0), { connected: 0, missing: needed, commitsWait: true })
    assert.equal(standbysOf({ ...ALONE, connected: 3, synchronous: 3, names }, 3).commitsWait, false)
  })
}

test('reports nothing about standbys that it may not see, except reserved slots', () => {
  const hidden = { connected: null, synchronous: null, names: 'standby', inactiveSlots: 0 }
  assert.deepEqual(standbysOf(hidden, 2), { connected: null, missing: 0, commitsWait: false })
  assert.equal(standbysOf({ ...hidden, inactiveSlots: 1 }, 0).missing, 1)
})

test('remembers the highest number for an hour', () => {
  let now = 0
  const highest = createHighest(() => now)
  highest.note(2)
  now = 3_000_000
  highest.note(1)
  assert.equal(highest.value(), 2)
  now = 3_700_000
  highest.note(1)
  assert.equal(highest.value(), 1)
})
