import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setQuotas } from '../../../src/accounts/quotas.ts'
import type { Times } from '../../../src/reports/exports/send-export.ts'
import { ownerOf } from '../../support/database.ts'
import { callerAt, startMessageService } from '../../support/messages.ts'
import { cuttableDatabase } from '../../support/proxy.ts'
import { until } from '../../support/until.ts'
import { openExport, startExports, untilBlocked, untilNothingRuns, untilStalled, whileLocked } from './clients.ts'
import { caller, database, log, newCaller, pool, url } from './shared.ts'

// The number of concurrent exports, and their time limits.

const CSV = '/v1/reports/messages/export'
const open = (node = url, { authorization } = caller) => openExport(`${node}${CSV}`, authorization)

test('an account has two concurrent exports, and a third when one has ended', async () => {
  const two = [open(), open()] as const
  await untilStalled(pool, 2)
  const { status, headers, body } = await caller.ask('GET', '/reports/messages/export')
  assert.deepEqual([status, body.code, headers.get('retry-after')], [429, 'RCS_QUOTA_EXCEEDED', '10'])
  assert.match(body.details[0].reason, /^The quota exports of the account is 2, and 2 are used: try again when one of them has ended\.$/)
  assert.equal((await two[0].ending()).is, 'whole')
  const third = await until('an export slot is free', async () => {
    const next = open()
    return (await next.response).statusCode === 200 ? next : undefined
  })
  for (const { leave } of [third, two[1]]) leave()
  await untilNothingRuns(pool)
})

test('an account has no more exports than its quota', async () => {
  const { accountId, ask } = await newCaller()
  await setQuotas(pool, accountId, { exports: 0 })
  assert.deepEqual((await ask('GET', '/reports/messages/export')).body.code, 'RCS_QUOTA_EXCEEDED')
  await setQuotas(pool, accountId, { exports: null })
  assert.equal((await ask('GET', '/reports/messages/export')).status, 200)
})

test('the ninth concurrent export of the service is a 503', async () => {
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

test('a failure after the first byte is logged with its account and error', async () => {
  const { response, ending } = open()
  const [stalled] = await untilStalled(pool)
  await ownerOf(pool).query('select pg_terminate_backend($1)', [stalled?.pid])
  assert.equal((await ending()).is, 'broken')
  const id = (await response).headers['x-request-id']
  const line = await until('it is logged', () =>
    log()
      .split('\n')
      .find((each) => each.includes('failed after its first bytes') && each.includes(String(id))),
  )
  const { accountId, err } = JSON.parse(line)
  assert.deepEqual([accountId, typeof err.type], [caller.accountId, 'string'])
})

test('an export is a 503 when the database is unreachable', async () => {
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

test('a stop cuts off exports after its timeout, and leaves no connection', async () => {
  const node = await startMessageService(database)
  const { ending } = open(node.url)
  await untilStalled(pool)
  await node.stop()
  assert.equal((await ending()).is, 'broken')
  await untilNothingRuns(pool)
})

test('an export that never begins is cut off', async () => {
  await whileLocked(database.url, 'messages', async () => {
    const alone = await startExports(pool, { idleMs: 60_000, longestMs: 200 })
    await assert.rejects(open(alone, { ...caller, authorization: String(caller.accountId) }).response, /ECONNRESET|socket hang up/)
    await untilNothingRuns(pool)
  })
})

describe('a client that reads nothing', () => {
  /** Opens an export that begins within its time limit: a busy machine needs a longer one. */
  async function openInTime(times: Times): Promise<ReturnType<typeof open>> {
    const opened = open(await startExports(pool, times), { ...caller, authorization: String(caller.accountId) })
    const status = await opened.response.then(({ statusCode }) => statusCode).catch(() => undefined)
    if (status === 200 || times.longestMs > 60_000) return opened
    return await openInTime({ ...times, longestMs: 4 * times.longestMs })
  }

  for (const [how, times] of [
    ['is cut off after the idle timeout', { idleMs: 200, longestMs: 120_000 }],
    ['is cut off after the time limit of an export', { idleMs: 300_000, longestMs: 1_000 }],
  ] as const) {
    test(how, async () => {
      const { response, ending } = await openInTime(times)
      assert.equal((await response).statusCode, 200)
      await untilNothingRuns(pool)
      assert.equal((await ending()).is, 'broken')
    })
  }
})
