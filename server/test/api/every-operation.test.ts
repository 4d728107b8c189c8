import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { call, createCaller } from '../support/service.ts'
import { newCaller, pool, url } from './messages-service.ts'

// What every operation of the OpenAPI document has in common. The tests of an operation do not repeat it.

const document = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8'))
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
/** The only one that needs no credentials is tested with the document. */
const paths = Object.entries<object>(document.paths).filter(([path]) => path !== '/openapi.json')
const operations = paths.flatMap(([path, methods]) => Object.keys(methods).map((method) => [method.toUpperCase(), path] as const))
const urlOf = (path: string) => `${url}/v1${path.replaceAll(/\{\w+\}/g, '1')}`
const BROKEN = '{"cut off'
/** Another method of these is one of a path with an id. */
const LITERAL = ['/templates/check', '/messages/test']

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
        const { status, headers } = await ask(method, path, authorization)
        assert.deepEqual([status, headers.get('allow')?.split(', ').sort()], [405, expected], `${method} ${path}`)
      }
    }
  })
})
