import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { MessageContent } from '../../src/content/content.ts'
import { type ApiError, ERRORS } from '../../src/errors.ts'
import { createTemplate, deleteTemplate, replaceTemplate, withMissingTargetsNamed } from '../../src/templates/templates.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { createCaller } from '../support/service.ts'
import { sending, TEXT } from '../support/templates.ts'
import { until } from '../support/until.ts'

const { pool } = await createTestDatabase()

const inputOf = (message: unknown) => ({ name: 'X', basic: false, status: 'DRAFT' as const, message: message as MessageContent })

/** Writes and deletes as the API does. Each returns the status of the response. */
async function setUp() {
  const { accountId } = await createCaller(pool)
  const statusOf = (work: Promise<unknown>, success: number) =>
    work.then(
      () => success,
      (error: ApiError) => ERRORS[error.code]?.status ?? Promise.reject(error),
    )
  const write = (message: unknown, id?: number) => {
    const input = inputOf(message)
    return withMissingTargetsNamed(pool, accountId, input, () =>
      id === undefined ? createTemplate(pool, accountId, input) : replaceTemplate(pool, accountId, id, input),
    )
  }
  return {
    accountId,
    created: async (message: unknown = TEXT) => (await write(message)).id,
    point: (message: unknown, id?: number) => statusOf(write(message, id), 200),
    remove: (id: number) => statusOf(deleteTemplate(pool, accountId, id), 204),
  }
}

type Lane = Awaited<ReturnType<typeof setUp>>

/** The number of connections that wait for a lock. */
async function waiting(): Promise<number> {
  const { rows } = await ownerOf(pool).query<{ count: number }>(
    `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows[0]?.count ?? 0
}

describe('buttons that send a template', () => {
  test('are rejected after a concurrent deletion, and a deletion after a concurrent button', async () => {
    const { accountId, created, point, remove } = await setUp()
    for (const end of ['commit', 'rollback']) {
      const target = await created()
      const deleting = await pool.connect()
      await deleting.query('begin')
      await deleting.query('delete from templates where account_id = $1 and id = $2', [accountId, target])
      const pointing = point(sending(target))
      await until('the button waits', async () => (await waiting()) === 1)
      await deleting.query(end)
      deleting.release()
      assert.equal(await pointing, end === 'commit' ? 404 : 200)
    }
    for (const end of ['commit', 'rollback']) {
      const [source, target] = [await created(), await created()]
      const writing = await pool.connect()
      await writing.query('begin')
      await writing.query('insert into template_references values ($1, $2, $3)', [accountId, source, target])
      const removing = remove(target)
      await until('the deletion waits', async () => (await waiting()) === 1)
      await writing.query(end)
      writing.release()
      assert.equal(await removing, end === 'commit' ? 409 : 204)
      await pool.query('delete from template_references where template_id = $1', [source])
    }
  })

  test('are named when a deletion is rejected, which is retried when the button is gone', async () => {
    const { accountId, created, point, remove } = await setUp()
    for (let round = 0; round < 100; round += 1) {
      const target = await created()
      const source = await created(sending(target))
      const [status] = await Promise.all([
        deleteTemplate(pool, accountId, target).then(
          () => 204,
          (error: ApiError) => {
            assert.deepEqual(error.details, [{ path: '', reason: `is used by a button of template ${source}` }])
            return 409
          },
        ),
        point(TEXT, source),
      ])
      assert.equal(await remove(target), status === 204 ? 404 : 204)
    }
  })

  test('keep two templates that send each other, without a deadlock', async () => {
    const lanes = await Promise.all(Array.from({ length: 5 }, setUp))
    async function round({ created, point, remove }: Lane): Promise<void> {
      const first = await created()
      const second = await created(sending(first))
      await point(sending(second), first)
      assert.deepEqual(await Promise.all([remove(first), remove(second)]), [409, 409])
    }
    for (let index = 0; index < 20; index += 1) await Promise.all(lanes.map(round))
  })

  test('keep their targets under any concurrent changes, without a deadlock', async (t) => {
    const { created, point, remove } = await setUp()
    const random = seededRandom(t)
    const ids = await Promise.all(Array.from({ length: 6 }, () => created()))
    async function change(): Promise<void> {
      const place = random(ids.length)
      const id = ids[place] as number
      const message = sending(...Array.from({ length: random(4) }, () => ids[random(ids.length)] as number))
      const status = await [() => point(message), () => point(message, id), () => remove(id)][random(3)]?.()
      assert.ok(status === 200 || status === 204 || status === 404 || status === 409, String(status))
      if (status === 204) ids[place] = await created()
    }
    for (let round = 0; round < 80; round += 1) await Promise.all(Array.from({ length: 12 }, change))
    await assertEveryButtonHasItsTarget()
  })
})

function seededRandom(t: { diagnostic: (text: string) => void }): (below: number) => number {
  let state = Date.now() % 2 ** 31
  t.diagnostic(`seed ${state}`)
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((state / 2 ** 31) * below)
  }
}

/** Reads the contents themselves, not the table of references. */
async function assertEveryButtonHasItsTarget(): Promise<void> {
  const { rows: contents } = await pool.query('select t.id, c.message from templates t join contents c on c.id = t.content_id')
  const standing = new Set(contents.map(({ id }) => id))
  const buttons = contents.flatMap(({ id, message }) =>
    [...JSON.stringify(message).matchAll(/"templateId":(\d+)/g)].map(([, target]) => ({ id, target: Number(target) })),
  )
  assert.ok(buttons.length > 0)
  for (const { id, target } of buttons)
    assert.ok(standing.has(target), `template ${id} has a button that sends ${target}, which does not exist`)
  const { rows: references } = await pool.query('select template_id as id, target_id as target from template_references')
  const known = (list: { id: number; target: number }[]) => [...new Set(list.map(({ id, target }) => `${id} ${target}`))].sort()
  assert.deepEqual(known(references), known(buttons), 'the references are those of the contents')
}
