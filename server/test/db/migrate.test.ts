import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { describe, test } from 'node:test'
import { ensureSchema, migrate, schemaState } from '../../src/db/migrate.ts'
import { createTestDatabase } from '../support/database.ts'

const names = readdirSync(new URL('../../src/db/migrations/', import.meta.url)).map((file) => file.replace('.sql', ''))

describe('migrations', () => {
  test('are applied to an empty database once', async () => {
    const { pool } = await createTestDatabase({ empty: true })
    assert.equal(await schemaState(pool), 'empty')
    assert.deepEqual(await migrate(pool), names)
    assert.equal(await schemaState(pool), 'current')
    assert.deepEqual(await migrate(pool), [])
  })

  test('are applied once by ten concurrent processes, none of which fails', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { pool } = await createTestDatabase({ empty: true })
      const applied = await Promise.all(Array.from({ length: 10 }, () => migrate(pool)))
      assert.deepEqual(applied.flat(), names)
    }
  })

  test('reject a newer schema by name, and leave it unchanged', async () => {
    const { pool } = await createTestDatabase()
    await pool.query(`insert into schema_migrations (name, checksum) values ('9999_future', 'x')`)
    const refusal = { message: /newer schema \(9999_future\) than this version of Herald knows/ }
    assert.equal(await schemaState(pool), 'newer')
    await assert.rejects(migrate(pool), refusal)
    await assert.rejects(ensureSchema(pool, true), refusal)
  })

  test('reject a migration that was changed after it was applied', async () => {
    const { pool } = await createTestDatabase()
    await pool.query(`update schema_migrations set checksum = 'other'`)
    await assert.rejects(migrate(pool), { message: /is not the one that was applied/ })
  })
})
