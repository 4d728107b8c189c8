import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import type { SendResult } from '../../../src/carriers/carrier.ts'
import { REFUSALS } from '../../../src/carriers/errors.ts'
import { echo, failure, type NetworkResponse, startNetwork } from '../../support/network.ts'
import { assertWithin, connect, newAgent, recordLog, send } from './support.ts'

const network = await startNetwork()
const { logger, log } = recordLog()
const carrier = connect(network.settings, logger)

describe('sending a message', () => {
  const cases: [string, NetworkResponse, SendResult['is'], string?][] = [
    ['400', failure(400, 'INVALID_ARGUMENT'), 'failed', 'REJECTED'],
    ['403', failure(403, 'PERMISSION_DENIED'), 'failed', 'NOT_REACHABLE'],
    ['404', failure(404, 'NOT_FOUND'), 'failed', 'NOT_REACHABLE'],
    ['413', failure(413, 'INVALID_ARGUMENT'), 'failed', 'REJECTED'],
    ['409, since the network has a message with this id', failure(409, 'ALREADY_EXISTS'), 'sent'],
    ['409 for another reason', failure(409, 'ABORTED'), 'retry'],
    ['401 for two tokens', failure(401, 'UNAUTHENTICATED'), 'retry'],
    ['429', failure(429, 'RESOURCE_EXHAUSTED'), 'retry'],
    ['a redirect, which is not followed', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 'retry'],
    ['404 from a proxy', { status: 404, body: '<html>' }, 'retry'],
    ['400 from a proxy', { status: 400, body: { error: 'bad request' } }, 'retry'],
    ['403 whose body has another status', { status: 403, body: failure(404, 'NOT_FOUND').body }, 'retry'],
    ['400 whose body has its status as a text', { status: 400, body: { error: { code: '400' } } }, 'retry'],
    ['408', failure(408, 'DEADLINE_EXCEEDED'), 'unknown'],
    ['500', failure(500, 'INTERNAL'), 'unknown'],
    ['503', failure(503, 'UNAVAILABLE'), 'unknown'],
    ['504 without a body', { status: 504, body: '' }, 'unknown'],
    ['202 without a message name', { status: 202 }, 'unknown'],
    ['204', { status: 204, body: '' }, 'unknown'],
    ['200 from a proxy', { status: 200, body: '<html>Welcome</html>' }, 'unknown'],
    ['200 for another message', { body: { name: `phones/+48500100110/agentMessages/${randomUUID()}` } }, 'unknown'],
    ['200 with JSON that is no object', { body: 'null' }, 'unknown'],
  ]
  for (const [what, response, is, reason] of cases) {
    test(`is ${is} after ${what}`, async () => {
      network.respondWith(() => response)
      const messageId = randomUUID()
      const outcome = await send(carrier, { messageId })
      assert.equal(outcome.is, is)
      if (outcome.is === 'sent') assert.equal(outcome.carrierMessageId, messageId)
      if (outcome.is === 'failed') {
        assert.equal(outcome.reason, reason)
        assert.equal(outcome.hasNoRcs, what === '404' ? true : undefined, 'only 404 is about the number')
        assert.ok(outcome.reason in REFUSALS)
        assert.match(outcome.detail, /^\d{3} [A-Z_]+ It is [A-Z_]+\.$/)
      }
      if (outcome.is === 'retry' || outcome.is === 'unknown') assertWithin(outcome.afterMs, 1, 60_000)
    })
  }

  for (const [what, change, is] of [
    ['201 with the message name', { status: 201 }, 'sent'],
    ['200 with the message name and an error', { error: { code: 500 } }, 'unknown'],
    ['200 of nearly 1 MiB', { padding: ' '.repeat(1_000_000) }, 'sent'],
  ] as [string, { status?: number }, string][]) {
    test(`is ${is} after ${what}`, async () => {
      const { status = 200, ...fields } = change
      network.respondWith((request) => ({ status, body: { ...(echo(request).body as object), ...fields } }))
      assert.equal((await send(carrier)).is, is)
    })
  }

  for (const [what, respond, detail] of [
    ['the connection breaks after the request', (response) => void response.destroy(), /./],
    [
      'the response is truncated',
      (response) => {
        response.writeHead(200, { 'content-length': '1000' })
        response.write('{"name":')
        setImmediate(() => response.destroy())
      },
      /./,
    ],
    [
      'the response does not end',
      (response) => {
        response.writeHead(200)
        const more = setInterval(() => response.write(' '.repeat(100_000)), 1)
        response.once('close', () => clearInterval(more))
      },
      /^the response exceeds 1048576 bytes$/,
    ],
  ] as [string, (response: ServerResponse) => void, RegExp][]) {
    test(`is unknown if ${what}`, async () => {
      network.respondWith((_, response) => void respond(response))
      const outcome = await send(carrier)
      assert.ok(outcome.is === 'unknown')
      assert.match(outcome.detail, detail)
    })
  }

  test('waits as long as Retry-After asks, in seconds or until a date', async () => {
    const delayAfter = async (status: number, retryAfter: string | string[]) => {
      network.respondWith((_, response) => {
        response.setHeader('retry-after', retryAfter)
        return failure(status, 'UNAVAILABLE')
      })
      const outcome = await send(carrier)
      return 'afterMs' in outcome ? outcome.afterMs : undefined
    }
    assert.equal(await delayAfter(429, '7'), 7_000)
    assert.equal(await delayAfter(429, ['5', '12']), 5_000)
    // No delay of the carrier itself exceeds a minute.
    assertWithin(await delayAfter(503, new Date(Date.now() + 3_600_000).toUTCString()), 60_001, 3_600_000)
  })

  test('logs the denial of an agent once, and never a text or a number', async () => {
    network.respondWith(() => failure(403, 'PERMISSION_DENIED'))
    const agentId = newAgent()
    for (let index = 0; index < 3; index += 1) await send(carrier, { agentId })
    assert.equal(
      log()
        .split('\n')
        .filter((line) => line.includes('denies this agent') && line.includes(`"${agentId}"`)).length,
      1,
    )
    assert.doesNotMatch(log(), /CANARY|48500100\d{3}/)
  })
})
