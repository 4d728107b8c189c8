import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'
import { heraldJson, runHerald, testFailures } from '../support/process.ts'
import { createCaller } from '../support/service.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL }
const HOUR_MS = 3_600_000

describe('herald key', { concurrency: 2 }, () => {
  test('create restricts a key, list shows it, and update changes one restriction at a time', async () => {
    const { accountId } = await createCaller(pool)
    const args = [
      '--scope',
      'send,read',
      '--scope',
      'read',
      '--expires',
      '2999-01-31T08:00:00+01:00',
      '--address',
      '192.0.2.7,2001:db8::9/32',
    ]
    const created = await heraldJson(['key', 'create', `${accountId}`, ...args, '--address', '10.1.2.3/8'], env)
    const restrictions = {
      scopes: ['send', 'read'],
      expiresAt: '2999-01-31T07:00:00.000Z',
      addresses: ['10.0.0.0/8', '192.0.2.7/32', '2001:db8::/32'],
    }
    const { integrationKey, secret, ...rest } = created
    assert.deepEqual(rest, restrictions)
    assert.match(secret, /^hs_/)
    const listed = async () => (await heraldJson(['key', 'list', `${accountId}`], env)).at(-1)
    const { createdAt, ...info } = await listed()
    assert.deepEqual(info, { integrationKey, ...restrictions, lastUsedAt: null, rotatedAt: null, revokedAt: null })

    const update = (...options: string[]) => heraldJson(['key', 'update', integrationKey, ...options, '--yes'], env)
    const scoped = await update('--scope', 'export')
    assert.deepEqual(scoped, { createdAt, ...info, scopes: ['export'] })
    assert.equal((await update('--address', 'any')).addresses, null)
    assert.equal((await update('--expires', 'never')).expiresAt, null)
    assert.deepEqual(await update('--scope', 'all'), { createdAt, ...info, scopes: null, addresses: null, expiresAt: null })
    const soon = Date.parse((await update('--expires', '90d')).expiresAt) - Date.now()
    assert.ok(soon > 90 * 24 * HOUR_MS - HOUR_MS && soon <= 90 * 24 * HOUR_MS, `${soon} ms`)
    const rotated = await heraldJson(['key', 'rotate', integrationKey, '--yes'], env)
    assert.deepEqual(Object.keys(rotated), ['integrationKey', 'secret'])
    assert.notEqual((await listed()).expiresAt, null, 'rotating keeps the restrictions')
  })

  test('stores IPv4-mapped IPv6 as IPv4, in every spelling', async () => {
    const { accountId } = await createCaller(pool)
    for (const [given, stored] of [
      ['::ffff:10.0.0.1', '10.0.0.1/32'],
      ['0:0:0:0:0:ffff:10.0.0.1', '10.0.0.1/32'],
      ['0000::FFFF:a00:1', '10.0.0.1/32'],
      ['::0:ffff:10.1.2.3/104', '10.0.0.0/8'],
      ['::ffff:0:0/96', '0.0.0.0/0'],
      ['::1', '::1/128'],
    ] as const) {
      const { addresses, integrationKey } = await heraldJson(['key', 'create', `${accountId}`, '--address', given], env)
      assert.deepEqual(addresses, [stored], given)
      const updated = await heraldJson(['key', 'update', integrationKey, '--address', given, '--yes'], env)
      assert.deepEqual(updated.addresses, [stored], given)
    }
  })

  test('create without options prints the key and the secret alone', async () => {
    const { accountId } = await createCaller(pool)
    assert.deepEqual(Object.keys(await heraldJson(['key', 'create', `${accountId}`], env)), ['integrationKey', 'secret'])
    const { stdout } = await runHerald(['key', 'create', `${accountId}`, '--scope', 'send', '--expires', '2999-01-01T00:00:00Z'], env)
    assert.match(
      stdout,
      /^Integration key: .*\nSecret: .*\nRestricted to scopes: send; expires: 2999-01-01T00:00:00.000Z\nThe secret is shown/,
    )
    const list = await runHerald(['key', 'list', `${accountId}`], env)
    assert.match(list.stdout, /^KEY +SCOPES +EXPIRES +ADDRESSES +LAST USED +CREATED +ROTATED +REVOKED\nhk_\w+ +all +never +any +never +/)
  })

  const create = (...options: string[]) => ['create', '1', ...options]
  testFailures(
    ['key'],
    [
      [create('--scope', 'sned'), /Allowed values are send, read, export, and manage\./],
      [create('--scope', ''), /Allowed values are/],
      [create('--expires', '2020-01-01T00:00:00Z'), /It must be in the future; "revoke" ends it at once\./],
      [create('--expires', '2999-01-01'), /It must be a time with its zone/],
      [create('--expires', '0d'), /It must be a time with its zone/],
      [create('--address', '10.0.0.0/33'), /It must be addresses or networks, such as/],
      [create('--address', '2001:db8::/129'), /It must be addresses or networks, such as/],
      [create('--address', '::ffff:0.0.0.0/95'), /It must be addresses or networks, such as/],
      [create('--address', 'example.com'), /It must be addresses or networks, such as/],
      [create('--address', '10.0.0.1,'), /It must be addresses or networks, such as/],
      [create('--address', Array.from({ length: 101 }, (_, n) => `10.0.0.${n}`).join()), /A key has at most 100 addresses and networks\./],
      [['update', 'hk_nobody', '--scope', 'send', '--yes'], /^There is no live integration key hk_nobody/],
      [['update', 'hk_nobody'], /--scope, --expires or --address is required/],
    ],
    env,
  )
})
