import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { call, createAssignedAgent } from '../support/service.ts'
import { assertNoSuchTemplate, noTemplates, sending, TEXT } from '../support/templates.ts'
import { newCaller, pool, url } from './templates-service.ts'

const REPLACEMENT = { name: 'New', basic: false, status: 'APPROVED', message: TEXT }

describe('DELETE /templates/{id}', () => {
  test('responds 204 without a body, and the template is gone', async () => {
    const { created, remove, read, replace, list } = await newCaller()
    const id = await created()
    const { status, body, headers } = await remove(id)
    assert.deepEqual([status, body, headers.get('content-type')], [204, '', null])
    assert.deepEqual([(await remove(id)).status, (await read(id)).status, (await replace(id, REPLACEMENT)).status], [404, 404, 404])
    assert.deepEqual((await list()).body.items, [])
  })

  test('accepts a Content-Type without a body', async () => {
    const { created, authorization } = await newCaller()
    const headers = { 'content-type': 'application/json' }
    assert.equal((await call(`${url}/v1/templates/${await created()}`, { method: 'DELETE', authorization, headers })).status, 204)
  })

  test('responds with the same 404 to a template of another account, an unknown and an invalid one', async () => {
    const { remove, created } = await newCaller()
    const stranger = await newCaller()
    const foreign = await stranger.created()
    for (const id of [foreign, ...noTemplates(await created())]) assertNoSuchTemplate(await remove(id), id)
    assert.equal((await stranger.read(foreign)).status, 200)
  })

  const carousel = (templateId: number) => ({
    type: 'CAROUSEL',
    data: { cards: [{ title: 'A' }, { title: 'B', buttons: sending(templateId).buttons }] },
  })
  for (const [place, message] of [
    ['a button', sending],
    ['a button on a card of a carousel', carousel],
  ] as const) {
    test(`rejects a template that ${place} of another template sends`, async () => {
      const { created, remove, replace, read } = await newCaller()
      const id = await created()
      const user = await created(message(id))
      const { status, body } = await remove(id)
      assert.equal(status, 409)
      assert.deepEqual(body, {
        statusCode: 409,
        code: 'RCS_TEMPLATE_IN_USE',
        message: 'RCS_TEMPLATE_IN_USE',
        requestId: body.requestId,
        details: [{ path: '', reason: `is used by a button of template ${user}` }],
      })
      assert.equal((await read(id)).status, 200)
      await replace(user, REPLACEMENT)
      assert.equal((await remove(id)).status, 204)
    })
  }

  test('deletes a template after the one that used it', async () => {
    const { created, remove } = await newCaller()
    const id = await created()
    const user = await created(sending(id))
    assert.deepEqual([(await remove(id)).status, (await remove(user)).status, (await remove(id)).status], [409, 204, 204])
  })

  test('deletes a template whose own button sends it', async () => {
    const { created, remove, replace } = await newCaller()
    const id = await created()
    await replace(id, { ...REPLACEMENT, message: sending(id) })
    assert.equal((await remove(id)).status, 204)
  })

  test('rejects a template that an automatic reply uses', async () => {
    const { accountId, created, remove } = await newCaller()
    const id = await created()
    const agentId = await createAssignedAgent(pool, accountId)
    const { rows } = await pool.query(
      `insert into auto_replies (account_id, agent_id, keyword, template_id) values ($1, $2, 'hours', $3) returning id`,
      [accountId, agentId, id],
    )
    const { status, body } = await remove(id)
    assert.deepEqual([status, body.code], [409, 'RCS_TEMPLATE_IN_USE'])
    assert.deepEqual(body.details, [{ path: '', reason: `is used by the automatic reply of agent ${agentId} to "hours"` }])
    await pool.query('delete from auto_replies where id = $1', [rows[0].id])
    assert.equal((await remove(id)).status, 204)
  })

  test('names up to twenty templates that use it, and not itself', async () => {
    const { created, remove, replace } = await newCaller()
    const id = await created()
    await replace(id, { ...REPLACEMENT, message: sending(id) })
    const user = await created(sending(id))
    assert.deepEqual((await remove(id)).body.details, [{ path: '', reason: `is used by a button of template ${user}` }])
    await Promise.all(Array.from({ length: 20 }, () => created(sending(id))))
    assert.equal((await remove(id)).body.details.length, 20)
  })

  test('deletes a template that uses another one, even if both are deleted concurrently', async () => {
    const { created, remove } = await newCaller()
    for (let round = 0; round < 20; round += 1) {
      const id = await created()
      const user = await created(sending(id))
      const [ofTarget, ofUser] = await Promise.all([remove(id), remove(user)])
      assert.equal(ofUser.status, 204)
      assert.ok(ofTarget.status === 204 || ofTarget.status === 409)
    }
  })
})
