import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { changeOptOut } from '../../src/replies/opt-outs.ts'
import { createSender, NO_LIMITS } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { callerAt } from '../support/messages.ts'
import { call, startTestService } from '../support/service.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'

// Every process routes events, whatever its roles.

const WAIT_MS = 60_000
const PHONE = '+48500100200'

/** Reads the feed until it has as many events as expected. */
async function untilRead(url: string, authorization: string, count: number): Promise<any[]> {
  return await until(
    `the feed has ${count} events`,
    async () => {
      const { body } = await call(`${url}/v1/events`, { authorization })
      return body.items?.length >= count ? body.items : undefined
    },
    WAIT_MS,
  )
}

describe('GET /v1/events', () => {
  test('serves events if no process has the role webhooks', async () => {
    const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
    const simulator = await startSimulator()
    const env = { HERALD_DATABASE_URL, ...NO_LIMITS }
    const findCarriers = async () => simulator.settings
    const api = await startTestService(env, { roles: ['api'], findCarriers })
    await startTestService(env, { roles: ['delivery'], findCarriers })
    await simulator.ask('webhook', { url: `${api.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
    const sender = await createSender(pool)
    const messageId = await callerAt(api.url, sender).accepted({ recipient: PHONE })
    const items = await untilRead(api.url, sender.authorization, 3)
    assert.deepEqual(
      items.map(({ type, data }) => [type, data.messageId]),
      ['message.sent', 'message.delivered', 'message.read'].map((type) => [type, messageId]),
    )
  })

  test('serves what an operator’s command wrote if only the role api runs', async () => {
    const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
    const api = await startTestService({ HERALD_DATABASE_URL, ...NO_LIMITS }, { roles: ['api'] })
    const { accountId, agentId, authorization } = await createSender(pool)
    await changeOptOut(pool, { accountId, agentId, phone: PHONE }, true)
    const items = await untilRead(api.url, authorization, 1)
    assert.deepEqual(
      items.map(({ type, data }) => [type, data]),
      [['recipient.opted_out', { agentId, recipient: PHONE, source: 'operator' }]],
    )
  })
})
