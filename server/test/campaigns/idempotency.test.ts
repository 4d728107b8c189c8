import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setModules } from '../../src/accounts/accounts.ts'
import { createTestDatabase } from '../support/database.ts'
import { smsFallback } from '../support/messages.ts'
import type { ApiResponse } from '../support/service.ts'
import { until } from '../support/until.ts'
import { type CampaignCaller, countStored, ONE_CAMPAIGN, startCampaignService } from './support.ts'

const database = await createTestDatabase()
const { pool } = database
const { newCaller } = await startCampaignService(database)

const HOUR_MS = 3_600_000
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()

function assertReplayed(first: ApiResponse, again: ApiResponse): void {
  assert.deepEqual([again.status, again.body], [202, first.body])
  assert.equal(again.headers.get('location'), first.headers.get('location'))
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
}

function assertConflict({ status, body }: ApiResponse): void {
  const code = 'RCS_IDEMPOTENCY_CONFLICT'
  const details = [{ path: '', reason: 'The Idempotency-Key was used before, with another body.' }]
  assert.deepEqual([status, body], [409, { statusCode: 409, code, message: code, requestId: body.requestId, details }])
}

describe('the Idempotency-Key of a campaign', () => {
  test('is required, and printable', async () => {
    const { ask, campaign } = await newCaller()
    for (const headers of [{}, { 'Idempotency-Key': '' }, { 'Idempotency-Key': 'x'.repeat(256) }, { 'Idempotency-Key': 'é' }]) {
      const { status, body } = await ask('POST', '/campaigns', campaign(), headers as Record<string, string>)
      assert.deepEqual([status, body.code], [400, 'RCS_IDEMPOTENCY_KEY_REQUIRED'])
    }
  })

  test('replays the response for the same body in any order of fields, and is a 409 for another body', async () => {
    const { accountId, create, campaign } = await newCaller()
    const body = campaign({ clientReferenceId: 'spring', scheduledAt: inMs(HOUR_MS), smsFallback: smsFallback({ delay: 5 }) })
    const first = await create('k', body)
    assert.equal(first.status, 202)
    assertReplayed(first, await create('k', body))
    assertReplayed(first, await create('k', JSON.stringify(Object.fromEntries(Object.entries(body).reverse()), null, 4)))
    for (const other of [{ name: 'Summer sale' }, { segmentIds: [1.0], clientReferenceId: 'x' }, { scheduledAt: inMs(2 * HOUR_MS) }]) {
      assertConflict(await create('k', { ...body, ...other }))
    }
    assert.deepEqual(await countStored(pool, accountId), ONE_CAMPAIGN)
  })

  test('creates one campaign for 50 concurrent equal requests', async () => {
    const { accountId, create, campaign } = await newCaller()
    const responses = await Promise.all(Array.from({ length: 50 }, () => create('k', campaign())))
    const ids = new Set(responses.map(({ status, body }) => `${status} ${body.campaignId}`))
    assert.deepEqual([...ids], [`202 ${responses[0]?.body.campaignId}`])
    assert.equal(responses.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 1)
    assert.deepEqual(await countStored(pool, accountId), ONE_CAMPAIGN)
  })

  test('creates one campaign for two concurrent bodies, and is a 409 for the other', async () => {
    const { accountId, create, campaign } = await newCaller()
    for (let round = 0; round < 5; round += 1) {
      const responses = await Promise.all(['a', 'b'].map((name) => create(`k${round}`, campaign({ name }))))
      assert.deepEqual(responses.map(({ status }) => status).sort(), [202, 409])
    }
    assert.equal((await countStored(pool, accountId)).campaigns, 5)
  })

  test('replays after template, group, agent and module are gone and its times have passed', async () => {
    const { accountId, agentId, create, campaign, template, ask } = await newCaller()
    const templateId = await template()
    const expiresAt = inMs(2_000)
    const body = campaign({
      message: { templateId },
      scheduledAt: inMs(-10_000),
      expiresAt,
      smsFallback: smsFallback({ sendTime: expiresAt }),
    })
    const first = await create('k', body)
    assert.equal(first.status, 202)
    assert.equal((await ask('DELETE', `/templates/${templateId}`)).status, 204)
    await ask('PATCH', `/agents/${agentId}`, { active: false })
    await pool.query('delete from groups where account_id = $1', [accountId])
    await setModules(pool, accountId, ['rcs'])
    await until('it has expired', () => Date.now() > Date.parse(expiresAt))
    assertReplayed(first, await create('k', body))
    assert.equal((await create('other', body)).status, 403, 'for another key they do count')
  })

  test('is separate from the same key of a message or of another account', async () => {
    const { accountId, create, campaign, send, request } = await newCaller()
    assert.equal((await send('k', request())).status, 202)
    const { status, headers } = await create('k', campaign())
    assert.deepEqual([status, headers.get('idempotent-replayed')], [202, null])
    assert.equal((await countStored(pool, accountId)).keys, 2)
    const stranger: CampaignCaller = await newCaller()
    assert.equal((await stranger.create('k', stranger.campaign())).headers.get('idempotent-replayed'), null)
  })

  test('stays free after a rejected request', async () => {
    const { create, campaign } = await newCaller()
    assert.equal((await create('k', campaign({ segmentIds: [999] }))).status, 404)
    assert.equal((await create('k', campaign())).status, 202)
  })
})
