import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { describe, test } from 'node:test'
import { ensureSchema, migrate, schemaState } from '../../src/db/migrate.ts'
import { createTestDatabase } from '../support/database.ts'

const names = readdirSync(new URL('../../src/db/migrations/', import.meta.url)).map((file) => file.replace('.sql', ''))

describe('migrations', () => {
  test('are applied to an empty database once; a second run finds nothing to do', async () => {
    const { pool } = await createTestDatabase({ empty: true })
    assert.equal(await schemaState(pool), 'empty')
    assert.deepEqual(await migrate(pool), names)
    assert.equal(await schemaState(pool), 'current')
    assert.deepEqual(await migrate(pool), [])
  })

  test('ten processes at once apply each of them once, and none of the ten fails', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { pool } = await createTestDatabase({ empty: true })
      const applied = await Promise.all(Array.from({ length: 10 }, () => migrate(pool)))
      assert.deepEqual(applied.flat(), names)
    }
  })

  test('a newer schema is refused in a sentence that names it, and left alone', async () => {
    const { pool } = await createTestDatabase()
    await pool.query(`insert into schema_migrations (name, checksum) values ('9999_future', 'x')`)
    const refusal = { message: /newer schema \(9999_future\) than this version of Herald knows/ }
    assert.equal(await schemaState(pool), 'newer')
    await assert.rejects(migrate(pool), refusal)
    await assert.rejects(ensureSchema(pool, true), refusal)
  })

  test('one that was altered after it was applied is refused', async () => {
    const { pool } = await createTestDatabase()
    await pool.query(`update schema_migrations set checksum = 'other'`)
    await assert.rejects(migrate(pool), { message: /is not the one that was applied/ })
  })
})
