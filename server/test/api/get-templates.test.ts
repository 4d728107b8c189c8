import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTemplate } from '../../src/templates/templates.ts'
import { TEXT, type TemplateCaller } from '../support/templates.ts'
import { newCaller, pool } from './templates-service.ts'

type Item = { id: number; name: string; createdAt: string }

/** All pages of a list; `between` runs after each. */
async function walk({ list }: TemplateCaller, query: string, between: () => Promise<unknown> = async () => {}): Promise<Item[]> {
  const found: Item[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const { status, body } = await list(`?${query}${cursor && `&cursor=${cursor}`}`)
    assert.equal(status, 200)
    found.push(...body.items)
    cursor = body.nextCursor
    await between()
  }
  return found
}

const namesOf = (items: Item[]) => items.map(({ name }) => name)

describe('GET /templates', () => {
  test('returns an empty list to an account without templates', async () => {
    const { status, body } = await (await newCaller()).list()
    assert.equal(status, 200)
    assert.deepEqual(body, { items: [], nextCursor: null })
  })

  test('lists the templates of the account alone, newest first', async () => {
    const caller = await newCaller()
    await (await newCaller()).created()
    const templates = []
    for (const name of ['A', 'B', 'C']) templates.unshift((await caller.create({ name, description: 'D', message: TEXT })).body)
    assert.deepEqual((await caller.list()).body, { items: templates, nextCursor: null })
  })

  test('filters by status, type and both, and by day in UTC, both ends included', async () => {
    const caller = await newCaller()
    const card = { type: 'CARD', content: 'x' }
    const days: [name: string, message: unknown, status: string, createdAt: string][] = [
      ['A', TEXT, 'DRAFT', '2026-01-01T23:59:59.999Z'],
      ['B', TEXT, 'APPROVED', '2026-01-02T00:00:00Z'],
      ['C', card, 'APPROVED', '2026-01-02T23:59:59.999Z'],
      ['D', card, 'DRAFT', '2026-01-03T00:00:00Z'],
    ]
    for (const [name, message, status, createdAt] of days) {
      const id = await caller.created(message, { name, status })
      await pool.query('update templates set created_at = $2 where id = $1', [id, createdAt])
    }
    for (const [query, names] of [
      ['', 'ABCD'],
      ['&status=DRAFT', 'AD'],
      ['&status=APPROVED', 'BC'],
      ['&type=CARD', 'CD'],
      ['&type=AUDIO', ''],
      ['&type=CARD&status=APPROVED', 'C'],
      ['&createdFrom=2026-01-02', 'BCD'],
      ['&createdTo=2026-01-02', 'ABC'],
      ['&createdFrom=2026-01-02&createdTo=2026-01-02', 'BC'],
      ['&createdFrom=2026-01-02&createdTo=2026-01-03&type=MESSAGE', 'B'],
      ['&createdFrom=2027-01-01', ''],
      ['&createdFrom=0100-01-01&createdTo=9999-12-31', 'ABCD'],
    ] as const) {
      assert.equal(namesOf(await walk(caller, `sort=createdAt${query}`)).join(''), names, query)
    }
  })

  test('sorts by createdAt, name and id, either way; names by their code points', async () => {
    const caller = await newCaller()
    for (const name of ['b', 'a', 'ą', 'B', 'b']) await caller.created(TEXT, { name })
    const byName = ['B', 'a', 'b', 'b', 'ą']
    assert.deepEqual(namesOf(await walk(caller, 'sort=name&limit=2')), byName)
    assert.deepEqual(namesOf(await walk(caller, 'sort=-name&limit=2')), byName.toReversed())
    for (const field of ['id', 'createdAt']) {
      assert.deepEqual(namesOf(await walk(caller, `sort=${field}&limit=2`)), ['b', 'a', 'ą', 'B', 'b'], field)
      assert.deepEqual(namesOf(await walk(caller, `sort=-${field}&limit=2`)), ['b', 'B', 'ą', 'a', 'b'], field)
    }
    assert.deepEqual(await walk(caller, 'limit=2'), await walk(caller, 'sort=-createdAt'))
  })

  for (const [query, path, reason, code = 'RCS_INVALID_REQUEST'] of [
    ['limit=0', '/limit', 'must be at least 1'],
    ['limit=201', '/limit', 'must be at most 200'],
    ['limit=ten', '/limit', 'must be a whole number'],
    ['limit=', '/limit', 'must be a whole number'],
    ['sort=status', '/sort', 'must be one of createdAt, -createdAt, name, -name, id, -id'],
    ['status=draft', '/status', 'must be one of DRAFT, APPROVED'],
    ['status=DRAFT&status=APPROVED', '/status', 'must be one of DRAFT, APPROVED'],
    ['type=POLL', '/type', 'must be one of MESSAGE, AUDIO, VIDEO, FILE, CARD, CAROUSEL, CONTACT, LOCATION'],
    ['createdFrom=2026-02-30', '/createdFrom', 'must be a date, such as 2026-01-31'],
    ['createdFrom=2026-1-1', '/createdFrom', 'must be a date, such as 2026-01-31'],
    ['createdTo=2026-01-01T00:00:00Z', '/createdTo', 'must be a date, such as 2026-01-31'],
    ['createdFrom=2026-01-02&createdTo=2026-01-01', '/createdTo', 'must not be before createdFrom'],
    ['cursor=x', '/cursor', 'is not a cursor of this list', 'RCS_INVALID_CURSOR'],
    ['page=2', '/page', 'is not known here; is it misspelt?'],
  ]) {
    test(`rejects ${query}`, async () => {
      const { status, body } = await (await newCaller()).list(`?${query}`)
      assert.deepEqual([status, body.code], [400, code])
      assert.deepEqual(body.details, [{ path, reason }])
    })
  }

  test('rejects a cursor with another sort or filter, and shows no other account’s templates with it', async () => {
    const caller = await newCaller()
    const stranger = await newCaller()
    for (const name of ['A', 'B', 'C']) await caller.created(TEXT, { name })
    const { nextCursor } = (await caller.list('?limit=1&status=DRAFT')).body
    assert.equal((await caller.list(`?limit=2&status=DRAFT&cursor=${nextCursor}`)).body.items.length, 2)
    assert.deepEqual((await stranger.list(`?status=DRAFT&cursor=${nextCursor}`)).body.items, [])
    for (const other of ['', '&status=APPROVED', '&status=DRAFT&sort=name', '&status=DRAFT&type=MESSAGE']) {
      const { status, body } = await caller.list(`?limit=1${other}&cursor=${nextCursor}`)
      assert.equal(status, 400)
      assert.equal(body.details[0].path, '/cursor')
    }
  })

  test('ends a page of large templates early, without losing any', async () => {
    const caller = await newCaller()
    const message = { type: 'MESSAGE' as const, content: 'x'.repeat(200_000) }
    for (let index = 0; index < 30; index += 1) {
      await createTemplate(pool, caller.accountId, { name: `n${index}`, basic: false, status: 'DRAFT', message })
    }
    const { body } = await caller.list('?limit=200')
    assert.equal(body.items.length, 6, 'the sixth passes 1 MiB')
    assert.ok(body.nextCursor)
    assert.equal(new Set(namesOf(await walk(caller, 'limit=200&sort=name'))).size, 30)
    assert.equal(new Set(namesOf(await walk(caller, 'limit=6'))).size, 30)
  })

  // http/paging.test.ts has every other order.
  for (const sort of ['-createdAt', 'name']) {
    test(`by ${sort} neither repeats nor skips a template while others are added and deleted`, async () => {
      const caller = await newCaller()
      const standing = await Promise.all(Array.from({ length: 30 }, (_, index) => caller.created(TEXT, { name: `n${index % 4}` })))
      let passing = await Promise.all(Array.from({ length: 10 }, (_, index) => caller.created(TEXT, { name: `n${index % 4}` })))
      let over = false
      // During the reads, not only between them.
      const changes = (async () => {
        while (!over) {
          await Promise.all(passing.map((id) => caller.remove(id)))
          passing = await Promise.all(passing.map((_, index) => caller.created(TEXT, { name: `n${index % 4}` })))
        }
      })()
      const found = (await walk(caller, `sort=${sort}&limit=3`)).map(({ id }) => id)
      over = true
      await changes
      assert.equal(new Set(found).size, found.length)
      assert.deepEqual(
        standing.filter((id) => !found.includes(id)),
        [],
      )
    })
  }
})
