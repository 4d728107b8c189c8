import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { activateAgent } from '../../src/agents/agents.ts'
import { assertError, call, createAssignedAgent, createCaller } from '../support/service.ts'
import { pool, url } from './templates-service.ts'

async function setUp() {
  const caller = await createCaller(pool)
  const agentId = await createAssignedAgent(pool, caller.accountId)
  const patch = (body: unknown, id = agentId) =>
    call(`${url}/v1/agents/${encodeURIComponent(id)}`, { method: 'PATCH', authorization: caller.authorization, body })
  return { caller, agentId, patch, agent: { agentId, name: agentId.replace('-', '_'), billingType: 'single', active: true } }
}

describe('PATCH /agents/{agentId}', () => {
  test('sets the display name, keeps it when another field changes, and removes it with an empty text', async () => {
    const { patch, agent } = await setUp()
    const named = await patch({ displayName: 'Example Shop' })
    assert.equal(named.status, 200)
    assert.deepEqual(named.body, { ...agent, displayName: 'Example Shop' })
    assert.deepEqual((await patch({ displayName: '' })).body, agent)
    await patch({ displayName: 'Again' })
    assert.deepEqual((await patch({ active: false })).body, { ...agent, displayName: 'Again', active: false })
  })

  test('accepts 31 code points and rejects 32', async () => {
    const { patch } = await setUp()
    for (const character of ['a', 'ą', '😀']) {
      assert.equal((await patch({ displayName: character.repeat(31) })).status, 200, character)
      const { status, body } = await patch({ displayName: character.repeat(32) })
      assert.equal(status, 400, character)
      assert.deepEqual(body.details, [{ path: '/displayName', reason: 'must have at most 31 characters' }])
    }
  })

  test('deactivates an agent until an operator activates it again', async () => {
    const { patch, caller, agentId } = await setUp()
    await patch({ displayName: 'Kept' })
    assert.equal((await patch({ active: false })).body.active, false)
    for (const body of [{ active: false }, { displayName: 'Late' }]) {
      const again = await patch(body)
      assert.equal(again.status, 404)
      assert.equal(again.body.code, 'RCS_AGENT_NOT_FOUND')
    }
    assert.equal((await activateAgent(pool, agentId, caller.accountId)).displayName, 'Kept')
    assert.equal((await patch({ displayName: 'New' })).status, 200)
  })

  const invalid: [unknown, { path: string; reason: string }[]][] = [
    [{}, [{ path: '', reason: 'must have at least 1 of displayName, active' }]],
    [{ displayName: null, active: null }, [{ path: '', reason: 'must have at least 1 of displayName, active' }]],
    [{ active: true }, [{ path: '/active', reason: 'must be false' }]],
    [{ active: 'false' }, [{ path: '/active', reason: 'must be false' }]],
    [{ displayName: 5 }, [{ path: '/displayName', reason: 'must be a string' }]],
    [{ displayName: ['x'] }, [{ path: '/displayName', reason: 'must be a string' }]],
    [{ dispalyName: 'X' }, [{ path: '/dispalyName', reason: 'is not known here; is it misspelt?' }]],
    [{ displayName: 'X', message: 'y' }, [{ path: '/message', reason: 'is not known here; is it misspelt?' }]],
    [{ displayName: 'X', name: 'y' }, [{ path: '/name', reason: 'is not known here; is it misspelt?' }]],
    [{ displayName: 'a\0b' }, [{ path: '/displayName', reason: 'must not contain the character NUL' }]],
    ['{"displayName":"\\ud800"}', [{ path: '/displayName', reason: 'must not contain half of a surrogate pair' }]],
    ['{"__proto__":{"active":false}}', [{ path: '/__proto__', reason: 'is not known here; is it misspelt?' }]],
    [[], [{ path: '', reason: 'must be an object' }]],
    ['null', [{ path: '', reason: 'must be an object' }]],
    ['"text"', [{ path: '', reason: 'must be an object' }]],
  ]
  for (const [body, details] of invalid) {
    test(`rejects ${typeof body === 'string' ? body : JSON.stringify(body)} and changes nothing`, async () => {
      const { patch, caller, agent } = await setUp()
      const { status, body: response } = await patch(body)
      assert.equal(status, 400)
      assert.equal(response.code, 'RCS_INVALID_REQUEST')
      assert.deepEqual(response.details, details)
      assert.deepEqual((await call(`${url}/v1/agents`, { authorization: caller.authorization })).body.items, [agent])
    })
  }

  test('responds with the same 404 to an agent of another account, an unknown and an invalid one', async () => {
    const { patch, caller } = await setUp()
    const stranger = await createCaller(pool)
    const foreign = await createAssignedAgent(pool, stranger.accountId)
    for (const id of [foreign, 'nobody', '9'.repeat(40), 'ą/😀?x=1', 'x'.repeat(5_000), '%', "' or 1=1"]) {
      const details = [['/agentId', 'names no active agent of this account']] as const
      assertError(await patch({ displayName: 'X' }, id), 404, 'RCS_AGENT_NOT_FOUND', details, id)
    }
    for (const path of ['%zz', '%ff%fe', '%']) {
      const { body } = await call(`${url}/v1/agents/${path}`, {
        method: 'PATCH',
        authorization: caller.authorization,
        body: { displayName: 'X' },
      })
      assert.equal(body.code, 'RCS_AGENT_NOT_FOUND', path)
    }
    assert.equal((await call(`${url}/v1/agents`, { authorization: stranger.authorization })).body.items[0].displayName, undefined)
  })

  test('applies a concurrent rename and deactivation without losing one', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { patch, caller, agentId } = await setUp()
      const [renamed, deactivated] = await Promise.all([patch({ displayName: 'Raced' }), patch({ active: false })])
      assert.equal(deactivated.status, 200)
      assert.ok(renamed.status === 200 || renamed.status === 404)
      const after = await activateAgent(pool, agentId, caller.accountId)
      assert.equal(after.displayName, renamed.status === 200 ? 'Raced' : undefined)
    }
  })
})
