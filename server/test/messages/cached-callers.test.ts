import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { resumeAccount, setModules, suspendAccount } from '../../src/accounts/accounts.ts'
import { revokeKey, rotateKey, updateKey } from '../../src/accounts/keys.ts'
import { createTestDatabase } from '../support/database.ts'
import { callerAt, countRows, type MessageCaller, newKey, smsFallback, startMessageService } from '../support/messages.ts'
import { parseResponse, rawConnection } from '../support/raw.ts'
import type { ApiResponse } from '../support/service.ts'
import { until } from '../support/until.ts'

const database = await createTestDatabase()
const { pool } = database
const { newCaller, url } = await startMessageService(database)

/** A caller that the node has authenticated, and now has in its cache. */
async function cachedCaller(): Promise<MessageCaller> {
  const caller = await newCaller()
  assert.equal((await caller.send(newKey(), caller.request())).status, 202)
  return caller
}

const REQUESTS: Record<string, (caller: MessageCaller) => Promise<{ status: number }>> = {
  'a message': (caller) => caller.send(newKey(), caller.request()),
  'a message with a fault': (caller) => caller.send(newKey(), caller.request({ recipient: 'nobody' })),
  'a message with an unknown agent': (caller) => caller.send(newKey(), caller.request({ agentId: 'unknown' })),
  'a message with an SMS': (caller) => caller.send(newKey(), caller.request({ smsFallback: smsFallback() })),
  'a test message': (caller) =>
    caller.sendTest({ agentId: caller.agentId, recipients: ['+48500100200'], message: caller.request().message }),
  'a body that is not JSON': (caller) =>
    caller.ask('POST', '/messages', 'x', { 'Idempotency-Key': newKey(), 'Content-Type': 'text/plain' }),
}

describe('a node with a cached caller', () => {
  for (const [what, send] of Object.entries(REQUESTS)) {
    test(`rejects ${what} with 401 as soon as the key is revoked, and stores nothing`, async () => {
      const caller = await cachedCaller()
      await revokeKey(pool, caller.integrationKey)
      assert.equal((await send(caller)).status, 401)
      assert.equal((await countRows(pool, caller.accountId)).messages, 1)
    })
  }

  for (const [what, change, status, code] of [
    ['scopes exclude the request', { scopes: ['read'] }, 403, 'RCS_SCOPE'],
    ['addresses exclude the client', { addresses: ['192.0.2.0/24'] }, 403, 'RCS_ADDRESS_NOT_ALLOWED'],
    ['time has passed', { expiresAt: new Date(Date.now() - 1) }, 401, 'RCS_UNAUTHORIZED'],
  ] as const) {
    test(`rejects every request as soon as the key's ${what}, and accepts it again after the change is undone`, async () => {
      const caller = await cachedCaller()
      await updateKey(pool, caller.integrationKey, change as never)
      for (const [kind, send] of Object.entries(REQUESTS)) {
        const { status: actual, body } = (await send(caller)) as ApiResponse
        assert.deepEqual([kind, actual, body.code], [kind, status, code])
      }
      assert.equal((await countRows(pool, caller.accountId)).messages, 1)
      await updateKey(pool, caller.integrationKey, { scopes: null, addresses: null, expiresAt: null })
      assert.equal((await caller.send(newKey(), caller.request())).status, 202)
    })
  }

  test('rejects with 401 once the key expires, without any change of the key', async () => {
    const caller = await newCaller()
    const { rows } = await pool.query<{ at: Date }>(`select now() + interval '1 second' as at`)
    await updateKey(pool, caller.integrationKey, { expiresAt: (rows[0] as { at: Date }).at })
    assert.equal((await caller.send(newKey(), caller.request())).status, 202)
    await until('the key has expired', async () => {
      const { rowCount } = await pool.query('select from integration_keys where integration_key = $1 and expires_at <= now()', [
        caller.integrationKey,
      ])
      return rowCount === 1
    })
    assert.equal((await caller.send(newKey(), caller.request())).status, 401)
    assert.equal((await countRows(pool, caller.accountId)).messages, 1)
  })

  test('accepts with a key that has the scope, the address and time left, in one statement', async (t) => {
    const caller = await newCaller()
    const restrictions = { scopes: ['send'], addresses: ['127.0.0.0/8', '::1/128'], expiresAt: new Date(Date.now() + 3_600_000) }
    await updateKey(pool, caller.integrationKey, restrictions as never)
    assert.equal((await caller.send(newKey(), caller.request())).status, 202)
    const query = t.mock.method(pg.Pool.prototype, 'query')
    assert.equal((await caller.send(newKey(), caller.request())).status, 202)
    const names = query.mock.calls.map((call) => (call.arguments[0] as unknown as { name?: string }).name)
    assert.equal(names.includes('authenticate'), false)
  })

  test('rejects a replay with 401 as soon as the secret is rotated, and accepts the new secret', async () => {
    const caller = await newCaller()
    const [key, body] = [newKey(), caller.request()]
    assert.equal((await caller.send(key, body)).status, 202)
    const { integrationKey, secret } = await rotateKey(pool, caller.integrationKey)
    assert.equal((await caller.send(key, body)).status, 401)
    const rotated = callerAt(url, { ...caller, secret, authorization: `Bearer ${integrationKey}:${secret}` })
    assert.equal((await rotated.send(key, body)).status, 202)
  })

  test('rejects with 403 while the account lacks the module rcs', async () => {
    const caller = await cachedCaller()
    await setModules(pool, caller.accountId, ['sms'])
    assert.equal((await caller.send(newKey(), caller.request())).status, 403)
    await setModules(pool, caller.accountId, ['rcs'])
    assert.equal((await caller.send(newKey(), caller.request())).status, 202)
  })

  test('rejects every request with 403 as soon as the account is suspended, and accepts again after it is resumed', async () => {
    const caller = await cachedCaller()
    await suspendAccount(pool, caller.accountId)
    for (const [kind, send] of Object.entries(REQUESTS)) {
      const { status, body } = (await send(caller)) as ApiResponse
      assert.deepEqual([kind, status, body.code], [kind, 403, 'RCS_ACCOUNT_SUSPENDED'])
    }
    assert.equal((await countRows(pool, caller.accountId)).messages, 1)
    await resumeAccount(pool, caller.accountId)
    assert.equal((await caller.send(newKey(), caller.request())).status, 202)
  })

  for (const isCached of [true, false]) {
    test(`rejects a message whose body arrives after the suspension, of a ${isCached ? 'cached' : 'new'} caller`, async () => {
      const caller = isCached ? await cachedCaller() : await newCaller()
      const body = JSON.stringify(caller.request({ ...(isCached ? {} : { smsFallback: smsFallback() }) }))
      const connection = rawConnection(url)
      const head = [`Authorization: ${caller.authorization}`, `Idempotency-Key: ${newKey()}`, 'Content-Type: application/json']
      connection.send(
        `POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${head.join('\r\n')}\r\n\r\n`,
      )
      connection.send(body.slice(0, 10))
      // A second request shows that the node has read the head of the first one.
      assert.equal((await caller.ask('GET', '/agents')).status, 200)
      await suspendAccount(pool, caller.accountId)
      connection.send(body.slice(10))
      const { status, body: refused } = parseResponse(await connection.ended)
      assert.deepEqual([status, refused.code], [403, 'RCS_ACCOUNT_SUSPENDED'])
      assert.equal((await countRows(pool, caller.accountId)).messages, isCached ? 1 : 0)
    })
  }

  test('checks an SMS fallback against the current modules of the account', async () => {
    const caller = await cachedCaller()
    const sendWithSms = () => caller.send(newKey(), caller.request({ smsFallback: smsFallback() }))
    await setModules(pool, caller.accountId, ['rcs'])
    assert.equal((await sendWithSms()).status, 403)
    assert.equal((await caller.send(newKey(), caller.request())).status, 202)
    await setModules(pool, caller.accountId, ['rcs', 'sms'])
    assert.equal((await sendWithSms()).status, 202)
  })

  test('accepts each of many requests once while the account changes', async () => {
    const caller = await cachedCaller()
    const responses: number[] = []
    for (let round = 0; round < 10; round += 1) {
      const [, ...sent] = await Promise.all([
        setModules(pool, caller.accountId, ['rcs', 'sms']),
        ...Array.from({ length: 10 }, () => caller.send(newKey(), caller.request())),
      ])
      responses.push(...sent.map(({ status }) => status))
    }
    assert.deepEqual(new Set(responses), new Set([202]))
    assert.equal((await countRows(pool, caller.accountId)).messages, 101)
  })

  test('rejects an invalid message with an SMS fallback with 403 before 400 without the module sms', async () => {
    const caller = await cachedCaller()
    await setModules(pool, caller.accountId, ['rcs'])
    const faulty = caller.request({ recipient: 'nobody', smsFallback: smsFallback() })
    assert.equal((await caller.send(newKey(), faulty)).status, 403)
  })

  test('runs one accept statement for a revoked key, and keeps the right secret cached after a wrong one', async (t) => {
    const [revoked, right] = [await cachedCaller(), await cachedCaller()]
    await revokeKey(pool, revoked.integrationKey)
    const wrong = callerAt(url, { ...right, authorization: `Bearer ${right.integrationKey}:hs_${'x'.repeat(43)}` })
    const query = t.mock.method(pg.Pool.prototype, 'query')
    for (let n = 0; n < 3; n += 1) assert.equal((await revoked.send(newKey(), revoked.request())).status, 401)
    assert.equal((await wrong.send(newKey(), wrong.request())).status, 401)
    assert.equal((await right.send(newKey(), right.request())).status, 202)
    const names = query.mock.calls.map((call) => (call.arguments[0] as unknown as { name?: string }).name)
    assert.equal(names.filter((name) => name === 'accept-messages').length, 2)
    assert.equal(names.filter((name) => name === 'authenticate').length, 4)
  })

  test('runs one statement for a message, which also confirms the caller', async (t) => {
    const caller = await cachedCaller()
    const query = t.mock.method(pg.Pool.prototype, 'query')
    assert.equal((await caller.send(newKey(), caller.request())).status, 202)
    const names = query.mock.calls.map((call) => (call.arguments[0] as unknown as { name?: string }).name)
    assert.equal(names.filter((name) => name === 'accept-messages').length, 1)
    assert.equal(names.includes('authenticate'), false)
  })
})
