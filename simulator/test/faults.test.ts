import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { AGENT, createDataDir, requestToken, startTestSimulator } from './support/simulator.ts'

const simulator = await startTestSimulator({ delayMs: 3_600_000 })
const { call, sendMessage, faults } = simulator
const text = { contentMessage: { text: 'Hello' } }
const sendOne = (messageId: string = randomUUID()) => sendMessage('+48500300110', messageId, text)

test('tooManyRequests rejects the given number of messages with 429 and its Retry-After', async () => {
  await faults({ api: { tooManyRequests: { count: 2, retryAfterSeconds: 7 } } })
  const messageId = randomUUID()
  for (const left of [1, undefined]) {
    const { status, body, headers } = await sendOne(messageId)
    assert.deepEqual([status, body.error.status, headers.get('retry-after')], [429, 'RESOURCE_EXHAUSTED', '7'])
    const { body: rest } = await call('GET', '/simulator/faults')
    assert.equal(rest.api?.tooManyRequests.count, left)
  }
  assert.equal((await sendOne(messageId)).status, 200)
  assert.equal((await simulator.phone('+48500300110')).length, 1)
})

test('serverError, latency and tokenRefused apply to one request each', async () => {
  await faults({ api: { serverError: { count: 1, status: 502 } } })
  assert.equal((await sendOne()).status, 502)
  await faults({ api: { latency: { count: 1, ms: 60 } } })
  const startedAt = performance.now()
  assert.equal((await sendOne()).status, 200)
  assert.ok(performance.now() - startedAt >= 55)
  await faults({ api: { tokenRefused: { count: 1 } } })
  assert.equal((await sendOne()).status, 401)
  assert.equal((await sendOne()).status, 200)
})

test('dropBefore and dropAfter drop a connection before and after the message is accepted', async () => {
  const before = randomUUID()
  const after = randomUUID()
  await faults({ api: { dropBefore: { count: 1 } } })
  await assert.rejects(sendOne(before))
  await faults({ api: { dropAfter: { count: 1 } } })
  await assert.rejects(sendOne(after))
  const ids = (await simulator.phone('+48500300110')).map(({ messageId }) => messageId)
  assert.equal(ids.includes(before), false)
  assert.equal(ids.includes(after), true)
})

test('the token endpoint is slow, refuses, or issues a token that expires at once', async () => {
  await faults({ token: { slow: { count: 1, ms: 60 }, refused: { count: 1, status: 503 } } })
  const startedAt = performance.now()
  assert.equal((await requestToken(simulator.carriers)).status, 503)
  assert.ok(performance.now() - startedAt >= 55)
  await faults({ token: { shortLived: { count: 1, expiresInSeconds: 0 } } })
  const { body } = await requestToken(simulator.carriers)
  assert.equal(body.expires_in, 0)
  const response = await call('GET', `/v1/phones/+48500300110/capabilities`, undefined, { authorization: `Bearer ${body.access_token}` })
  assert.equal(response.status, 401)
})

test('notLaunched makes an agent reach no phone', async () => {
  await faults({ agents: { notLaunched: [`${AGENT}@rbm.goog`] } })
  const batch = await call('POST', '/v1/users:batchGet', { users: ['+48500300110'], agentId: `${AGENT}@rbm.goog` })
  assert.equal(batch.status, 403)
  assert.equal((await sendOne()).body.error.status, 'PERMISSION_DENIED')
  assert.equal((await call('GET', `/v1/phones/+48500300110/capabilities?requestId=${randomUUID()}&agentId=${AGENT}`)).status, 404)
  assert.deepEqual((await call('DELETE', '/simulator/faults')).body, {})
  assert.equal((await sendOne()).status, 200)
})

test('a rate applies to the same requests with the same seed', async () => {
  const run = async (seed: number) => {
    await faults({ seed, api: { serverError: { rate: 0.5, status: 500 } } })
    const statuses: number[] = []
    for (let request = 0; request < 20; request++) statuses.push((await sendOne()).status)
    return statuses
  }
  const first = await run(3)
  assert.ok(first.includes(200) && first.includes(500))
  assert.deepEqual(await run(3), first)
  assert.notDeepEqual(await run(4), first)
  await faults({})
})

test('invalid faults change nothing and get an error with the path', async () => {
  const cases: [unknown, RegExp][] = [
    [[], /must be a JSON object/],
    [{ api: { slowness: { count: 1 } } }, /api\.slowness is no fault/],
    [{ api: { latency: { count: 1 } } }, /api\.latency\.ms must be a whole number/],
    [{ api: { dropAfter: {} } }, /either count or rate/],
    [{ api: { dropAfter: { count: 1, rate: 1 } } }, /either count or rate/],
    [{ api: { dropAfter: { rate: 2 } } }, /from 0 to 1/],
    [{ api: { dropAfter: { count: 1, ms: 1 } } }, /has no setting ms/],
    [{ smpp: { receiptSpelling: { count: 1, spelling: 'bad' } } }, /one of capital-text/],
    [{ seed: -1 }, /seed must be/],
    [{ network: {} }, /network is no part of the faults/],
    [{ api: { dropAfter: { count: -1 } } }, /count must be a whole number from 0 to 1000000000/],
    [{ agents: { notLaunched: 'x' } }, /list of agent ids/],
  ]
  for (const [input, message] of cases) {
    const { status, body } = await call('PUT', '/simulator/faults', input)
    assert.equal(status, 400)
    assert.match(body.error.message, message)
  }
  assert.deepEqual((await call('GET', '/simulator/faults')).body, { seed: 1 })
})

test('listens on its last port again once that is free', async () => {
  const dataDir = createDataDir()
  const first = await startTestSimulator({ dataDir })
  await first.stop()
  const other = createServer().listen(Number(new URL(first.url).port), '127.0.0.1')
  await once(other, 'listening')
  const second = await startTestSimulator({ dataDir })
  assert.notEqual(second.url, first.url)
  assert.equal(second.carriers.simulator.address, second.url)
  await second.stop()
  await new Promise((resolve) => other.close(resolve))
  const third = await startTestSimulator({ dataDir })
  assert.equal(third.url, first.url)
})
