import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import fc from 'fast-check'
import { type FastifyInstance, fastify } from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../../src/errors.ts'
import { handleErrors } from '../../src/http/error-responses.ts'
import { listQuery, listResponses } from '../../src/http/list-schemas.ts'
import { type ListDefinition, type PageQuery, readPage } from '../../src/http/paging.ts'
import { buildValidator } from '../../src/http/validation.ts'
import { createTable, createTestDatabase } from '../support/database.ts'

const { pool } = await createTestDatabase()

type Row = { id: number; name: string; createdAt: Date }
type Name = 'id' | 'name' | 'createdAt'
const list: ListDefinition<Name> = {
  fields: {
    id: { column: 'id', type: 'bigint' },
    name: { column: 'name', type: 'text' },
    createdAt: { column: 'created_at', type: 'timestamptz' },
  },
  id: 'id',
  defaultSort: '-createdAt',
}

async function fetchPage(query: PageQuery & { kind?: string }) {
  const page = readPage(list, query, 3)
  const { rows } = await pool.query<Row>(
    `select id, name, created_at as "createdAt" from things
     where ($1::text is null or kind = $1) and ${page.condition} order by ${page.orderBy} limit $2`,
    [query.kind ?? null, page.fetch, ...page.values],
  )
  return page.toBody(rows)
}

/** All pages, one after the other; `between` runs after each. */
async function walk(query: PageQuery, between: () => Promise<void> = async () => {}): Promise<Row[]> {
  const found: Row[] = []
  let cursor: string | null | undefined
  while (cursor !== null) {
    const page = await fetchPage(cursor === undefined ? query : { ...query, cursor })
    found.push(...page.items)
    cursor = page.nextCursor
    await between()
  }
  return found
}

describe('paging by key', () => {
  before(async () => {
    await createTable(
      pool,
      `things (
      id integer generated always as identity primary key, name text not null, kind text not null, created_at timestamptz(3) not null)`,
    )
    // Few names and times, so that most items differ only by their id.
    await pool.query(`insert into things (name, kind, created_at)
      select 'n' || i % 3, 'k' || i % 2, timestamptz '2026-01-01' + (i % 7) * interval '1 millisecond' from generate_series(1, 101) i`)
  })

  test('returns every item once, in any order and with any page size', async () => {
    for (const [sort, order] of [
      ['id', 'id'],
      ['-id', 'id desc'],
      ['name', 'name, id'],
      ['-name', 'name desc, id desc'],
      ['createdAt', 'created_at, id'],
      ['-createdAt', 'created_at desc, id desc'],
    ] as const) {
      const { rows } = await pool.query<Row>(`select id from things order by ${order}`)
      for (const limit of [1, 7, 50, 100, 101, 200]) {
        const found = await walk({ sort, limit })
        assert.deepEqual(
          found.map(({ id }) => id),
          rows.map(({ id }) => id),
          `${sort} by ${limit}`,
        )
      }
    }
  })

  test('neither repeats nor skips an item while others are added and removed', async () => {
    const { rows: standing } = await pool.query<Row>('select id from things')
    const come: number[] = []
    const found = await walk({ sort: 'name', limit: 5 }, async () => {
      const { rows } = await pool.query<Row>(
        `insert into things (name, kind, created_at) select 'n' || i, 'k0', now() from generate_series(0, 3) i returning id`,
      )
      come.push(...rows.map(({ id }) => id))
      await pool.query('delete from things where id = any($1)', [come.splice(0, 2)])
    })
    await pool.query('delete from things where id <> all($1)', [standing.map(({ id }) => id)])
    const ids = found.map(({ id }) => id)
    assert.equal(new Set(ids).size, ids.length)
    assert.ok(standing.every(({ id }) => ids.includes(id)))
  })

  test('rejects a cursor with another sort or filter', async () => {
    const { nextCursor } = await fetchPage({ sort: 'name', limit: 2, kind: 'k1' })
    assert.ok(nextCursor)
    const again = await fetchPage({ sort: 'name', limit: 3, kind: 'k1', cursor: nextCursor })
    assert.equal(again.items.length, 3, 'the size of a page may change')
    for (const query of [{ sort: '-name', kind: 'k1' }, { sort: 'name', kind: 'k0' }, { sort: 'name' }, { kind: 'k1' }]) {
      await assert.rejects(fetchPage({ ...query, cursor: nextCursor }), (error: ApiError) => {
        assert.equal(error.code, 'RCS_INVALID_CURSOR')
        assert.equal(error.details?.[0]?.path, '/cursor')
        return true
      })
    }
  })

  test('responds 400 or with a valid page to a forged cursor', async () => {
    const { nextCursor } = await fetchPage({ limit: 2 })
    const [owner] = JSON.parse(Buffer.from(nextCursor as string, 'base64url').toString('utf8'))
    const madeUp = fc.oneof(
      fc.string(),
      fc
        .constantFrom(
          '0000-01-01T00:00:00.000Z',
          '2026-02-30T00:00:00.000Z',
          '2026-01-01T24:00:00.000Z',
          '+010000-01-01T00:00:00.000Z',
          '9999-12-31T23:59:59.999Z',
        )
        .map((time) => Buffer.from(JSON.stringify([owner, time, 1])).toString('base64url')),
      fc.json().map((json) => Buffer.from(json).toString('base64url')),
      fc
        .array(fc.oneof(fc.string(), fc.double(), fc.constant(null), fc.constant('2026-13-45T00:00:00.000Z')))
        .map((values) => Buffer.from(JSON.stringify([owner, ...values])).toString('base64url')),
    )
    await fc.assert(
      fc.asyncProperty(madeUp, async (cursor) => {
        try {
          await fetchPage({ cursor })
        } catch (error) {
          assert.ok(error instanceof ApiError, String(error))
        }
      }),
      { numRuns: 300 },
    )
  })

  test('reads limit, sort, cursor and filters strictly over HTTP', async () => {
    const app = fastify({
      schemaController: { compilersFactory: { buildValidator: buildValidator as never } },
    }) as unknown as FastifyInstance
    handleErrors(app)
    const querystring = listQuery(list, { kind: Type.Optional(Type.Enum(['k0', 'k1'])) })
    const Thing = Type.Object({ id: Type.Integer(), createdAt: Type.String() }, { additionalProperties: false })
    const schema = { querystring, response: { 200: listResponses(Thing, 'Things.')[200] } }
    app.get('/things', { schema }, async (request) => fetchPage(request.query as PageQuery))
    const first = (await app.inject('/things?limit=3&sort=-name&kind=k1')).json()
    assert.equal(first.items.length, 3)
    assert.deepEqual(Object.keys(first.items[0]), ['id', 'createdAt'], 'only what the schema names goes out')
    assert.match(first.items[0].createdAt, /^2026-01-01T00:00:00\.00\dZ$/)
    assert.equal((await app.inject(`/things?limit=200&sort=-name&kind=k1&cursor=${first.nextCursor}`)).json().nextCursor, null)

    const sorts = 'must be one of id, -id, name, -name, createdAt, -createdAt'
    const mistakes: [string, string, string][] = [
      ['limit=0', '/limit', 'must be at least 1'],
      ['limit=201', '/limit', 'must be at most 200'],
      ['limit=1e2', '/limit', 'must be a whole number'],
      ['limit=', '/limit', 'must be a whole number'],
      ['limit=99999999999999999999', '/limit', 'must be a whole number'],
      ['limit=1&limit=2', '/limit', 'must be a whole number'],
      ['sort=kind', '/sort', sorts],
      ['sort=name&sort=id', '/sort', sorts],
      ['cursor=', '/cursor', 'must not be empty'],
      ['cursor=abc', '/cursor', 'is not a cursor of this list'],
      ['kind=k2', '/kind', 'must be one of k0, k1'],
      ['page=2', '/page', 'is not known here; is it misspelt?'],
    ]
    for (const [query, path, reason] of mistakes) {
      const response = await app.inject(`/things?${query}`)
      assert.equal(response.statusCode, 400, query)
      assert.deepEqual(response.json().details, [{ path, reason }], query)
    }
    await app.close()
  })
})
