import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { expireDue } from '../../src/delivery/expiry.ts'
import { createTestDatabase, makePastMonths } from '../support/database.ts'
import { moveExpiry } from '../support/expiring.ts'
import { createSender, statusOf } from './support.ts'

const { url, hotPool: pool } = await createTestDatabase({ uncounted: 'messages of two days ago are written by hand' })
await makePastMonths(pool)
const sender = await createSender(pool)

describe('messages without an expiry of their own', () => {
  const LIFE_MS = 48 * 3_600_000

  /** Messages that were accepted so long before they expire, with ids of that time, by their statuses; none has a row in `expiries`. */
  async function acceptedBefore(statuses: string[], expiredAgoMs: number, ownLifeMs = LIFE_MS): Promise<string[]> {
    const { rows } = await pool.query<{ id: string }>(
      `with made as materialized (
         select n, status, now() - ($3::float8 + $4) * interval '1 millisecond' as at from unnest($1::text[]) with ordinality as s (status, n)
       )
       insert into messages (id, account_id, agent_id, recipient, basic, test, content, accepted_at, expires_at, status, sent_at, delivered_at)
       select (left(uuid_v7_from(at)::text, 19) || lpad(to_hex(n), 4, '0') || right(gen_random_uuid()::text, 13))::uuid,
         $2, $6, '+48500100200', false, false, '{"type":"MESSAGE","content":"Hi"}', at, at + $5 * interval '1 millisecond', status,
         case when status <> 'ACCEPTED' then at end, case when status = 'DELIVERED' then at end
       from made order by n returning id`,
      [statuses, sender.accountId, expiredAgoMs, LIFE_MS, ownLifeMs, sender.agentId],
    )
    return rows.map(({ id }) => id)
  }

  /** Begins before all of these. */
  async function beginWalk(): Promise<void> {
    await pool.query(`update expiry_walk set reached = uuid_v7_from(now() - interval '50 hours')`)
  }

  async function expireAll(): Promise<number> {
    let expired = 0
    for (let mayBeMore = true; mayBeMore; ) {
      const done = await expireDue(pool)
      expired += done.expired
      mayBeMore = done.mayBeMore
    }
    return expired
  }

  async function statuses(ids: string[]): Promise<string[]> {
    return await Promise.all(ids.map((id) => statusOf(pool, id)))
  }

  test('are marked in the order of their ids, those alone that are neither delivered nor failed, however many there are', async () => {
    await beginWalk()
    await acceptedBefore(
      Array.from({ length: 11_000 }, () => 'DELIVERED'),
      60_000,
    )
    const open = await acceptedBefore(['SENT', 'DELIVERED', 'ACCEPTED', 'SENT'], 30_000)
    assert.equal(await expireAll(), 3)
    assert.deepEqual(await statuses(open), ['EXPIRED', 'DELIVERED', 'EXPIRED', 'EXPIRED'])
    assert.equal(await expireAll(), 0)
  })

  test('are marked within two seconds after their time, and not before', async () => {
    await beginWalk()
    const [early, late] = [await acceptedBefore(['SENT'], -60_000), await acceptedBefore(['SENT'], 1_400)]
    await expireAll()
    assert.deepEqual(await statuses([...early, ...late]), ['SENT', 'EXPIRED'])
  })

  test('are marked once by workers at once, and none is passed by where one of them fails', async () => {
    await beginWalk()
    const ids = await acceptedBefore(
      Array.from({ length: 2_500 }, () => 'SENT'),
      10_000,
    )
    // Held for longer than a statement may take, by a session that may stay idle for so long.
    const holder = new pg.Client(url)
    await holder.connect()
    await holder.query('begin')
    await holder.query('select from messages where id = $1 for update', [ids[500]])
    await assert.rejects(expireAll())
    await holder.end()
    const marked = await Promise.all([expireAll(), expireAll(), expireAll()])
    assert.equal(marked.reduce((sum, count) => sum + count, 0) + (await expireAll()), ids.length)
  })

  test('with an expiry of their own that is later are passed by, and expire by their own', async () => {
    await beginWalk()
    const [own] = await acceptedBefore(['SENT'], 10_000, 15 * 86_400_000)
    assert.equal(await expireAll(), 0)
    await moveExpiry(pool, [own as string])
    assert.equal(await expireAll(), 1)
  })

  test('are found where the clock was set back by days while they were accepted', async () => {
    // As if the walk had been two days further than the clock says now.
    await pool.query(`update expiry_walk set reached = uuid_v7_from(now() + interval '1 hour')`)
    assert.equal(await expireAll(), 0)
    const { rows } = await pool.query<{ isBack: boolean }>('select reached < uuid_v7_from(now()) as "isBack" from expiry_walk')
    assert.deepEqual(rows, [{ isBack: true }])
  })
})
