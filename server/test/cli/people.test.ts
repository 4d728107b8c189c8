import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createAccount } from '../../src/accounts/accounts.ts'
import { redeemLink } from '../../src/people/links.ts'
import { openSession } from '../../src/people/sessions.ts'
import { findToken } from '../../src/people/tokens.ts'
import { createTestDatabase } from '../support/database.ts'
import { heraldJson, runHerald, testFailures } from '../support/process.ts'

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL }
const one = `${(await createAccount(pool, 'One', ['rcs'])).accountId}`
const two = `${(await createAccount(pool, 'Two', ['rcs'])).accountId}`
const LINK = /^http:\/\/127\.0\.0\.1:8080\/console#setup=([\w-]{43})$/
const user = (...args: string[]) => heraldJson(['user', ...args], env)
const password = 'correct horse battery'

// The first operator, so that the others can be disabled.
await user('create', 'root@example.com', '--name', 'Root', '--operator')

describe('herald user', () => {
  test('create prints a link with which the person sets a password, once', async () => {
    const { personId, createdAt, link, linkExpiresAt, ...person } = await user(
      'create',
      'Anna@Example.com',
      '--name',
      'Anna',
      '--role',
      'admin',
      '--account',
      `${one},${two}`,
    )
    const roles = [one, two].map((id) => ({ accountId: Number(id), role: 'admin' }))
    assert.deepEqual(person, { email: 'anna@example.com', name: 'Anna', isOperator: false, hasPassword: false, roles })
    assert.match(link, LINK)
    assert.ok(Math.abs(Date.parse(linkExpiresAt) - Date.parse(createdAt) - 86_400_000) < 1_000)
    const secret = LINK.exec(link)?.[1] as string
    assert.equal((await redeemLink(pool, { secret, password })).personId, personId)
    await assert.rejects(redeemLink(pool, { secret, password }), { code: 'RCS_LINK_GONE' })
    const { stdout } = await runHerald(['user', 'list'], env)
    assert.match(stdout, new RegExp(`\nanna@example\\.com +Anna +${one}:admin,${two}:admin +set `))
  })

  test('link replaces earlier links, and takes its address from HERALD_PUBLIC_URL', async () => {
    const { link: first } = await user('create', 'link@example.com', '--name', 'Link')
    const { stdout } = await runHerald(['user', 'link', 'LINK@example.com'], { ...env, HERALD_PUBLIC_URL: 'https://herald.example.com/' })
    const [, secret] =
      /^Link for link@example\.com to set a password: https:\/\/herald\.example\.com\/console#setup=(\S+)\nIt works once, until /.exec(
        stdout,
      ) ?? []
    await assert.rejects(redeemLink(pool, { secret: LINK.exec(first)?.[1] as string, password }), { code: 'RCS_LINK_GONE' })
    await redeemLink(pool, { secret: secret as string, password })
  })

  test('role and operator change what a person may do', async () => {
    await user('create', 'role@example.com', '--name', 'Role')
    assert.deepEqual((await user('role', 'role@example.com', one, 'viewer')).roles, [{ accountId: Number(one), role: 'viewer' }])
    assert.deepEqual((await user('role', 'role@example.com', one, 'none')).roles, [])
    const asked = await runHerald(['user', 'operator', 'role@example.com', 'yes'], env)
    assert.deepEqual([asked.code, asked.stdout], [1, ''])
    assert.match(
      asked.stderr,
      /^This would make role@example\.com \(Role\) an operator, who may do everything .*repeat the command with --yes/,
    )
    assert.equal((await user('operator', 'role@example.com', 'yes', '--yes')).isOperator, true)
    assert.equal((await user('operator', 'role@example.com', 'no', '--yes')).isOperator, false)
  })

  test('disable says how many sessions end, ends them, and enable undoes it', async () => {
    const { personId } = await user('create', 'gone@example.com', '--name', 'Gone')
    await openSession(pool, personId, { address: '127.0.0.1', userAgent: '' })
    const asked = await runHerald(['user', 'disable', 'gone@example.com'], env)
    assert.equal(asked.code, 1)
    assert.match(asked.stderr, /^This would disable gone@example\.com \(Gone\): 1 session ends at once, and they can't sign in until /)
    const { disabledAt } = await user('disable', 'gone@example.com', '--yes')
    assert.match(disabledAt, /^\d{4}-/)
    assert.equal((await pool.query('select from sessions where person_id = $1', [personId])).rowCount, 0)
    assert.equal((await user('disable', 'gone@example.com')).disabledAt, disabledAt, 'a second time changes nothing and does not ask')
    assert.match(
      (await runHerald(['user', 'link', 'gone@example.com'], env)).stderr,
      /^gone@example\.com is disabled; "herald user enable /,
    )
    assert.equal((await user('enable', 'gone@example.com')).disabledAt, undefined)
  })

  const lastOperator = /^root@example\.com is the last operator; make somebody else an operator first\.\n$/
  testFailures(
    ['user'],
    [
      [['disable', 'root@example.com'], lastOperator, 1],
      [['disable', 'root@example.com', '--yes'], lastOperator, 1],
      [['operator', 'root@example.com', 'no', '--yes'], lastOperator, 1],
      [['create', 'ROOT@example.com', '--name', 'x'], /^A person with the e-mail address root@example\.com already exists\.\n$/, 1],
      [['create', 'nobody', '--name', 'x'], /It must be an e-mail address, such as anna@example\.com\./, 2],
      [['create', 'a@b', '--name', 'x', '--role', 'admin'], /--role and --account belong together/, 2],
      [['create', 'a@b', '--name', 'x', '--role', 'owner', '--account', one], /Allowed choices are viewer, admin\./, 2],
      [['create', 'a@b', '--name', 'x', '--operator', '--account', one], /cannot be used with/, 2],
      [['create', 'a@b', '--name', 'x', '--role', 'admin', '--account', `${one},999`], /^There is no account 999;/, 3],
      [['create', 'a@b'], /required option '--name <name>' not specified/, 2],
      [['link', 'nobody@example.com'], /^There is no person nobody@example\.com; see "herald user list"\.\n$/, 3],
      [['role', 'root@example.com', one, 'none'], /^root@example\.com has no role in account \d+\.\n$/, 3],
      [['role', 'root@example.com', '999', 'admin'], /^There is no account 999;/, 3],
      [['invite', 'a@b'], /Did you mean "create"\?/, 2],
    ],
    env,
  )

  test('create leaves nothing behind if a role is refused', async () => {
    assert.equal((await runHerald(['user', 'link', 'a@b'], env)).code, 3)
  })
})

describe('herald token', () => {
  test('create prints the secret once, list shows no secret, and revoke ends it', async () => {
    const { tokenId, secret, ...token } = await heraldJson(
      ['token', 'create', 'Report', '--role', 'viewer', '--account', one, '--expires', '90d'],
      env,
    )
    const rights = { isOperator: false, roles: [{ accountId: Number(one), role: 'viewer' }] }
    assert.deepEqual(await findToken(pool, secret), { tokenId, name: 'Report', expiresAt: new Date(token.expiresAt), ...rights })
    assert.ok(Math.abs(Date.parse(token.expiresAt) - Date.now() - 90 * 86_400_000) < 60_000)
    const { stdout } = await runHerald(['token', 'list'], env)
    assert.match(stdout, new RegExp(`^ID +NAME .*\n${tokenId} +Report +viewer +${one} +${token.expiresAt} `))
    assert.ok(!stdout.includes(secret))
    const asked = await runHerald(['token', 'revoke', `${tokenId}`], env)
    assert.match(asked.stderr, new RegExp(`^This would revoke 1 token for good, ${tokenId} \\(Report\\), viewer in account ${one}; `))
    const { revokedAt } = await heraldJson(['token', 'revoke', `${tokenId}`, '--yes'], env)
    assert.equal(await findToken(pool, secret), undefined)
    assert.equal((await heraldJson(['token', 'revoke', `${tokenId}`], env)).revokedAt, revokedAt)
  })

  testFailures(
    ['token'],
    [
      [
        ['create', 'x', '--role', 'operator', '--expires', '1d', '--account', one],
        /^An operator has all accounts: leave out --account\.\n$/,
        2,
      ],
      [['create', 'x', '--role', 'admin', '--expires', '1d'], /^Name the accounts of the admin by --account\.\n$/, 2],
      [['create', 'x', '--role', 'admin', '--expires', '1d', '--account', '999'], /^There is no account 999;/, 3],
      [['create', 'x', '--role', 'operator', '--expires', '2020-01-01T00:00:00Z'], /It must be in the future/, 2],
      [['create', 'x', '--role', 'operator', '--expires', 'never'], /It must be a time with its zone/, 2],
      [['create', 'x', '--role', 'operator'], /required option '--expires <time>' not specified/, 2],
      [['revoke', '999'], /^There is no token 999; see "herald token list"\.\n$/, 3],
    ],
    env,
  )
})
