import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { readQuotas, setQuotas } from '../../src/accounts/quotas.ts'
import { createGroup } from '../../src/groups/groups.ts'
import { importGroup } from '../../src/groups/import.ts'
import { createTestDatabase } from '../support/database.ts'
import { startMessageService } from '../support/messages.ts'
import { type ApiResponse, assertError } from '../support/service.ts'

const database = await createTestDatabase()
const { pool } = database
const { newCaller } = await startMessageService(database)

const CSV = { 'content-type': 'text/csv' }
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const PHONES = ['+48500100200', '+48500100201', '+48500100202'] as const
const NOT_FOUND = ['0', '01', '-1', '1.0', '2147483648', '99999999999999999999', 'abc', '%00', "1' or 1=1"]

const file = (...phones: string[]) => Readable.from([Buffer.from(`phone\n${phones.join('\n')}\n`)])

async function caller() {
  const { ask, ...others } = await newCaller()
  const segment = (method: string, path: string | number = '', body?: unknown): Promise<ApiResponse> =>
    ask(method, `/segments${path}`, body)
  const put = (id: number | string, body: unknown) => segment('PUT', `/${id}`, body)
  const add = (id: number | string, ...members: unknown[]) => segment('POST', `/${id}/members`, { members })
  const members = async (id: number) => (await segment('GET', `/${id}/members`)).body.items
  const count = async (id: number) => (await segment('GET', `/${id}`)).body.members
  return { ...others, ask, segment, put, add, members, count }
}

/** All items of a list, by pages of this size. */
async function walk(list: (query: string) => Promise<ApiResponse>, limit: number, sort: string): Promise<any[]> {
  const items: any[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body }: ApiResponse = await list(`?limit=${limit}&sort=${sort}${cursor && `&cursor=${cursor}`}`)
    assert.ok(body.items.length <= limit)
    items.push(...body.items)
    cursor = body.nextCursor
  }
  return items
}

describe('PUT /segments/{segmentId}', () => {
  test('creates a segment and renames it, and GET returns the same', async () => {
    const { segment, put } = await caller()
    const { status, body } = await put(2_147_483_647, { name: 'Zażółć' })
    const { createdAt, updatedAt, ...others } = body
    assert.deepEqual([status, others], [200, { segmentId: 2_147_483_647, name: 'Zażółć', members: 0 }])
    assert.match(createdAt, TIME)
    assert.deepEqual((await segment('GET', '/2147483647')).body, body)
    const renamed = await put(2_147_483_647, { name: 'n'.repeat(200) })
    assert.deepEqual([renamed.status, renamed.body], [200, { ...body, name: 'n'.repeat(200), updatedAt: renamed.body.updatedAt }])
    assert.ok(renamed.body.updatedAt >= updatedAt)
  })

  test('creates a segment once if two callers want only a new one at the same time', async () => {
    const { ask, segment, put } = await caller()
    const create = (name: string, condition = '*') => ask('PUT', '/segments/1', { name }, { 'if-none-match': condition })
    const responses = await Promise.all(['A', 'B'].map((name) => create(name)))
    const [made, refused] = responses.toSorted((a, b) => a.status - b.status) as [ApiResponse, ApiResponse]
    assert.equal(made.status, 200)
    assertError(refused, 412, 'RCS_SEGMENT_EXISTS')
    assertError(await create(made.body.name), 412, 'RCS_SEGMENT_EXISTS')
    assert.deepEqual((await segment('GET', '/1')).body, made.body)
    assertError(await create('C', '"v1"'), 400, 'RCS_INVALID_REQUEST', [['/if-none-match', 'must be one of *']])
    assert.equal((await put(1, { name: 'C' })).body.name, 'C')
  })

  const RANGE = 'must be a whole number from 1 to 2147483647'
  for (const [id, body, path, reason] of [
    [1, {}, '/name', 'is required'],
    [1, { name: '' }, '/name', 'must not be empty'],
    [1, { name: 'n'.repeat(201) }, '/name', 'must have at most 200 characters'],
    [1, { name: 1 }, '/name', 'must be a string'],
    [1, { name: 'A', members: 1 }, '/members', 'is not known here; is it misspelt?'],
    [0, { name: 'A' }, '/segmentId', RANGE],
    [2_147_483_648, { name: 'A' }, '/segmentId', RANGE],
    ['x', { name: 'A' }, '/segmentId', RANGE],
  ] as const) {
    test(`rejects ${id} ${JSON.stringify(body).slice(0, 30)}`, async () => {
      const { put, segment } = await caller()
      assertError(await put(id, body), 400, 'RCS_INVALID_REQUEST', [[path, reason]])
      assert.deepEqual((await segment('GET')).body.items, [])
    })
  }
})

describe('GET /segments', () => {
  test('lists every segment of the account once, in any order and page size; one without a name has none', async () => {
    const { accountId, segment, put } = await caller()
    const other = await caller()
    await other.put(1, { name: 'Foreign' })
    for (const id of [7, 3, 100_000, 12]) await put(id, { name: `S${id}` })
    await importGroup(pool, { accountId, number: 5, source: file(PHONES[0]) })
    const { items } = (await segment('GET')).body
    assert.deepEqual(
      items.map(({ segmentId, name, members }: any) => [segmentId, name, members]),
      [
        [3, 'S3', 0],
        [5, undefined, 1],
        [7, 'S7', 0],
        [12, 'S12', 0],
        [100_000, 'S100000', 0],
      ],
    )
    for (const limit of [1, 2, 5, 200]) {
      const list = (query: string) => segment('GET', query)
      assert.deepEqual(await walk(list, limit, 'segmentId'), items)
      assert.deepEqual(await walk(list, limit, '-segmentId'), items.toReversed())
    }
    assertError(await segment('GET', '?sort=name'), 400, 'RCS_INVALID_REQUEST', [['/sort', 'must be one of segmentId, -segmentId']])
  })
})

describe('POST /segments/{segmentId}/members', () => {
  test('adds members, updates the fields that are given, and rejects single members with a reason', async () => {
    const { put, add, members, count } = await caller()
    await put(1, { name: 'A' })
    const first = await add(
      1,
      {
        phone: '48500100200',
        consents: [7, 1, 7],
        controlGroup: true,
        status: 'inactive',
        timeZone: 'europe/warsaw',
        attributes: { b: '2', a: '' },
      },
      { phone: PHONES[1], timeZone: null, attributes: {} },
      { phone: '12' },
      { phone: PHONES[2], status: 'gone' },
      { phone: PHONES[2], consents: [-1] },
      { phone: PHONES[2], consents: [2 ** 31] },
      { phone: PHONES[2], timeZone: 'Mars/Olympus' },
      { phone: PHONES[2], timeZone: '+01:00' },
      { phone: PHONES[2], attributes: { ' ': 'x' } },
      { phone: '' },
    )
    const reasons = [
      '"12" is not a possible international phone number',
      'status is "gone", and must be active or inactive',
      'consents is "-1", and must be whole numbers from 0 to 2147483647',
      'consents is "2147483648", and must be whole numbers from 0 to 2147483647',
      'timeZone is "Mars/Olympus", and must be the IANA name of a time zone, such as Europe/Warsaw',
      'timeZone is "+01:00", and must be the IANA name of a time zone, such as Europe/Warsaw',
      'an attribute has no name',
      'it has no phone number',
    ]
    const rejected = reasons.map((reason, place) => ({ index: place + 2, reason }))
    assert.deepEqual([first.status, first.body], [200, { added: 2, updated: 0, rejected }])
    const plain = { consents: [], controlGroup: false, status: 'active' }
    const known = {
      phone: PHONES[0],
      consents: [7, 1],
      controlGroup: true,
      status: 'inactive',
      timeZone: 'Europe/Warsaw',
      attributes: { b: '2', a: '' },
    }
    assert.deepEqual(await members(1), [known, { phone: PHONES[1], ...plain }])

    const second = await add(
      1,
      { phone: PHONES[0], status: 'active' },
      { phone: PHONES[2], consents: [3] },
      { phone: PHONES[1], timeZone: 'UTC' },
    )
    assert.deepEqual(second.body, { added: 1, updated: 2, rejected: [] })
    assert.deepEqual(await members(1), [
      { ...known, status: 'active' },
      { phone: PHONES[1], ...plain, timeZone: 'UTC' },
      { phone: PHONES[2], ...plain, consents: [3] },
    ])
    const third = await add(1, { phone: PHONES[0], consents: [], controlGroup: false, timeZone: '', attributes: {} })
    assert.deepEqual(third.body, { added: 0, updated: 1, rejected: [] })
    assert.deepEqual((await members(1))[0], { phone: PHONES[0], ...plain })
    assert.equal(await count(1), 3)
  })

  test('lets a later item update an earlier one with the same number', async () => {
    const { put, add, members, count } = await caller()
    await put(1, { name: 'A' })
    const { body } = await add(1, { phone: PHONES[0], consents: [1], status: 'inactive' }, { phone: ` ${PHONES[0]}`, consents: [2] })
    assert.deepEqual(body, { added: 1, updated: 1, rejected: [] })
    assert.deepEqual(await members(1), [{ phone: PHONES[0], consents: [2], controlGroup: false, status: 'inactive' }])
    assert.equal(await count(1), 1)
  })

  test('takes 1,000 members with all fields, and no more', async () => {
    const { segment, put, count } = await caller()
    await put(1, { name: 'A' })
    const many = (length: number) =>
      Array.from({ length }, (_, n) => ({
        phone: `+48${600_000_000 + n}`,
        consents: [1, 2, 3, 4, 5],
        controlGroup: false,
        status: 'active',
        timeZone: 'Europe/Warsaw',
        attributes: { [`a${n}`]: 'x', [`b${n}`]: 'y' },
      }))
    const full = await segment('POST', '/1/members', { members: many(1_000) })
    assert.deepEqual([full.status, full.body], [200, { added: 1_000, updated: 0, rejected: [] }])
    assertError(await segment('POST', '/1/members', { members: many(1_001) }), 400, 'RCS_INVALID_REQUEST', [
      ['/members', 'must have at most 1000 items'],
    ])
    assert.equal(await count(1), 1_000)
  })

  for (const [body, path, reason] of [
    [{}, '/members', 'is required'],
    [{ members: [] }, '/members', 'must have at least 1 item'],
    [{ members: [{}] }, '/members/0/phone', 'is required'],
    [{ members: [{ phone: 48500100200 }] }, '/members/0/phone', 'must be a string'],
    [{ members: [{ phone: PHONES[0], tags: [] }] }, '/members/0/tags', 'is not known here; is it misspelt?'],
    [{ members: [{ phone: PHONES[0], consents: [1.5] }] }, '/members/0/consents/0', 'must be a whole number'],
    [{ members: [{ phone: PHONES[0], controlGroup: 'no' }] }, '/members/0/controlGroup', 'must be true or false'],
    [{ members: [{ phone: PHONES[0], attributes: { a: 1 } }] }, '/members/0/attributes/a', 'must be a string'],
    [{ members: [{ phone: PHONES[0], attributes: { a: '\0' } }] }, '/members/0/attributes/a', 'must not contain the character NUL'],
    [
      { members: [{ phone: PHONES[0], attributes: { 'a\0': 'x' } }] },
      '/members/0/attributes/a\uFFFD',
      'must have a name without the character NUL and without half of a surrogate pair',
    ],
    [
      { members: [{ phone: PHONES[0], attributes: { 'a\ud800': 'x' } }] },
      '/members/0/attributes/a\uFFFD',
      'must have a name without the character NUL and without half of a surrogate pair',
    ],
    [{ members: [{ phone: PHONES[0] }], name: 'A' }, '/name', 'is not known here; is it misspelt?'],
  ] as const) {
    test(`rejects the body ${JSON.stringify(body)}, and changes nothing`, async () => {
      const { put, segment, count } = await caller()
      await put(1, { name: 'A' })
      assertError(await segment('POST', '/1/members', body), 400, 'RCS_INVALID_REQUEST', [[path, reason]])
      assert.equal(await count(1), 0)
    })
  }

  test('keeps the number of members exact, whatever is added and removed at once', async () => {
    const { put, add, segment, members, count, accountId } = await caller()
    await put(1, { name: 'A' })
    const change = (n: number) => {
      const some = Array.from({ length: 4 }, (_, index) => `+4850010020${(n + index) % 8}`)
      if (n % 3 === 0) return segment('DELETE', `/1/members/${some[0]}`)
      if (n % 7 === 0) return importGroup(pool, { accountId, number: 1, source: file(...some) })
      return add(1, ...some.map((phone) => ({ phone })))
    }
    await Promise.all(Array.from({ length: 40 }, (_, n) => change(n)))
    assert.equal(await count(1), (await members(1)).length)
    assert.ok((await count(1)) > 0)
  })
})

describe('GET /segments/{segmentId}/members', () => {
  test('lists every member once, in the order of the numbers, and ends a page early if members are large', async () => {
    const { accountId, put, segment, add } = await caller()
    await put(1, { name: 'A' })
    const numbers = Array.from({ length: 23 }, (_, n) => `+4850010${1_000 + n}`)
    await add(1, ...numbers.map((phone) => ({ phone })))
    const list = (query: string) => segment('GET', `/1/members${query}`)
    const phonesOf = (items: any[]) => items.map(({ phone }) => phone)
    for (const limit of [1, 7, 200]) {
      assert.deepEqual(phonesOf(await walk(list, limit, 'phone')), numbers)
      assert.deepEqual(phonesOf(await walk(list, limit, '-phone')), numbers.toReversed())
    }
    const large = `phone,note\n${numbers.map((phone) => `${phone},${'x'.repeat(60_000)}`).join('\n')}\n`
    await importGroup(pool, { accountId, number: 2, source: Readable.from([Buffer.from(large)]) })
    const { body } = await segment('GET', '/2/members')
    assert.ok(body.items.length < 23 && body.nextCursor !== null, `${body.items.length}`)
    assert.deepEqual(phonesOf(await walk((query) => segment('GET', `/2/members${query}`), 200, 'phone')), numbers)
  })

  test('finds one member by its number, in each way to write it', async () => {
    const { put, segment, add } = await caller()
    await put(1, { name: 'A' })
    await add(1, ...PHONES.map((phone) => ({ phone })))
    for (const phone of ['%2B48500100201', '+48500100201', '48500100201', '%2B48%20500%20100%20201']) {
      const { status, body } = await segment('GET', `/1/members?phone=${phone}`)
      assert.deepEqual([status, body.items.map((member: any) => member.phone), body.nextCursor], [200, [PHONES[1]], null], phone)
    }
    assert.deepEqual((await segment('GET', '/1/members?phone=48500100209')).body, { items: [], nextCursor: null })
    const reason = 'must be an international phone number, such as +48500100200'
    assertError(await segment('GET', '/1/members?phone=12'), 400, 'RCS_INVALID_RECIPIENT', [['/phone', reason]])
  })
})

test('a cursor of one segment’s members is refused for another segment, whether or not that exists', async () => {
  const { put, add, segment } = await caller()
  for (const id of [1, 2]) await put(id, { name: 'S' })
  for (const id of [1, 2]) await add(id, ...PHONES.map((phone) => ({ phone })))
  const { nextCursor } = (await segment('GET', '/1/members?limit=1')).body
  assert.equal((await segment('GET', `/1/members?limit=1&cursor=${nextCursor}`)).status, 200)
  for (const id of [2, 3, 0]) {
    const foreign = await segment('GET', `/${id}/members?limit=1&cursor=${nextCursor}`)
    assert.deepEqual([foreign.status, foreign.body.code], [400, 'RCS_INVALID_CURSOR'])
  }
})

test('members count towards the quota storedBytes while they are stored, and an excess is refused whole', async () => {
  const { accountId, put, add, segment, ask } = await caller()
  await put(1, { name: 'S' })
  const used = async () => (await readQuotas(pool, accountId)).storedBytes.used
  const before = await used()
  const large = { phone: PHONES[0], attributes: { text: 'x'.repeat(1_000) }, consents: [1, 2] }
  await add(1, large, { phone: PHONES[1] })
  const [first, second] = [150 + 8 + JSON.stringify(large.attributes).length, 150]
  assert.equal(await used(), before + first + second)
  await add(1, { phone: PHONES[0], attributes: {} })
  assert.equal(await used(), before + 158 + 150)
  await setQuotas(pool, accountId, { storedBytes: before + 400 })
  const upload = (phone: string) => ask('PUT', '/segments/1/import', `phone,text\n${phone},${'x'.repeat(500)}\n`, CSV)
  for (const refused of [await add(1, large), await upload(PHONES[2])]) {
    assert.deepEqual([refused.status, refused.body.code], [429, 'RCS_QUOTA_EXCEEDED'])
  }
  assert.equal(await used(), before + 158 + 150)
  await setQuotas(pool, accountId, { storedBytes: null })
  assert.equal((await upload(PHONES[0])).status, 200)
  await segment('DELETE', `/1/members/${PHONES[1]}`)
  assert.ok((await used()) > before + 600)
  await segment('DELETE', '/1')
  assert.equal(await used(), before)
})

test('a change of a segment that a large import is changing gets 503 with the reason', async () => {
  const { accountId, put, segment } = await caller()
  await put(1, { name: 'S' })
  const importing = await pool.connect()
  await importing.query('begin')
  await createGroup(importing, { accountId, number: 1 })
  const response = await put(1, { name: 'T' })
  await importing.query('rollback')
  importing.release()
  assertError(response, 503, 'RCS_UNAVAILABLE', [['', 'An import or a removal is changing the segment; try again when it has ended.']])
  assert.equal((await segment('GET', '/1')).body.name, 'S')
})

describe('DELETE', () => {
  test('/segments/{segmentId}/members/{phone} removes the member, and responds 204 again', async () => {
    const { put, add, segment, members, count } = await caller()
    await put(1, { name: 'A' })
    await add(1, ...PHONES.map((phone) => ({ phone })))
    const { updatedAt } = (await segment('GET', '/1')).body
    for (const phone of [encodeURIComponent(PHONES[0]), PHONES[1].slice(1), PHONES[1], '+48500100299']) {
      const { status, body } = await segment('DELETE', `/1/members/${phone}`)
      assert.deepEqual([status, body], [204, ''])
    }
    assert.deepEqual([(await members(1)).map(({ phone }: any) => phone), await count(1)], [[PHONES[2]], 1])
    assert.ok((await segment('GET', '/1')).body.updatedAt >= updatedAt)
    assertError(await segment('DELETE', '/1/members/12'), 400, 'RCS_INVALID_RECIPIENT', [
      ['/phone', 'must be a possible international phone number'],
    ])
  })

  test('/segments/{segmentId} removes the segment and its members; a new one of that number is empty', async () => {
    const { put, add, segment, count } = await caller()
    await put(1, { name: 'A' })
    await add(1, { phone: PHONES[0] })
    const { status, body } = await segment('DELETE', '/1')
    assert.deepEqual([status, body], [204, ''])
    assertError(await segment('GET', '/1'), 404, 'RCS_SEGMENT_NOT_FOUND')
    assertError(await segment('DELETE', '/1'), 404, 'RCS_SEGMENT_NOT_FOUND')
    await put(1, { name: 'B' })
    assert.equal(await count(1), 0)
    assert.deepEqual((await add(1, { phone: PHONES[0] })).body, { added: 1, updated: 0, rejected: [] })
  })
})

test('a segment of another account, an unknown and an invalid one get the same 404, and nothing changes', async () => {
  const owner = await caller()
  await owner.put(1, { name: 'A' })
  await owner.add(1, { phone: PHONES[0] })
  const before = (await owner.segment('GET', '/1')).body
  const { segment } = await caller()
  for (const id of ['1', ...NOT_FOUND]) {
    for (const [method, path, body] of [
      ['GET', `/${id}`],
      ['GET', `/${id}/members`],
      ['POST', `/${id}/members`, { members: [{ phone: PHONES[0] }] }],
      ['DELETE', `/${id}/members/${PHONES[0]}`],
      ['DELETE', `/${id}`],
    ] as const) {
      assertError(await segment(method, path, body), 404, 'RCS_SEGMENT_NOT_FOUND', undefined, `${method} ${path}`)
    }
  }
  assert.deepEqual((await owner.segment('GET', '/1')).body, before)
  assert.equal((await owner.members(1)).length, 1)
})
