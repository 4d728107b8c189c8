import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { call, createCaller } from '../../support/service.ts'
import { writeCampaign } from './past.ts'
import { newCaller, pool, url } from './shared.ts'
import { assertRefused, phone } from './support.ts'

// Authentication, parameters and errors, which are the same for all reports.

const caller = await newCaller()
const { campaignId } = await writeCampaign(pool, caller, [{ recipient: phone(1), acceptedAt: '2026-11-01T12:00:00.000Z' }])

const EVENT_TYPES = [
  ...['accepted', 'sent', 'delivered', 'read', 'failed', 'expired', 'clicked', 'replied', 'opted-out'],
  ...['sms-sent', 'sms-delivered', 'sms-failed'],
]
const OF_CAMPAIGNS = ['summary', 'aggregations', 'action-details', 'recipients/delivered']
const OF_MESSAGES = ['/messages/summary', '/messages/aggregations']
const LISTS = ['action-details', 'recipients/accepted']
const of = (id: string, report: string) => `/campaigns/${id}/${report}`
const ALL = [...OF_CAMPAIGNS.map((report) => of(campaignId, report)), ...OF_MESSAGES]

const A_DATE = 'must be a date, such as 2026-01-31'
const UNKNOWN = 'is not known here; is it misspelt?'

/** Rejected by every report, with this path and reason. */
const WRONG_DAYS: [query: string, path: string, reason: string | RegExp][] = [
  ['from=2026-02-30', '/from', A_DATE],
  ['to=2025-02-29', '/to', A_DATE],
  ['from=2026-2-1', '/from', A_DATE],
  ['to=2026-11-15T00:00:00Z', '/to', A_DATE],
  ['from=2026-11-15%2000:00', '/from', A_DATE],
  ['from=20261115', '/from', A_DATE],
  ['to=15.11.2026', '/to', A_DATE],
  ['to=today', '/to', A_DATE],
  ['from=', '/from', A_DATE],
  ['to=%202026-11-15', '/to', A_DATE],
  ['to=10000-01-01', '/to', A_DATE],
  ['from=0000-01-01', '/from', A_DATE],
  ['from=2026-11-15%00', '/from', /./],
  ['from=2026-11-01&from=2026-11-01', '/from', /./],
  ['to=2026-11-01&to=2026-11-02', '/to', /./],
  ['from[]=2026-11-01', '/from[]', UNKNOWN],
  ['from=2026-11-02&to=2026-11-01', '/to', 'must not be before from'],
  ['form=2026-11-01', '/form', UNKNOWN],
  ['From=2026-11-01', '/From', UNKNOWN],
  ['createdFrom=2026-11-01', '/createdFrom', UNKNOWN],
]

/** The report rejects the query, whether or not its campaign exists. */
async function assertBadQuery(
  path: string,
  query: string,
  at: string,
  reason: string | RegExp,
  code = 'RCS_INVALID_REQUEST',
): Promise<void> {
  const { status, body } = await caller.get(`${path}?${query}`)
  assert.deepEqual([status, body.code], [400, code], `${path}?${query}`)
  const found = body.details.filter((detail: any) => detail.path === at)
  assert.ok(found.length > 0 && found.length === body.details.length, `${path}?${query}: ${JSON.stringify(body.details)}`)
  if (typeof reason === 'string') assert.deepEqual(body.details, [{ path: at, reason }])
}

describe('every report', () => {
  test('requires authentication, whether or not its campaign exists', async () => {
    const paths = [...ALL, ...OF_CAMPAIGNS.map((report) => of(randomUUID(), report))]
    const bodies = new Set<string>()
    for (const path of paths) {
      const response = await call(`${url}/v1/reports${path}?from=never`)
      assertRefused(response, 'RCS_UNAUTHORIZED', 401)
      assert.equal(response.headers.get('www-authenticate'), 'Bearer')
      bodies.add(JSON.stringify({ ...response.body, requestId: '' }))
    }
    assert.equal(bodies.size, 1)
  })

  test('requires the rcs module, which is checked before the request', async () => {
    const { authorization } = await createCaller(pool, ['sms'])
    const details = [{ path: '', reason: 'The account does not have the module rcs.' }]
    for (const path of [...ALL, `${ALL[0]}?from=never`]) {
      assertRefused(await call(`${url}/v1/reports${path}`, { authorization }), 'RCS_MODULE_NOT_AVAILABLE', 403, details)
    }
  })

  test('counts against the rate limit of other endpoints', async () => {
    for (const path of ALL) assert.match((await caller.get(path)).headers.get('ratelimit-policy') ?? '', /^"default";/)
  })

  test('allows GET and HEAD only', async () => {
    for (const path of [...ALL, of('no-campaign', 'summary')]) {
      for (const method of ['POST', 'PATCH', 'DELETE']) {
        const response = await caller.ask(method, `/reports${path}`)
        assertRefused(response, 'RCS_METHOD_NOT_ALLOWED', 405)
        assert.equal(response.headers.get('allow'), 'GET, HEAD')
      }
    }
    const { authorization } = caller
    for (const path of ALL) {
      const { status } = await fetch(`${url}/v1/reports${path}`, { method: 'HEAD', headers: { authorization } })
      assert.deepEqual([status, path], [200, path])
    }
  })

  test('rejects invalid dates and unknown parameters by name, and says what would be right', async () => {
    for (const [n, path] of ALL.entries()) {
      // A list and a report of messages get all wrong queries, the others a part of them.
      const wrong = n === 3 || n === 4 ? WRONG_DAYS : WRONG_DAYS.filter((_, index) => index % 5 === n % 5 || index > 15)
      for (const [query, at, reason] of wrong) await assertBadQuery(path, query, at, reason)
    }
  })

  test('takes any dates: the first and the last possible, a leap day, one day, an open range', async () => {
    const ranges = ['from=0100-01-01&to=0100-02-01', 'from=9999-12-01&to=9999-12-31', 'from=2024-02-29&to=2024-02-29']
    for (const path of ALL) for (const range of [...ranges, 'from=2026-11-01', 'to=2026-11-01']) await caller.report(`${path}?${range}`)
    for (const path of ALL.filter((each) => !each.includes('aggregations'))) await caller.report(`${path}?from=0100-01-01&to=9999-12-31`)
  })

  test('is the same 404 for an unknown campaign and for one of another account', async () => {
    const stranger = await newCaller()
    const almost = [campaignId.slice(1), `${campaignId}0`, campaignId.replaceAll('-', ''), `{${campaignId}}`, ` ${campaignId}`]
    const zeros = '00000000-0000-0000-0000-000000000000'
    const ids = [randomUUID(), zeros, ...almost.map(encodeURIComponent), '1', '0', '-1', 'ą', '%F0%9F%98%80', "1' or 1=1"]
    const ofReport = [...OF_CAMPAIGNS, 'recipients/accepted', 'recipients/clicked']
    for (const report of ofReport) {
      for (const id of report === 'summary' ? ids : ids.slice(0, 3))
        assertRefused(await caller.get(of(id, report)), 'RCS_CAMPAIGN_NOT_FOUND', 404)
      assertRefused(await stranger.get(of(campaignId, report)), 'RCS_CAMPAIGN_NOT_FOUND', 404)
    }
    assertRefused(await caller.get(of('x'.repeat(5_000), 'summary')), 'RCS_CAMPAIGN_NOT_FOUND', 404)
  })

  test('is validated before its campaign is looked up: a 400 comes before a 404', async () => {
    for (const id of [randomUUID(), 'no-campaign']) {
      for (const report of OF_CAMPAIGNS) {
        for (const [query, at, reason] of WRONG_DAYS.slice(0, 3)) await assertBadQuery(of(id, report), query, at, reason)
      }
      for (const report of LISTS) await assertBadQuery(of(id, report), 'cursor=x', '/cursor', /./, 'RCS_INVALID_CURSOR')
      await assertBadQuery(of(id, 'aggregations'), 'interval=week', '/interval', /./)
      await assertBadQuery(of(id, 'aggregations'), 'from=1980-01-01&to=2020-01-01', '/to', /the maximum is 10000/)
      await assertBadQuery(of(id, 'recipients/everybody'), '', '/eventType', /./)
    }
  })

  test('is a 404 under another path', async () => {
    for (const path of ['', '/', '/campaigns', '/messages', of(campaignId, ''), of(campaignId, 'recipients')]) {
      assertRefused(await caller.get(path), 'RCS_ROUTE_NOT_FOUND', 404)
    }
  })
})

describe('rejects a parameter of another report:', () => {
  for (const [path, query] of [
    [of(campaignId, 'summary'), 'interval=day'],
    [of(campaignId, 'summary'), 'limit=10'],
    [of(campaignId, 'aggregations'), 'limit=10'],
    [of(campaignId, 'aggregations'), 'sort=period'],
    [of(campaignId, 'action-details'), 'interval=day'],
    [of(campaignId, 'action-details'), 'action=clicked'],
    [of(campaignId, 'recipients/read'), 'recipient=%2B48500100001'],
    [of(campaignId, 'recipients/read'), 'eventType=read'],
    ['/messages/summary', 'campaignId=x'],
    ['/messages/aggregations', 'interval=day'],
    ['/messages/aggregations', 'interval=hour'],
  ] as const) {
    test(`${path.split('/').slice(-2).join('/')}?${query}`, async () => {
      await assertBadQuery(path, query, `/${query.split('=')[0]}`, UNKNOWN)
    })
  }
})

describe('lists', () => {
  const SORTS: Record<string, string> = { 'action-details': 'occurredAt, -occurredAt, recipient, -recipient, action, -action' }
  for (const report of LISTS) {
    const sorts = SORTS[report] ?? 'occurredAt, -occurredAt, recipient, -recipient'
    test(`${report} reject unknown sorts and sizes, and name the known ones`, async () => {
      for (const sort of ['status', 'messageId', 'occurredat', '%2BoccurredAt', '--occurredAt', 'occurredAt,recipient', '', '-']) {
        await assertBadQuery(of(campaignId, report), `sort=${sort}`, '/sort', `must be one of ${sorts}`)
      }
      await assertBadQuery(of(campaignId, report), 'sort=recipient&sort=recipient', '/sort', /./)
      await assertBadQuery(of(campaignId, report), 'limit=0', '/limit', 'must be at least 1')
      await assertBadQuery(of(campaignId, report), 'limit=-1', '/limit', 'must be at least 1')
      await assertBadQuery(of(campaignId, report), 'limit=201', '/limit', 'must be at most 200')
      for (const limit of ['', 'ten', '1.5', '1e2', '%2B5', '0x10', '99999999999999999999']) {
        await assertBadQuery(of(campaignId, report), `limit=${limit}`, '/limit', /./)
      }
      for (const sort of sorts.split(', ')) await caller.report(`${of(campaignId, report)}?sort=${sort}&limit=200`)
      assert.equal((await caller.report(`${of(campaignId, report)}?limit=1`)).nextCursor, null)
    })
  }

  test('of recipients exist for the events of the contract, and any other event is rejected with a list of these', async () => {
    for (const eventType of EVENT_TYPES) {
      const { items, nextCursor } = await caller.report(of(campaignId, `recipients/${eventType}`))
      assert.deepEqual([items.length, nextCursor], [eventType === 'accepted' ? 1 : 0, null], eventType)
    }
    const similar = ['DELIVERED', 'Delivered', 'delivered%20', 'opted_out', 'optedOut', 'sms-skipped', 'attempt-failed', 'delivered-late']
    const others = ['sending', 'all', 'constructor', '__proto__', 'toString', '%00', 'ą', '-', "'", 'x'.repeat(1_000)]
    for (const eventType of [...similar, ...others]) {
      const response = await caller.get(of(campaignId, `recipients/${eventType}`))
      assert.deepEqual([response.status, response.body.code], [400, 'RCS_INVALID_REQUEST'], eventType)
      const { path, reason } = response.body.details.at(-1)
      assert.deepEqual([path, reason], ['/eventType', `must be one of ${EVENT_TYPES.join(', ')}`], eventType)
    }
  })
})
