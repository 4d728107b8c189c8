import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, test } from 'node:test'
import { type PastMessage, writeCampaign } from './past.ts'
import { ascending, at, campaignOf, keysOf, pool } from './shared.ts'
import { assertRefused, phone } from './support.ts'

describe('pages', () => {
  /** Over several days and hours; three messages share each time, and their numbers are not in that order. */
  const messages: PastMessage[] = Array.from({ length: 60 }, (_, n) => {
    const acceptedAt = new Date(Date.UTC(2026, 9, 1) + Math.floor(n / 3) * 7_777_777).toISOString()
    return {
      recipient: phone((n * 7) % 60),
      acceptedAt,
      sentAt: acceptedAt,
      failedAt: at(20 + (n % 4)),
      sms: { sentAt: at(25), deliveredAt: at(26) },
    }
  })

  test('have 50 items by default, and up to 200', async () => {
    const { report, list } = await campaignOf(messages)
    for (const eventType of ['accepted', 'sms-sent']) {
      const { items, nextCursor } = await report(list(`recipients/${eventType}`))
      assert.equal(items.length, 50)
      const rest = await report(list(`recipients/${eventType}`, `cursor=${nextCursor}`))
      assert.deepEqual([rest.items.length, rest.nextCursor], [10, null])
      for (const limit of [60, 200]) {
        const all = await report(list(`recipients/${eventType}`, `limit=${limit}`))
        assert.deepEqual(all, { items: [...items, ...rest.items], nextCursor: null }, 'no empty page follows')
      }
    }
  })

  for (const eventType of ['accepted', 'failed', 'sms-delivered']) {
    test(`of ${eventType} make the same list for any size and order, with equal times`, async () => {
      const { walk, list } = await campaignOf(messages.slice(0, 9))
      for (const sort of ['occurredAt', 'recipient']) {
        const items = await walk(list(`recipients/${eventType}`, `sort=${sort}`))
        const keys = keysOf(items, sort) as string[]
        assert.deepEqual(keys, ascending(keys))
        assert.equal(new Set(keysOf(items, 'messageId')).size, 9)
        for (const limit of eventType === 'failed' ? [1, 2, 7] : [4]) {
          assert.deepEqual(await walk(list(`recipients/${eventType}`, `sort=${sort}`), limit), items, `${sort} by ${limit}`)
          assert.deepEqual(await walk(list(`recipients/${eventType}`, `sort=-${sort}`), limit), items.toReversed(), `-${sort} by ${limit}`)
        }
      }
    })
  }
})

describe('a cursor', () => {
  const actions = [1, 2, 3].map((day) => ({ kind: 'clicked' as const, at: at(9, `0${day}:00:00.000`) }))
  const messages = Array.from({ length: 3 }, (_, n) => ({
    recipient: phone(n),
    acceptedAt: at(1),
    sentAt: at(2),
    deliveredAt: at(3),
    actions,
  }))
  const NOT_HERE = [{ path: '/cursor', reason: /./ }]
  const RANGE = 'from=2026-10-01&to=2026-10-31'

  test('continues with another page size', async () => {
    const { report, list } = await campaignOf(messages)
    const { nextCursor, items } = await report(list('recipients/sent', 'limit=1'))
    const rest = await report(list('recipients/sent', `limit=2&cursor=${nextCursor}`))
    assert.equal(new Set(keysOf([...items, ...rest.items], 'messageId')).size, 3)
  })

  for (const report of ['recipients/accepted', 'recipients/sent', 'action-details']) {
    test(`of ${report} is rejected with another sort, range, event, campaign or list`, async () => {
      const { campaignId: _, ...first } = await campaignOf(messages)
      const { campaignId: other } = await writeCampaign(pool, first, messages)
      const elsewhere = [
        ...['sort=recipient', 'sort=occurredAt', 'sort=-recipient', 'from=2026-10-01', 'to=2026-10-31', RANGE].map((query) =>
          first.list(report, query),
        ),
        ...['recipients/accepted', 'recipients/sent', 'recipients/delivered', 'recipients/clicked', 'action-details']
          .filter((each) => each !== report)
          .map((each) => first.list(each)),
        `/campaigns/${other}/${report}?`,
      ]
      const { nextCursor } = await first.report(first.list(report, 'limit=1'))
      for (const path of elsewhere) {
        assertRefused(await first.get(`${path}&limit=1&cursor=${nextCursor}`), 'RCS_INVALID_CURSOR', 400, NOT_HERE)
      }
      const cut = (await first.report(first.list(report, `limit=1&${RANGE}`))).nextCursor
      for (const query of ['', 'from=2026-10-01', 'to=2026-10-31', 'from=2026-10-01&to=2026-10-30', 'from=2026-09-30&to=2026-10-31']) {
        assertRefused(await first.get(`${first.list(report, query)}&limit=1&cursor=${cut}`), 'RCS_INVALID_CURSOR', 400, NOT_HERE)
      }
      const same = await first.report(first.list(report, `limit=1&sort=-occurredAt&cursor=${nextCursor}`))
      assert.equal(same.items.length, 1, 'the default sort, written out, is the same')
    })
  }

  test('of another account is rejected', async () => {
    const [mine, theirs] = [await campaignOf(messages), await campaignOf(messages)]
    const { nextCursor } = await theirs.report(theirs.list('recipients/sent', 'limit=1'))
    assertRefused(await mine.get(mine.list('recipients/sent', `limit=1&cursor=${nextCursor}`)), 'RCS_INVALID_CURSOR', 400, NOT_HERE)
    assertRefused(await mine.get(theirs.list('recipients/sent', `limit=1&cursor=${nextCursor}`)), 'RCS_CAMPAIGN_NOT_FOUND', 404)
  })

  const seed = randomInt(2 ** 31)
  const PLACES = [
    ['recipients/accepted', 'occurredAt'],
    ['recipients/sent', 'recipient'],
    ['action-details', '-action'],
    ['action-details', '-occurredAt'],
  ] as const

  test('that the service did not issue is rejected', async () => {
    const { report, get, list } = await campaignOf(messages)
    const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const nonsense = ['x', '%00', '%20', 'null', json(null), json([]), json({}), json('x'), json([[]]), 'A'.repeat(2_048), '%F0%9F%98%80']
    for (const [path, sort] of PLACES) {
      const of = list(path, `sort=${sort}&limit=1`)
      const cursor: string = (await report(of)).nextCursor
      const cut = [cursor.slice(1), cursor.slice(0, -4), cursor.slice(4), [...cursor].reverse().join(''), `${cursor}.${cursor}`]
      for (const wrong of [...nonsense.splice(0), ...cut, ...rebuilt(cursor)]) {
        const { status, body } = await get(`${of}&cursor=${wrong}`)
        assert.deepEqual([status, body.code, body.details?.[0]?.path], [400, 'RCS_INVALID_CURSOR', '/cursor'], `${sort} ${wrong}`)
      }
    }
  })

  test(`with a changed character is rejected, or is another place in the same list (seed ${seed})`, async () => {
    const { report, get, list, written } = await campaignOf(messages)
    for (const [path, sort] of PLACES) {
      const of = list(path, `sort=${sort}&limit=200`)
      const cursor: string = (await report(list(path, `sort=${sort}&limit=1`))).nextCursor
      for (let n = 0; n < 5; n += 1) {
        const place = (seed + n * 7_919) % cursor.length
        const wrong = `${cursor.slice(0, place)}${cursor[place] === 'Q' ? 'R' : 'Q'}${cursor.slice(place + 1)}`
        const { status, body } = await get(`${of}&cursor=${wrong}`)
        assert.ok(status === 400 || status === 200, `${status} ${sort} ${wrong}`)
        for (const item of body.items ?? []) assert.ok(written.some(({ messageId }) => messageId === item.messageId))
      }
    }
  })

  /** The same cursor with impossible parts. */
  function rebuilt(cursor: string): string[] {
    const parts: unknown[] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const impossible = [null, 1, [], '\0', '\ud800']
    const changed = parts.flatMap((_, index) => impossible.map((value) => parts.with(index, value)))
    const times = parts.flatMap((part, index) =>
      typeof part === 'string' && /^\d{4}-\d\d-\d\dT/.test(part)
        ? ['2026-02-30T00:00:00.000Z', 'infinity', '0000-01-01T00:00:00.000Z'].map((value) => parts.with(index, value))
        : [],
    )
    const all = [...changed, ...times, [...parts, 1], parts.slice(0, -1), parts.toReversed()]
    return all.map((each) => Buffer.from(JSON.stringify(each)).toString('base64url'))
  }
})
