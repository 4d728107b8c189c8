import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { limitBodies } from '../../src/http/body-budget.ts'
import { answerErrors } from '../../src/http/error-answers.ts'
import { createServer, listeningUrl } from '../../src/http/server.ts'
import { logger } from '../delivery/support.ts'
import { parseAnswer, rawConnection } from '../support/raw.ts'
import { call } from '../support/service.ts'
import { until } from '../support/until.ts'

const BODY = `"${'x'.repeat(200_000)}"`

test('a large body is refused while those under way fill the budget, and taken once they are over', async () => {
  const budget = { leftBytes: 300_000 }
  const app = createServer(loadConfig({}), logger)
  answerErrors(app)
  limitBodies(app, budget)
  app.post('/', async (request) => ({ length: (request.body as string).length }))
  await app.listen({ host: '127.0.0.1', port: 0 })
  after(() => app.close())
  const url = listeningUrl(app)
  const send = (body: string) => call(url, { method: 'POST', body })

  const slow = rawConnection(url)
  slow.send(`POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n`)
  await until('the slow body has its share', () => budget.leftBytes < 200_000)
  const refused = await send(BODY)
  assert.deepEqual([refused.status, refused.body.code, refused.headers.get('retry-after')], [503, 'RCS_UNAVAILABLE', '1'])
  assert.equal((await send('"small"')).status, 200)

  slow.send(BODY)
  assert.equal(parseAnswer(await slow.ended).status, 200)
  await until('its share is free again', () => budget.leftBytes === 300_000)
  assert.equal((await send(BODY)).status, 200)
})
