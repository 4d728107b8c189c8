import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createAccount } from '../../src/accounts/accounts.ts'
import { createKey, findKey } from '../../src/accounts/keys.ts'
import { QUOTAS, type Quota, setQuotas } from '../../src/accounts/quotas.ts'
import { assertError } from '../support/service.ts'
import { pool, signedIn } from './shared.ts'

// Null is a value in these bodies; in all others, a property that is null counts as absent.

const ask = await signedIn('operator')
const { accountId } = await createAccount(pool, 'Shop', ['rcs'])
const lastEntry = async (action: string) =>
  (await pool.query('select before, after from audit_log where action = $1 order by id desc limit 1', [action])).rows[0]

describe('PATCH of a key', () => {
  const restrictions = { scopes: ['send', 'read'], expiresAt: '2099-01-31T08:00:00.000Z', addresses: ['10.0.0.0/8'] }
  const newKey = async () => {
    const given = { scopes: ['send', 'read'], addresses: ['10.0.0.0/8'], expiresAt: new Date(restrictions.expiresAt) } as const
    const { integrationKey } = await createKey(pool, accountId, given as never)
    return { integrationKey, path: `/accounts/${accountId}/keys/${integrationKey}` }
  }

  for (const name of ['scopes', 'expiresAt', 'addresses'] as const) {
    test(`removes ${name} by null, keeps the other restrictions, and records it`, async () => {
      const { integrationKey, path } = await newKey()
      const { status, body } = await ask('PATCH', path, { [name]: null })
      const { [name]: removed, ...kept } = restrictions
      const { scopes, expiresAt, addresses } = body
      assert.deepEqual([status, JSON.parse(JSON.stringify({ scopes, expiresAt, addresses }))], [200, kept])
      assert.equal((await findKey(pool, integrationKey))[name], null)
      const { before, after } = await lastEntry('changeKey')
      assert.deepEqual([before[name], name in after, after.integrationKey], [removed, false, integrationKey])
    })
  }

  test('removes one restriction and changes another at once', async () => {
    const { integrationKey, path } = await newKey()
    assert.equal((await ask('PATCH', path, { scopes: null, expiresAt: '2098-01-31T08:00:00Z' })).status, 200)
    const { scopes, expiresAt, addresses } = await findKey(pool, integrationKey)
    assert.deepEqual([scopes, expiresAt?.getUTCFullYear(), addresses], [null, 2098, ['10.0.0.0/8']])
  })
})

describe('PATCH of quotas', () => {
  for (const quota of Object.keys(QUOTAS) as Quota[]) {
    test(`sets ${quota} to the default by null, keeps the other quotas, and records it`, async () => {
      await setQuotas(pool, accountId, { messagesPerDay: 7, templates: 7, storedBytes: 7, exports: 7 })
      const { status, body } = await ask('PATCH', `/accounts/${accountId}/quotas`, { [quota]: null })
      const others = Object.keys(QUOTAS).filter((name) => name !== quota)
      assert.deepEqual([status, body[quota].quota, body[quota].isDefault], [200, QUOTAS[quota].byDefault, true])
      for (const other of others) assert.deepEqual([body[other].quota, body[other].isDefault], [7, false], other)
      const { before, after } = await lastEntry('setQuotas')
      assert.deepEqual([before[quota].quota, after[quota].isDefault], [7, true])
    })
  }
})

test('null counts as absent where it has no meaning', async () => {
  const named = await ask('PATCH', `/accounts/${accountId}`, { name: 'Renamed', quarantineHours: null })
  assert.deepEqual([named.status, named.body.name, named.body.quarantineHours], [200, 'Renamed', 24])
  assertError(await ask('PATCH', `/accounts/${accountId}`, { name: null }), 400, 'RCS_INVALID_REQUEST', [
    ['', 'must have at least 1 of name, modules, quarantineHours'],
  ])
  assert.equal((await ask('POST', `/accounts/${accountId}/keys`, { scopes: null })).status, 201)
})
