import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assignAgent } from '../../src/agents/agents.ts'
import { call, createAssignedAgent, createCaller } from '../support/service.ts'
import { pool, url } from './templates-service.ts'

describe('GET /agents', () => {
  test('lists the active agents of the account alone', async () => {
    const [mine, other] = [await createCaller(pool), await createCaller(pool)]
    const shown = await createAssignedAgent(pool, mine.accountId, 'conversational')
    const inactive = await createAssignedAgent(pool, mine.accountId)
    const foreign = await createAssignedAgent(pool, other.accountId)
    await call(`${url}/v1/agents/${inactive}`, { method: 'PATCH', authorization: mine.authorization, body: { active: false } })

    const { status, body } = await call(`${url}/v1/agents`, { authorization: mine.authorization })
    assert.equal(status, 200)
    assert.deepEqual(body, {
      items: [{ agentId: shown, name: shown.replace('-', '_'), billingType: 'conversational', active: true }],
    })
    const others = await call(`${url}/v1/agents`, { authorization: other.authorization })
    assert.deepEqual(
      others.body.items.map((agent: { agentId: string }) => agent.agentId),
      [foreign],
    )
  })

  test('returns an empty list to an account without agents', async () => {
    const { authorization } = await createCaller(pool)
    assert.deepEqual((await call(`${url}/v1/agents`, { authorization })).body, { items: [] })
  })

  test('shows a display name and a deactivation only to the account that set them', async () => {
    const [one, two] = [await createCaller(pool), await createCaller(pool)]
    const agentId = await createAssignedAgent(pool, one.accountId)
    await assignAgent(pool, agentId, two.accountId)
    await call(`${url}/v1/agents/${agentId}`, {
      method: 'PATCH',
      authorization: one.authorization,
      body: { displayName: 'One', active: false },
    })

    const { body } = await call(`${url}/v1/agents`, { authorization: two.authorization })
    assert.deepEqual(body.items, [{ agentId, name: agentId.replace('-', '_'), billingType: 'single', active: true }])
  })
})
