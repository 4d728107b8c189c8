import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'
import { parseAnswer, rawConnection } from '../support/raw.ts'
import { call, createCaller, startTestService } from '../support/service.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
// The real time-outs, divided: what matters is that they hold for a client that keeps sending a little.
const { url } = await startTestService({ HERALD_DATABASE_URL }, { timeouts: { headersMs: 400, requestMs: 800, keepAliveMs: 300 } })
const { authorization } = await createCaller(pool)

/** Sends `head`, then a letter now and then for as long as it is let; returns the answer and how long the connection lived. */
async function trickle(head: string): Promise<{ answer: ReturnType<typeof parseAnswer>; livedMs: number }> {
  const startedAt = performance.now()
  const connection = rawConnection(url)
  connection.send(head)
  const timer = setInterval(() => connection.send('x'), 50)
  const received = await connection.ended
  clearInterval(timer)
  return { answer: parseAnswer(received), livedMs: performance.now() - startedAt }
}

describe('a slow client is cut off with 408 and holds nobody else up:', () => {
  test('one that trickles its headers', async () => {
    const { answer, livedMs } = await trickle('GET /v1/agents HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    assert.equal(answer.status, 408)
    assert.equal(answer.body.code, 'RCS_REQUEST_TIMEOUT')
    // Its answer is out after 0.4 to 0.5 s; the connection lingers for at most 2 s more, so that the answer can be read.
    assert.ok(livedMs >= 400 && livedMs < 3_500, `${livedMs} ms`)
  })

  test('one that trickles its body', async () => {
    const head = `PATCH /v1/agents/x HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n`
    const { answer, livedMs } = await trickle(head)
    assert.equal(answer.status, 408)
    assert.equal(answer.body.code, 'RCS_REQUEST_TIMEOUT')
    assert.ok(livedMs >= 800 && livedMs < 4_000, `${livedMs} ms`)
  })

  test('meanwhile others are served: with 200 slow connections open, a request does not wait for any of them', async () => {
    const slowService = await startTestService(
      { HERALD_DATABASE_URL },
      { timeouts: { headersMs: 3_000, requestMs: 6_000, keepAliveMs: 300 } },
    )
    const slow = Array.from({ length: 200 }, () => rawConnection(slowService.url))
    let ended = 0
    for (const connection of slow) {
      void connection.ended.then(() => {
        ended += 1
      })
    }
    for (const connection of slow) connection.send('GET /v1/agents HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    assert.equal((await call(`${slowService.url}/v1/agents`, { authorization })).status, 200)
    assert.equal(ended, 0)
    const answers = await Promise.all(slow.map(({ ended }) => ended))
    assert.ok(answers.every((received) => received.startsWith('HTTP/1.1 408 ')))
  })

  test('but not one that has asked nothing yet, as clients open in advance: it is as idle as one between two requests', async () => {
    const slowService = await startTestService(
      { HERALD_DATABASE_URL },
      { timeouts: { headersMs: 400, requestMs: 800, keepAliveMs: 60_000 } },
    )
    const [unused, slow] = [rawConnection(slowService.url), rawConnection(slowService.url)]
    slow.send('GET /v1/agents HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    assert.equal(parseAnswer(await slow.ended).status, 408)
    unused.send('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    assert.equal(parseAnswer(await unused.ended).status, 200)
  })

  test('and not with a word, where it asks nothing for as long as an idle one is kept', async () => {
    const timeouts = { headersMs: 400, requestMs: 800, keepAliveMs: 900 }
    const slowService = await startTestService({ HERALD_DATABASE_URL }, { timeouts })
    for (const at of [slowService.url, url]) assert.equal(await rawConnection(at).ended, '')
  })

  test('and one that begins to ask late has no more time for its headers than any other', async () => {
    const slowService = await startTestService(
      { HERALD_DATABASE_URL },
      { timeouts: { headersMs: 400, requestMs: 800, keepAliveMs: 60_000 } },
    )
    const [unused, slow] = [rawConnection(slowService.url), rawConnection(slowService.url)]
    slow.send('GET /v1/agents HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    await slow.ended
    unused.send('GET /v1/agents HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    assert.equal(parseAnswer(await unused.ended).status, 408)
  })

  test('an idle connection is closed after the keep-alive time', async () => {
    const connection = rawConnection(url)
    connection.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.equal(parseAnswer(await connection.ended).status, 200)
  })
})
