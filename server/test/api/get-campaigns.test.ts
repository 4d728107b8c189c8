import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startCampaignService } from '../campaigns/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { type ApiResponse, assertError } from '../support/service.ts'

const database = await createTestDatabase()
const { pool } = database
const { newCaller } = await startCampaignService(database)

const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()

/** A caller with these campaigns, and the names of the campaigns that a query lists. */
async function withCampaigns(...campaigns: Record<string, unknown>[]) {
  const caller = await newCaller()
  const ids: string[] = []
  for (const fields of campaigns) ids.push(await caller.created({ scheduledAt: inHours(1), ...fields }))
  const list = (query = '') => caller.ask('GET', `/campaigns${query}`)
  const names = async (query = '') => (await list(query)).body.items.map(({ name }: { name: string }) => name)
  return { ...caller, ids, list, names }
}

/** The ids of all pages. */
async function walk(list: (query: string) => Promise<ApiResponse>, query: string): Promise<string[]> {
  const found: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body }: ApiResponse = await list(`${query}${cursor && `&cursor=${cursor}`}`)
    found.push(...body.items.map(({ campaignId }: { campaignId: string }) => campaignId))
    cursor = body.nextCursor
  }
  return found
}

describe('GET /campaigns', () => {
  test('lists each campaign as it is read by itself, the newest first, and none of another account', async () => {
    const { ids, list, readCampaign } = await withCampaigns({ name: 'A' }, { name: 'B', clientReferenceId: 'b' })
    await withCampaigns({ name: 'Foreign' })
    const { status, body } = await list()
    const [a, b] = await Promise.all(ids.map(async (id) => (await readCampaign(id)).body))
    assert.deepEqual([status, body], [200, { items: [b, a], nextCursor: null }])
    const { list: listNone } = await newCaller().then((caller) => ({ list: () => caller.ask('GET', '/campaigns') }))
    assert.deepEqual((await listNone()).body, { items: [], nextCursor: null })
  })

  test('filters by status, reference, and the time of creation', async () => {
    const { ids, names, ask } = await withCampaigns(
      { name: 'A', clientReferenceId: 'ref' },
      { name: 'B', clientReferenceId: 'Ref' },
      { name: 'C' },
      { name: 'D' },
    )
    const days = ['2026-01-30T23:59:59.999Z', '2026-01-31T00:00:00Z', '2026-01-31T23:59:59.999Z', '2026-02-01T00:00:00Z']
    for (const [index, at] of days.entries()) await pool.query('update campaigns set created_at = $2 where id = $1', [ids[index], at])
    await ask('POST', `/campaigns/${ids[2]}/cancel`)
    for (const [query, expected] of [
      ['status=CANCELLED', 'C'],
      ['status=SCHEDULED', 'DBA'],
      ['status=RUNNING', ''],
      ['clientReferenceId=ref', 'A'],
      ['clientReferenceId=none', ''],
      ['createdFrom=2026-01-31', 'DCB'],
      ['createdTo=2026-01-31', 'CBA'],
      ['createdFrom=2026-01-31&createdTo=2026-01-31', 'CB'],
      ['createdFrom=2026-01-31T00:00:00Z&createdTo=2026-01-31T23:59:59.999Z', 'B'],
      ['createdFrom=2026-01-31T01:00:00%2B01:00&createdTo=2026-02-01', 'DCB'],
      ['createdTo=9999-12-31', 'DCBA'],
      ['createdFrom=2026-01-31&status=SCHEDULED&sort=createdAt', 'BD'],
    ] as const) {
      assert.equal((await names(`?${query}`)).join(''), expected, query)
    }
  })

  test('returns every campaign once in any order and page size, although most have the same times and names', async () => {
    const { accountId, agentId, list } = await withCampaigns()
    await pool.query(
      `insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, scheduled_at, created_at)
       select uuid_v7(), $1, $2, 'n' || n % 3, '{}', false, 1, '2126-01-01'::timestamptz + n % 2 * interval '1 s', '2026-01-01'::timestamptz + n % 4 * interval '1 ms'
       from generate_series(1, 23) as n`,
      [accountId, agentId],
    )
    for (const [sort, order] of [
      ['', 'created_at desc, id desc'],
      ['createdAt', 'created_at, id'],
      ['-createdAt', 'created_at desc, id desc'],
      ['scheduledAt', 'scheduled_at, id'],
      ['-scheduledAt', 'scheduled_at desc, id desc'],
      ['name', 'name collate "C", id'],
      ['-name', 'name collate "C" desc, id desc'],
    ] as const) {
      const { rows } = await pool.query(`select id from campaigns where account_id = $1 order by ${order}`, [accountId])
      for (const limit of [1, 7, 23, 200]) {
        const found = await walk(list, `?limit=${limit}${sort && `&sort=${sort}`}`)
        assert.deepEqual(
          found,
          rows.map(({ id }) => id),
          `${sort} by ${limit}`,
        )
      }
    }
  })

  for (const [query, path, reason] of [
    ['status=DONE', '/status', 'must be one of SCHEDULED, RUNNING, PAUSED, COMPLETED, CANCELLED'],
    ['status=RUNNING,PAUSED', '/status', 'must be one of SCHEDULED, RUNNING, PAUSED, COMPLETED, CANCELLED'],
    ['clientReferenceId=', '/clientReferenceId', 'must not be empty'],
    ['createdFrom=2026-02-30', '/createdFrom', 'must be a date, such as 2026-01-31, or a time with its zone, such as 2026-01-31T08:00:00Z'],
    [
      'createdTo=2026-01-31T08:00:00',
      '/createdTo',
      'must be a date, such as 2026-01-31, or a time with its zone, such as 2026-01-31T08:00:00Z',
    ],
    ['createdFrom=2026-02-01&createdTo=2026-01-31', '/createdTo', 'must not be before createdFrom'],
    ['createdFrom=2026-01-31T08:00:01Z&createdTo=2026-01-31T08:00:00Z', '/createdTo', 'must not be before createdFrom'],
    ['limit=0', '/limit', 'must be at least 1'],
    ['limit=201', '/limit', 'must be at most 200'],
    ['sort=campaignId', '/sort', 'must be one of createdAt, -createdAt, scheduledAt, -scheduledAt, name, -name'],
    ['name=A', '/name', 'is not known here; is it misspelt?'],
  ] as const) {
    test(`rejects ${query}`, async () => {
      const { list } = await withCampaigns()
      assertError(await list(`?${query}`), 400, 'RCS_INVALID_REQUEST', [[path, reason]])
    })
  }
})
