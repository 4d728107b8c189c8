import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setQuotas } from '../../../src/accounts/quotas.ts'
import { callerAt, startMessageService } from '../../support/messages.ts'
import { cuttableDatabase } from '../../support/proxy.ts'
import { until } from '../../support/until.ts'
import { openExport, startExports, untilBlocked, untilNothingRuns, untilStalled, whileLocked } from './clients.ts'
import { caller, database, log, newCaller, pool, url } from './shared.ts'

// How many exports there can be, and for how long.

const CSV = '/v1/reports/messages/export'
const open = (node = url, { authorization } = caller) => openExport(`${node}${CSV}`, authorization)

test('an account has two at once, and a third when one of them has ended', async () => {
  const two = [open(), open()] as const
  await untilStalled(pool, 2)
  const { status, headers, body } = await caller.ask('GET', '/reports/messages/export')
  assert.deepEqual([status, body.code, headers.get('retry-after')], [429, 'RCS_QUOTA_EXCEEDED', '10'])
  assert.match(body.details[0].reason, /^The quota exports of the account is 2, and 2 are used: try again when one of them has ended\.$/)
  assert.equal((await two[0].ending()).is, 'whole')
  const third = await until('there is a place', async () => {
    const next = open()
    return (await next.answer).statusCode === 200 ? next : undefined
  })
  for (const { leave } of [third, two[1]]) leave()
  await untilNothingRuns(pool)
})

test('an account has no more than its own quota allows', async () => {
  const { accountId, ask } = await newCaller()
  await setQuotas(pool, accountId, { exports: 0 })
  assert.deepEqual((await ask('GET', '/reports/messages/export')).body.code, 'RCS_QUOTA_EXCEEDED')
  await setQuotas(pool, accountId, { exports: null })
  assert.equal((await ask('GET', '/reports/messages/export')).status, 200)
})

test('while eight are under way, others are told to come later', async () => {
  const four = await Promise.all(Array.from({ length: 4 }, newCaller))
  const late = await newCaller()
  await whileLocked(database.url, 'messages', async () => {
    const eight = four.flatMap((each) => [open(url, each), open(url, each)])
    await untilBlocked(pool, 8)
    const refused = await late.ask('GET', '/reports/messages/export')
    assert.deepEqual([refused.status, refused.body.code, refused.headers.has('retry-after')], [503, 'RCS_UNAVAILABLE', true])
    for (const { leave } of eight) leave()
    await untilNothingRuns(pool)
  })
  assert.equal((await late.ask('GET', '/reports/messages/summary')).status, 200)
})

test('a failure in the middle is logged, with whose it was and why', async () => {
  const { answer, ending } = open()
  const [stalled] = await untilStalled(pool)
  await pool.query('select pg_terminate_backend($1)', [stalled?.pid])
  assert.equal((await ending()).is, 'broken')
  const id = (await answer).headers['x-request-id']
  const line = await until('it is logged', () =>
    log()
      .split('\n')
      .find((each) => each.includes('failed after its first bytes') && each.includes(String(id))),
  )
  const { accountId, err } = JSON.parse(line)
  assert.deepEqual([accountId, typeof err.type], [caller.accountId, 'string'])
})

test('where the database is away at the start, it is a 503', async () => {
  const way = await cuttableDatabase(database.url)
  const node = await startMessageService({ ...database, url: way.url })
  const there = callerAt(node.url, caller)
  assert.equal((await there.ask('GET', '/reports/messages/summary')).status, 200)
  await way.cut()
  const { status, body, headers } = await there.ask('GET', '/reports/messages/export')
  assert.deepEqual([status, body.code, headers.get('retry-after')], [503, 'RCS_UNAVAILABLE', '1'])
  assert.equal(headers.get('content-disposition'), null)
  await node.stop()
})

test('a stop cuts off those that take longer than its patience, and leaves nothing behind', async () => {
  const node = await startMessageService(database)
  const { ending } = open(node.url)
  await untilStalled(pool)
  await node.stop()
  assert.equal((await ending()).is, 'broken')
  await untilNothingRuns(pool)
})

test('one that the database does not begin with is cut off, too', async () => {
  await whileLocked(database.url, 'messages', async () => {
    const alone = await startExports(pool, { idleMs: 60_000, longestMs: 200 })
    await assert.rejects(open(alone, { ...caller, authorization: String(caller.accountId) }).answer, /ECONNRESET|socket hang up/)
    await untilNothingRuns(pool)
  })
})

describe('a client that takes nothing', () => {
  for (const [how, times] of [
    ['is cut off after a while', { idleMs: 200, longestMs: 60_000 }],
    // Time enough for a busy machine to begin the response.
    ['or too slowly is cut off when the whole has taken too long', { idleMs: 60_000, longestMs: 3_000 }],
  ] as const) {
    test(how, async () => {
      const { answer, ending } = open(await startExports(pool, times), { ...caller, authorization: String(caller.accountId) })
      assert.equal((await answer).statusCode, 200)
      await untilNothingRuns(pool)
      assert.equal((await ending()).is, 'broken')
    })
  }
})
