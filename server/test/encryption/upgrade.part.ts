import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import { migrate } from '../../src/db/migrate.ts'
import { installationSecret } from '../../src/db/secrets.ts'
import { newSecret } from '../../src/webhooks/sign.ts'
import { readTargets } from '../../src/webhooks/take.ts'
import { createTestDatabase } from '../support/database.ts'
import { dumpTables, findSecrets } from '../support/search.ts'
import { keyLine, newKeyFile } from './support.ts'

const MIGRATIONS = new URL('../../src/db/migrations/', import.meta.url)
const ENCRYPTED = '0012_encrypted_secrets'
const { pool } = await createTestDatabase({ empty: true })
const file = newKeyFile(keyLine('first'))
const links = Buffer.alloc(32, 'the key of short links')
const [replaced, current, other] = [newSecret(), newSecret(), newSecret()]

/** As the version before left it. */
async function applyOlder(): Promise<void> {
  await pool.query(
    'create table schema_migrations (name text primary key, checksum text not null, applied_at timestamptz not null default now())',
  )
  for (const name of readdirSync(MIGRATIONS).sort()) {
    if (name >= `${ENCRYPTED}.sql`) return
    const sql = readFileSync(new URL(name, MIGRATIONS), 'utf8')
    await pool.query(sql)
    const values = [name.replace('.sql', ''), createHash('sha256').update(sql).digest('hex')]
    await pool.query('insert into schema_migrations (name, checksum) values ($1, $2)', values)
  }
}

describe('the upgrade of a database with secrets in plain text', () => {
  before(async () => {
    await applyOlder()
    await pool.query(`insert into secrets (name, value) values ('links', $1)`, [links])
    await pool.query(`insert into accounts (name, modules) values ('Older', '{rcs}')`)
    await pool.query(`insert into webhook_endpoints (account_id, url) values (1, 'https://a.example'), (1, 'https://b.example')`)
    await pool.query(
      `insert into webhook_secrets (endpoint_id, secret, created_at, ends_at)
       values (1, $1, now() - interval '2 hours', now() + interval '1 hour'), (1, $2, now() - interval '1 hour', null), (2, $3, now(), null)`,
      [replaced, current, other],
    )
  })

  test('changes nothing where there is no key to encrypt them with', async () => {
    await assert.rejects(migrate(pool), /has secrets in plain text, and a key to encrypt them was not given/)
    assert.equal((await pool.query(`select secret from webhook_secrets where secret like 'whsec_%'`)).rowCount, 3)
  })

  test('by ten processes at once encrypts each of them once, and leaves no plain text behind', async () => {
    const applied = await Promise.all(Array.from({ length: 10 }, () => migrate(pool, file.load)))
    assert.equal(applied.flat().filter((name) => name === ENCRYPTED).length, 1)
    const { rows } = await pool.query('select count(*) as webhooks, (select count(*) from secrets) as secrets from webhook_secrets')
    assert.deepEqual(rows, [{ webhooks: 3, secrets: 1 }])
    const secrets = [links, replaced, current, other].map((value) => ({ what: 'a secret', value }))
    for (const [table, text] of await dumpTables(pool)) assert.deepEqual([table, findSecrets(secrets, text)], [table, []])
  })

  test('keeps every secret, in its order and until its end', async () => {
    assert.deepEqual(await installationSecret(pool, 'links', file.load()), links)
    const { targets } = await readTargets(pool, [1, 2], file.load())
    assert.deepEqual(
      [...targets.values()].map(({ secrets }) => secrets),
      [[current, replaced], [other]],
    )
    const { rows } = await pool.query(`select ends_at > now() + interval '59 minutes' as ends from webhook_secrets order by id`)
    assert.deepEqual(rows, [{ ends: true }, { ends: null }, { ends: null }])
  })
})
