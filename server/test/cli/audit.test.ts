import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Command } from 'commander'
import { createAccount } from '../../src/accounts/accounts.ts'
import { maskWithPlus } from '../../src/audit/mask.ts'
import { recordChange } from '../../src/audit/record.ts'
import { actionsOf } from '../../src/cli/command.ts'
import { createProgram } from '../../src/cli/program.ts'
import { createToken } from '../../src/people/tokens.ts'
import { createTestDatabase } from '../support/database.ts'
import { heraldJson, runHerald, spawnHerald, testFailures } from '../support/process.ts'
import { call, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL }
const { accountId } = await createAccount(pool, 'One', ['rcs'])
const { accountId: other } = await createAccount(pool, 'Two', ['rcs'])

const anna = { kind: 'person', id: 1, name: 'anna@example.com', address: '192.0.2.7', requestId: 'r1' } as const
const entries = [
  { actor: anna, entry: { action: 'suspendAccount', accountId, subject: '1', before: { name: 'One' }, after: { name: '=1+1' } } },
  { actor: { kind: 'token', id: 2, name: '=cmd|x\u001b[2J' } as const, entry: { action: 'createKey', accountId: other } },
  { actor: { kind: 'command', name: 'root' } as const, entry: { action: 'createAgent', subject: 'my-shop' } },
]
for (const { actor, entry } of entries) {
  await recordChange(pool, actor, entry)
  // Each entry has a millisecond of its own, as it is printed.
  const { at } = (await pool.query<{ at: Date }>('select at from audit_log order by id desc limit 1')).rows[0] as { at: Date }
  await until('the next millisecond', async () => ((await pool.query('select now() as now')).rows[0].now as Date) > at)
}

const audit = (...args: string[]) => heraldJson(['audit', ...args], env)
const actions = async (...args: string[]) => (await audit(...args)).map(({ action }: { action: string }) => action)
const rows = async () => (await pool.query<{ at: Date }>('select at from audit_log order by id')).rows.map(({ at }) => at.toISOString())

describe('herald audit', () => {
  test('lists the entries, the newest first', async () => {
    const listed = await audit()
    assert.deepEqual(listed.at(-1), {
      entryId: 1,
      at: (await rows())[0],
      actor: { kind: 'person', id: 1, name: 'anna@example.com' },
      address: '192.0.2.7',
      requestId: 'r1',
      accountId,
      action: 'suspendAccount',
      subject: '1',
      before: { name: 'One' },
      after: { name: '=1+1' },
    })
    const { stdout } = await runHerald(['audit'], env)
    const lines = stdout.trimEnd().split('\n')
    assert.match(lines[0] as string, /^TIME +ACCOUNT +ACTION +BY +ACTOR +SUBJECT$/)
    assert.match(lines[1] as string, /Z +- +createAgent +command +root +my-shop$/)
    assert.match(lines[2] as string, /createKey +token +=cmd\|x\\u001b\[2J +-$/, 'control characters are escaped')
  })

  test('filters by account, action, actor, subject and time', async () => {
    assert.deepEqual(await actions('--account', `${accountId}`), ['suspendAccount'])
    assert.deepEqual(await actions('--action', 'createKey'), ['createKey'])
    assert.deepEqual(await actions('--actor', 'root'), ['createAgent'])
    assert.deepEqual(await actions('--subject', 'my-shop'), ['createAgent'])
    assert.deepEqual(await actions('--subject', 'my'), [])
    const [first = '', second = '', third = ''] = await rows()
    assert.deepEqual(await actions('--from', second, '--to', third), ['createKey'])
    assert.deepEqual(await actions('--to', first), [])
    const today = first.slice(0, 10)
    assert.equal((await actions('--from', today, '--to', (third as string).slice(0, 10))).length, 3)
    assert.deepEqual(await actions('--to', '2020-01-01'), [])
    assert.equal((await actions('--from', first, '--to', (third as string).slice(0, 10))).length, 3, 'until the end of the day')
  })

  test('prints CSV that no spreadsheet reads as a formula', async () => {
    const { stdout } = await runHerald(['audit', '--csv', '--from', '2020-01-01'], env)
    const [at1, at2, at3] = await rows()
    assert.equal(
      stdout,
      [
        'entryId,at,actorKind,actorId,actorName,address,requestId,accountId,action,subject,before,after',
        `3,${at3},command,,"root",,,,"createAgent","my-shop",,`,
        `2,${at2},token,2,"'=cmd|x\\u001b[2J",,,${other},"createKey",,,`,
        `1,${at1},person,1,"anna@example.com","192.0.2.7","r1",${accountId},"suspendAccount","1","{""name"":""One""}","{""name"":""=1+1""}"`,
        '',
      ].join('\r\n'),
    )
  })

  testFailures(
    ['audit'],
    [
      [['--account', '999'], /^There is no account 999;/, 3],
      [['--from', 'yesterday'], /It must be a day, or a time with its zone, such as 2026-01-31T08:00:00Z\./, 2],
      [['--from', '2026-02-02', '--to', '2026-02-01'], /^--to must not be before --from\.\n$/, 2],
      [['--csv', '--json'], /option '--csv' cannot be used with option '--json'/, 2],
    ],
    env,
  )
})

describe('GET /admin/v1/audit/export', async () => {
  const { url } = await startTestService(env)
  const expiresAt = new Date(Date.now() + 60_000)
  const bearer = async (role: 'operator' | 'admin' | 'viewer', accountIds: number[]) =>
    `Bearer ${(await createToken(pool, { name: role, role, accountIds, expiresAt })).secret}`
  const operator = await bearer('operator', [])
  const admin = await bearer('admin', [accountId])
  const viewer = await bearer('viewer', [accountId])
  const get = (path: string, authorization: string) => call(`${url}/admin/v1${path}`, { authorization })

  test('returns what the command prints, to operators', async () => {
    const { status, headers, body } = await get('/audit/export?action=suspendAccount&bom=true', operator)
    assert.deepEqual([status, headers.get('content-type')], [200, 'text/csv; charset=utf-8'])
    assert.equal(headers.get('content-disposition'), 'attachment; filename="audit.csv"')
    const { stdout } = await runHerald(['audit', '--csv', '--action', 'suspendAccount'], env)
    // fetch removes the byte-order mark.
    assert.equal(body, stdout)
    assert.equal((await get('/audit/export?to=2020-01-01', operator)).body.split('\r\n').length, 2)
    assert.match((await get('/audit/export?subject=my-shop', operator)).body, /^[^\r]*\r\n[^\r]*"createAgent","my-shop",,\r\n$/)
  })

  test('finds the entries of a phone number, which the log has masked', async () => {
    const entry = { action: 'putOptOut', accountId, subject: maskWithPlus('+48500100200') }
    await recordChange(pool, anna, entry)
    const { body } = await get(`/accounts/${accountId}/audit?subject=${encodeURIComponent('+48500100200')}`, admin)
    assert.deepEqual(
      body.items.map(({ action, subject }: { action: string; subject: string }) => [action, subject]),
      [['putOptOut', '+48•••••••00']],
    )
    assert.deepEqual((await get(`/accounts/${accountId}/audit?subject=500100200`, admin)).body.items, [])
  })

  test('returns only the entries of an account to its admins, and nothing to viewers', async () => {
    const { status, body, headers } = await get(`/accounts/${accountId}/audit/export`, admin)
    assert.deepEqual([status, body.split('\r\n').length, /,"createKey",/.test(body)], [200, 4, false])
    assert.match(headers.get('content-disposition') ?? '', new RegExp(`audit-of-account-${accountId}\\.csv`))
    for (const [path, authorization, expected] of [
      ['/audit/export', admin, 403],
      [`/accounts/${other}/audit/export`, admin, 404],
      [`/accounts/${accountId}/audit/export`, viewer, 403],
      ['/audit/export?limit=1', operator, 400],
    ] as const)
      assert.equal((await get(path, authorization)).status, expected, path)
  })
})

test('the actions of commands are operations of the admin API', async () => {
  const { url } = await startTestService(env)
  const { body } = await call(`${url}/admin/v1/openapi.json`)
  const operations = new Set(
    Object.values(body.paths as object).flatMap((path) => Object.values(path).map((each: any) => each.operationId)),
  )
  const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)]
  const recorded = all(await createProgram()).flatMap((command) => actionsOf(command) ?? [])
  assert.deepEqual(new Set(recorded).difference(operations), new Set())
})

describe('a long audit log', () => {
  test('is printed completely, page by page, and a reader may stop early', async () => {
    const count = 5_000
    await pool.query(
      `insert into audit_log (actor_kind, actor_name, action, after)
       select 'command', 'many', 'createAccount', json_build_object('text', repeat('x', 200)) from generate_series(1, $1::int)`,
      [count],
    )
    const listed = await audit('--actor', 'many')
    assert.equal(new Set(listed.map(({ entryId }: { entryId: number }) => entryId)).size, count)
    const { stdout } = await runHerald(['audit', '--csv', '--actor', 'many'], env)
    assert.equal(stdout.split('\r\n').length, 1 + count + 1)
    for (const more of [[], ['--json'], ['--csv']]) {
      const { child, output, ended } = spawnHerald(['audit', ...more], env)
      child.stdout.once('data', () => child.stdout.destroy())
      assert.equal(await ended, 0, output.stderr)
      assert.equal(output.stderr, '')
    }
  })
})
