import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertNoSuchTemplate, noTemplates, TEXT } from '../support/templates.ts'
import { newCaller } from './templates-service.ts'

describe('GET /templates/{id}', () => {
  test('returns the template', async () => {
    const { create, read } = await newCaller()
    const created = await create({ name: 'X', description: 'Y', message: TEXT })
    const { status, body } = await read(created.body.id)
    assert.equal(status, 200)
    assert.deepEqual(body, created.body)
  })

  test('responds with the same 404 to a template of another account, an unknown and an invalid one', async () => {
    const { read, created } = await newCaller()
    const foreign = await (await newCaller()).created()
    for (const id of [foreign, ...noTemplates(await created())]) assertNoSuchTemplate(await read(id), id)
  })
})
