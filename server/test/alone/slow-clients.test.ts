import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'
import { parseResponse, rawConnection } from '../support/raw.ts'
import { call, createCaller, startTestService } from '../support/service.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
// Short timeouts: they must hold for a client that keeps sending a little.
const { url } = await startTestService({ HERALD_DATABASE_URL }, { timeouts: { headersMs: 400, requestMs: 800, keepAliveMs: 300 } })
const { authorization } = await createCaller(pool)

const start = (timeouts: { headersMs: number; requestMs: number; keepAliveMs: number }) =>
  startTestService({ HERALD_DATABASE_URL }, { timeouts })
const SLOW = 'GET /v1/agents HTTP/1.1\r\nHost: x\r\nX-Slow: '

/** Sends `head`, then a letter every 50 ms until the service closes the connection. Returns the response and the age of the connection. */
async function trickle(head: string): Promise<{ response: ReturnType<typeof parseResponse>; livedMs: number }> {
  const startedAt = performance.now()
  const connection = rawConnection(url)
  connection.send(head)
  const timer = setInterval(() => connection.send('x'), 50)
  const received = await connection.ended
  clearInterval(timer)
  return { response: parseResponse(received), livedMs: performance.now() - startedAt }
}

describe('a slow client', () => {
  const headers = `Host: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: 100000`
  for (const [what, head, timeoutMs] of [
    ['headers', SLOW, 400],
    ['body', `PATCH /v1/agents/x HTTP/1.1\r\n${headers}\r\n\r\n`, 800],
  ] as const) {
    test(`that trickles its ${what} gets 408 and is disconnected, but not before the timeout`, async () => {
      const { response, livedMs } = await trickle(head)
      assert.deepEqual([response.status, response.body.code], [408, 'RCS_REQUEST_TIMEOUT'])
      assert.ok(livedMs >= timeoutMs, `${livedMs} ms`)
    })
  }

  test('delays no other client, even with 200 slow connections', async () => {
    const service = await start({ headersMs: 600_000, requestMs: 600_000, keepAliveMs: 300 })
    const slow = Array.from({ length: 200 }, () => rawConnection(service.url))
    for (const connection of slow) connection.send(SLOW)
    assert.equal((await call(`${service.url}/v1/agents`, { authorization })).status, 200)
    for (const connection of slow) connection.close()
    for (const { ended } of slow) assert.equal(await ended, '')
  })

  test('that has sent nothing yet counts as idle', async () => {
    const service = await start({ headersMs: 400, requestMs: 800, keepAliveMs: 600_000 })
    const [unused, slow] = [rawConnection(service.url), rawConnection(service.url)]
    slow.send(SLOW)
    assert.equal(parseResponse(await slow.ended).status, 408)
    unused.send('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    assert.equal(parseResponse(await unused.ended).status, 200)
  })

  test('that sends its first byte late still has only the timeout of the headers', async () => {
    const service = await start({ headersMs: 400, requestMs: 600_000, keepAliveMs: 600_000 })
    const [unused, slow] = [rawConnection(service.url), rawConnection(service.url)]
    slow.send(SLOW)
    await slow.ended
    unused.send(SLOW)
    assert.equal(parseResponse(await unused.ended).status, 408)
  })
})

describe('an idle connection', () => {
  test('that was never used is closed without a response after the keep-alive time', async () => {
    const service = await start({ headersMs: 400, requestMs: 800, keepAliveMs: 900 })
    for (const at of [service.url, url]) assert.equal(await rawConnection(at).ended, '')
  })

  test('is closed after the keep-alive time', async () => {
    const connection = rawConnection(url)
    connection.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.equal(parseResponse(await connection.ended).status, 200)
  })
})
