import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { call } from '../support/service.ts'
import { assertNoSuchTemplate, noTemplates, TEXT } from '../support/templates.ts'
import { newCaller, url } from './templates-service.ts'

describe('GET /templates/{id}', () => {
  test('is protected', async () => {
    assert.equal((await call(`${url}/v1/templates/1`)).status, 401)
  })

  test('answers with the template', async () => {
    const { create, read } = await newCaller()
    const created = await create({ name: 'X', description: 'Y', message: TEXT })
    const { status, body } = await read(created.body.id)
    assert.equal(status, 200)
    assert.deepEqual(body, created.body)
  })

  test('one of another account, an unknown one and an absurd one are all the same 404', async () => {
    const { read, created } = await newCaller()
    const foreign = await (await newCaller()).created()
    for (const id of [foreign, ...noTemplates(await created())]) assertNoSuchTemplate(await read(id), id)
  })

  test('a query parameter is an error', async () => {
    const { read, created } = await newCaller()
    assert.deepEqual((await read(`${await created()}?verbose=1`)).body.details, [
      { path: '/verbose', reason: 'is not known here; is it misspelt?' },
    ])
  })

  test('only the methods that it has are allowed', async () => {
    const { authorization } = await newCaller()
    for (const method of ['POST', 'PATCH']) {
      const { status, headers } = await call(`${url}/v1/templates/1`, { method, authorization })
      assert.equal(status, 405)
      assert.deepEqual(headers.get('allow')?.split(', ').sort(), ['DELETE', 'GET', 'HEAD', 'PUT'])
    }
  })
})
