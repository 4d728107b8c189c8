import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { changeAgent, unassignAgent } from '../../src/agents/agents.ts'
import { transaction } from '../../src/db/pool.ts'
import { recordOptOut } from '../../src/replies/opt-outs.ts'
import { readEmitted } from '../support/emitted.ts'
import type { MessageCaller } from '../support/messages.ts'
import { assertError, createAssignedAgent } from '../support/service.ts'
import { newCaller, pool } from './messages-service.ts'

const PHONE = '+48500100200'
const NOT_A_PHONE = 'must be an international phone number, such as +48500100200'

/** All items of the list, read by pages of this size. */
async function listed({ ask }: MessageCaller, query = '', limit = 200): Promise<any[]> {
  const items: any[] = []
  for (let cursor = ''; ; ) {
    const { status, body } = await ask('GET', `/opt-outs?limit=${limit}${query}${cursor}`)
    assert.equal(status, 200, JSON.stringify(body))
    items.push(...body.items)
    if (body.nextCursor === null) return items
    assert.equal(body.items.length, limit)
    cursor = `&cursor=${body.nextCursor}`
  }
}

const keysOf = (items: any[]) => items.map(({ agentId, phone, block }) => [agentId, phone, ...(block ? ['blocked'] : [])].join(' '))

describe('PUT and DELETE /opt-outs/{phone}', () => {
  test('opt a recipient out of one agent and in again, repeatedly, and emit one event', async () => {
    const caller = await newCaller()
    const { ask, agentId } = caller
    const started = Date.now()
    for (const spelt of ['%2B48500100200', '+48500100200', '48500100200', '48%20500-100-200']) {
      const { status, body } = await ask('PUT', `/opt-outs/${spelt}`, { agentId })
      const changedAt = body.items[0]?.changedAt
      assert.deepEqual([status, body], [200, { items: [{ phone: PHONE, agentId, block: false, source: 'api', changedAt }] }])
      assert.ok(Date.parse(changedAt) >= started - 1 && changedAt.endsWith('Z'))
      assert.deepEqual(await listed(caller), body.items)
    }
    for (let time = 0; time < 2; time += 1) {
      const { status, body } = await ask('DELETE', `/opt-outs/${PHONE}?agentId=${agentId}`)
      assert.deepEqual([status, body], [204, ''])
      assert.deepEqual(await listed(caller), [])
    }
    assert.deepEqual(
      (await readEmitted(pool, caller)).map(({ kind, data }) => [kind, data]),
      [['recipient.opted_out', { agentId, recipient: PHONE, source: 'api' }]],
    )
  })

  test('without an agent concern all agents, also agents that are assigned later, and PUT needs no body', async () => {
    const caller = await newCaller()
    const { ask, accountId } = caller
    const agents = [caller.agentId, await createAssignedAgent(pool, accountId)].sort()
    const { status, body } = await ask('PUT', `/opt-outs/${PHONE}`)
    assert.deepEqual([status, keysOf(body.items)], [200, agents.map((id) => `${id} ${PHONE}`)])
    agents.push(await createAssignedAgent(pool, accountId))
    agents.sort()
    assert.deepEqual(
      keysOf((await ask('PUT', `/opt-outs/${PHONE}`, { agentId: null, block: true })).body.items),
      agents.map((id) => `${id} ${PHONE} blocked`),
    )
    assert.equal((await ask('DELETE', `/opt-outs/${PHONE}?agentId=${agents[1]}`)).status, 204)
    assert.deepEqual(
      keysOf(await listed(caller)),
      [agents[0], agents[2]].map((id) => `${id} ${PHONE} blocked`),
    )
    assert.deepEqual(keysOf(await listed(caller, `&agentId=${agents[2]}`)), [`${agents[2]} ${PHONE} blocked`])
    assert.equal((await ask('DELETE', `/opt-outs/${PHONE}`)).status, 204)
    assert.deepEqual(await listed(caller), [])
    assert.equal((await readEmitted(pool, caller)).length, 2, 'one event for each agent that the first request opted them out of')
  })

  test('end an opt-out of all agents even if every assigned agent is opted in, or none is assigned', async () => {
    for (const isAssigned of [true, false]) {
      const caller = await newCaller()
      const { ask, accountId, agentId } = caller
      if (!isAssigned) await unassignAgent(pool, agentId, accountId)
      const { body } = await ask('PUT', `/opt-outs/${PHONE}`, { block: true })
      assert.equal(body.items.length, isAssigned ? 1 : 0)
      if (isAssigned) assert.equal((await ask('DELETE', `/opt-outs/${PHONE}?agentId=${agentId}`)).status, 204)
      assert.equal((await ask('DELETE', `/opt-outs/${PHONE}`)).status, 204)
      await createAssignedAgent(pool, accountId)
      assert.deepEqual(await listed(caller), [])
    }
  })

  test('replace the block: PUT without it only opts out', async () => {
    const { ask, agentId } = await newCaller()
    const blocks: boolean[] = []
    for (const body of [{ agentId }, { agentId, block: true }, { agentId, block: true }, { agentId, block: null }]) {
      blocks.push((await ask('PUT', `/opt-outs/${PHONE}`, body)).body.items[0].block)
    }
    assert.deepEqual(blocks, [false, true, true, false])
  })

  test('concern one account: others neither see nor end its opt-outs', async () => {
    const [mine, other] = [await newCaller(), await newCaller()]
    await mine.ask('PUT', `/opt-outs/${PHONE}`, { block: true })
    assert.deepEqual(await listed(other), [])
    assert.equal((await other.ask('DELETE', `/opt-outs/${PHONE}`)).status, 204)
    assert.equal((await listed(mine)).length, 1)
    await pool.query('insert into agent_assignments (account_id, agent_id) values ($1, $2)', [other.accountId, mine.agentId])
    assert.deepEqual(await listed(other), [], 'nor if they share the agent')
  })

  test('respond 404 to an agent that is unknown, inactive or not assigned, and write nothing', async () => {
    const [mine, other] = [await newCaller(), await newCaller()]
    const inactive = await createAssignedAgent(pool, mine.accountId)
    await changeAgent(pool, mine.accountId, inactive, { active: false })
    for (const agentId of ['nobody', other.agentId, inactive]) {
      const details = [['/agentId', 'names no active agent of this account']] as const
      assertError(await mine.ask('PUT', `/opt-outs/${PHONE}`, { agentId }), 404, 'RCS_AGENT_NOT_FOUND', details)
      assertError(await mine.ask('DELETE', `/opt-outs/${PHONE}?agentId=${agentId}`), 404, 'RCS_AGENT_NOT_FOUND', details)
    }
    assert.deepEqual(await listed(mine), [])
  })

  const REFUSED: [name: string, method: string, path: string, body: unknown, code: string, at: string, reason: string][] = [
    ['a wrong number', 'PUT', '/opt-outs/12', {}, 'RCS_INVALID_RECIPIENT', '/phone', NOT_A_PHONE],
    ['a wrong number', 'DELETE', '/opt-outs/phone', undefined, 'RCS_INVALID_RECIPIENT', '/phone', NOT_A_PHONE],
    [
      'a number that is far too long',
      'DELETE',
      `/opt-outs/${'1'.repeat(5_000)}`,
      undefined,
      'RCS_INVALID_RECIPIENT',
      '/phone',
      NOT_A_PHONE,
    ],
    [
      'a misspelt field',
      'PUT',
      `/opt-outs/${PHONE}`,
      { blocked: true },
      'RCS_INVALID_REQUEST',
      '/blocked',
      'is not known here; is it misspelt?',
    ],
    ['a block of the wrong type', 'PUT', `/opt-outs/${PHONE}`, { block: 'true' }, 'RCS_INVALID_REQUEST', '/block', 'must be true or false'],
    ['an empty agent', 'PUT', `/opt-outs/${PHONE}`, { agentId: '' }, 'RCS_INVALID_REQUEST', '/agentId', 'must not be empty'],
    ['an empty agent', 'DELETE', `/opt-outs/${PHONE}?agentId=`, undefined, 'RCS_INVALID_REQUEST', '/agentId', 'must not be empty'],
    [
      'an agent in the body',
      'DELETE',
      `/opt-outs/${PHONE}`,
      { agentId: 'a' },
      'RCS_INVALID_REQUEST',
      '/agentId',
      'is not known here; is it misspelt?',
    ],
  ]
  for (const [name, method, path, body, code, at, reason] of REFUSED) {
    test(`refuse ${name} (${method})`, async () => {
      const caller = await newCaller()
      await caller.ask('PUT', `/opt-outs/${PHONE}`, {})
      const before = await listed(caller)
      assertError(await caller.ask(method, path, body), 400, code, [[at, reason]])
      assert.deepEqual(await listed(caller), before)
    })
  }

  test('keep one state under concurrent requests and words of the recipient', async () => {
    const caller = await newCaller()
    const { ask, agentId, accountId } = caller
    const say = (optedOut: boolean) =>
      transaction(pool, (tx) => recordOptOut(tx, { accountId, agentId, phone: PHONE, optedOut, source: 'word' }))
    const responses = await Promise.all([
      ...Array.from({ length: 10 }, (_, n) => ask('PUT', `/opt-outs/${PHONE}`, n % 2 === 0 ? { block: true } : { agentId, block: true })),
      ...Array.from({ length: 5 }, () => say(false)),
    ])
    assert.ok(responses.every((response) => typeof response === 'boolean' || response.status === 200))
    assert.deepEqual(keysOf(await listed(caller)), [`${agentId} ${PHONE} blocked`])
    assert.equal((await readEmitted(pool, caller)).length, 1)
  })
})

describe('GET /opt-outs', () => {
  /** Two agents and five numbers: some opted out of one agent by their own word, some of all agents. */
  async function withOptOuts() {
    const caller = await newCaller()
    const agents = [caller.agentId, await createAssignedAgent(pool, caller.accountId)].sort()
    const phone = (n: number) => `+4850010020${n}`
    for (const n of [1, 3, 5]) await caller.ask('PUT', `/opt-outs/${phone(n)}`, { agentId: agents[1] })
    for (const n of [2, 3]) await caller.ask('PUT', `/opt-outs/${phone(n)}`, { block: n === 3 })
    await caller.ask('DELETE', `/opt-outs/${phone(5)}`)
    const expected = [
      ...[`${agents[0]} ${phone(2)}`, `${agents[0]} ${phone(3)} blocked`],
      ...[`${agents[1]} ${phone(1)}`, `${agents[1]} ${phone(2)}`, `${agents[1]} ${phone(3)} blocked`],
    ]
    return { ...caller, agents, expected }
  }

  test('lists each opt-out once, in both orders and with every page size', async () => {
    const { expected, ...caller } = await withOptOuts()
    for (const limit of [1, 2, 3, 5, 200]) {
      assert.deepEqual(keysOf(await listed(caller, '', limit)), expected)
      assert.deepEqual(keysOf(await listed(caller, '&sort=-agentId', limit)), expected.toReversed())
    }
  })

  test('filters by agent and phone', async () => {
    const { expected, agents, ...caller } = await withOptOuts()
    assert.deepEqual(keysOf(await listed(caller, `&agentId=${agents[1]}`, 1)), expected.slice(2))
    for (const phone of ['%2B48500100203', '+48500100203', '48500100203']) {
      assert.deepEqual(
        keysOf(await listed(caller, `&phone=${phone}`, 1)),
        expected.filter((key) => key.includes('203')),
      )
    }
    assert.deepEqual(keysOf(await listed(caller, `&agentId=${agents[1]}&phone=48500100202`)), [`${agents[1]} +48500100202`])
    assert.deepEqual(await listed(caller, '&agentId=nobody'), [])
    const other = await newCaller()
    assert.deepEqual(await listed(caller, `&agentId=${other.agentId}`), [])
  })

  test('shows what the recipient said, and when', async () => {
    const caller = await newCaller()
    const { accountId, agentId } = caller
    const at = new Date('2026-01-31T08:00:00.123Z')
    await transaction(pool, (tx) => recordOptOut(tx, { accountId, agentId, phone: PHONE, optedOut: true, source: 'word', at }))
    assert.deepEqual(await listed(caller), [{ phone: PHONE, agentId, block: false, source: 'word', changedAt: at.toISOString() }])
  })

  test('refuses wrong parameters, and a cursor of another filter', async () => {
    const { ask, agents } = await withOptOuts()
    assertError(await ask('GET', '/opt-outs?phone=12'), 400, 'RCS_INVALID_RECIPIENT', [['/phone', NOT_A_PHONE]])
    assertError(await ask('GET', '/opt-outs?limit=201'), 400, 'RCS_INVALID_REQUEST', [['/limit', 'must be at most 200']])
    assertError(await ask('GET', '/opt-outs?sort=phone'), 400, 'RCS_INVALID_REQUEST', [['/sort', 'must be one of agentId, -agentId']])
    const { body } = await ask('GET', '/opt-outs?limit=1')
    for (const query of [`agentId=${agents[0]}&cursor=${body.nextCursor}`, `sort=-agentId&cursor=${body.nextCursor}`, 'cursor=x']) {
      const response = await ask('GET', `/opt-outs?${query}`)
      assert.deepEqual([response.status, response.body.code], [400, 'RCS_INVALID_CURSOR'], query)
    }
  })
})
