import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'
import { startMessageService } from '../support/messages.ts'
import { untilFarFromMidnight } from '../support/midnight.ts'
import { heraldJson, runHerald, testFailures } from '../support/process.ts'

const database = await createTestDatabase()
const env = { HERALD_DATABASE_URL: database.url }
const { newCaller } = await startMessageService(database)

describe('herald account quota', () => {
  test('shows each quota and its use, sets quotas, and resets them to the default', async () => {
    await untilFarFromMidnight()
    const caller = await newCaller()
    const { accountId } = caller
    await caller.accepted()
    await caller.template()
    const shown = await heraldJson(['account', 'quota', `${accountId}`], env)
    const { used } = shown.storedBytes
    assert.deepEqual(shown, {
      accountId,
      messagesPerDay: { quota: 5_000_000, isDefault: true, used: 1 },
      templates: { quota: 10_000, isDefault: true, used: 1 },
      storedBytes: { quota: 2 ** 40, isDefault: true, used },
      exports: { quota: 2, isDefault: true },
    })
    assert.ok(used > 2_048)
    const set = await heraldJson(['account', 'quota', `${accountId}`, '--messages-per-day', '1', '--stored-bytes', '50GiB'], env)
    assert.deepEqual(set, {
      ...shown,
      messagesPerDay: { quota: 1, isDefault: false, used: 1 },
      storedBytes: { quota: 50 * 2 ** 30, isDefault: false, used },
    })
    const { status, body } = await caller.send('k', caller.request())
    assert.deepEqual([status, body.code], [429, 'RCS_QUOTA_EXCEEDED'])
    const reset = ['--messages-per-day', 'default', '--stored-bytes', 'default', '--templates', '0', '--exports', '1']
    assert.deepEqual(await heraldJson(['account', 'quota', `${accountId}`, ...reset], env), {
      ...shown,
      templates: { quota: 0, isDefault: false, used: 1 },
      exports: { quota: 1, isDefault: false },
    })
    assert.equal((await caller.send('k', caller.request())).status, 202)
    const { stdout } = await runHerald(['account', 'quota', `${accountId}`], env)
    assert.match(stdout, /^QUOTA +VALUE +FROM +USED\nmessagesPerDay +5000000 +default +2\ntemplates +0 +set +1\n/)
  })

  const FAILURES: [args: string[], error: RegExp][] = [
    [['999999'], /^There is no account 999999/],
    [['999999', '--templates', '5'], /^There is no account 999999/],
    [['1', '--templates', '-1'], /It must be a whole number of at most 15 digits, or "default"/],
    [['1', '--exports', '1.5'], /It must be a whole number/],
    [['1', '--stored-bytes', '50GB'], /It must be a number of bytes, such as 50GiB/],
    [['1', '--stored-bytes', '999999999999999TiB'], /It must be a number of bytes/],
    [['1', '--messages', '5'], /unknown option/],
  ]
  testFailures(['account', 'quota'], FAILURES, env)
})
