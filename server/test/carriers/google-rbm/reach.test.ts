import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { RcsCarrier } from '../../../src/carriers/carrier.ts'
import { createGoogleRbm } from '../../../src/carriers/google-rbm/carrier.ts'
import type { GoogleRbmSettings } from '../../../src/carriers/google-rbm/settings.ts'
import { createLogger } from '../../../src/http/log.ts'
import { type Answered, failure, startNetwork } from '../../support/network.ts'
import { startSimulator } from '../../support/simulator.ts'

const HOUR_MS = 3_600_000

function connect(settings: GoogleRbmSettings): RcsCarrier {
  const carrier = createGoogleRbm(settings, { postbackKey: Buffer.alloc(32), logger: createLogger('silent') })
  after(() => carrier.close())
  return carrier
}

async function reachable(carrier: RcsCarrier, recipients: string[], maxAgeMs = HOUR_MS, agentId = 'agent') {
  return (await carrier.reach(agentId, recipients, maxAgeMs)).map((reach) => reach.reachable)
}

describe('whether numbers can be reached', async () => {
  const simulator = await startSimulator()
  const carrier = connect(simulator.rcs)

  test('is told for one, for some and for many, in the order asked, repeated ones included', async () => {
    assert.deepEqual(await reachable(carrier, ['+48500100102']), [false])
    assert.deepEqual(await reachable(carrier, ['+48500100101', '+48500100108', '+48500100110']), [true, false, true])
    const many = Array.from({ length: 1_000 }, (_, index) => `+485001${String(index).padStart(5, '0')}`)
    assert.deepEqual(
      await reachable(carrier, [...many, '+48500100002']),
      [...many, '+48500100002'].map((number) => !/0[28]$/.test(number)),
    )
  })

  test('of none is nothing', async () => {
    assert.deepEqual(await reachable(carrier, []), [])
  })
})

describe('what was asked once', async () => {
  const network = await startNetwork()
  const carrier = connect(network.settings)

  test('is known from then on, with the time it was asked at, until it is too old', async () => {
    network.answer(() => ({ body: { features: ['RICHCARD_STANDALONE'] } }))
    const [first] = await carrier.reach('agent', ['+48500100201'], HOUR_MS)
    const [second] = await carrier.reach('agent', ['+48500100201'], HOUR_MS)
    assert.equal(network.asked.length, 1)
    assert.deepEqual(second, first)
    assert.ok(Math.abs((first as { checkedAt: Date }).checkedAt.getTime() - Date.now()) < 10_000)
    network.answer(() => failure(404, 'NOT_FOUND'))
    assert.deepEqual(await reachable(carrier, ['+48500100201'], -1), [false])
    assert.deepEqual(await reachable(carrier, ['+48500100201']), [false])
    assert.equal(network.asked.length, 2)
    // One agent's launch says nothing of another's.
    await reachable(carrier, ['+48500100201'], HOUR_MS, 'another')
    assert.equal(network.asked.length, 3)
  })

  test('by many at the same time is asked once', async () => {
    const before = network.asked.length
    network.answer(() => ({ body: { features: [] } }))
    const answers = await Promise.all(Array.from({ length: 20 }, () => reachable(carrier, ['+48500100301', '+48500100302'])))
    assert.ok(answers.every(([one, two]) => one === true && two === true))
    assert.equal(network.asked.length - before, 2)
  })

  test('and not answered is not known, and asked again', async () => {
    network.answer(() => failure(500, 'INTERNAL'))
    assert.deepEqual(await reachable(carrier, ['+48500100401']), [undefined])
    network.answer(() => ({ status: 200, body: '<html>' }))
    assert.deepEqual(await reachable(carrier, ['+48500100401', '+48500100402', '+48500100403', '+48500100404']), Array(4).fill(undefined))
    network.answer(() => ({ body: { reachableUsers: ['+48500100402'] } }))
    const recipients = ['+48500100401', '+48500100402', '+48500100403', '+48500100404']
    assert.deepEqual(await reachable(carrier, recipients), [false, true, false, false])
    // Nobody at all: protocol buffers leave an empty list out.
    network.answer(() => ({ body: {} }))
    assert.deepEqual(await reachable(carrier, recipients, -1), Array(4).fill(false))
  })
})

describe('an answer is believed only where it is the API’s', async () => {
  const network = await startNetwork()
  const carrier = connect(network.settings)
  const list = ['+48500100501', '+48500100502', '+48500100503', '+48500100504']

  for (const [what, answered, one, many] of [
    ['403, since the agent is not launched there', failure(403, 'PERMISSION_DENIED'), false, undefined],
    ['404', failure(404, 'NOT_FOUND'), false, undefined],
    ['400', failure(400, 'INVALID_ARGUMENT'), undefined, undefined],
    ['404 whose body speaks of another status', { status: 404, body: failure(400, 'INVALID_ARGUMENT').body }, undefined, undefined],
    ['403 whose body speaks of another status', { status: 403, body: failure(404, 'NOT_FOUND').body }, undefined, undefined],
    ['404 of a proxy', { status: 404, body: '<html>' }, undefined, undefined],
    ['another object', { body: { status: 'maintenance' } }, undefined, undefined],
    ['an object with one field too many', { body: { features: [], reachableUsers: list, status: 'ok' } }, undefined, undefined],
    ['an error with the status of a success', { body: failure(404, 'NOT_FOUND').body }, undefined, undefined],
    ['a list', { body: [] }, undefined, undefined],
    ['a text', { body: '"ok"' }, undefined, undefined],
    ['null', { body: 'null' }, undefined, undefined],
    ['201', { status: 201, body: {} }, undefined, undefined],
    ['reachable users that are no list', { body: { reachableUsers: list[0] } }, undefined, undefined],
    ['all that the answer to one has', { body: { features: ['RICHCARD_CAROUSEL'], carrier: 'a carrier' } }, true, undefined],
    [
      'all that the answer to many has',
      { body: { reachableUsers: list, reachableUsersMap: {}, totalRandomSampleUserCount: 4, reachableRandomSampleUserCount: 4 } },
      undefined,
      true,
    ],
  ] as [string, Answered, boolean | undefined, boolean | undefined][]) {
    test(`${what}: ${one} for one, ${many} for each of a list`, async () => {
      network.answer(() => answered)
      const agentId = `agent: ${what}`
      assert.deepEqual(await reachable(carrier, list.slice(0, 1), HOUR_MS, agentId), [one])
      assert.deepEqual(await reachable(carrier, list, -1, agentId), Array(4).fill(many))
    })
  }
})

describe('very many numbers', async () => {
  const network = await startNetwork()
  const carrier = connect(network.settings)
  const sizes: number[] = []
  network.answer(({ method, body }) => {
    if (method === 'GET') return { body: {} }
    const { users } = JSON.parse(body) as { users: string[] }
    sizes.push(users.length)
    return { body: { reachableUsers: users.filter((user) => user.endsWith('7')) } }
  })

  test('are asked for in lists of 10,000, and 100,000 answers are remembered at the most, of which the oldest are forgotten', async () => {
    const first = '+48500100999'
    assert.deepEqual(await reachable(carrier, [first]), [true])
    const others = Array.from({ length: 99_999 }, (_, index) => `+48600${String(index).padStart(6, '0')}`)
    const answers = await reachable(carrier, others)
    assert.ok(answers.every((answer, index) => answer === (index % 10 === 7)))
    const asked = sizes.splice(0).sort((a, b) => a - b)
    assert.deepEqual(asked, [9_999, ...Array(9).fill(10_000)])
    await reachable(carrier, [first, ...others])
    assert.equal(network.asked.length, 11)

    await reachable(carrier, ['+48500100998'])
    await reachable(carrier, [first])
    assert.equal(network.asked.length, 13)
    await reachable(carrier, others)
    assert.ok(sizes.length <= 1)
  })
})
