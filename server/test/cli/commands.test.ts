import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Command } from 'commander'
import { createAccount } from '../../src/accounts/accounts.ts'
import { createAgent } from '../../src/agents/agents.ts'
import { createProgram } from '../../src/cli/program.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { createDataDir, heraldJson, runHerald, testFailures } from '../support/process.ts'
import { call, startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL }
const account = `${(await createAccount(pool, 'First', ['rcs'])).accountId}`
await createAgent(pool, { agentId: 'lonely', name: 'lonely', billingType: 'single', carrier: 'simulator' })

describe('herald', { concurrency: 2 }, () => {
  test('migrate reports what it applied, then nothing', async () => {
    const fresh = await createTestDatabase({ empty: true })
    const { applied } = await heraldJson(['migrate'], { HERALD_DATABASE_URL: fresh.url })
    assert.equal(applied[0], '0001_accounts')
    assert.deepEqual(await heraldJson(['migrate'], { HERALD_DATABASE_URL: fresh.url }), { applied: [] })
  })

  test('a command sets up an empty database, and fails on an older or newer schema', async () => {
    const fresh = await createTestDatabase({ empty: true })
    const freshEnv = { HERALD_DATABASE_URL: fresh.url }
    assert.deepEqual(await heraldJson(['account', 'list'], freshEnv), [])
    await ownerOf(fresh.pool).query(`insert into schema_migrations (name, checksum) values ('9999_future', 'x')`)
    const newer = await runHerald(['account', 'list'], freshEnv)
    assert.equal(newer.code, 1)
    assert.match(newer.stderr, /^The database has a newer schema \(9999_future\) than this version of Herald knows.*\n$/)
    await ownerOf(fresh.pool).query('delete from schema_migrations')
    const older = await runHerald(['account', 'list'], freshEnv)
    assert.equal(older.stderr, 'The database has an older schema than this version of Herald: run "npx herald migrate" first.\n')
  })

  test('a command says that it created an embedded database', async () => {
    const dataDir = join(await createDataDir(), 'new')
    const { code, stdout, stderr } = await runHerald(['account', 'list'], { HERALD_DATA_DIR: dataDir })
    assert.deepEqual([code, stdout], [0, 'None.\n'])
    assert.equal(stderr, `There was no database in ${dataDir}, so this command created a new, empty one.\n`)
  })

  test('account, key and agent commands give access to the API, and revoke it', async () => {
    const { accountId, ...account } = await heraldJson(['account', 'create', 'Żabka & Söhne'], env)
    assert.deepEqual(account, { name: 'Żabka & Söhne', modules: ['rcs', 'sms'], quarantineHours: 24 })
    const { integrationKey, secret } = await heraldJson(['key', 'create', `${accountId}`], env)
    const agent = await heraldJson(['agent', 'create', 'shop@rbm.example', '--name', 'shop', '--billing-type', 'basic'], env)
    assert.deepEqual(agent, { agentId: 'shop@rbm.example', name: 'shop', billingType: 'basic', carrier: 'simulator' })
    const assigned = { agentId: 'shop@rbm.example', name: 'shop', billingType: 'basic', active: true }
    assert.deepEqual(await heraldJson(['agent', 'assign', 'shop@rbm.example', `${accountId}`], env), assigned)

    const { url } = await startTestService(env)
    const get = (authorization: string) => call(`${url}/v1/agents`, { authorization })
    assert.deepEqual((await get(`Bearer ${integrationKey}:${secret}`)).body, { items: [assigned] })
    const path = `${url}/v1/agents/${encodeURIComponent('shop@rbm.example')}`
    await call(path, { method: 'PATCH', authorization: `Bearer ${integrationKey}:${secret}`, body: { active: false } })
    assert.equal(
      (await heraldJson(['agent', 'assign', 'shop@rbm.example', `${accountId}`], env)).active,
      false,
      'assigning again undoes nothing',
    )
    assert.deepEqual(await heraldJson(['agent', 'activate', 'shop@rbm.example', `${accountId}`], env), assigned)
    const listed = await heraldJson(['agent', 'list'], env)
    assert.deepEqual(listed.at(-1), { ...agent, accounts: [{ accountId, active: true }] })

    const rotated = await heraldJson(['key', 'rotate', integrationKey, '--yes'], env)
    assert.equal(rotated.integrationKey, integrationKey)
    assert.equal((await get(`Bearer ${integrationKey}:${secret}`)).status, 401)
    assert.equal((await get(`Bearer ${integrationKey}:${rotated.secret}`)).status, 200)
    assert.deepEqual(await heraldJson(['account', 'modules', `${accountId}`, 'sms', '--yes'], env), {
      accountId,
      name: 'Żabka & Söhne',
      modules: ['sms'],
      quarantineHours: 24,
    })
    assert.equal((await get(`Bearer ${integrationKey}:${rotated.secret}`)).status, 403)

    assert.deepEqual((await heraldJson(['account', 'modules', `${accountId}`, '', '--yes'], env)).modules, [])
    const setWindow = async (...args: string[]) =>
      (await heraldJson(['account', 'campaign-window', `${accountId}`, ...args], env)).campaignWindow
    const days = ['MON', 'SUN']
    const window = { from: '09:00', to: '20:00', days, timeZone: 'recipient' }
    assert.deepEqual(await setWindow('09:00-20:00', '--days', 'SUN,MON'), window)
    assert.equal((await setWindow('22:00-06:00', '--time-zone', 'europe/warsaw')).timeZone, 'Europe/Warsaw')
    assert.equal(await setWindow('none'), undefined)

    const revoked = await heraldJson(['key', 'revoke', integrationKey, '--yes'], env)
    assert.equal(revoked.integrationKey, integrationKey)
    const again = await heraldJson(['key', 'revoke', integrationKey], env)
    assert.equal(again.revokedAt, revoked.revokedAt)
    // A timer stores it once a second.
    const isUsed = async () =>
      (await pool.query('select from integration_key_uses where integration_key = $1', [integrationKey])).rowCount === 1
    await until('the use of the key is stored', isUsed)
    const [key] = await heraldJson(['key', 'list', `${accountId}`], env)
    assert.equal(new Date(key.lastUsedAt) > new Date(key.createdAt), true)
    const unrestricted = { scopes: null, expiresAt: null, addresses: null }
    assert.deepEqual(key, { ...revoked, ...unrestricted, lastUsedAt: key.lastUsedAt })
    assert.equal((await get(`Bearer ${integrationKey}:${rotated.secret}`)).status, 401)
  })

  const FAILURES: [args: string[], error: RegExp][] = [
    [['key', 'create', '999999'], /^There is no account 999999; see "herald account list"\.\n$/],
    [['key', 'create', '99999999999999999999'], /An account id is a whole number/],
    [['key', 'create', '2147483648'], /An account id is a whole number/],
    [['key', 'create', '0x1'], /An account id is a whole number/],
    [['key', 'list', '999999'], /^There is no account 999999/],
    [['key', 'rotate', 'hk_nobody'], /^There is no live integration key hk_nobody/],
    [['key', 'revoke', 'hk_nobody'], /^There is no live integration key hk_nobody/],
    [['account', 'create', ''], /It must have 1 to 200 characters/],
    [['account', 'create', 'x'.repeat(201)], /It must have 1 to 200 characters/],
    [['account', 'create', 'a\u001b[31mb'], /no control characters/],
    [['account', 'create', 'x', '--modules', 'rcs,mms'], /Allowed values are rcs and sms/],
    [['account', 'modules', '999999', 'rcs'], /^There is no account 999999/],
    [['account', 'campaign-window', '1', '9-20'], /It must be two different times of day, such as 09:00-20:00, or none/],
    [['account', 'campaign-window', '1', '09:00-20:00', '--days', 'monday'], /Allowed values are MON, TUE/],
    [['account', 'campaign-window', '1', '09:00-20:00', '--time-zone', 'Krakow'], /the IANA name of a time zone/],
    [['account', 'campaign-window', '1', 'none', '--days', 'MON'], /^--days and --time-zone need a window/],
    [['account'], /Usage: herald account/],
    [['agent', 'create', 'has space', '--name', 'x', '--billing-type', 'single'], /printable ASCII characters and no space/],
    [['agent', 'create', 'x', '--name', 'x', '--billing-type', 'free'], /Allowed choices are single, conversational, basic/],
    [['agent', 'create', 'x', '--billing-type', 'single'], /required option '--name <name>' not specified/],
    [['agent', 'assign', 'nobody', '1'], /^There is no agent nobody; see "herald agent list"\.\n$/],
    [['agent', 'assign', 'lonely', '999999'], /^There is no account 999999; see "herald account list"\.\n$/],
    [
      ['agent', 'activate', 'lonely', account],
      /^The agent lonely is not assigned to account \d+; "herald agent assign lonely \d+" assigns it\.\n$/,
    ],
    [['agent', 'deactivate', 'lonely', account], /^The agent lonely is not assigned to account \d+; /],
    [['agent', 'unassign', 'nobody', account], /^There is no agent nobody/],
    [
      ['agent', 'update', 'lonely', '--carrier', 'nope', '--yes'],
      /^There is no RCS carrier nope: HERALD_CARRIERS is not set, so the only one is simulator\.\n$/,
    ],
    [['agent', 'update', 'nobody', '--name', 'x'], /^There is no agent nobody; see "herald agent list"\.\n$/],
    [['agent', 'update', 'nobody'], /--name, --billing-type or --carrier is required/],
    [['agent', 'update', 'nobody', '--billing-type', 'free'], /Allowed choices are single, conversational, basic/],
    [['account', 'suspend', '999999'], /^There is no account 999999/],
    [['account', 'resume', '999999'], /^There is no account 999999/],
    [['account', 'rename', '999999', 'x'], /^There is no account 999999/],
    [['account', 'rename', '1', ''], /It must have 1 to 200 characters/],
    [['agnet', 'list'], /unknown command 'agnet'/],
    [['serve', '--only', 'apj'], /Allowed values are api/],
    [['serve', '--only', ''], /Allowed values are api/],
    [['account', 'list', '--jsn'], /unknown option '--jsn'/],
  ]
  testFailures([], FAILURES, env)

  test('account rename, suspend and resume change the account, and suspending twice keeps the first time', async () => {
    const { accountId, ...account } = await heraldJson(['account', 'create', 'Before'], env)
    const id = `${accountId}`
    assert.deepEqual(await heraldJson(['account', 'rename', id, 'After'], env), { accountId, ...account, name: 'After' })
    const { suspendedAt } = await heraldJson(['account', 'suspend', id, '--yes'], env)
    assert.match(suspendedAt, /^\d{4}-\d\d-\d\dT/)
    assert.equal((await heraldJson(['account', 'suspend', id], env)).suspendedAt, suspendedAt)
    assert.match((await runHerald(['account', 'list'], env)).stdout, new RegExp(`\n${id} +After +rcs,sms +24 h +${suspendedAt}\n`))
    assert.equal((await heraldJson(['account', 'resume', id], env)).suspendedAt, undefined)
    assert.equal((await heraldJson(['account', 'resume', id], env)).suspendedAt, undefined)
  })

  test('agent update changes what is given, for all accounts', async () => {
    const agent = await heraldJson(['agent', 'create', 'updated', '--name', 'a', '--billing-type', 'single'], env)
    assert.deepEqual(await heraldJson(['agent', 'update', 'updated', '--name', 'b'], env), { ...agent, name: 'b' })
    await pool.query(`update agents set carrier = 'rbm' where agent_id = 'updated'`)
    const changed = await heraldJson(['agent', 'update', 'updated', '--billing-type', 'basic', '--carrier', 'simulator', '--yes'], env)
    assert.deepEqual(changed, { ...agent, name: 'b', billingType: 'basic', carrier: 'simulator' })
  })

  test('agent create rejects an id that exists', async () => {
    await heraldJson(['agent', 'create', 'twin', '--name', 'x', '--billing-type', 'single'], env)
    const { code, stderr } = await runHerald(['agent', 'create', 'twin', '--name', 'y', '--billing-type', 'single'], env)
    assert.equal(code, 1)
    assert.equal(stderr, 'Agent twin already exists.\n')
  })

  test('every command describes itself and its arguments and options in --help', async () => {
    function check(command: Command, path: string): void {
      const help = command.helpInformation()
      assert.match(help, new RegExp(`^Usage: ${path}`), path)
      for (const described of [command, ...command.registeredArguments, ...command.options]) assert.ok(described.description !== '', help)
      for (const child of command.commands) check(child, `${path} ${child.name()}`)
    }
    check(await createProgram(), 'herald')
    for (const words of [[], ['campaign', 'pause']]) {
      const { code, stdout } = await runHerald([...words, '--help'], {})
      assert.deepEqual([code, stdout.split('\n', 1)[0]?.startsWith(['Usage: herald', ...words].join(' '))], [0, true])
    }
  })

  test('commands print words and tables without --json', async () => {
    const { stdout } = await runHerald(['account', 'create', 'Words'], env)
    assert.match(stdout, /^Account \d+ \(Words\) has the modules rcs, sms and a quarantine of 24 h\.\n$/)
    assert.match((await runHerald(['account', 'list'], env)).stdout, /^ID +NAME +MODULES +QUARANTINE +SUSPENDED\n/)
  })
})
