import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAccount } from '../../src/accounts/accounts.ts'
import { createKey, revokeKey } from '../../src/accounts/keys.ts'
import { assignAgent, changeAgent, createAgent } from '../../src/agents/agents.ts'
import { ownerOf } from '../support/database.ts'
import { assertError } from '../support/service.ts'
import { pool, signedIn } from './shared.ts'

// The filters of the lists of keys and agents, which the console shows in its addresses.

const operator = await signedIn('operator')
const { accountId } = await createAccount(pool, 'Shop', ['rcs'])
const path = `/accounts/${accountId}`

async function idsAt(list: string, id: string): Promise<string[]> {
  const { status, body } = await operator('GET', `${path}/${list}`)
  assert.equal(status, 200, JSON.stringify(body))
  return body.items.map((item: Record<string, string>) => item[id])
}

test('the list of keys has only keys with the status, and each key has one status', async () => {
  const make = async (expiresAt?: Date) => (await createKey(pool, accountId, expiresAt && { expiresAt })).integrationKey
  const anHourAgo = new Date(Date.now() - 3_600_000)
  const active = [await make(), await make(new Date(Date.now() + 3_600_000))]
  const expired = await make(anHourAgo)
  const revoked = [await make(), await make(anHourAgo)]
  for (const key of revoked) await revokeKey(pool, key)
  const keysWith = (status: string) => idsAt(`keys?status=${status}`, 'integrationKey')
  assert.deepEqual(await keysWith('ACTIVE'), active)
  assert.deepEqual(await keysWith('EXPIRED'), [expired])
  assert.deepEqual(await keysWith('REVOKED'), revoked)
  assert.equal((await idsAt('keys', 'integrationKey')).length, 5)
  assertError(await operator('GET', `${path}/keys?status=OLD`), 400, 'RCS_INVALID_REQUEST', [
    ['/status', 'must be one of ACTIVE, EXPIRED, REVOKED'],
  ])
})

test('the list of an account’s agents has only active or only inactive ones', async () => {
  for (const agentId of ['filter-a', 'filter-b', 'filter-c']) {
    await createAgent(pool, { agentId, name: agentId, billingType: 'single', carrier: 'simulator' })
    if (agentId !== 'filter-c') await assignAgent(pool, agentId, accountId)
  }
  await changeAgent(pool, accountId, 'filter-b', { active: false })
  assert.deepEqual(await idsAt('assignments?active=true', 'agentId'), ['filter-a'])
  assert.deepEqual(await idsAt('assignments?active=false', 'agentId'), ['filter-b'])
  assert.deepEqual(await idsAt('assignments', 'agentId'), ['filter-a', 'filter-b'])
})

test('an agent has the accounts that it is assigned to', async () => {
  const record = { agentId: 'of-two', name: 'Of two', billingType: 'single', carrier: 'simulator' } as const
  await createAgent(pool, record)
  const { accountId: otherId } = await createAccount(pool, 'Other shop', ['rcs'])
  assert.deepEqual((await operator('GET', '/agents/of-two')).body, { ...record, accounts: [] })
  for (const id of [otherId, accountId]) await assignAgent(pool, 'of-two', id)
  await changeAgent(pool, otherId, 'of-two', { displayName: 'Two', active: false })
  const accounts = [
    { accountId, active: true },
    { accountId: otherId, displayName: 'Two', active: false },
  ]
  assert.deepEqual((await operator('GET', '/agents/of-two')).body, { ...record, accounts })
  assertError(await operator('GET', '/agents/of-none'), 404, 'RCS_NOT_FOUND')
})

test('the count of what depends on an agent stops at 10,000', async () => {
  await createAgent(pool, { agentId: 'of-many', name: 'Of many', billingType: 'single', carrier: 'simulator' })
  await assignAgent(pool, 'of-many', accountId)
  await ownerOf(pool).query(
    `insert into opt_outs (account_id, agent_id, phone, opted_out, source, changed_at)
     select $1, 'of-many', '+48' || 500000000 + n, true, 'operator', now() from generate_series(1, 10001) as n`,
    [accountId],
  )
  const { body } = await operator('GET', `${path}/assignments/of-many`)
  assert.deepEqual(body.use, { messages: 0, campaigns: 0, autoReplies: 0, optOuts: 10_000 })
})
