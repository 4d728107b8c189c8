import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type PastMessage, writeCampaign, writeMessages } from './past.ts'
import { newCaller, pool } from './shared.ts'
import { assertRefused, phone } from './support.ts'

const COUNTS = ['sent', 'delivered', 'read', 'failed', 'expired', 'clicked', 'replied'] as const
const ZEROS = Object.fromEntries(COUNTS.map((name) => [name, 0]))
const of = (period: string, counts: Record<string, number> = {}) => ({ period, ...ZEROS, ...counts })
const dayAfter = (day: string, days: number) => new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10)

/** A message for each time, at which it was accepted, sent and delivered. */
const deliveredAt = (...times: string[]): PastMessage[] =>
  times.map((time, n) => ({ recipient: phone(n), acceptedAt: time, sentAt: time, deliveredAt: time }))

/** A campaign of a new account, and its aggregations. */
async function campaignOf(messages: PastMessage[]) {
  const caller = await newCaller()
  const { campaignId } = await writeCampaign(pool, caller, messages)
  const path = `/campaigns/${campaignId}/aggregations`
  const read = async (query = '') => await caller.report(`${path}?${query}`)
  return { ...caller, campaignId, path, read }
}

describe('aggregations', () => {
  test('are by day by default, with the fields of the contract', async () => {
    const time = '2026-10-05T10:20:30.400Z'
    const message = { recipient: phone(1), acceptedAt: time, sentAt: time, deliveredAt: time, readAt: time }
    const actions = (['clicked', 'wrote', 'tapped', 'opted-out'] as const).map((kind) => ({ kind, at: time }))
    const sms = { sentAt: time, deliveredAt: time }
    const messages = [
      { ...message, actions },
      { recipient: phone(2), acceptedAt: time, failedAt: time, sms },
      { recipient: phone(3), acceptedAt: time, sentAt: time, expiredAt: time },
    ]
    const { read, report, ...caller } = await campaignOf(messages)
    const items = [of('2026-10-05', { sent: 2, delivered: 1, read: 1, failed: 1, expired: 1, clicked: 1, replied: 1 })]
    assert.deepEqual(await read(), { interval: 'day', items })
    assert.deepEqual(await read('interval=day'), { interval: 'day', items })
    assert.deepEqual(await read('interval=hour'), { interval: 'hour', items: [{ ...items[0], period: '2026-10-05T10:00:00.000Z' }] })
    assert.deepEqual(await report('/messages/aggregations'), { interval: 'day', items: [] })
    await writeMessages(pool, caller, messages)
    assert.deepEqual(await report('/messages/aggregations'), { interval: 'day', items })
  })

  test('reject an unknown interval, and name the known ones', async () => {
    const { get, path } = await campaignOf([])
    for (const interval of ['week', 'month', 'minute', 'Day', 'days', '', 'hour,day', '1']) {
      assertRefused(await get(`${path}?interval=${interval}`), 'RCS_INVALID_REQUEST', 400, [
        { path: '/interval', reason: /hour.*day|day.*hour/ },
      ])
    }
    assertRefused(await get(`${path}?interval=day&interval=day`), 'RCS_INVALID_REQUEST', 400, [{ path: '/interval', reason: /hour.*day/ }])
  })
})

describe('periods without events have zeros', () => {
  for (const [what, first, last, days] of [
    ['over the end of a month', '2026-10-30', '2026-11-02', ['2026-10-30', '2026-10-31', '2026-11-01', '2026-11-02']],
    ['over a leap day', '2024-02-28', '2024-03-01', ['2024-02-28', '2024-02-29', '2024-03-01']],
    ['over the end of a year', '2025-12-30', '2026-01-02', ['2025-12-30', '2025-12-31', '2026-01-01', '2026-01-02']],
    ['over a change of clocks', '2026-10-24', '2026-10-26', ['2026-10-24', '2026-10-25', '2026-10-26']],
  ] as const) {
    test(what, async () => {
      const { read } = await campaignOf(deliveredAt(`${first}T23:59:59.999Z`, `${last}T00:00:00.000Z`))
      const counted: string[] = [first, last]
      const byDay = days.map((day) => of(day, counted.includes(day) ? { sent: 1, delivered: 1 } : {}))
      assert.deepEqual((await read()).items, byDay)
      assert.equal((await read(`interval=hour&from=${first}&to=${last}`)).items.length, 24 * days.length)
    })
  }

  test('on all days of a range without any event', async () => {
    const { read, report } = await campaignOf([])
    const days = ['2026-10-01', '2026-10-02', '2026-10-03'].map((day) => of(day))
    assert.deepEqual((await read('from=2026-10-01&to=2026-10-03')).items, days)
    assert.deepEqual((await report('/messages/aggregations?from=2026-10-01&to=2026-10-03')).items, days)
    assert.equal((await read('from=2026-10-01&to=2026-10-01&interval=hour')).items.length, 24)
    assert.deepEqual((await read('from=9999-12-31&to=9999-12-31')).items, [of('9999-12-31')])
    assert.deepEqual((await read('from=0100-01-01&to=0100-01-01')).items, [of('0100-01-01')])
  })
})

describe('an open end', () => {
  const counts = { sent: 1, delivered: 1 }

  test('is the first or last period with an event', async () => {
    const { read } = await campaignOf(deliveredAt('2026-10-02T10:30:00.000Z', '2026-10-04T12:30:00.000Z'))
    const all = [of('2026-10-02', counts), of('2026-10-03'), of('2026-10-04', counts)]
    for (const [query, items] of [
      ['', all],
      ['from=2026-10-01', [of('2026-10-01'), ...all]],
      ['from=2026-10-03', all.slice(1)],
      ['to=2026-10-05', [...all, of('2026-10-05')]],
      ['to=2026-10-03', all.slice(0, 2)],
    ] as const) {
      assert.deepEqual((await read(query)).items, items, query)
    }
    const ends = async (query: string) => {
      const { items } = await read(`interval=hour&${query}`)
      return [items[0].period, items.at(-1).period, items.length]
    }
    assert.deepEqual(await ends(''), ['2026-10-02T10:00:00.000Z', '2026-10-04T12:00:00.000Z', 51])
    assert.deepEqual(await ends('from=2026-10-03'), ['2026-10-03T00:00:00.000Z', '2026-10-04T12:00:00.000Z', 37])
    assert.deepEqual(await ends('to=2026-10-03'), ['2026-10-02T10:00:00.000Z', '2026-10-03T23:00:00.000Z', 38])
  })

  test('without any event has no periods', async () => {
    const { read, report } = await campaignOf([])
    for (const query of [
      '',
      'from=2026-10-01',
      'to=2026-10-01',
      'from=0100-01-01',
      'to=9999-12-31',
      'interval=hour',
      'interval=hour&to=9999-12-31',
    ]) {
      assert.deepEqual((await read(query)).items, [], query)
      if (!query.includes('interval')) assert.deepEqual((await report(`/messages/aggregations?${query}`)).items, [], query)
    }
    const { read: readOther } = await campaignOf(deliveredAt('2026-10-02T10:30:00.000Z'))
    assert.deepEqual((await readOther('from=2026-10-03')).items, [], 'all was before')
    assert.deepEqual((await readOther('to=2026-10-01')).items, [], 'all was after')
    assert.deepEqual((await readOther('to=2026-10-01&interval=hour')).items, [])
  })
})

describe('at most 10,000 periods', () => {
  const tooMany = (path: string) => [{ path, reason: /the maximum is 10000/ }]
  const TOO_MANY = tooMany('/to')

  test('are returned, by day and by hour; one more is rejected', async () => {
    const { read, get, path } = await campaignOf([])
    const to = dayAfter('2000-01-01', 9_999)
    const { items } = await read(`from=2000-01-01&to=${to}`)
    assert.deepEqual([items.length, items.at(-1).period], [10_000, to])
    for (const days of [10_000, 1_000_000]) {
      const query = `from=2000-01-01&to=${dayAfter('2000-01-01', days)}`
      assertRefused(await get(`${path}?${query}`), 'RCS_INVALID_REQUEST', 400, TOO_MANY)
      assertRefused(await get(`/messages/aggregations?${query}`), 'RCS_INVALID_REQUEST', 400, TOO_MANY)
    }
    assert.equal((await read(`interval=hour&from=2026-01-01&to=${dayAfter('2026-01-01', 415)}`)).items.length, 416 * 24)
    assertRefused(
      await get(`${path}?interval=hour&from=2026-01-01&to=${dayAfter('2026-01-01', 416)}`),
      'RCS_INVALID_REQUEST',
      400,
      TOO_MANY,
    )
    assertRefused(await get(`${path}?from=0100-01-01&to=9999-12-31`), 'RCS_INVALID_REQUEST', 400, TOO_MANY)
  })

  test('with open ends too', async () => {
    const { read, get, path } = await campaignOf(deliveredAt('2024-01-01T10:00:00.000Z', '2025-12-31T10:00:00.000Z'))
    assert.equal((await read()).items.length, 731)
    for (const [query, wrong] of [
      ['interval=hour', '/interval'],
      ['from=0100-01-01', '/from'],
      ['to=9999-12-31', '/to'],
      ['interval=hour&from=2024-01-01', '/from'],
      ['interval=hour&to=2025-12-31', '/to'],
    ] as const) {
      assertRefused(await get(`${path}?${query}`), 'RCS_INVALID_REQUEST', 400, tooMany(wrong))
    }
    assert.equal((await read('interval=hour&from=2025-12-30')).items.length, 35)
  })
})
