import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { describeError, maskSecrets } from '../../src/http/log.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { rawConnection } from '../support/raw.ts'
import { call, createAssignedAgent, createCaller, startTestService } from '../support/service.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const service = await startTestService({ HERALD_DATABASE_URL, HERALD_LOG_LEVEL: 'trace', HERALD_LIMIT_OTHERS_PER_MINUTE: '1000' })
const { url } = service

describe('the log', () => {
  test('has a line for every request, with these fields and no others', async () => {
    const caller = await createCaller(pool)
    const agentId = await createAssignedAgent(pool, caller.accountId)
    await call(`${url}/v1/agents/${agentId}`, { method: 'PATCH', authorization: caller.authorization, body: { displayName: 'X' } })
    const line = JSON.parse(service.log().trim().split('\n').at(-1) as string)
    assert.deepEqual(Object.keys(line), ['level', 'time', 'requestId', 'method', 'route', 'status', 'ms', 'accountId', 'msg'])
    assert.deepEqual([line.method, line.route, line.status, line.accountId], ['PATCH', '/v1/agents/:agentId', 200, caller.accountId])
  })

  test('has no error if a client resets its connection', async () => {
    const { authorization } = await createCaller(pool)
    const { hostname, port } = new URL(url)
    for (let n = 0; n < 5; n++) {
      const socket = connect(Number(port), hostname)
      await once(socket, 'connect')
      socket.write(`GET /v1/agents HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`)
      socket.resetAndDestroy()
    }
    assert.equal((await call(`${url}/v1/agents`, { authorization })).status, 200)
    assert.ok(!service.log().includes('a request failed'))
  })

  test('never has a secret, a key, a number or a text; neither have error responses or metrics', async () => {
    const caller = await createCaller(pool)
    const agentId = await createAssignedAgent(pool, caller.accountId)
    const canaries = ['CANARY-TEXT', '+48600111222', '48600111222', caller.secret, caller.integrationKey, 'hs_CANARYSECRET']
    const { authorization } = caller
    const responses: unknown[] = []
    for (const canary of canaries) {
      const encoded = encodeURIComponent(canary)
      const requests: Parameters<typeof call>[] = [
        [`${url}/v1/agents?secret=${encoded}`, { authorization }],
        [`${url}/v1/agents/${encoded}`, { method: 'PATCH', authorization, body: { displayName: 'X' } }],
        [`${url}/v1/agents/${agentId}`, { method: 'PATCH', authorization, body: { active: canary } }],
        [`${url}/v1/agents/${agentId}`, { method: 'PATCH', authorization, body: `{"displayName":"${canary}` }],
        [`${url}/v1/${encoded}`, { authorization, headers: { 'x-request-id': canary, 'user-agent': canary, referer: canary } }],
        [`${url}/${encoded}`, { authorization: canary }],
        [`${url}/v1/agents`, { authorization: `Bearer ${canary}:${canary}` }],
      ]
      for (const request of requests) {
        const { status, headers, body } = await call(...request)
        assert.ok(status >= 400)
        responses.push([[...headers], body])
      }
      const raw = rawConnection(url)
      raw.send(`GET /${canary} HTTP/9\r\n${canary}\r\n\r\n`)
      responses.push(await raw.ended)
    }
    // An internal error whose database error quotes the value.
    await ownerOf(pool).query(`alter table agent_assignments add constraint no_canary check (display_name not like 'CANARY%')`)
    assert.equal(
      (await call(`${url}/v1/agents/${agentId}`, { method: 'PATCH', authorization, body: { displayName: 'CANARY-TEXT' } })).status,
      500,
    )
    responses.push((await call(service.metricsUrl)).body)

    for (const canary of canaries) {
      assert.ok(!service.log().includes(canary), `the log has ${canary}`)
      assert.ok(!JSON.stringify(responses).includes(canary), `a response has ${canary}`)
    }
    assert.match(service.log(), /"constraint":"no_canary"/)
  })

  test('does not block the process if its disk is full', { skip: !existsSync('/dev/full') }, async () => {
    const full = openSync('/dev/full', 'w')
    const log = new URL('../../src/http/log.ts', import.meta.url)
    const program = `const { createLogger } = await import('${log}'); const logger = createLogger('info'); logger.info('lost'); logger.fatal('lost')`
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', full, 'inherit'],
      timeout: 120_000,
    })
    assert.deepEqual(await once(child, 'exit'), [0, null])
    closeSync(full)
  })

  test('has internal errors with their type and frames, and masks secrets and numbers', () => {
    const error = new TypeError('can not send hs_abc123 to +48600111222 at 12:30')
    const { type, message, frames } = describeError(error) as { type: string; message: string; frames: string[] }
    assert.equal(type, 'TypeError')
    assert.equal(message, 'can not send hs_*** to +48***22 at 12:30')
    assert.ok(frames.some((frame) => frame.includes('logs.test.ts')))
    assert.equal(maskSecrets('hk_A:hs_B whsec_C+/= 1234567'), 'hk_***:hs_*** whsec_*** 12***67')
    assert.deepEqual(describeError('CANARY'), { type: 'string' })
  })
})
