import { test } from 'node:test'
import { createAccount } from '../../src/accounts/accounts.ts'
import { assertError } from '../support/service.ts'
import { pool, signedIn } from './shared.ts'

const { accountId } = await createAccount(pool, 'Shop', ['rcs'])
const ask = await signedIn('operator')

for (const [what, body, reason] of [
  ['an empty list', { addresses: [] }, ['/addresses', 'must have at least 1 item']],
  ['another type', { addresses: 7 }, ['/addresses', 'must be an array']],
  ['an unknown value', { scopes: ['nope'] }, ['/scopes/0', 'must be one of send, read, export, manage']],
  [
    'no time',
    { expiresAt: 'never' },
    ['/expiresAt', 'must be a time with its zone, such as 2026-01-31T08:00:00Z or 2026-01-31T09:00:00+01:00'],
  ],
] as [string, object, [string, string]][]) {
  test(`says in one sentence what is wrong with ${what} in a field that may be null`, async () => {
    assertError(await ask('POST', `/accounts/${accountId}/keys`, body), 400, 'RCS_INVALID_REQUEST', [reason])
  })
}
