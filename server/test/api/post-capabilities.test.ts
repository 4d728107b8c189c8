import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { changeAgent } from '../../src/agents/agents.ts'
import { createTestDatabase } from '../support/database.ts'
import { callerAt } from '../support/messages.ts'
import { failure, startNetwork } from '../support/network.ts'
import { assertError, createAssignedAgent, createCaller, startTestService } from '../support/service.ts'
import { startSimulator } from '../support/simulator.ts'

// A process that only serves the API, with the simulated network and another one that responds as a test wants.

const { url, pool } = await createTestDatabase()
const [simulator, network] = [await startSimulator(), await startNetwork()]
const carriers = { rcs: [simulator.rcs, network.settings], sms: simulator.sms }
const env = { HERALD_DATABASE_URL: url, HERALD_LIMITS: 'memory', HERALD_LIMIT_OTHERS_PER_MINUTE: '100000' }
const service = await startTestService(env, { roles: ['api'], findCarriers: async () => carriers })

async function newCaller(carrier = 'simulator') {
  const caller = await createCaller(pool)
  const agentId = await createAssignedAgent(pool, caller.accountId)
  await pool.query('update agents set carrier = $2 where agent_id = $1', [agentId, carrier])
  const { ask } = callerAt(service.url, { ...caller, agentId })
  const check = (recipients: unknown, fields = {}) => ask('POST', '/capabilities', { agentId, recipients, ...fields })
  return { ...caller, agentId, check }
}

const phone = (n: number) => `+4850010${String(n).padStart(4, '0')}`
const reachableOf = ({ body }: { body: any }) => body.items.map((item: any) => item.reachable)

describe('POST /capabilities', () => {
  test('returns what the network says about each number, in the order of the request', async () => {
    const { check } = await newCaller()
    const started = Date.now()
    const { status, body } = await check(['48500100202', '+48 500 100 200', '+48500100208'])
    const times = body.items.map(({ checkedAt }: any) => checkedAt)
    const features = body.items[1]?.features
    assert.deepEqual(
      [status, body],
      [
        200,
        {
          items: [
            { recipient: '+48500100202', reachable: false, features: [], checkedAt: times[0] },
            { recipient: '+48500100200', reachable: true, features, checkedAt: times[1] },
            { recipient: '+48500100208', reachable: false, features: [], checkedAt: times[2] },
          ],
        },
      ],
    )
    assert.ok(features.includes('RICHCARD_CAROUSEL'), features)
    for (const time of times) assert.ok(Date.parse(time) >= started && Date.parse(time) <= Date.now() && time.endsWith('Z'), time)
  })

  test('checks 100 numbers at once, without their features, and asks again only about new ones', async () => {
    const { check } = await newCaller()
    const phones = Array.from({ length: 100 }, (_, n) => phone(1_000 + n))
    const { body } = await check(phones)
    const expected = phones.map((recipient) => ({ recipient, isReachable: !/0[28]$/.test(recipient) }))
    assert.deepEqual(
      body.items.map(({ checkedAt, ...item }: any) => item),
      expected.map(({ recipient, isReachable }) => ({ recipient, reachable: isReachable, features: isReachable ? null : [] })),
    )
    const again = await check([...phones.slice(0, 99), phone(2_000)])
    assert.deepEqual(again.body.items.slice(0, 99), body.items.slice(0, 99), 'with the time of the first check')
    assert.ok(again.body.items[99].checkedAt > body.items[0].checkedAt)
  })

  test('returns null for a network that fails or is not known to this process, and cached results all the same', async () => {
    const { check, agentId } = await newCaller('network')
    network.respondWith(() => ({ body: { features: ['ACTION_DIAL'] } }))
    const { body: first } = await check([phone(1)])
    assert.deepEqual([first.items[0].reachable, first.items[0].features], [true, ['ACTION_DIAL']])
    network.respondWith(() => failure(500, 'INTERNAL'))
    const { status, body } = await check([phone(2), phone(1)])
    assert.deepEqual([status, body.items[0].reachable, body.items[0].features], [200, null, null])
    assert.deepEqual(body.items[1], first.items[0])
    await pool.query(`update agents set carrier = 'elsewhere' where agent_id = $1`, [agentId])
    assert.deepEqual(reachableOf(await check([phone(1)])), [null])
  })

  test('responds 404 to an agent that is unknown, inactive or of another account, and asks no network', async () => {
    const [mine, other] = [await newCaller('network'), await newCaller('network')]
    const inactive = await createAssignedAgent(pool, mine.accountId)
    await changeAgent(pool, mine.accountId, inactive, { active: false })
    const before = network.requests.length
    for (const agentId of ['nobody', other.agentId, inactive]) {
      const details = [['/agentId', 'names no active agent of this account']] as const
      assertError(await mine.check([phone(1)], { agentId }), 404, 'RCS_AGENT_NOT_FOUND', details)
    }
    assert.equal(network.requests.length, before)
  })

  const REFUSED: [name: string, recipients: unknown, fields: object, code: string, at: string, reason: string][] = [
    ['no recipients', [], {}, 'RCS_INVALID_RECIPIENT', '/recipients', 'must have at least 1 item'],
    ['no list', phone(1), {}, 'RCS_INVALID_RECIPIENT', '/recipients', 'must be an array'],
    [
      '101 recipients',
      Array.from({ length: 101 }, (_, n) => phone(n)),
      {},
      'RCS_INVALID_RECIPIENT',
      '/recipients',
      'must have at most 100 items',
    ],
    [
      'one that is no number',
      [phone(1), '12'],
      {},
      'RCS_INVALID_RECIPIENT',
      '/recipients/1',
      'must be an international phone number, such as +48500100200',
    ],
    [
      'a number twice',
      [phone(1), phone(2), phone(1).slice(1)],
      {},
      'RCS_INVALID_RECIPIENT',
      '/recipients/2',
      'is the same number as /recipients/0',
    ],
    ['no agent', [phone(1)], { agentId: undefined }, 'RCS_INVALID_REQUEST', '/agentId', 'is required'],
    ['a misspelt field', [phone(1)], { agent: 'a' }, 'RCS_INVALID_REQUEST', '/agent', 'is not known here; is it misspelt?'],
  ]
  for (const [name, recipients, fields, code, at, reason] of REFUSED) {
    test(`refuses ${name}`, async () => {
      const { check } = await newCaller()
      assertError(await check(recipients, fields), 400, code, [[at, reason]])
    })
  }
})
