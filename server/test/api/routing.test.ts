import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { retryCampaign } from '../../src/campaigns/retry.ts'
import { startCampaignService } from '../campaigns/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { countRows, NOTHING, newKey } from '../support/messages.ts'
import { assertError } from '../support/service.ts'

// The field `routing` of messages and campaigns.

const database = await createTestDatabase({ uncounted: 'a campaign is completed by hand' })
const { pool } = database
const { newCaller } = await startCampaignService(database)
const caller = await newCaller()

async function stored(table: 'messages' | 'campaigns', id: string): Promise<string | null> {
  return (await pool.query(`select routing from ${table} where id = $1`, [id])).rows[0].routing
}

describe('routing of a message', () => {
  test('is shown if it is capability, by itself and in the list', async () => {
    const messageId = await caller.accepted({ routing: 'capability' })
    const { body } = await caller.read(messageId)
    assert.equal(body.routing, 'capability')
    const { items } = (await caller.ask('GET', '/messages')).body
    assert.deepEqual(
      items.find((item: any) => item.messageId === messageId),
      body,
    )
  })

  for (const fields of [{}, { routing: 'attempt' }]) {
    test(`is not shown and not stored after ${JSON.stringify(fields)}`, async () => {
      const messageId = await caller.accepted(fields)
      assert.equal('routing' in (await caller.read(messageId)).body, false)
      assert.equal(await stored('messages', messageId), null)
    })
  }
})

for (const routing of ['CAPABILITY', 'sms', '', true, 1, ['capability']]) {
  test(`refuses ${JSON.stringify(routing)}, of a message and of a campaign`, async () => {
    const refused = await newCaller()
    const details = [['/routing', 'must be one of attempt, capability']] as const
    assertError(await refused.send(newKey(), refused.request({ routing })), 400, 'RCS_INVALID_REQUEST', details)
    assertError(await refused.create(newKey(), refused.campaign({ routing })), 400, 'RCS_INVALID_REQUEST', details)
    assert.deepEqual(await countRows(pool, refused.accountId), NOTHING)
  })
}

test('a test message has no routing', async () => {
  const { agentId, message } = caller.request() as Record<string, unknown>
  const response = await caller.sendTest({ agentId, message, recipients: ['+48500100200'], routing: 'capability' })
  assertError(response, 400, 'RCS_INVALID_REQUEST', [['/routing', 'is not known here; is it misspelt?']])
})

describe('routing of a campaign', () => {
  test('is shown if it is capability, and its retry has it too', async () => {
    const campaignId = await caller.created({ routing: 'capability' })
    assert.equal((await caller.readCampaign(campaignId)).body.routing, 'capability')
    const { items } = (await caller.ask('GET', '/campaigns')).body
    assert.equal(items[0].routing, 'capability')
    await pool.query(`update campaigns set status = 'COMPLETED', started_at = now(), completed_at = now() where id = $1`, [campaignId])
    const retry = await retryCampaign(pool, campaignId)
    assert.equal(await stored('campaigns', retry.campaignId), 'capability')
  })

  test('is not shown and not stored by default', async () => {
    const campaignId = await caller.created({ routing: 'attempt' })
    assert.equal('routing' in (await caller.readCampaign(campaignId)).body, false)
    assert.equal(await stored('campaigns', campaignId), null)
  })
})
