import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { RcsCarrier } from '../../../src/carriers/carrier.ts'
import { createGoogleRbm } from '../../../src/carriers/google-rbm/carrier.ts'
import type { GoogleRbmSettings } from '../../../src/carriers/google-rbm/settings.ts'
import { createLogger } from '../../../src/http/log.ts'
import { failure, startNetwork } from '../../support/network.ts'
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
