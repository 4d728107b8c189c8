import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'
import { RECIPIENT, startMessageService } from '../support/messages.ts'
import { assertError } from '../support/service.ts'
import { until } from '../support/until.ts'

const database = await createTestDatabase({ uncounted: 'messages are moved by hand' })
const { pool } = database
const { newCaller } = await startMessageService(database)

const MINUTE_MS = 60_000
const later = (time: string, ms: number) => new Date(Date.parse(time) + ms).toISOString()

/** Changes a message in the database, as its delivery would. */
async function change(messageId: string, assignments: string): Promise<void> {
  const { rowCount } = await pool.query(`update messages set ${assignments} where id = $1`, [messageId])
  assert.equal(rowCount, 1)
}

/** A message that has just been accepted, and its body. */
async function fresh(fields: Record<string, unknown> = {}) {
  const caller = await newCaller()
  const messageId = await caller.accepted(fields)
  const { status, body } = await caller.read(messageId)
  assert.equal(status, 200)
  return { ...caller, messageId, body }
}

describe('GET /messages/{messageId}', () => {
  test('omits the fields of steps that have not happened yet', async () => {
    const { body, agentId, messageId } = await fresh()
    const { acceptedAt } = body
    assert.match(acceptedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.deepEqual(body, {
      messageId,
      agentId,
      recipient: RECIPIENT,
      status: 'ACCEPTED',
      basic: false,
      test: false,
      acceptedAt,
      expiresAt: later(acceptedAt, 48 * 60 * MINUTE_MS),
    })
  })

  test('shows every time and the reference of the caller', async () => {
    const { read, messageId, body } = await fresh({ clientReferenceId: 'order-1001', basic: true })
    const { acceptedAt } = body
    assert.deepEqual([body.clientReferenceId, body.basic], ['order-1001', true])
    await change(
      messageId,
      `status = 'READ', sent_at = accepted_at + interval '1 minute', delivered_at = accepted_at + interval '2 minutes',
       read_at = accepted_at + interval '3 minutes'`,
    )
    assert.deepEqual((await read(messageId)).body, {
      ...body,
      status: 'READ',
      sentAt: later(acceptedAt, MINUTE_MS),
      deliveredAt: later(acceptedAt, 2 * MINUTE_MS),
      readAt: later(acceptedAt, 3 * MINUTE_MS),
    })
  })

  test('shows why a message failed', async () => {
    const { read, messageId, body } = await fresh()
    await change(messageId, `status = 'FAILED', failed_at = accepted_at, failure_reason = 'NOT_REACHABLE', failure_description = 'No RCS.'`)
    const failure = { reason: 'NOT_REACHABLE', description: 'No RCS.' }
    assert.deepEqual((await read(messageId)).body, { ...body, status: 'FAILED', failedAt: body.acceptedAt, failure })
  })

  test('shows SENDING from the first claim until the next status', async () => {
    const { read, messageId, body } = await fresh()
    await pool.query('update queue set claimed = true where message_id = $1', [messageId])
    assert.deepEqual((await read(messageId)).body, { ...body, status: 'SENDING' })
    await pool.query('delete from queue where message_id = $1', [messageId])
    assert.deepEqual((await read(messageId)).body, { ...body, status: 'SENDING' })
    // A queue entry of a sent message only revokes it.
    await change(messageId, `status = 'SENT', sent_at = accepted_at`)
    assert.deepEqual((await read(messageId)).body, { ...body, status: 'SENT', sentAt: body.acceptedAt })
  })

  test('shows EXPIRED a second after the expiry, even if no worker has marked it', async () => {
    const { read, messageId, body } = await fresh()
    await change(messageId, 'expires_at = clock_timestamp()')
    const age = async () => {
      const { rows } = await pool.query(
        'select extract(epoch from clock_timestamp() - expires_at)::float8 * 1000 as ms from messages where id = $1',
        [messageId],
      )
      return rows[0].ms as number
    }
    const expired = await until('it shows as expired', async () => {
      const before = await age()
      const response = await read(messageId)
      const isExpired = response.body.status === 'EXPIRED'
      // The response was made between these two.
      if ((await age()) < 1_000) assert.equal(response.body.status, 'ACCEPTED')
      if (before > 1_000) assert.ok(isExpired)
      return isExpired && response.body
    })
    assert.deepEqual(expired, { ...body, status: 'EXPIRED', expiresAt: expired.expiresAt, expiredAt: expired.expiresAt })
    const { rows } = await pool.query('select status from messages where id = $1', [messageId])
    assert.deepEqual(rows, [{ status: 'ACCEPTED' }])
  })

  test('shows EXPIRED after the expiry only for unfinished messages', async () => {
    const sent = `sent_at = accepted_at`
    const delivered = `${sent}, delivered_at = accepted_at`
    const states: [shown: string, assignments: string][] = [
      ['EXPIRED', `status = 'ACCEPTED'`],
      ['EXPIRED', `status = 'SENT', ${sent}`],
      ['EXPIRED', `status = 'EXPIRED', ${sent}`],
      ['DELIVERED', `status = 'DELIVERED', ${delivered}`],
      ['READ', `status = 'READ', ${delivered}, read_at = accepted_at`],
      ['FAILED', `status = 'FAILED', failed_at = accepted_at, failure_reason = 'X', failure_description = 'x'`],
    ]
    for (const [shown, assignments] of states) {
      const { read, messageId } = await fresh()
      await pool.query('update queue set attempts = 1, claimed = true where message_id = $1', [messageId])
      await change(messageId, `${assignments}, expires_at = now() - interval '1 hour'`)
      const { body } = await read(messageId)
      assert.deepEqual([body.status, body.expiredAt], [shown, shown === 'EXPIRED' ? body.expiresAt : undefined], assignments)
    }
  })

  test('responds with the same 404 to a message of another account, an unknown and an invalid id', async () => {
    const { messageId } = await fresh()
    const { read } = await newCaller()
    const almost = [
      `{${messageId}}`,
      messageId.replaceAll('-', ''),
      `${messageId}0`,
      `${messageId}%20`,
      `%20${messageId}`,
      `${messageId}%0A`,
    ]
    for (const id of [messageId, randomUUID(), ...almost, 'test', '0', 'ą', "' or 1=1", 'x'.repeat(5_000)]) {
      assertError(await read(id), 404, 'RCS_MESSAGE_NOT_FOUND', [['/messageId', 'names no message of this account']], id)
    }
  })

  test('rejects notations of an id that only PostgreSQL accepts', async () => {
    const { read, messageId, body } = await fresh()
    for (const id of [`{${messageId}}`, messageId.replaceAll('-', ''), `${messageId}%20`]) assert.equal((await read(id)).status, 404, id)
    assert.deepEqual((await read(messageId.toUpperCase())).body, body)
  })

  test('rejects a query parameter and other methods', async () => {
    const { ask, messageId } = await fresh()
    const { status, body } = await ask('GET', `/messages/${messageId}?verbose=1`)
    assert.deepEqual([status, body.code], [400, 'RCS_INVALID_REQUEST'])
    assert.deepEqual(body.details, [{ path: '/verbose', reason: 'is not known here; is it misspelt?' }])
    for (const method of ['PUT', 'PATCH', 'DELETE', 'POST']) {
      const response = await ask(method, `/messages/${messageId}`)
      assert.deepEqual([response.status, response.headers.get('allow')], [405, 'GET, HEAD'], method)
    }
  })
})
