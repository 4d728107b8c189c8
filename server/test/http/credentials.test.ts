import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setModules } from '../../src/accounts/accounts.ts'
import { createKey, revokeKey, rotateKey, updateKey } from '../../src/accounts/keys.ts'
import { createTestDatabase } from '../support/database.ts'
import { call, createCaller, startTestService } from '../support/service.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL, HERALD_LIMIT_OTHERS_PER_MINUTE: '100000' }
const [one, two] = [await startTestService(env, { roles: ['api'] }), await startTestService(env, { roles: ['api'] })]

const get = (url: string, authorization?: string) => call(`${url}/v1/agents`, authorization === undefined ? {} : { authorization })

describe('credentials', () => {
  test('that are wrong, missing or malformed get the same status, headers and body', async () => {
    const { integrationKey, secret, authorization } = await createCaller(pool)
    const revoked = await createCaller(pool)
    await revokeKey(pool, revoked.integrationKey)
    const expired = await createCaller(pool)
    await updateKey(pool, expired.integrationKey, { expiresAt: new Date(Date.now() - 1) })
    const attempts: Record<string, string | undefined> = {
      missing: undefined,
      empty: '',
      'the scheme alone': 'Bearer',
      'another scheme': `Basic ${Buffer.from(`${integrationKey}:${secret}`).toString('base64')}`,
      'no colon': `Bearer ${integrationKey}${secret}`,
      'two colons': `Bearer ${integrationKey}:${secret}:`,
      'key alone': `Bearer ${integrationKey}:`,
      'secret alone': `Bearer :${secret}`,
      'unknown key': `Bearer hk_${'x'.repeat(22)}:${secret}`,
      'wrong secret': `Bearer ${integrationKey}:hs_${'x'.repeat(43)}`,
      'secret cut short': authorization.slice(0, -1),
      'secret with a letter more': `${authorization}x`,
      'secret in another case': `Bearer ${integrationKey}:${secret.toUpperCase().replace('HS_', 'hs_')}`,
      "another account's secret": `Bearer ${integrationKey}:${revoked.secret}`,
      'a revoked key': revoked.authorization,
      'an expired key': expired.authorization,
      'an endless one': `Bearer ${integrationKey}:hs_${'x'.repeat(8_000)}`,
      'not ASCII': 'Bearer hk_\u00e9:hs_\u00e9',
      SQL: "Bearer hk_' or 1=1 --:hs_x",
    }
    const responses = new Set<string>()
    for (const [name, value] of Object.entries(attempts)) {
      const { status, headers, body } = await get(one.url, value)
      assert.equal(status, 401, name)
      const shape = [...headers].filter(([header]) => !['date', 'x-request-id', 'ratelimit'].includes(header))
      responses.add(JSON.stringify([shape, { ...body, requestId: '' }]))
    }
    assert.equal(responses.size, 1, [...responses].join('\n'))
    assert.equal((await get(one.url, authorization)).status, 200)
  })

  test('may have the scheme in any case', async () => {
    const { integrationKey, secret } = await createCaller(pool)
    assert.equal((await get(one.url, `bEARER ${integrationKey}:${secret}`)).status, 200)
  })

  test('with a rotated secret are rejected by every node from the response to the rotation on', async () => {
    const { integrationKey, authorization } = await createCaller(pool)
    let current = authorization
    for (let round = 0; round < 25; round += 1) {
      // Traffic on both nodes, so that whatever a node might keep is warm.
      const noise = [one, two, one, two].map(({ url }) => get(url, current))
      const { secret } = await rotateKey(pool, integrationKey)
      const old = current
      current = `Bearer ${integrationKey}:${secret}`
      const [refusedByOne, refusedByTwo, takenByOne, takenByTwo] = await Promise.all([
        get(one.url, old),
        get(two.url, old),
        get(one.url, current),
        get(two.url, current),
      ])
      // 429 after the 30 wrong attempts that an address has in a minute. Either way, the old secret is refused.
      assert.ok([401, 429].includes(refusedByOne.status), `round ${round}: ${refusedByOne.status}`)
      assert.ok([401, 429].includes(refusedByTwo.status), `round ${round}: ${refusedByTwo.status}`)
      assert.equal(takenByOne.status, 200)
      assert.equal(takenByTwo.status, 200)
      await Promise.all(noise)
    }
  })

  test('with a revoked, expired or restricted key, or without the module, are rejected at once by every node', async () => {
    const { accountId, authorization, integrationKey } = await createCaller(pool)
    assert.equal((await get(two.url, authorization)).status, 200)
    await setModules(pool, accountId, ['sms'])
    assert.equal((await get(two.url, authorization)).status, 403)
    await setModules(pool, accountId, ['rcs'])
    assert.equal((await get(two.url, authorization)).status, 200)
    await updateKey(pool, integrationKey, { scopes: ['send'] })
    assert.equal((await get(two.url, authorization)).status, 403)
    await updateKey(pool, integrationKey, { scopes: ['read'] })
    assert.equal((await get(two.url, authorization)).status, 200)
    await updateKey(pool, integrationKey, { expiresAt: new Date(Date.now() - 1) })
    assert.notEqual((await get(two.url, authorization)).status, 200)
    await updateKey(pool, integrationKey, { expiresAt: null })
    assert.equal((await get(two.url, authorization)).status, 200)
    await revokeKey(pool, integrationKey)
    assert.notEqual((await get(two.url, authorization)).status, 200)
  })

  test('of several keys of an account are all valid', async () => {
    const { accountId, authorization } = await createCaller(pool)
    const second = await createKey(pool, accountId)
    assert.equal((await get(one.url, `Bearer ${second.integrationKey}:${second.secret}`)).status, 200)
    assert.equal((await get(one.url, authorization)).status, 200)
  })

  test('have a secret of at least 256 random bits, which the database does not store', async () => {
    const { integrationKey, secret } = await createCaller(pool)
    assert.match(integrationKey, /^hk_[0-9A-Za-z]{22}$/)
    assert.match(secret, /^hs_[0-9A-Za-z]{43}$/)
    assert.ok(43 * Math.log2(62) >= 256)
    const { rows } = await pool.query('select k::text as row from integration_keys k')
    assert.ok(rows.every(({ row }) => !row.includes(secret)))
    const letters = new Set(
      (await Promise.all(Array.from({ length: 50 }, () => createKey(pool, 1)))).flatMap((key) => [...key.secret.slice(3)]),
    )
    assert.equal(letters.size, 62)
  })
})
