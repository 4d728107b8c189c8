import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'
import { routeUntilDone, writeEvents } from '../support/log.ts'
import { type MessageCaller, startMessageService } from '../support/messages.ts'
import { createAssignedAgent } from '../support/service.ts'

// Responses to one account must not reveal how much the others do.

const database = await createTestDatabase()
const { pool } = database
const { newCaller } = await startMessageService(database)

const OTHERS_DO = 57

describe('the feed', () => {
  // A position that random bytes do not contain by chance.
  const FAR = 0x7654_3210_fed

  async function emit({ accountId }: MessageCaller, count: number): Promise<void> {
    await writeEvents(
      pool,
      Array.from({ length: count }, (_, n) => ({ accountId, kind: 'webhook.test', data: { endpointId: n + 1 } })),
    )
    await routeUntilDone(pool)
  }

  /** The newest cursor of the account, and the position in the log that it stands for. */
  async function newest(caller: MessageCaller) {
    const { body } = await caller.ask('GET', '/events?limit=200')
    const { rows } = await pool.query<{ position: number }>('select max(last_position) as position from log_pages where account_id = $1', [
      caller.accountId,
    ])
    return { cursor: body.nextCursor as string, position: rows[0]?.position as number }
  }

  /** Every number in a cursor: of 4 to 6 bytes at any place, in either byte order, and each long run of digits. */
  function numbersIn(cursor: string): Map<string, number> {
    const numbers = new Map<string, number>()
    for (const encoding of ['base64url', 'hex', 'latin1'] as const) {
      const bytes = Buffer.from(cursor, encoding)
      for (let width = 4; width <= 6; width += 1) {
        for (let at = 0; at + width <= bytes.length; at += 1) {
          numbers.set(`${encoding} ${at} ${width} big`, bytes.readUIntBE(at, width))
          numbers.set(`${encoding} ${at} ${width} little`, bytes.readUIntLE(at, width))
        }
      }
      for (const [index, [digits]] of [...bytes.toString('latin1').matchAll(/\d{6,}/g)].entries()) {
        numbers.set(`${encoding} digits ${index}`, Number(digits))
      }
    }
    return numbers
  }

  test('returns cursors that contain neither the position nor a number that grows with events', async () => {
    const [mine, other] = [await newCaller(), await newCaller()]
    await pool.query('insert into log_heads (account_id, last_position) values ($1, $2)', [mine.accountId, FAR])
    await emit(mine, 1)
    const before = await newest(mine)
    await emit(other, OTHERS_DO)
    await emit(mine, 1)
    const after = await newest(mine)
    assert.deepEqual([before.position, after.position], [FAR + 1, FAR + 2], 'the log counts the events of the account alone')
    const numbers = [before, after].map(({ cursor }) => numbersIn(cursor)) as [Map<string, number>, Map<string, number>]
    for (const [where, number] of numbers[1]) {
      assert.notEqual(number, after.position, where)
      const earlier = numbers[0].get(where)
      if (earlier !== undefined) for (const growth of [1, OTHERS_DO + 1]) assert.notEqual(number - earlier, growth, where)
    }
    assert.equal(after.cursor.length, before.cursor.length)
  })

  test('returns the same cursor for the same place, whatever other accounts do', async () => {
    const [mine, other] = [await newCaller(), await newCaller()]
    await emit(mine, 2)
    const { cursor } = await newest(mine)
    await emit(other, OTHERS_DO)
    assert.equal((await newest(mine)).cursor, cursor)
    const { body } = await mine.ask('GET', `/events?after=${cursor}`)
    assert.deepEqual(body, { items: [], nextCursor: cursor, hasMore: false })
  })

  test('rejects the cursor of another account like an invalid one', async () => {
    const [mine, other] = [await newCaller(), await newCaller()]
    await emit(other, 1)
    const { cursor } = await newest(other)
    const { status, body } = await mine.ask('GET', `/events?after=${cursor}`)
    const details = [{ path: '/after', reason: 'is not a cursor that this feed has given out' }]
    assert.deepEqual([status, body.code, body.details], [400, 'RCS_INVALID_CURSOR', details])
  })
})

describe('ids of templates', () => {
  const SINCE = Date.UTC(2020, 0, 1)

  test('consist of the time of creation and 12 random bits', async () => {
    const [mine, other] = [await newCaller(), await newCaller()]
    const ids: number[] = []
    for (const others of [0, OTHERS_DO, 0]) {
      await Promise.all(Array.from({ length: others }, () => other.template()))
      const from = Date.now()
      const id = await mine.template()
      const createdAt = Math.floor(id / 4096) + SINCE
      assert.ok(Number.isSafeInteger(id) && createdAt >= from - 1 && createdAt <= Date.now() + 1, `${id} is from ${new Date(createdAt)}`)
      ids.push(id)
    }
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => a - b),
      'in the order of creation',
    )
    const { rows } = await pool.query<{ drawn: number }>(
      'select count(distinct new_template_id() % 4096) as drawn from generate_series(1, 4096)',
    )
    // Of 4,096 draws out of 4,096 numbers, 2,589 differ on average, with a deviation of 20.
    assert.ok((rows[0]?.drawn ?? 0) > 2_400 && (rows[0]?.drawn ?? 0) < 2_780, `${rows[0]?.drawn} differ`)
  })

  test('are rejected for deletion without the id of the automatic reply that uses them', async () => {
    const caller = await newCaller()
    const id = await caller.template()
    const agentId = await createAssignedAgent(pool, caller.accountId)
    const { rows } = await pool.query<{ id: number }>(
      `insert into auto_replies (account_id, agent_id, keyword, template_id) values ($1, $2, 'hours', $3) returning id`,
      [caller.accountId, agentId, id],
    )
    const { body } = await caller.ask('DELETE', `/templates/${id}`)
    assert.deepEqual(body.details, [{ path: '', reason: `is used by the automatic reply of agent ${agentId} to "hours"` }])
    await pool.query('delete from auto_replies where id = $1', [rows[0]?.id])
  })
})
