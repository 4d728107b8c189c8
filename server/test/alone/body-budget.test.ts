import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { createBodyBudget, limitBodies } from '../../src/http/body-budget.ts'
import { handleErrors } from '../../src/http/error-responses.ts'
import { createServer, listeningUrl } from '../../src/http/server.ts'
import { logger } from '../delivery/worker.ts'
import { parseResponse, rawConnection } from '../support/raw.ts'
import { call } from '../support/service.ts'
import { until } from '../support/until.ts'

const BODY = `"${'x'.repeat(200_000)}"`

test('a large body is rejected while others fill the budget, and accepted once they end', async () => {
  const addresses = createBodyBudget(8 * 300_000)
  const app = createServer(loadConfig({}), logger)
  handleErrors(app)
  limitBodies(app, { accounts: createBodyBudget(0), addresses })
  app.post('/', async (request) => ({ length: (request.body as string).length }))
  await app.listen({ host: '127.0.0.1', port: 0 })
  after(() => app.close())
  const url = listeningUrl(app)
  const send = (body: string) => call(url, { method: 'POST', body })

  const slow = rawConnection(url)
  slow.send(`POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n`)
  const refused = await until('the slow body has its share', async () => {
    const response = await send(BODY)
    return response.status === 503 ? response : undefined
  })
  assert.deepEqual([refused.status, refused.body.code, refused.headers.get('retry-after')], [503, 'RCS_UNAVAILABLE', '1'])
  assert.equal((await send('"small"')).status, 200)

  slow.send(BODY)
  assert.equal(parseResponse(await slow.ended).status, 200)
  await until('its share is free again', async () => (await send(BODY)).status === 200)
})

test('one owner gets an eighth of a budget, and all together get the whole', () => {
  const budget = createBodyBudget(80)
  assert.equal(budget.reserve(1, 11), undefined)
  const release = budget.reserve(1, 10)
  assert.equal(budget.reserve(1, 1), undefined)
  for (let owner = 2; owner <= 8; owner += 1) assert.ok(budget.reserve(owner, 10))
  assert.equal(budget.reserve(9, 1), undefined)
  release?.()
  release?.()
  assert.ok(budget.reserve(9, 10))
  assert.equal(budget.reserve(1, 1), undefined)
})
