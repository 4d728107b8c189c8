import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { resumeAccount, suspendAccount } from '../../src/accounts/accounts.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { SCOPES } from '../../src/scopes.ts'
import { call, createCaller } from '../support/service.ts'
import { newCaller, pool, url } from './messages-service.ts'

// What every operation of the OpenAPI document has in common. The tests of an operation do not repeat it.

const document = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8'))
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
/** The only one that needs no credentials is tested with the document. */
const paths = Object.entries<object>(document.paths).filter(([path]) => path !== '/openapi.json')
const operations = paths.flatMap(([path, methods]) => Object.keys(methods).map((method) => [method.toUpperCase(), path] as const))

/** What a key needs for each operation. Every other GET needs `read`, and everything else `manage`. */
const SCOPES_OF: Record<string, string> = {
  'POST /messages': 'send',
  'POST /messages/test': 'send',
  'POST /messages/{messageId}/cancel': 'send',
  'POST /campaigns': 'send',
  'POST /campaigns/{id}/pause': 'send',
  'POST /campaigns/{id}/resume': 'send',
  'POST /campaigns/{id}/cancel': 'send',
  'POST /templates/check': 'read',
  'POST /capabilities': 'read',
  'GET /messages/export': 'export',
  'GET /reports/messages/export': 'export',
  'GET /reports/campaigns/{id}/all-data-export': 'export',
}
const scopeOf = (method: string, path: string) => SCOPES_OF[`${method} ${path}`] ?? (method === 'GET' ? 'read' : 'manage')
const urlOf = (path: string) => `${url}/v1${path.replaceAll(/\{\w+\}/g, '1')}`
const BROKEN = '{"cut off'
/** With another method, these paths match a route whose path has an id. */
const LITERAL = ['/templates/check', '/messages/test', '/messages/export']

/** Sends a body that is not JSON: the expected error must come before the check of the body. */
async function ask(method: string, path: string, authorization?: string) {
  const hasBody = method !== 'GET' && method !== 'DELETE'
  const { status, headers, body } = await call(urlOf(path), {
    method,
    ...(authorization && { authorization }),
    ...(hasBody && { body: BROKEN, headers: { 'Idempotency-Key': 'k' } }),
  })
  return { status, headers, code: body.code, details: body.details }
}

describe('every operation', () => {
  test('is in the document', () => assert.ok(operations.length > 20, `${operations.length} operations`))

  test('responds 401 without credentials, and 403 to an account without the module rcs', async () => {
    const { authorization } = await createCaller(pool, ['sms'])
    for (const [method, path] of operations) {
      const [anonymous, without] = [await ask(method, path), await ask(method, path, authorization)]
      // Wrong credentials have a limit of their own, which comes after the check.
      assert.ok(anonymous.code === 'RCS_UNAUTHORIZED' || anonymous.code === 'RCS_RATE_LIMITED', `${method} ${path}: ${anonymous.code}`)
      assert.deepEqual([without.status, without.code], [403, 'RCS_MODULE_NOT_AVAILABLE'], `${method} ${path}`)
    }
  })

  test('responds 403 to a suspended account, as do unknown paths and other methods, and as before once it is resumed', async () => {
    const { authorization, accountId } = await newCaller()
    await suspendAccount(pool, accountId)
    const reason = 'The operator has suspended the account; nothing of it is sent meanwhile.'
    for (const [method, path] of [...operations, ['GET', '/nowhere'], ['DELETE', '/agents']] as const) {
      const { status, code, details } = await ask(method, path, authorization)
      assert.deepEqual([status, code, details], [403, 'RCS_ACCOUNT_SUSPENDED', [{ path: '', reason }]], `${method} ${path}`)
    }
    await resumeAccount(pool, accountId)
    assert.equal((await ask('GET', '/agents', authorization)).status, 200)
  })

  test('responds 403 to a key without its scope, and not to a key with its scope alone', async () => {
    const { accountId } = await newCaller()
    const keyFor = async (scopes: (typeof SCOPES)[number][]) => {
      const { integrationKey, secret } = await createKey(pool, accountId, { scopes })
      return `Bearer ${integrationKey}:${secret}`
    }
    const keys = new Map<string, { only: string; others: string }>()
    for (const scope of SCOPES) {
      const others = SCOPES.filter((one) => one !== scope)
      keys.set(scope, { only: await keyFor([scope]), others: await keyFor(others) })
    }
    for (const [method, path] of operations) {
      const scope = scopeOf(method, path)
      const { only, others } = keys.get(scope) as { only: string; others: string }
      const refused = await ask(method, path, others)
      const reason = `The request needs the scope ${scope}; the key has ${SCOPES.filter((one) => one !== scope).join(', ')}.`
      assert.deepEqual([refused.status, refused.code, refused.details], [403, 'RCS_SCOPE', [{ path: '', reason }]], `${method} ${path}`)
      assert.notEqual((await ask(method, path, only)).status, 403, `${method} ${path}`)
      assert.deepEqual(document.paths[path][method.toLowerCase()].security, [{ integrationKey: [scope] }], `${method} ${path}`)
    }
  })

  test('responds 400 to an unknown query parameter', async () => {
    const { authorization } = await newCaller()
    for (const [method, path] of operations.filter(([one]) => one === 'GET' || one === 'DELETE')) {
      const { status, details } = await ask(method, `${path}?misspelt=1`, authorization)
      assert.deepEqual([status, details], [400, [{ path: '/misspelt', reason: 'is not known here; is it misspelt?' }]], `${method} ${path}`)
    }
  })

  test('responds 405 with the allowed methods to any other method', async () => {
    const { authorization } = await newCaller()
    for (const [path, methods] of paths.filter(([one]) => !LITERAL.includes(one))) {
      const allowed = Object.keys(methods).map((method) => method.toUpperCase())
      const expected = [...allowed, ...(allowed.includes('GET') && !path.endsWith('export') ? ['HEAD'] : [])].sort()
      for (const method of METHODS.filter((one) => !allowed.includes(one))) {
        const { status, headers, details } = await ask(method, path, authorization)
        const reason = `The path allows only ${expected.join(', ')}.`
        assert.deepEqual([status, headers.get('allow'), details], [405, expected.join(', '), [{ path: '', reason }]], `${method} ${path}`)
      }
    }
  })
})
