import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAccount } from '../../src/accounts/accounts.ts'
import { assertError, call } from '../support/service.ts'
import { ADMIN, newAddress, pool, signedIn } from './shared.ts'

const { accountId } = await createAccount(pool, 'Shop', ['rcs'])
const NO_ROUTE = [['', 'There is no such path. Paths are case-sensitive and have no slash at the end; /docs lists them.']] as const

test('refuses a path with an empty parameter as an unknown path, to every role, after the credentials', async () => {
  const people = [await signedIn('operator'), await signedIn('viewer', accountId)]
  for (const [method, path] of [
    ['GET', '/accounts/'],
    ['GET', '/accounts//keys'],
    ['GET', `/accounts/${accountId}/messages/`],
    ['POST', `/accounts/${accountId}/keys//revoke`],
    ['PATCH', `/accounts/${accountId}/keys/`],
    ['DELETE', '/sessions/'],
    ['PATCH', '/people/'],
  ] as const) {
    for (const ask of people) assertError(await ask(method, path), 404, 'RCS_ROUTE_NOT_FOUND', NO_ROUTE)
    // Wrong credentials are limited by address, and the tests of this folder share theirs.
    assert.equal((await call(ADMIN + path, { method, headers: { 'x-forwarded-for': newAddress() } })).status, 401, path)
  }
})
