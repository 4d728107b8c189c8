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

describe('messages with the default lifetime', () => {
  const LIFE_MS = 48 * 3_600_000

  /** Messages whose lifetime ended `expiredAgoMs` ago, with ids of the time when they were accepted and no row in `expiries`. */
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

  /** Lets the walk begin before all of these messages. */
  async function beginWalk(): Promise<void> {
    await pool.query(`update expiry_walk set reached = uuid_v7_from(now() - interval '50 hours')`)
  }

  async function expireAll(): Promise<number> {
    const { expired, mayBeMore } = await expireDue(pool)
    return expired + (mayBeMore ? await expireAll() : 0)
  }

  const statuses = (ids: string[]) => Promise.all(ids.map((id) => statusOf(pool, id)))

  test('expire if they are neither delivered nor failed, however many others there are', async () => {
    await beginWalk()
    await acceptedBefore(Array(11_000).fill('DELIVERED'), 60_000)
    const open = await acceptedBefore(['SENT', 'DELIVERED', 'ACCEPTED', 'SENT'], 30_000)
    assert.equal(await expireAll(), 3)
    assert.deepEqual(await statuses(open), ['EXPIRED', 'DELIVERED', 'EXPIRED', 'EXPIRED'])
    assert.equal(await expireAll(), 0)
  })

  test('expire within two seconds after their time, and not before', async () => {
    await beginWalk()
    const [early, late] = [await acceptedBefore(['SENT'], -60_000), await acceptedBefore(['SENT'], 1_400)]
    await expireAll()
    assert.deepEqual(await statuses([...early, ...late]), ['SENT', 'EXPIRED'])
  })

  test('expire once with concurrent workers, and none is skipped if one worker fails', async () => {
    await beginWalk()
    const ids = await acceptedBefore(Array(2_500).fill('SENT'), 10_000)
    // A plain client: its session may be idle for longer than a statement may take.
    const holder = new pg.Client(url)
    await holder.connect()
    await holder.query('begin')
    await holder.query('select from messages where id = $1 for update', [ids[500]])
    await assert.rejects(expireAll())
    await holder.end()
    const marked = await Promise.all([expireAll(), expireAll(), expireAll()])
    assert.equal(marked.reduce((sum, count) => sum + count, 0) + (await expireAll()), ids.length)
  })

  test('do not expire before a later expiry of their own', async () => {
    await beginWalk()
    const own = await acceptedBefore(['SENT'], 10_000, 15 * 86_400_000)
    assert.equal(await expireAll(), 0)
    await moveExpiry(pool, own)
    assert.equal(await expireAll(), 1)
  })

  test('are found after the clock was set back by days', async () => {
    // As if the walk had been two days further than the clock says now.
    await pool.query(`update expiry_walk set reached = uuid_v7_from(now() + interval '1 hour')`)
    assert.equal(await expireAll(), 0)
    const { rows } = await pool.query<{ isBack: boolean }>('select reached < uuid_v7_from(now()) as "isBack" from expiry_walk')
    assert.deepEqual(rows, [{ isBack: true }])
  })
})
