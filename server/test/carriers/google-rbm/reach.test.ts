import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RcsCarrier } from '../../../src/carriers/carrier.ts'
import { failure, type NetworkResponse } from '../../support/network.ts'
import { startSimulator } from '../../support/simulator.ts'
import { connect, start, times } from './support.ts'

const HOUR_MS = 3_600_000

async function reachable(carrier: RcsCarrier, recipients: string[], maxAgeMs = HOUR_MS, agentId = 'agent') {
  return (await carrier.reach(agentId, recipients, maxAgeMs)).map((reach) => reach.reachable)
}

test('looks up lists of any length, and returns results in their order, repeated numbers included', async () => {
  const carrier = connect((await startSimulator()).rcs)
  const many = times(1_000, (index) => `+485001${String(index).padStart(5, '0')}`)
  for (const numbers of [[], ['+48500100102'], ['+48500100101', '+48500100108', '+48500100110'], [...many, '+48500100002']]) {
    assert.deepEqual(
      await reachable(carrier, numbers),
      numbers.map((number) => !/0[28]$/.test(number)),
    )
  }
})

describe('the result of a look-up', async () => {
  const { network, carrier } = await start()

  test('is cached with its time until it is too old, for each agent', async () => {
    network.respondWith(() => ({ body: { features: ['RICHCARD_STANDALONE'] } }))
    const before = Date.now()
    const [first] = await carrier.reach('agent', ['+48500100201'], HOUR_MS)
    const after = Date.now()
    const [second] = await carrier.reach('agent', ['+48500100201'], HOUR_MS)
    assert.equal(network.requests.length, 1)
    assert.deepEqual(second, first)
    const checkedAt = first?.checkedAt.getTime() ?? 0
    assert.ok(checkedAt >= before && checkedAt <= after)
    network.respondWith(() => failure(404, 'NOT_FOUND'))
    assert.deepEqual(await reachable(carrier, ['+48500100201'], -1), [false])
    assert.deepEqual(await reachable(carrier, ['+48500100201']), [false])
    assert.equal(network.requests.length, 2)
    await reachable(carrier, ['+48500100201'], HOUR_MS, 'another')
    assert.equal(network.requests.length, 3)
  })

  test('is shared by concurrent callers', async () => {
    const before = network.requests.length
    network.respondWith(() => ({ body: { features: [] } }))
    const results = await Promise.all(times(20, () => reachable(carrier, ['+48500100301', '+48500100302'])))
    assert.deepEqual(results, Array(20).fill([true, true]))
    assert.equal(network.requests.length - before, 2)
  })

  test('has the features of a single number; in a list only the number that is not reachable has any, none', async () => {
    const features = async (recipients: string[]) => (await carrier.reach('features', recipients, HOUR_MS)).map((reach) => reach.features)
    network.respondWith(() => ({ body: { features: ['RICHCARD_STANDALONE', 7] } }))
    assert.deepEqual(await features(['+48500100601']), [['RICHCARD_STANDALONE']])
    network.respondWith(() => ({ body: {} }))
    assert.deepEqual(await features(['+48500100602']), [[]])
    network.respondWith(() => failure(404, 'NOT_FOUND'))
    assert.deepEqual(await features(['+48500100603']), [[]])
    network.respondWith(() => ({ body: { reachableUsers: ['+48500100605'] } }))
    assert.deepEqual(await features([4, 5, 6, 7].map((n) => `+4850010060${n}`)), [[], undefined, [], []])
  })

  test('that comes after the timeout is undefined, and is cached', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    network.respondWith(async ({ path }) => {
      if (path.includes('701')) await released
      return { body: {} }
    })
    const numbers = ['+48500100701', '+48500100702']
    const before = network.requests.length
    const results = await carrier.reach('slow', numbers, HOUR_MS, 500)
    assert.deepEqual(
      results.map((reach) => reach.reachable),
      [undefined, true],
    )
    release()
    assert.deepEqual(await reachable(carrier, numbers, HOUR_MS, 'slow'), [true, true])
    assert.equal(network.requests.length - before, 2)
  })

  test('is not cached if it is unknown', async () => {
    const recipients = ['+48500100401', '+48500100402', '+48500100403', '+48500100404']
    network.respondWith(() => failure(500, 'INTERNAL'))
    assert.deepEqual(await reachable(carrier, recipients.slice(0, 1)), [undefined])
    network.respondWith(() => ({ status: 200, body: '<html>' }))
    assert.deepEqual(await reachable(carrier, recipients), Array(4).fill(undefined))
    network.respondWith(() => ({ body: { reachableUsers: ['+48500100402'] } }))
    assert.deepEqual(await reachable(carrier, recipients), [false, true, false, false])
    // Protocol buffers omit an empty list.
    network.respondWith(() => ({ body: {} }))
    assert.deepEqual(await reachable(carrier, recipients, -1), Array(4).fill(false))
  })

  test('says whether the network denies the agent, and not the number', async () => {
    const denied = async (recipient: string) => (await carrier.reach('denied', [recipient], HOUR_MS))[0]?.isDenied
    network.respondWith(() => failure(403, 'PERMISSION_DENIED'))
    assert.equal(await denied('+48500100801'), true)
    network.respondWith(() => failure(404, 'NOT_FOUND'))
    assert.equal(await denied('+48500100802'), undefined)
  })

  const list = ['+48500100501', '+48500100502', '+48500100503', '+48500100504']
  const counts = { totalRandomSampleUserCount: 4, reachableRandomSampleUserCount: 4 }
  for (const [what, response, one, each] of [
    ['403, since the agent is not launched there', failure(403, 'PERMISSION_DENIED'), false],
    ['404', failure(404, 'NOT_FOUND'), false],
    ['400', failure(400, 'INVALID_ARGUMENT')],
    ['404 whose body has another status', { status: 404, body: failure(400, 'INVALID_ARGUMENT').body }],
    ['403 whose body has another status', { status: 403, body: failure(404, 'NOT_FOUND').body }],
    ['404 from a proxy', { status: 404, body: '<html>' }],
    ['another object', { body: { status: 'maintenance' } }],
    ['an object with one field too many', { body: { features: [], reachableUsers: list, status: 'ok' } }],
    ['an error with the status of a success', { body: failure(404, 'NOT_FOUND').body }],
    ['a list', { body: [] }],
    ['a text', { body: '"ok"' }],
    ['null', { body: 'null' }],
    ['201', { status: 201, body: {} }],
    ['reachable users that are no list', { body: { reachableUsers: list[0] } }],
    ['every field of a response for one number', { body: { features: ['RICHCARD_CAROUSEL'], carrier: 'a carrier' } }, true],
    ['every field of a response for a list', { body: { reachableUsers: list, reachableUsersMap: {}, ...counts } }, undefined, true],
  ] as [string, NetworkResponse, boolean?, boolean?][]) {
    test(`is ${one} for one number and ${each} for each of a list after ${what}`, async () => {
      network.respondWith(() => response)
      const agentId = `agent: ${what}`
      assert.deepEqual(await reachable(carrier, list.slice(0, 1), HOUR_MS, agentId), [one])
      assert.deepEqual(await reachable(carrier, list, -1, agentId), Array(4).fill(each))
    })
  }
})

test('looks up 10,000 numbers in a request, and evicts the oldest of over 100,000 cached results', async (t) => {
  // Without the carrier's timeout of 10 s: both ends of these requests share this process, which can take longer on a busy machine.
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { network, carrier } = await start()
  const sizes: number[] = []
  network.respondWith(({ method, body }) => {
    if (method === 'GET') return { body: {} }
    const { users } = JSON.parse(body) as { users: string[] }
    sizes.push(users.length)
    return { body: { reachableUsers: users.filter((user) => user.endsWith('7')) } }
  })
  const first = '+48500100999'
  assert.deepEqual(await reachable(carrier, [first]), [true])
  const others = times(99_999, (index) => `+48600${String(index).padStart(6, '0')}`)
  const results = await reachable(carrier, others)
  assert.ok(results.every((result, index) => result === (index % 10 === 7)))
  assert.deepEqual(
    sizes.splice(0).sort((a, b) => a - b),
    [9_999, ...Array(9).fill(10_000)],
  )
  await reachable(carrier, [first, ...others])
  assert.equal(network.requests.length, 11)

  await reachable(carrier, ['+48500100998'])
  await reachable(carrier, [first])
  assert.equal(network.requests.length, 13)
  await reachable(carrier, others)
  assert.ok(sizes.length <= 1)
})
