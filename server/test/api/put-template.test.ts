import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertNoSuchTemplate, noTemplates, sending, TEXT } from '../support/templates.ts'
import { newCaller, pool } from './templates-service.ts'

const REPLACEMENT = { name: 'New', basic: false, status: 'APPROVED', message: { type: 'MESSAGE', content: 'New' } }

async function contentOf(id: number): Promise<{ contentId: number; message: unknown }> {
  const { rows } = await pool.query(
    `select c.id as "contentId", c.message from templates t join contents c on c.id = t.content_id where t.id = $1`,
    [id],
  )
  return rows[0]
}

describe('PUT /templates/{id}', () => {
  test('replaces the template, removes an absent description, and keeps id and createdAt', async () => {
    const { create, replace, read } = await newCaller()
    const { body: before } = await create({ name: 'Old', description: 'Gone', message: TEXT })
    const { status, body } = await replace(before.id, REPLACEMENT)
    assert.equal(status, 200)
    assert.deepEqual(body, { id: before.id, ...REPLACEMENT, createdAt: before.createdAt, updatedAt: body.updatedAt })
    assert.deepEqual((await read(before.id)).body, body)
    assert.equal((await replace(before.id, { ...REPLACEMENT, description: 'Back', status: 'DRAFT' })).body.description, 'Back')
  })

  test('sets updatedAt to the time of the change, and never to an earlier time', async () => {
    const { created, replace } = await newCaller()
    const id = await created()
    await pool.query(`update templates set updated_at = '2020-01-01' where id = $1`, [id])
    const startedAt = Date.now()
    assert.ok(Date.parse((await replace(id, REPLACEMENT)).body.updatedAt) > startedAt - 60_000)
    // As by a node whose clock is ahead.
    await pool.query(`update templates set updated_at = '2100-01-01' where id = $1`, [id])
    assert.equal((await replace(id, REPLACEMENT)).body.updatedAt, '2100-01-01T00:00:00.000Z')
  })

  test('keeps the order of the fields', async () => {
    const { created, replace, read } = await newCaller()
    const id = await created({ type: 'MESSAGE', content: 'Hello' })
    await replace(id, { ...REPLACEMENT, message: { content: 'Hello', type: 'MESSAGE' } })
    assert.equal(JSON.stringify((await read(id)).body.message), '{"content":"Hello","type":"MESSAGE"}')
  })

  for (const field of ['name', 'basic', 'status', 'message']) {
    test(`requires ${field}, and changes nothing without it`, async () => {
      const { create, replace, read } = await newCaller()
      const { body: before } = await create({ name: 'Old', message: TEXT })
      const { status, body } = await replace(before.id, { ...REPLACEMENT, [field]: undefined })
      assert.deepEqual([status, body.code], [400, field === 'message' ? 'RCS_INVALID_MESSAGE' : 'RCS_INVALID_REQUEST'])
      assert.deepEqual(body.details, [{ path: `/${field}`, reason: 'is required' }])
      assert.deepEqual((await read(before.id)).body, before)
    })
  }

  test('responds with the same 404 to a template of another account, an unknown and an invalid one', async () => {
    const { replace, created } = await newCaller()
    const stranger = await newCaller()
    const foreign = await stranger.created()
    for (const id of [foreign, ...noTemplates(await created())]) assertNoSuchTemplate(await replace(id, REPLACEMENT), id)
    assert.equal((await stranger.read(foreign)).body.name, 'Template')
  })

  test('checks the body before the id: 400 before 404', async () => {
    const { replace } = await newCaller()
    assert.equal((await replace(999_999, { ...REPLACEMENT, name: '' })).status, 400)
  })

  test('accepts a button that sends its own template, and rejects one that sends none', async () => {
    const { created, replace, read } = await newCaller()
    const id = await created()
    assert.equal((await replace(id, { ...REPLACEMENT, message: sending(id) })).status, 200)
    const { status, body } = await replace(id, { ...REPLACEMENT, message: sending(id + 999) })
    assert.deepEqual([status, body.code], [404, 'RCS_TEMPLATE_NOT_FOUND'])
    assert.deepEqual(body.details, [{ path: '/message/buttons/0/templateId', reason: 'names no template of this account' }])
    assert.deepEqual((await read(id)).body.message, sending(id))
  })

  test('keeps the old content for accepted messages, and the row of an unchanged content', async () => {
    const { created, replace, remove } = await newCaller()
    const id = await created()
    const before = await contentOf(id)
    await replace(id, { ...REPLACEMENT, name: 'Renamed', message: TEXT })
    assert.equal((await contentOf(id)).contentId, before.contentId)
    await replace(id, REPLACEMENT)
    const after = await contentOf(id)
    assert.notEqual(after.contentId, before.contentId)
    await replace(id, { ...REPLACEMENT, basic: true })
    assert.notEqual((await contentOf(id)).contentId, after.contentId)
    await remove(id)
    const { rows } = await pool.query('select message from contents where id = any ($1) order by id', [[before.contentId, after.contentId]])
    assert.deepEqual(
      rows.map(({ message }) => message),
      [TEXT, REPLACEMENT.message],
    )
  })

  test('applies concurrent replacements one after the other', async () => {
    const { created, replace, read } = await newCaller()
    const targets = await Promise.all([created(), created(), created()])
    const id = await created()
    for (let round = 0; round < 20; round += 1) {
      const responses = await Promise.all(
        targets.flatMap((target, index) => [
          replace(id, { ...REPLACEMENT, name: `Name ${index}`, message: sending(target) }),
          replace(id, { ...REPLACEMENT, name: `Name ${index}`, message: sending(target) }),
        ]),
      )
      assert.ok(responses.every(({ status }) => status === 200))
      const { name, message } = (await read(id)).body
      const target = targets[Number(name.split(' ')[1])] as number
      assert.deepEqual(message, sending(target))
      const { rows } = await pool.query('select target_id from template_references where template_id = $1', [id])
      assert.deepEqual(rows, [{ target_id: target }])
    }
  })
})
