import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { after, describe, test } from 'node:test'
import { loadConfig } from '../../../src/config.ts'
import { answerErrors } from '../../../src/http/error-answers.ts'
import { createLogger } from '../../../src/http/log.ts'
import { createServer } from '../../../src/http/server.ts'
import type { Times } from '../../../src/reports/exports/answer.ts'
import { exportRoutes } from '../../../src/reports/exports/routes.ts'
import { createTestDatabase } from '../../support/database.ts'
import { callerAt, startMessageService } from '../../support/messages.ts'
import { cuttableDatabase } from '../../support/proxy.ts'
import { createAssignedAgent, createCaller } from '../../support/service.ts'
import { until } from '../../support/until.ts'

// Exports that do not come to their end, whoever's fault that is. They are of 15 MB: more than all that is on its way can hold.

const database = await createTestDatabase({ uncounted: 'messages are written by hand' })
const { pool } = database
const service = await startMessageService(database)
const ROWS = 1_500
const ROW_BYTES = 10_000

/** An account with as many messages as take a while to be read. */
async function newAccount() {
  const caller = await createCaller(pool)
  const agentId = await createAssignedAgent(pool, caller.accountId)
  await pool.query(
    `insert into messages (id, account_id, agent_id, recipient, status, basic, test, content, expires_at, failed_at, failure_reason, failure_description)
     select uuid_v7(), $1, $2, '+48500100200', 'FAILED', false, false, '{"type":"MESSAGE","content":"Hi"}', now() + interval '1 day', now(), 'REJECTED', repeat('x', $4)
     from generate_series(1, $3)`,
    [caller.accountId, agentId, ROWS, ROW_BYTES],
  )
  return callerAt(service.url, { ...caller, agentId })
}
const account = await newAccount()

const running = async () =>
  (
    await pool.query<{ pid: number }>(
      `select pid from pg_stat_activity where application_name = 'herald-export' and datname = current_database()`,
    )
  ).rows
const allFreed = (patienceMs?: number) => until('every export is freed', async () => (await running()).length === 0, patienceMs)

/** An export whose client takes nothing until it is told to. */
async function begin(url = service.url, { authorization } = account): Promise<IncomingMessage> {
  const asked = request(`${url}/v1/reports/messages/export`, { headers: { authorization }, agent: false })
  asked.on('error', () => {})
  asked.end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  answer.on('error', () => {})
  return answer
}

/** How it ended, and how much came until then. */
async function take(answer: IncomingMessage): Promise<{ isWhole: boolean; bytes: number }> {
  let bytes = 0
  answer.on('data', (piece) => {
    bytes += piece.length
  })
  // What was broken off says so by an error before it is closed, which is what is asked about here.
  if (!answer.closed) await new Promise((resolve) => answer.once('close', resolve))
  return { isWhole: answer.complete, bytes }
}

const lines = (pattern: RegExp) =>
  service
    .log()
    .split('\n')
    .filter((line) => pattern.test(line))

test('an export that nobody disturbs is whole, and frees all that it held', async () => {
  const { isWhole, bytes } = await take(await begin())
  assert.deepEqual([isWhole, bytes > ROWS * ROW_BYTES], [true, true])
  await allFreed()
})

describe('a client that goes away', () => {
  for (const [when, wait] of [
    ['before the first byte', async () => {}],
    ['when it has the first bytes', async (socket: ReturnType<typeof connect>) => await once(socket, 'data')],
  ] as const) {
    test(`${when} frees everything within a second`, async () => {
      const { hostname, port } = new URL(service.url)
      const socket = connect(Number(port), hostname)
      socket.write(`GET /v1/reports/messages/export HTTP/1.1\r\nHost: x\r\nAuthorization: ${account.authorization}\r\n\r\n`)
      await until('it is being read', async () => (await running()).length > 0)
      await wait(socket)
      socket.resetAndDestroy()
      await allFreed(1_000)
      // Its place, too.
      assert.deepEqual(
        (await Promise.all([begin().then(take), begin().then(take)])).map(({ isWhole }) => isWhole),
        [true, true],
      )
    })
  }
})

test('a failure in the middle breaks the connection, is logged, and never looks whole', async () => {
  const answer = await begin()
  const [{ pid } = { pid: 0 }] = await running()
  await pool.query('select pg_terminate_backend($1)', [pid])
  const { isWhole, bytes } = await take(answer)
  assert.equal(isWhole, false)
  assert.ok(bytes < ROWS * ROW_BYTES)
  const line = await until('it is logged', () => lines(/failed in the middle/).at(0))
  const { requestId, accountId, err } = JSON.parse(line)
  assert.deepEqual([requestId, accountId, typeof err.type], [answer.headers['x-request-id'], account.accountId, 'string'])
  await allFreed()
})

test('an account has two at once, and a third when one of them has ended', async () => {
  const two = [await begin(), await begin()]
  const { status, headers, body } = await account.ask('GET', '/reports/messages/export')
  assert.deepEqual([status, body.code], [429, 'RCS_RATE_LIMITED'])
  assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  assert.match(body.details[0].reason, /At most 2 exports/)
  const ended = await take(two[0] as IncomingMessage)
  assert.equal(ended.isWhole, true)
  const third = await until('there is a place', async () => {
    const answer = await begin()
    return answer.statusCode === 200 ? answer : undefined
  })
  for (const answer of [third, two[1] as IncomingMessage]) answer.destroy()
  await allFreed()
})

test('while eight are under way, others are told to come later', async () => {
  const others = await Promise.all([newAccount(), newAccount(), newAccount()])
  const eight = await Promise.all([account, ...others].flatMap((each) => [begin(service.url, each), begin(service.url, each)]))
  assert.deepEqual(
    eight.map(({ statusCode }) => statusCode),
    Array.from({ length: 8 }, () => 200),
  )
  const refused = await (await newAccount()).ask('GET', '/reports/messages/export')
  assert.deepEqual([refused.status, refused.body.code, refused.headers.has('retry-after')], [503, 'RCS_UNAVAILABLE', true])
  for (const answer of eight) answer.destroy()
  await allFreed()
})

test('where the database is away at the start, it is a 503', async () => {
  const way = await cuttableDatabase(database.url)
  const node = await startMessageService({ ...database, url: way.url })
  const caller = callerAt(node.url, account)
  assert.equal((await caller.ask('GET', '/reports/messages/summary')).status, 200)
  await way.cut()
  const { status, body, headers } = await caller.ask('GET', '/reports/messages/export')
  assert.deepEqual([status, body.code, headers.get('retry-after')], [503, 'RCS_UNAVAILABLE', '1'])
  assert.equal(headers.get('content-disposition'), null)
  await node.stop()
})

test('a stop cuts off those that take longer than its patience, and leaves nothing behind', async () => {
  const node = await startMessageService(database)
  const answer = await begin(node.url)
  await node.stop()
  assert.equal((await take(answer)).isWhole, false)
  await allFreed(1_000)
})

describe('a client that takes nothing', () => {
  /** The routes alone, with times of their own. */
  async function routes(times: Times): Promise<string> {
    const app = createServer(loadConfig({}), createLogger('silent'))
    answerErrors(app)
    app.addHook('onRequest', async (incoming) => {
      incoming.caller = { accountId: account.accountId, integrationKey: '', modules: [] }
    })
    await app.register(exportRoutes, { pool, times, prefix: '/v1' })
    after(() => app.close())
    return await app.listen({ host: '127.0.0.1', port: 0 })
  }

  test('is cut off after a while', async () => {
    const answer = await begin(await routes({ idleMs: 200, longestMs: 60_000 }))
    await allFreed()
    assert.equal((await take(answer)).isWhole, false)
  })

  test('or too slowly is cut off when the whole has taken too long', async () => {
    const answer = await begin(await routes({ idleMs: 60_000, longestMs: 200 }))
    await allFreed()
    assert.equal((await take(answer)).isWhole, false)
  })
})
