import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'
import { parseResponse, rawConnection } from '../support/raw.ts'
import { createCaller, startTestService } from '../support/service.ts'

// A path can be spelled in many ways. What the router takes for a path below /v1 needs credentials, and what it does not is 404: no spelling
// reveals a route to a caller without credentials, or gets one route the limit of another.

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const { url } = await startTestService({ HERALD_DATABASE_URL, HERALD_LIMITS: 'memory' })

/** By hand: `fetch` would rewrite the path. */
async function ask(method: string, path: string, authorization?: string) {
  const connection = rawConnection(url)
  const headers = ['Host: x', 'Connection: close', 'Content-Length: 0', ...(authorization ? [`Authorization: ${authorization}`] : [])]
  connection.send(`${method} ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)
  return parseResponse(await connection.ended)
}

const policyOf = (head: string) => /^ratelimit-policy: "(\w+)"/im.exec(head)?.[1]

describe('a path', () => {
  const outside =
    `/v1%2fagents /v1%2Fagents /v1%252fagents /v1%2fmessages /v1%2F /v1%2fopenapi.json /%2fv1/agents //v1/agents /./v1/agents /%2e/v1/agents
    /x/../v1/agents /v1;x/agents /v1%3b/agents /v1%00/agents /V1/agents /v1%2fagents?x=%2f /healthz%2f /carriers%2fgoogle%2fwebhook
    /l%2fAbcdefghij0`.split(/\s+/)
  for (const path of outside) {
    test(`outside /v1 is 404 for every method: ${path}`, async () => {
      for (const method of ['GET', 'POST', 'DELETE', 'PATCH']) {
        const { status, body, head } = await ask(method, path)
        assert.deepEqual([method, status, body.code, /^allow:/im.test(head)], [method, 404, 'RCS_ROUTE_NOT_FOUND', false])
      }
    })
  }

  const below =
    `/v1/agents /v1/%61gents /%761/agents /v1/agents/ /v1/agents%2f /v1/agents%2Fx /v1/%2fagents /v1//agents /v1/./agents /v1/../v1/agents
    /v1/%2e%2e/healthz /v1/agents;x /v1/%2561gents /v1/agents%00 /v1/%zz /v1/nowhere /v1/ /v1 http://x/v1/agents /v1/agents#x
    /v1/agents?x=/healthz`.split(/\s+/)
  test('below /v1 is 401 without credentials, whatever its spelling and method', async () => {
    for (const path of below) {
      for (const method of ['GET', 'DELETE']) {
        const { status, body } = await ask(method, path)
        // Wrong credentials have a limit of their own, which comes after the check.
        assert.ok(status === 401 || status === 429, `${method} ${path}: ${status} ${JSON.stringify(body)}`)
      }
    }
  })

  test('below /v1 has one response for all its spellings', async () => {
    const { authorization } = await createCaller(pool)
    const expected: [string, string, number][] = [
      ['DELETE', '/v1/agents', 405],
      ['DELETE', '/v1/%61gents', 405],
      ['DELETE', '/v1/agents%2f', 404],
      ['DELETE', '/v1%2fagents', 404],
      ['DELETE', '/v1/agents/', 404],
      ['DELETE', '/v1/agents/x', 405],
      ['DELETE', '/v1/agents/x%2fy', 405],
      ['DELETE', '/v1/%2fagents', 404],
      ['DELETE', '/v1/agents;x', 404],
      ['GET', '/v1/%61gents', 200],
    ]
    for (const [method, path, status] of expected) {
      assert.deepEqual([method, path, (await ask(method, path, authorization)).status], [method, path, status])
    }
  })
})

describe('the limit of messages', () => {
  test('counts every spelling of POST /v1/messages, and nothing else', async () => {
    const { authorization } = await createCaller(pool)
    const policies: [string, string, string | undefined][] = [
      ['POST', '/v1/messages', 'messages'],
      ['POST', '/v1/%6dessages', 'messages'],
      ['POST', '/%76%31/messages', 'messages'],
      ['POST', '/v1/messages?x=1', 'messages'],
      ['POST', '/v1/messages#x', 'messages'],
      ['POST', 'http://x/v1/messages', 'messages'],
      ['POST', '/v1/messages%2f', 'default'],
      ['POST', '/v1/messages/', 'default'],
      ['POST', '/v1/%2fmessages', 'default'],
      ['POST', '/v1//messages', 'default'],
      ['POST', '/v1/./messages', 'default'],
      ['POST', '/v1/messages;x', 'default'],
      ['POST', '/v1/%256dessages', 'default'],
      ['POST', '/v1/campaigns?/v1/messages', 'default'],
      ['POST', '/v1/templates', 'default'],
      ['PUT', '/v1/messages', 'default'],
      ['GET', '/v1/messages', 'default'],
      ['POST', '/v1%2fmessages', undefined],
    ]
    for (const [method, path, policy] of policies) {
      const { head } = await ask(method, path, authorization)
      assert.deepEqual([method, path, policyOf(head)], [method, path, policy])
    }
  })
})
