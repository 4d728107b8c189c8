import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { recordResults } from '../../src/delivery/results.ts'
import { createCursors } from '../../src/events/cursor.ts'
import { readFeed } from '../../src/events/feed.ts'
import { eventIdOf, findEvent, placeKey, readEventsAt, readPages } from '../../src/events/pages.ts'
import { createSender, queueMessages, type Sender } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { LOGGED_EVENTS, routeUntilDone, writeEvents } from '../support/log.ts'

// The events of one account from one statement are a page, which determines their ids and positions.

const { hotPool: pool } = await createTestDatabase()
const cursors = createCursors(randomBytes(32))
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** One statement marks messages of these senders as sent. */
async function sendAll(messages: [sender: Sender, count: number][]): Promise<void> {
  const lease = randomUUID()
  const ids: string[] = []
  for (const [sender, count] of messages) ids.push(...(await queueMessages(pool, sender, { count })))
  await pool.query(`update queue set lease = $2, leased_until = now() + interval '1 minute' where message_id = any ($1)`, [ids, lease])
  const counted = await recordResults(
    pool,
    ids.map((messageId) => ({ messageId, lease, is: 'sent' })),
  )
  assert.ok(counted.every(Boolean))
}

type Row = { position: number; eventId: string; subjectId: string }

/** The log of an account, computed in SQL. */
async function logOf({ accountId }: Pick<Sender, 'accountId'>): Promise<Row[]> {
  const { rows } = await pool.query<Row>(
    `select position, event_id as "eventId", subject_id as "subjectId" from ${LOGGED_EVENTS} as e where account_id = $1 order by position`,
    [accountId],
  )
  return rows
}

async function pageSizes({ accountId }: Sender): Promise<number[]> {
  const { rows } = await pool.query<{ count: number; events: number }>(
    'select event_count as count, json_array_length(events) as events from log_pages where account_id = $1 order by id',
    [accountId],
  )
  for (const { count, events } of rows) assert.equal(count, events)
  return rows.map(({ count }) => count)
}

describe('a page', () => {
  test('has the events of one account from one statement, at most 100', async () => {
    const [many, few] = [await createSender(pool), await createSender(pool)]
    await sendAll([
      [many, 250],
      [few, 3],
    ])
    assert.deepEqual([await pageSizes(many), await pageSizes(few)], [[100, 100, 50], [3]])
    await sendAll([[few, 100]])
    await sendAll([[few, 101]])
    assert.deepEqual(await pageSizes(few), [3, 100, 100, 1])
  })

  test('gives its events distinct ids, which every reader sees and by which each is found', async () => {
    const [sender, stranger] = [await createSender(pool), await createSender(pool)]
    await sendAll([[sender, 250]])
    const unplaced = (await logOf(sender))[0] as Row
    assert.equal(await findEvent(pool, sender.accountId, unplaced.eventId), undefined, 'it has no position yet')
    await routeUntilDone(pool)
    const log = await logOf(sender)
    const ids = log.map(({ eventId }) => eventId)
    assert.equal(new Set(ids).size, 250)
    for (const id of ids) assert.match(id, UUID_V7)
    for (let time = 0; time < 2; time += 1) {
      const { items } = await readFeed(pool, cursors, sender.accountId, { limit: 1_000 })
      assert.deepEqual(
        items.map(({ eventId }) => eventId),
        ids,
      )
    }
    const places = log.map(({ position }) => ({ accountId: sender.accountId, position }))
    const read = await readEventsAt(pool, places)
    assert.deepEqual(
      places.map(({ accountId, position }) => read.get(placeKey(accountId, position))?.eventId),
      ids,
    )
    for (const { eventId, position } of log) {
      assert.equal((await findEvent(pool, sender.accountId, eventId))?.position, position)
      assert.equal((await findEvent(pool, sender.accountId, eventId.toUpperCase()))?.position, position)
    }
    assert.equal(await findEvent(pool, stranger.accountId, ids[0] as string), undefined, 'of another account')
    const { rows } = await pool.query<{ id: string; count: number }>(
      'select page_id as id, event_count as count from log_pages where account_id = $1',
      [sender.accountId],
    )
    for (const { id, count } of rows) {
      for (const place of [count, 4_095]) assert.equal(await findEvent(pool, sender.accountId, eventIdOf(id, place)), undefined, `${place}`)
    }
  })

  test('gives distinct ids when their counter overflows', async () => {
    const sender = await createSender(pool)
    await sendAll([[sender, 100]])
    await pool.query(`update log_pages set page_id = '01a1e82d-ea21-7fce-8d2b-fe1bbd18feab' where account_id = $1`, [sender.accountId])
    await routeUntilDone(pool)
    const log = await logOf(sender)
    assert.deepEqual(
      [log[0], log[49], log[50], log[99]].map((event) => event?.eventId.slice(14, 18)),
      ['7fce', '7fff', '7000', '7031'],
    )
    for (const { eventId, position } of log) assert.equal((await findEvent(pool, sender.accountId, eventId))?.position, position)
  })

  test('gives distinct ids for any id of the page', () => {
    const place = fc.nat({ max: 99 })
    fc.assert(
      fc.property(fc.uuid({ version: 7 }), place, place, (pageId, a, b) => {
        assert.equal(eventIdOf(pageId, a) === eventIdOf(pageId, b), a === b)
        assert.equal(eventIdOf(pageId, 0), pageId)
        assert.match(eventIdOf(pageId, a), UUID_V7)
      }),
    )
  })
})

describe('positions', () => {
  test('of an account start at 1 and have no gap beside other accounts', async () => {
    const [quiet, busy] = [await createSender(pool), await createSender(pool)]
    for (let turn = 0; turn < 3; turn += 1) {
      await sendAll([[busy, 230]])
      await sendAll([[quiet, 1]])
      await sendAll([
        [busy, 7],
        [quiet, 2],
      ])
      await routeUntilDone(pool)
    }
    for (const [sender, count] of [
      [quiet, 9],
      [busy, 711],
    ] as const) {
      assert.deepEqual(
        (await logOf(sender)).map(({ position }) => position),
        Array.from({ length: count }, (_, index) => index + 1),
      )
    }
  })

  test('are read in batches of the requested size, whatever the size of a page', async () => {
    const sender = await createSender(pool)
    const { accountId } = sender
    await sendAll([[sender, 150]])
    await writeEvents(
      pool,
      Array.from({ length: 150 }, () => ({ accountId, kind: 'webhook.test' })),
    )
    await routeUntilDone(pool)
    const read = async (after: number, last: number, limit: number) =>
      (await readPages(pool, accountId, { after, last, limit })).map(({ lastPosition }) => lastPosition)
    assert.deepEqual(await read(0, 300, 1), [100])
    assert.deepEqual(await read(0, 300, 101), [100, 150])
    assert.deepEqual(await read(0, 300, 152), [100, 150, 151, 152])
    assert.deepEqual(await read(120, 153, 1_000), [150, 151, 152, 153])
    assert.equal((await read(150, 300, 100)).length, 100)
    assert.deepEqual(await read(300, 300, 100), [])
  })
})
