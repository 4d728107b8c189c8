import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { createTemplate } from '../../src/templates/templates.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { createCaller } from '../support/service.ts'

const input = { name: 'X', basic: false, status: 'DRAFT' as const, message: { type: 'MESSAGE' as const, content: 'Hello' } }

describe('a template whose random id is already in use', async () => {
  const { pool } = await createTestDatabase()
  const { accountId } = await createCaller(pool)
  await ownerOf(pool).query('create sequence draws; grant all on sequence draws to herald_service')
  await ownerOf(pool).query(`create or replace function new_template_id() returns bigint language sql volatile as $$
    select case when n < 10 then 7 else n end from nextval('draws') as n $$`)

  /** The next `count` ids are equal, and later ones differ. */
  const sameDraws = (count: number) => pool.query(`select setval('draws', $1)`, [9 - count])
  const counts = async () => {
    const { rows } = await pool.query('select (select count(*) from templates) as templates, (select count(*) from contents) as contents')
    return rows[0]
  }
  beforeEach(() => ownerOf(pool).query('truncate templates, contents cascade'))

  test('is stored once, under another id', async () => {
    await sameDraws(4)
    const first = await createTemplate(pool, accountId, input)
    const second = await createTemplate(pool, accountId, input)
    assert.deepEqual([first.id, second.id], [7, 10])
    assert.deepEqual(await counts(), { templates: 2, contents: 2 })
  })

  test('is stored once when both are inserted concurrently', async () => {
    await sameDraws(2)
    const both = await Promise.all([createTemplate(pool, accountId, input), createTemplate(pool, accountId, input)])
    assert.deepEqual(both.map(({ id }) => id).sort(), [10, 7])
    assert.deepEqual(await counts(), { templates: 2, contents: 2 })
  })

  test('fails after five draws, and leaves nothing behind', async () => {
    await sameDraws(8)
    await createTemplate(pool, accountId, input)
    await assert.rejects(createTemplate(pool, accountId, input), { code: '23505', constraint: 'templates_pkey' })
    assert.deepEqual(await counts(), { templates: 1, contents: 1 })
    assert.equal((await pool.query(`select last_value from draws`)).rows[0].last_value, 7, 'one draw, and five more')
  })
})
