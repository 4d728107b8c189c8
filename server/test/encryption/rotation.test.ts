import assert from 'node:assert/strict'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Pool } from '../../src/db/pool.ts'
import { rotateKeys } from '../../src/db/rotate-keys.ts'
import { countByKey, installationSecret } from '../../src/db/secrets.ts'
import type { Keyring } from '../../src/encryption/keyring.ts'
import { readTargets } from '../../src/webhooks/claim.ts'
import { addEndpoint, rotateSecret } from '../../src/webhooks/endpoints.ts'
import { createTestDatabase } from '../support/database.ts'
import { heraldJson, runHerald, runHeraldProcess } from '../support/process.ts'
import { createCaller, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { emitRouted, newAccount, startSink, startWorker } from '../webhooks/support.ts'
import { keyLine, newDirectory, newKeyFile } from './support.ts'

/** Endpoints with a secret each; returns the secrets by endpoint, the newest first. */
async function addEndpoints(pool: Pool, keyring: Keyring, count: number): Promise<Map<number, string[]>> {
  const accountId = await newAccount(pool)
  const secrets = new Map<number, string[]>()
  for (let n = 0; n < count; n += 1) {
    const { endpointId, secret } = await addEndpoint(pool, { accountId, url: `https://hooks.example.com/${n}` }, keyring)
    secrets.set(endpointId, [secret])
  }
  return secrets
}

async function readSecrets(pool: Pool, keyring: Keyring, endpointIds: Iterable<number>): Promise<Map<number, string[]>> {
  const { targets } = await readTargets(pool, [...endpointIds], keyring)
  return new Map([...targets].map(([id, { secrets }]) => [id, secrets]))
}

describe('a rotation of encryption keys', () => {
  test('encrypts everything with the first key, changes no secret, and names the unused keys', async () => {
    const { pool } = await createTestDatabase()
    const [first, second, third] = [keyLine('first'), keyLine('second'), keyLine('third')]
    const file = newKeyFile(first)
    const secrets = await addEndpoints(pool, file.load(), 7)
    const links = await installationSecret(pool, 'links', file.load())
    file.write(second, first)
    const postback = await installationSecret(pool, 'postback', file.load())
    file.write(third, second, first)
    const seen: number[] = []
    const rotation = await rotateKeys(pool, file.load(), { batchSize: 3, onProgress: ({ remaining }) => seen.push(remaining) })
    assert.deepEqual(rotation, { keyId: 'third', reencrypted: 9, unusedKeyIds: ['second', 'first'] })
    assert.deepEqual([seen[0], seen.at(-1)], [9, 0])
    assert.deepEqual(await countByKey(pool), [{ keyId: 'third', values: 9 }])
    file.write(third)
    assert.deepEqual(await readSecrets(pool, file.load(), secrets.keys()), secrets)
    assert.deepEqual(await installationSecret(pool, 'links', file.load()), links)
    assert.deepEqual(await installationSecret(pool, 'postback', file.load()), postback)
    assert.deepEqual(await rotateKeys(pool, file.load()), { keyId: 'third', reencrypted: 0, unusedKeyIds: [] })
  })

  test('continues after an interruption, also by two processes', async () => {
    const { pool } = await createTestDatabase()
    const [old, next] = [keyLine('old'), keyLine('next')]
    const file = newKeyFile(old)
    const secrets = await addEndpoints(pool, file.load(), 6)
    file.write(next, old)
    const interrupted = rotateKeys(pool, file.load(), {
      batchSize: 2,
      onProgress: ({ reencrypted }) => {
        if (reencrypted > 0) throw new Error('the power is gone')
      },
    })
    await assert.rejects(interrupted, /the power is gone/)
    assert.deepEqual(await countByKey(pool), [
      { keyId: 'next', values: 2 },
      { keyId: 'old', values: 4 },
    ])
    const rotations = await Promise.all([rotateKeys(pool, file.load(), { batchSize: 1 }), rotateKeys(pool, file.load(), { batchSize: 1 })])
    assert.equal(
      rotations.reduce((sum, { reencrypted }) => sum + reencrypted, 0),
      4,
      'two concurrent rotations encrypt each value once',
    )
    assert.deepEqual(await readSecrets(pool, file.load(), secrets.keys()), secrets)
  })

  test('loses no webhook secret that is replaced at the same time', async () => {
    const { pool } = await createTestDatabase()
    const lines = [keyLine('key-0')]
    const file = newKeyFile(...lines)
    const secrets = await addEndpoints(pool, file.load(), 5)
    const replacing = [...secrets].map(async ([endpointId, known]) => {
      for (let n = 0; n < 8; n += 1) known.unshift((await rotateSecret(pool, endpointId, file.load())).secret)
    })
    for (let n = 1; n <= 8; n += 1) {
      lines.unshift(keyLine(`key-${n}`))
      file.write(...lines)
      await rotateKeys(pool, file.load(), { batchSize: 4 })
    }
    await Promise.all(replacing)
    await rotateKeys(pool, file.load())
    const stored = await readSecrets(pool, file.load(), secrets.keys())
    for (const [endpointId, known] of secrets) assert.deepEqual(new Set(stored.get(endpointId)), new Set(known))
  })

  test('does not disturb a running worker, which reads the new key', async (t) => {
    const { url, pool } = await createTestDatabase()
    const [old, next] = [keyLine('old'), keyLine('next')]
    const file = newKeyFile(old)
    const sink = await startSink()
    const accountId = await newAccount(pool)
    await addEndpoint(pool, { accountId, url: sink.url }, file.load())
    startWorker(t, url, undefined, file.load())
    await emitRouted(pool, accountId, 1)
    await until('the first has arrived', () => sink.arrived.length === 1)
    file.write(next, old)
    await rotateKeys(pool, file.load())
    await emitRouted(pool, accountId, 1)
    await until('the second has arrived', () => sink.arrived.length === 2)
  })
})

describe('a worker', () => {
  test('without the key of one endpoint serves the others, and this one when it has the key', async (t) => {
    const { url, pool } = await createTestDatabase()
    const [known, unknown] = [keyLine('known'), keyLine('unknown')]
    const [mine, theirs] = [newKeyFile(known), newKeyFile(unknown)]
    const [good, waiting] = [await startSink(), await startSink()]
    const [one, two] = [await newAccount(pool), await newAccount(pool)]
    await addEndpoint(pool, { accountId: one, url: good.url }, mine.load())
    await addEndpoint(pool, { accountId: two, url: waiting.url }, theirs.load())
    startWorker(t, url, undefined, mine.load())
    await emitRouted(pool, two, 1)
    await emitRouted(pool, one, 1)
    await until('the other endpoint is served', () => good.arrived.length === 1)
    assert.equal(waiting.arrived.length, 0)
    mine.write(known, unknown)
    await until('it is served too', () => waiting.arrived.length === 1)
  })
})

describe('an endpoint', () => {
  test('without a secret gets nothing unsigned, and continues with the next secret', async (t) => {
    const { url, pool } = await createTestDatabase()
    const file = newKeyFile(keyLine('lost'))
    const [sink, other] = [await startSink(), await startSink()]
    const [accountId, another] = [await newAccount(pool), await newAccount(pool)]
    const { endpointId } = await addEndpoint(pool, { accountId, url: sink.url }, file.load())
    file.write(keyLine('new'))
    await pool.query(`delete from webhook_secrets where key_id = 'lost'`)
    await addEndpoint(pool, { accountId: another, url: other.url }, file.load())
    startWorker(t, url, undefined, file.load())
    await emitRouted(pool, accountId, 1)
    await emitRouted(pool, another, 1)
    await until('the other endpoint is served', () => other.arrived.length === 1)
    assert.equal(sink.arrived.length, 0)
    assert.equal((await rotateSecret(pool, endpointId, file.load())).earlierSecretsEndAt, null)
    await until('it is served', () => sink.arrived.length === 1)
    assert.match(`${sink.arrived[0]?.headers['webhook-signature']}`, /^v1,\S+$/)
  })
})

describe('herald encryption', () => {
  test('creates a key, shows the status and rotates', async () => {
    const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
    const file = newKeyFile(keyLine('2026-10'))
    await addEndpoints(pool, file.load(), 3)
    const env = { HERALD_DATABASE_URL, HERALD_ENCRYPTION_KEY_FILE: file.path }
    const { stdout: line } = await runHerald(['encryption', 'create-key'], env)
    const [newId] = line.split(':') as [string]
    file.write(line.trim(), readFileSync(file.path, 'utf8').trim())
    const before = [
      { keyId: newId, use: 'encrypts', values: 0 },
      { keyId: '2026-10', use: 'decrypts', values: 3 },
    ]
    assert.deepEqual(await heraldJson(['encryption', 'status'], env), { keyFile: file.path, keys: before })
    const { stdout } = await runHerald(['encryption', 'rotate'], env)
    assert.equal(
      stdout,
      `3 values were re-encrypted; all are encrypted with the key ${newId}.\nNo longer used: 2026-10. Remove them from ${file.path} on every node, but keep them for older backups.\n`,
    )
    const again = { keyId: newId, reencrypted: 0, unusedKeyIds: ['2026-10'], keyFile: file.path }
    assert.deepEqual(await heraldJson(['encryption', 'rotate'], env), again)
  })

  test('names a missing key at the start of a node or command, and writes nothing', async () => {
    const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
    const file = newKeyFile(keyLine('theirs'))
    await installationSecret(pool, 'postback', file.load())
    const { accountId } = await createCaller(pool)
    const home = newDirectory()
    const env = { HERALD_DATABASE_URL, HERALD_ENCRYPTION_KEY_FILE: '', HOME: home }
    const path = join(home, '.herald', 'encryption.key')
    const refusal = new RegExp(`encrypted with the key theirs, which is not in ${path}. All nodes and commands need the same key file: .*`)
    for (const args of [
      ['serve', '--only', 'api'],
      ['webhook', 'add', `${accountId}`, 'https://hooks.example.com'],
      ['encryption', 'rotate'],
    ]) {
      const { code, stdout, stderr } = await runHeraldProcess(args, { ...env, HERALD_PORT: '0' })
      assert.deepEqual([code, stdout], [1, ''], args.join(' '))
      assert.match(stderr, refusal)
      assert.doesNotMatch(stderr, /\n\s+at /, 'no stack')
    }
    assert.equal(existsSync(path), false)
    const keys = [{ keyId: 'theirs', use: 'missing', values: 1 }]
    assert.deepEqual(await heraldJson(['encryption', 'status'], env), { keyFile: path, keys })
    await assert.rejects(
      startTestService({ HERALD_DATABASE_URL, HERALD_ENCRYPTION_KEY_FILE: newKeyFile(keyLine('mine')).path }),
      /key theirs/,
    )
  })

  test('says once where it created the key file', async () => {
    const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
    const { accountId } = await createCaller(pool)
    const home = newDirectory()
    const env = { HERALD_DATABASE_URL, HERALD_ENCRYPTION_KEY_FILE: '', HOME: home }
    const addEndpoint = (url: string) => runHerald(['webhook', 'add', `${accountId}`, url], env)
    const [first, second] = [await addEndpoint('https://a.example.com'), await addEndpoint('https://b.example.com')]
    const path = join(home, '.herald', 'encryption.key')
    assert.equal(first.stderr, `A new encryption key is in ${path}. Back it up: without it, the database can't be used.\n`)
    assert.deepEqual([first.code, second.code, second.stderr], [0, 0, ''])
  })

  test('warns of a key file that others may read', async () => {
    const { url: HERALD_DATABASE_URL } = await createTestDatabase()
    const file = newKeyFile(keyLine('a'))
    chmodSync(file.path, 0o644)
    const service = await startTestService({ HERALD_DATABASE_URL, HERALD_ENCRYPTION_KEY_FILE: file.path }, { roles: ['api'] })
    const warning = `"file":${JSON.stringify(file.path)},"msg":"a file with secrets is readable by other users: chmod 600"`
    assert.ok(service.log().includes(warning), service.log())
  })

  test('shares the key file of the home directory between nodes with different data directories', async () => {
    const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
    const home = newDirectory()
    const { accountId } = await createCaller(pool)
    const shared = { HERALD_DATABASE_URL, HERALD_ENCRYPTION_KEY_FILE: '', HOME: home }
    const [one, two] = [
      { ...shared, HERALD_DATA_DIR: newDirectory() },
      { ...shared, HERALD_DATA_DIR: newDirectory() },
    ]
    await heraldJson(['webhook', 'add', `${accountId}`, 'https://hooks.example.com/1'], one)
    await heraldJson(['webhook', 'add', `${accountId}`, 'https://hooks.example.com/2'], two)
    const { keys } = await heraldJson(['encryption', 'status'], two)
    assert.deepEqual(
      keys.map(({ use, values }: { use: string; values: number }) => [use, values]),
      [['encrypts', 2]],
    )
  })
})
