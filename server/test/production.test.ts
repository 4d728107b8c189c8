import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { createKey, revokeKey } from '../src/accounts/keys.ts'
import { readQuotas } from '../src/accounts/quotas.ts'
import { carrierFiles } from '../src/carriers/settings.ts'
import { makeDemoAccount } from '../src/cli/demo.ts'
import { loadConfig } from '../src/config.ts'
import { newKeyLine } from '../src/encryption/key-file.ts'
import { isReadableByOthers } from '../src/files.ts'
import { removeGroup } from '../src/groups/groups.ts'
import { type Facts, productionProblems, refuseDemoAccount } from '../src/production.ts'
import { ROLES } from '../src/roles.ts'
import { installCertificate } from './support/certificates.ts'
import { createTestDatabase } from './support/database.ts'
import { createCaller } from './support/service.ts'

const dir = mkdtempSync(join(tmpdir(), 'herald-production-'))
after(() => rmSync(dir, { recursive: true, force: true }))
const HERALD_CARRIERS = join(dir, 'carriers.json')
writeFileSync(HERALD_CARRIERS, '{}', { mode: 0o600 })
const HERALD_ENCRYPTION_KEY_FILE = join(dir, 'encryption.key')
writeFileSync(HERALD_ENCRYPTION_KEY_FILE, `${newKeyLine()}\n`, { mode: 0o600 })

const SOUND = {
  HERALD_CARRIERS,
  HERALD_DATABASE_URL: 'postgres://herald@db.example.com/herald?sslmode=verify-full',
  HERALD_ENCRYPTION_KEY_FILE,
}
const FACTS: Facts = { roles: ROLES, isRoot: false, acceptsAnyCertificate: false, exposedCarrierFiles: [], isKeyFileExposed: false }

/** The variables that the problems begin with. */
function refused(env: Record<string, string | undefined>, facts: Partial<Facts> = {}): string[] {
  return productionProblems(loadConfig({ ...SOUND, ...env }), { ...FACTS, ...facts }).map((sentence) => sentence.split(' ')[0] ?? '')
}

describe('production', () => {
  const { settings: tls } = installCertificate('ec')
  const cases: [string, Record<string, string | undefined>, Partial<Facts>, string[]][] = [
    ['accepts carriers, a database over TLS and a loopback address', {}, {}, []],
    ['refuses the simulator', { HERALD_CARRIERS: undefined }, {}, ['HERALD_CARRIERS']],
    ['refuses a node of the API without carriers', { HERALD_CARRIERS: undefined }, { roles: ['api'] }, ['HERALD_CARRIERS']],
    ['accepts a node that only posts webhooks without carriers', { HERALD_CARRIERS: undefined }, { roles: ['webhooks'] }, []],
    ['refuses the embedded database', { HERALD_DATABASE_URL: undefined }, {}, ['HERALD_DATABASE_URL']],
    [
      'accepts the embedded database that is allowed, whose key file is made beside it',
      { HERALD_DATABASE_URL: undefined, HERALD_ALLOW_EMBEDDED: 'true', HERALD_ENCRYPTION_KEY_FILE: undefined },
      {},
      [],
    ],
    ['refuses plain HTTP on all addresses', { HERALD_HOST: '0.0.0.0' }, {}, ['HERALD_TLS_CERT']],
    ['refuses plain HTTP on a name', { HERALD_HOST: '127.example.com' }, {}, ['HERALD_TLS_CERT']],
    ['refuses plain HTTP behind a proxy elsewhere', { HERALD_HOST: '::', HERALD_TRUST_PROXY: '10.0.0.1' }, {}, ['HERALD_TLS_CERT']],
    ['accepts TLS on all addresses', { HERALD_HOST: '0.0.0.0', ...tls }, {}, []],
    ['accepts plain HTTP on ::1', { HERALD_HOST: '::1' }, {}, []],
    ['accepts plain HTTP on localhost', { HERALD_HOST: 'localhost' }, {}, []],
    ['refuses webhooks to private addresses', { HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' }, {}, ['HERALD_WEBHOOK_ALLOW_PRIVATE']],
    ['refuses exposed carrier files', {}, { exposedCarrierFiles: ['/x/carriers.json'] }, ['HERALD_CARRIERS']],
    ['refuses a database of its own without a key file', { HERALD_ENCRYPTION_KEY_FILE: undefined }, {}, ['HERALD_ENCRYPTION_KEY_FILE']],
    ['refuses an exposed key file', {}, { isKeyFileExposed: true }, ['HERALD_ENCRYPTION_KEY_FILE']],
    ['refuses to accept any certificate', {}, { acceptsAnyCertificate: true }, ['NODE_TLS_REJECT_UNAUTHORIZED']],
    ['refuses root', {}, { isRoot: true }, ['Herald']],
    [
      'names every reason at once',
      { HERALD_CARRIERS: undefined, HERALD_DATABASE_URL: undefined, HERALD_HOST: '0.0.0.0', HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' },
      { isRoot: true },
      ['HERALD_CARRIERS', 'HERALD_DATABASE_URL', 'HERALD_TLS_CERT', 'HERALD_WEBHOOK_ALLOW_PRIVATE', 'Herald'],
    ],
  ]
  for (const [name, env, facts, expected] of cases) test(name, () => assert.deepEqual(refused(env, facts), expected))

  test('development accepts a trial', () => assert.equal(loadConfig({}).environment, 'development'))
})

describe('a database connection in production', () => {
  const ca = join(dir, 'ca.pem')
  writeFileSync(ca, 'a certificate')
  const cases: [string, 'accepted' | 'refused'][] = [
    ['postgres://u@db.example.com/herald', 'refused'],
    ['postgres://u@10.0.0.5:5432/herald', 'refused'],
    ['postgres://u@db.example.com/herald?sslmode=disable', 'refused'],
    // Encrypted, but for any server that responds.
    ['postgres://u@db.example.com/herald?sslmode=no-verify', 'refused'],
    ['postgres://u@db.example.com/herald?ssl=no-verify', 'refused'],
    ['postgres://u@db.example.com/herald?uselibpqcompat=true&sslmode=require', 'refused'],
    ['postgres://u@db.example.com/herald?uselibpqcompat=true&sslmode=prefer', 'refused'],
    ['postgres://u@db.example.com/herald?ssl=0', 'refused'],
    // The driver takes the host of the query.
    ['postgres://u@localhost/herald?host=db.example.com', 'refused'],
    ['postgres://u@127.0.0.1,db.example.com/herald', 'refused'],
    ['postgres://u@localhost.example.com/herald', 'refused'],
    // The driver falls back to plain text with none of these, and checks the certificate.
    ['postgres://u@db.example.com/herald?sslmode=prefer', 'accepted'],
    ['postgres://u@db.example.com/herald?sslmode=require', 'accepted'],
    ['postgres://u@db.example.com/herald?sslmode=verify-ca', 'accepted'],
    ['postgres://u@db.example.com/herald?sslmode=verify-full', 'accepted'],
    ['postgres://u@db.example.com/herald?ssl=true', 'accepted'],
    ['postgres://u@db.example.com/herald?ssl=1', 'accepted'],
    [`postgres://u@db.example.com/herald?sslrootcert=${encodeURIComponent(ca)}`, 'accepted'],
    [`postgres://u@db.example.com/herald?uselibpqcompat=true&sslmode=verify-ca&sslrootcert=${encodeURIComponent(ca)}`, 'accepted'],
    ['postgres://u@localhost/herald', 'accepted'],
    ['postgres://u@127.0.0.1/herald', 'accepted'],
    ['postgres://u@[::1]:5432/herald', 'accepted'],
    ['postgres://u@localhost/herald?host=/run/postgresql', 'accepted'],
    ['postgres://u@db.example.com/herald?host=%2Frun%2Fpostgresql', 'accepted'],
    ['postgres://u@%2Frun%2Fpostgresql/herald', 'accepted'],
    ['postgres:///herald', 'accepted'],
  ]
  for (const [HERALD_DATABASE_URL, result] of cases) {
    test(`is ${result}: ${HERALD_DATABASE_URL.replace(encodeURIComponent(ca), 'PATH')}`, () => {
      assert.deepEqual(refused({ HERALD_DATABASE_URL }), result === 'refused' ? ['HERALD_DATABASE_URL'] : [])
    })
  }
})

describe('carrier files', () => {
  test('are the settings file and every key file that it names', () => {
    const carriers = { a: { serviceAccountFile: 'a.json' }, b: { serviceAccountFile: '/keys/b.json' }, c: { type: 'smpp' }, d: 7 }
    const path = join(dir, 'named.json')
    writeFileSync(path, JSON.stringify(carriers))
    assert.deepEqual(carrierFiles(path), [path, join(dir, 'a.json'), '/keys/b.json'])
    writeFileSync(path, 'no JSON')
    assert.deepEqual(carrierFiles(path), [path])
  })

  test('are exposed if other users can read or write them, but not if their group can', () => {
    const path = join(dir, 'mode.json')
    writeFileSync(path, '')
    const exposed = [0o600, 0o400, 0o640, 0o660, 0o604, 0o644, 0o602, 0o601].filter((mode) => {
      chmodSync(path, mode)
      return isReadableByOthers(path)
    })
    assert.deepEqual(exposed, [0o604, 0o644, 0o602])
    assert.equal(isReadableByOthers(join(dir, 'missing')), false)
  })
})

describe('the demo account in production', () => {
  test('is rejected while it has a live key', async () => {
    const { pool } = await createTestDatabase()
    await refuseDemoAccount(pool)
    assert.equal(await makeDemoAccount(pool, dir), true)
    await createCaller(pool)
    await assert.rejects(refuseDemoAccount(pool), { message: /refuses to start with the demo account: .*"herald key list 1"/ })
    const second = await createKey(pool, 1)
    const { rows } = await pool.query<{ key: string }>('select integration_key as key from integration_keys where account_id = 1')
    for (const { key } of rows.filter(({ key: each }) => each !== second.integrationKey)) await revokeKey(pool, key)
    await assert.rejects(refuseDemoAccount(pool))
    await revokeKey(pool, second.integrationKey)
    await refuseDemoAccount(pool)
  })
})

test('the demo account counts the bytes of its groups, which are freed with them', async () => {
  const { pool } = await createTestDatabase()
  await makeDemoAccount(pool, dir)
  const bytes = async () => (await pool.query('select sum(bytes)::int as bytes, sum(members)::int as members from groups')).rows[0]
  const used = async () => (await readQuotas(pool, 1)).storedBytes.used
  assert.deepEqual(await bytes(), { bytes: 130 * 150, members: 130 })
  const before = await used()
  for (const number of [1, 2]) await removeGroup(pool, { accountId: 1, number })
  assert.equal(before - (await used()), 130 * 150)
  assert.ok((await used()) >= 0)
})
