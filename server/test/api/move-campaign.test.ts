import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { startCampaignService } from '../campaigns/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { assertError, call } from '../support/service.ts'

// campaigns/moves.test.ts has which moves are possible.

const database = await createTestDatabase()
const { pool } = database
const { url, newCaller } = await startCampaignService(database)

/** A caller's campaign, put into a status. */
async function campaignIn(status: string, assignments = '') {
  const caller = await newCaller()
  const campaignId = await caller.created({ scheduledAt: new Date(Date.now() + 3_600_000).toISOString() })
  await pool.query(`update campaigns set status = $2 ${assignments} where id = $1`, [campaignId, status])
  const move = (action: string, body?: unknown) => caller.ask('POST', `/campaigns/${campaignId}/${action}`, body)
  return { ...caller, campaignId, move, read: async () => (await caller.readCampaign(campaignId)).body }
}

const STARTED = ', started_at = now()'

describe('POST /campaigns/{id}', () => {
  for (const [action, from, to] of [
    ['pause', 'RUNNING', 'PAUSED'],
    ['resume', 'PAUSED', 'RUNNING'],
    ['cancel', 'PAUSED', 'CANCELLED'],
  ] as const) {
    test(`/${action} responds with the campaign, and the same when it is repeated`, async () => {
      const { move, read } = await campaignIn(from, STARTED)
      const before = await read()
      const { status, body } = await move(action)
      const { cancelledAt, ...others } = body
      assert.deepEqual([status, others, typeof cancelledAt], [200, { ...before, status: to }, to === 'CANCELLED' ? 'string' : 'undefined'])
      assert.deepEqual(await read(), body)
      for (const sent of [undefined, {}]) assert.deepEqual((await move(action, sent)).body, body)
    })
  }

  for (const [action, status, assignments, reason] of [
    ['pause', 'SCHEDULED', '', 'is SCHEDULED; only a campaign that is RUNNING can be paused'],
    ['pause', 'COMPLETED', `${STARTED}, completed_at = now()`, 'is COMPLETED; only a campaign that is RUNNING can be paused'],
    ['resume', 'SCHEDULED', '', 'is SCHEDULED; only a campaign that is PAUSED can be resumed'],
    ['resume', 'CANCELLED', ', cancelled_at = now()', 'is CANCELLED; only a campaign that is PAUSED can be resumed'],
    [
      'cancel',
      'COMPLETED',
      `${STARTED}, completed_at = now()`,
      'is COMPLETED; only a campaign that is SCHEDULED or RUNNING or PAUSED can be cancelled',
    ],
  ] as const) {
    test(`/${action} responds 409 with the status of a campaign that is ${status}, and changes nothing`, async () => {
      const { move, read } = await campaignIn(status, assignments)
      const before = await read()
      assertError(await move(action), 409, 'RCS_CAMPAIGN_STATE', [['/status', reason]])
      assert.deepEqual(await read(), before)
    })
  }

  test('responds with the same 404 to a campaign of another account, an unknown and an invalid id, and changes nothing', async () => {
    const { campaignId, read } = await campaignIn('RUNNING', STARTED)
    const before = await read()
    const { ask } = await newCaller()
    for (const action of ['pause', 'resume', 'cancel']) {
      for (const id of [campaignId, randomUUID(), campaignId.slice(1), '1', 'ą', "1' or 1=1"]) {
        assertError(await ask('POST', `/campaigns/${id}/${action}`), 404, 'RCS_CAMPAIGN_NOT_FOUND', undefined, `${action} ${id}`)
      }
    }
    assert.deepEqual(await read(), before)
  })

  test('accepts a Content-Type without a body, and refuses fields, other JSON, other types and query parameters', async () => {
    const { campaignId, authorization, move, read } = await campaignIn('PAUSED', STARTED)
    assertError(await move('resume', { force: true }), 400, 'RCS_INVALID_REQUEST', [['/force', 'is not known here; is it misspelt?']])
    for (const body of ['[]', '1', '"x"']) {
      assertError(await move('resume', body), 400, 'RCS_INVALID_REQUEST', [['', 'must be an object']], body)
    }
    const path = `${url}/v1/campaigns/${campaignId}/resume`
    const send = (headers: Record<string, string>, body?: string, query = '') =>
      call(`${path}${query}`, { method: 'POST', authorization, headers, body })
    assert.equal((await send({ 'content-type': 'text/plain' }, 'now')).status, 415)
    assert.equal((await send({}, undefined, '?now=1')).status, 400)
    assert.equal((await read()).status, 'PAUSED')
    assert.equal((await send({ 'content-type': 'application/json' })).status, 200)
    assert.equal((await read()).status, 'RUNNING')
  })

  test('moves once and records one event, however many requests come at once', async () => {
    const { accountId, move } = await campaignIn('RUNNING', STARTED)
    const answers = await Promise.all(Array.from({ length: 10 }, () => move('cancel')))
    assert.deepEqual(new Set(answers.map(({ status, body }) => `${status} ${body.status} ${body.cancelledAt}`)).size, 1)
    const { rows } = await pool.query(`select events from log_pages where account_id = $1 and events ->> 0 like '%campaign.cancelled%'`, [
      accountId,
    ])
    assert.equal(rows.length, 1)
  })
})
