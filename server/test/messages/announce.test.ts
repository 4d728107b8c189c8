import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import pg from 'pg'
import { createHotPool } from '../../src/db/pool.ts'
import { createAnnouncer, QUEUE_CHANNEL } from '../../src/messages/announce.ts'
import { createTestDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const { url, hotPool: pool } = await createTestDatabase()
const heard: string[] = []
const listener = new pg.Client(url)
listener.on('notification', ({ payload }) => heard.push(payload ?? ''))
await listener.connect()
await listener.query(`listen ${QUEUE_CHANNEL}`)

describe('an announcement of work', () => {
  // Before the database is dropped, which would end the connection with an error.
  after(() => listener.end())

  test('reaches every listening node once for concurrent calls', async () => {
    const announce = createAnnouncer(pool)
    for (let n = 0; n < 100; n += 1) announce('messages')
    announce('replies')
    await until('both kinds are heard', () => new Set(heard).size === 2)
    assert.deepEqual(heard, ['messages', 'replies'])
  })

  test('throws nothing when the database is unreachable, since workers poll', async (t) => {
    const closed = createHotPool({ connectionString: url }, () => {})
    await closed.end()
    const query = t.mock.method(closed, 'query')
    // An unhandled rejection would fail this file.
    createAnnouncer(closed)('messages')
    const [call] = await until('the statement is sent', () => (query.mock.callCount() > 0 ? query.mock.calls : undefined))
    await assert.rejects(call?.result as unknown as Promise<unknown>)
  })
})
