import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, describe, test } from 'node:test'
import { ensureSchema, migrate, schemaState } from '../../src/db/migrate.ts'
import { createOwnerPool } from '../../src/db/pool.ts'
import { createTestDatabase, type DatabaseOptions, ownerOf } from '../support/database.ts'

const names = readdirSync(new URL('../../src/db/migrations/', import.meta.url)).map((file) => file.replace('.sql', ''))

function connectOwner(connectionString: string) {
  const owner = createOwnerPool({ connectionString }, () => {})
  after(() => owner.end())
  return owner
}

async function createDatabase(options?: DatabaseOptions) {
  const database = await createTestDatabase(options)
  return { ...database, owner: connectOwner(database.url) }
}

describe('migrations', () => {
  test('are applied to an empty database once', async () => {
    const { pool, owner } = await createDatabase({ empty: true })
    assert.equal(await schemaState(pool), 'empty')
    assert.deepEqual(await migrate(owner), names)
    assert.equal(await schemaState(pool), 'current')
    assert.deepEqual(await migrate(owner), [])
  })

  test('are applied once by ten concurrent processes, none of which fails', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { url } = await createTestDatabase({ empty: true })
      const applied = await Promise.all(Array.from({ length: 10 }, () => migrate(connectOwner(url))))
      assert.deepEqual(applied.flat(), names)
    }
  })

  test('empty the replies that were processed before, and leave receipts and waiting replies alone', async () => {
    const { pool } = await createDatabase()
    const row = (id: string, kind: string, due: string) => `('rbm', '${id}', '${kind}', '+48500100200', now(), '{"text":"Hi"}', ${due})`
    await pool.query(
      `insert into carrier_events (carrier, event_id, kind, phone, occurred_at, event, process_after)
       values ${row('processed', 'wrote', 'null')}, ${row('waiting', 'wrote', 'now()')}, ${row('receipt', 'delivered', 'null')}`,
    )
    const file = new URL('../../src/db/migrations/0014_processed_replies.sql', import.meta.url)
    await ownerOf(pool).query(readFileSync(file, 'utf8'))
    const { rows } = await pool.query(`select event_id from carrier_events where phone <> '' or event::text <> '{}' order by 1`)
    assert.deepEqual(rows, [{ event_id: 'receipt' }, { event_id: 'waiting' }])
  })

  test('reject a newer schema by name, and leave it unchanged', async () => {
    const { pool, owner } = await createDatabase()
    await ownerOf(pool).query(`insert into schema_migrations (name, checksum) values ('9999_future', 'x')`)
    const refusal = { message: /newer schema \(9999_future\) than this version of Herald knows/ }
    assert.equal(await schemaState(pool), 'newer')
    await assert.rejects(migrate(owner), refusal)
    await assert.rejects(ensureSchema({ pool, owner }, true), refusal)
  })

  test('reject a migration that was changed after it was applied', async () => {
    const { pool, owner } = await createDatabase()
    await ownerOf(pool).query(`update schema_migrations set checksum = 'other'`)
    await assert.rejects(migrate(owner), { message: /is not the one that was applied/ })
  })
})
