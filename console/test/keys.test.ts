import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { createKey, revokeKey } from '../../server/src/accounts/keys.ts'
import type { Role } from '../../server/src/people/roles.ts'
import { ownerOf } from '../../server/test/support/database.ts'
import { call } from '../../server/test/support/service.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald()
const { pool } = herald
const HOUR_MS = 3_600_000

/** The page of a new account, as a person with this role sees it. `own`: the key that the account begins with. */
async function openAccount(t: TestContext, role: Role = 'admin') {
  const account = await herald.newAccount()
  const opened = await openPage({ base: herald.url, cookie: await account.signIn(role) })
  t.after(opened.close)
  const at = (path: string) => `/console#/${account.accountId}/${path}`
  const own = /hk_\w+/.exec(account.authorization)?.[0] ?? ''
  return { ...opened, ...account, at, own }
}

const rows = (page: Page) => page.getByRole('table', { name: 'Keys' }).getByRole('row')
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const dialogOf = (page: Page) => page.getByRole('dialog')

/** Counts the requests with this method whose path ends so, and holds them until `release` is called. */
async function holdRequests(page: Page, path: string) {
  const held = Promise.withResolvers<void>()
  const requests: string[] = []
  await page.route(path, async (route) => {
    if (route.request().method() !== 'GET') {
      requests.push(route.request().method())
      await held.promise
    }
    await route.continue()
  })
  return { requests, release: held.resolve }
}

test('a new key works with the command that the page shows', browserTest, async (t) => {
  const { page, problems, at } = await openAccount(t)
  await page.goto(at('keys'))
  await page.getByRole('link', { name: 'Create a key' }).click()
  const dialog = dialogOf(page)
  await dialog.getByLabel('Addresses').fill('127.0.0.0/8')
  await button(page, 'Create a key').click()
  const command = (await dialog.getByRole('region', { name: 'Try it' }).textContent()) ?? ''
  const credentials = (await dialog.getByRole('region', { name: 'Key and secret' }).textContent()) ?? ''
  assert.match(credentials, /^hk_\w{22}:hs_\w{43}$/)
  // A stray click does not lose the secret.
  await page.mouse.click(5, 5)
  const { stdout } = await promisify(execFile)('sh', ['-c', command])
  assert.equal(JSON.parse(stdout).items[0].name, 'Greenhouse')
  await button(page, 'Close').click()
  const [key = ''] = credentials.split(':')
  const row = rows(page).filter({ hasText: key })
  await row.getByText('from 127.0.0.0/8').waitFor()
  await row.getByText('Active').waitFor()
  // The list follows the use of the key, at the latest when it is read again.
  await row
    .getByRole('cell')
    .nth(2)
    .getByText(/now|ago/)
    .waitFor()
  assert.equal(await page.getByText('hs_').count(), 0)
  assert.deepEqual(problems, [])
})

test('a key may do only what the form says, and its page says how to try it', browserTest, async (t) => {
  const { page, problems, at } = await openAccount(t)
  await page.goto(at('keys/new'))
  const dialog = dialogOf(page)
  await dialog.getByText('Only this:').click()
  await dialog.getByLabel('send').check()
  await button(page, 'Create a key').click()
  await dialog.getByText('the response is 403 with RCS_SCOPE').waitFor()
  const credentials = await dialog.getByRole('region', { name: 'Key and secret' }).textContent()
  const { status, body } = await call(`${herald.url}/v1/agents`, { authorization: `Bearer ${credentials}` })
  assert.deepEqual([status, body.code], [403, 'RCS_SCOPE'])
  await button(page, 'Close').click()
  const row = rows(page).filter({ hasText: credentials?.split(':')[0] ?? '' })
  await row.getByRole('cell', { name: 'send', exact: true }).waitFor()
  assert.deepEqual(problems, [])
})

test('the form names each wrong value beside its field', browserTest, async (t) => {
  const { page, at } = await openAccount(t)
  await page.goto(at('keys/new'))
  const dialog = dialogOf(page)
  await dialog.getByText('Only this:').click()
  await dialog.getByLabel('Addresses').fill('10.0.0.0/8\n10.0.0.300')
  await button(page, 'Create a key').click()
  await dialog.getByText('Choose at least one, or everything.').waitFor()
  await dialog.getByLabel('read').check()
  await dialog.getByLabel('Expires').fill('2020-01-01T10:00')
  await button(page, 'Create a key').click()
  await dialog.getByText('10.0.0.300 must be an address or a network').waitFor()
  await dialog.getByText('must be in the future').waitFor()
  assert.equal(await dialog.getByRole('alert').count(), 0)
})

test('two presses create one key', browserTest, async (t) => {
  const { page, problems, at } = await openAccount(t)
  await page.goto(at('keys/new'))
  const { requests, release } = await holdRequests(page, '**/keys')
  const sent = page.waitForRequest((request) => request.method() === 'POST')
  const create = dialogOf(page).getByRole('button', { name: 'Create a key' })
  await create.click()
  await sent
  await create.click({ force: true })
  await page.keyboard.press('Enter')
  release()
  await dialogOf(page).getByText('it is shown only this once').waitFor()
  await button(page, 'Close').click()
  await rows(page).nth(2).waitFor()
  assert.equal(requests.length, 1)
  assert.equal(await rows(page).count(), 3)
  assert.deepEqual(problems, [])
})

test('the address keeps the filter, and an empty list offers to clear the filter', browserTest, async (t) => {
  const { page, problems, at, accountId, own } = await openAccount(t)
  const revoked = (await createKey(pool, accountId)).integrationKey
  await revokeKey(pool, revoked)
  const newest = (await createKey(pool, accountId, { expiresAt: new Date(Date.now() + HOUR_MS) })).integrationKey
  await page.goto(at('keys'))
  await rows(page).nth(3).waitFor()
  const links = () => page.getByRole('table').getByRole('link').allTextContents()
  assert.deepEqual(await links(), [newest, revoked, own])
  await page.getByLabel('Status').selectOption('Active')
  await page.waitForURL(/keys\?status=ACTIVE$/)
  await page.reload()
  await rows(page).nth(2).waitFor()
  assert.deepEqual(await links(), [newest, own])
  assert.equal(await page.getByText('Expires soon').count(), 1)
  await page.getByLabel('Status').selectOption('Expired')
  await page.getByRole('heading', { name: 'No key has this status' }).waitFor()
  await page.getByRole('main').locator('.empty').getByRole('button', { name: 'Clear the filter' }).click()
  await rows(page).nth(3).waitFor()
  await page.getByRole('button', { name: 'As curl' }).click()
  await dialogOf(page).getByText(`/admin/v1/accounts/${accountId}/keys?sort=-createdAt'`).waitFor()
  await dialogOf(page).getByText('Authorization: Bearer ho_…').waitFor()
  assert.deepEqual(problems, [])
})

test('an account without a key says what a key is for, and offers to create one', browserTest, async (t) => {
  const { page, problems, at, accountId } = await openAccount(t)
  await ownerOf(pool).query('delete from integration_keys where account_id = $1', [accountId])
  await page.goto(at('keys'))
  await page.getByRole('heading', { name: 'No key yet' }).waitFor()
  await page.locator('.empty').getByRole('link', { name: 'Create a key' }).click()
  await dialogOf(page).getByRole('heading', { name: 'Create a key' }).waitFor()
  assert.deepEqual(problems, [])
})

test('a list that can’t be read says so, and tries again', browserTest, async (t) => {
  const { page, at } = await openAccount(t)
  await page.route('**/keys?*', (route) => route.abort())
  await page.goto(at('keys'))
  const alert = page.getByRole('alert')
  await alert.getByText('Herald does not respond.').waitFor()
  const again = page.waitForRequest('**/keys?*')
  await alert.getByRole('button', { name: 'Try again' }).click()
  await again
  await page.unroute('**/keys?*')
  await rows(page).nth(1).waitFor()
})

test('a change of a key keeps its secret, and counts from the next request on', browserTest, async (t) => {
  const { page, problems, at, own, authorization } = await openAccount(t)
  await page.goto(at(`keys/${own}`))
  await button(page, 'Change what it may do').click()
  const dialog = dialogOf(page)
  await dialog.getByText('Only this:').click()
  await dialog.getByLabel('send').check()
  await button(page, 'Save').click()
  await page.getByText('The key is changed.').waitFor()
  const refused = await call(`${herald.url}/v1/agents`, { authorization })
  assert.equal(refused.body.code, 'RCS_SCOPE')
  await button(page, 'Change what it may do').click()
  await dialog.getByText('Everything', { exact: true }).click()
  await button(page, 'Save').click()
  await page.getByRole('region', { name: 'The key' }).getByText('everything').waitFor()
  assert.equal((await call(`${herald.url}/v1/agents`, { authorization })).status, 200)
  assert.deepEqual(problems, [])
})

test('a change leaves alone what somebody else has changed meanwhile', browserTest, async (t) => {
  const { page, problems, at, own } = await openAccount(t)
  await page.goto(at(`keys/${own}`))
  await button(page, 'Change what it may do').click()
  await pool.query(`update integration_keys set addresses = '{10.0.0.0/8}' where integration_key = $1`, [own])
  await dialogOf(page).getByText('Only this:').click()
  await dialogOf(page).getByLabel('send').check()
  await button(page, 'Save').click()
  const facts = page.getByRole('region', { name: 'The key' })
  await facts.getByText('send').waitFor()
  await facts.getByText('10.0.0.0/8').waitFor()
  assert.deepEqual(problems, [])
})

test('revoking says when the key was last used, warns while a system uses it, and asks', browserTest, async (t) => {
  const { page, problems, at, own, authorization } = await openAccount(t)
  await page.goto(at(`keys/${own}`))
  await page.getByRole('region', { name: 'The key' }).getByText('never').first().waitFor()
  await button(page, 'Revoke').click()
  const dialog = dialogOf(page)
  await dialog.getByText('No system has used it yet.').waitFor()
  await dialog.getByText('The account has no other active key.').waitFor()
  await button(page, 'Cancel').click()
  assert.equal((await call(`${herald.url}/v1/agents`, { authorization })).status, 200)
  await page.locator('.facts div', { hasText: 'Last used' }).locator('time').waitFor()
  await button(page, 'Revoke').click()
  await dialog.getByText('A system still uses it, and will fail.').waitFor()
  const { requests, release } = await holdRequests(page, '**/revoke')
  const sent = page.waitForRequest('**/revoke')
  const revoke = dialog.getByRole('button', { name: 'Revoke' })
  await revoke.click()
  await sent
  await revoke.click({ force: true })
  release()
  await page.getByText('The key is revoked.').waitFor()
  await page.getByText('Every request with this key gets 401.').waitFor()
  assert.equal(requests.length, 1)
  assert.equal((await call(`${herald.url}/v1/agents`, { authorization })).status, 401)
  assert.equal(await page.getByRole('button', { name: /Revoke|Change|Replace/ }).count(), 0)
  assert.deepEqual(problems, [])
})

test('creating a key asks for the password again after a while', browserTest, async (t) => {
  const { page, at, accountId } = await openAccount(t)
  await pool.query(
    `update sessions set confirmed_at = now() - interval '1 hour' where person_id in (select person_id from people_roles where account_id = $1)`,
    [accountId],
  )
  await page.goto(at('keys/new'))
  const dialog = dialogOf(page)
  await dialog.getByRole('button', { name: 'Create a key' }).click()
  await page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor()
  await pool.query('update sessions set confirmed_at = now()')
  await page.keyboard.press('Escape')
  await dialog.getByRole('button', { name: 'Create a key' }).click()
  await dialog.getByText('it is shown only this once').waitFor()
})

test('the steps of a rotation survive a reload, and begin again if the second key has ended', browserTest, async (t) => {
  const { page, problems, at, own, accountId } = await openAccount(t)
  const { integrationKey: next } = await createKey(pool, accountId)
  await page.goto(at(`keys/${own}?next=${next}`))
  await page.reload()
  const recipe = page.getByRole('region', { name: 'Rotate this key without a gap' })
  await recipe.getByRole('link', { name: next }).waitFor()
  await recipe.getByText('No system has used it yet.').first().waitFor()
  // A second key that ends is no second key.
  await revokeKey(pool, next)
  await recipe.getByText('This key no longer works.').waitFor()
  await recipe.locator('[aria-current="step"]').getByRole('heading', { name: 'Make the second key' }).waitFor()
  await recipe.getByRole('link', { name: 'Begin again' }).click()
  await recipe.getByRole('button', { name: 'Make the second key' }).waitFor()
  assert.deepEqual(problems, [])
})

test('the second key may do the same as the first, and lives as long', browserTest, async (t) => {
  const { page, problems, at, accountId } = await openAccount(t)
  const restrictions = { scopes: ['read', 'export'], addresses: ['10.0.0.0/8'], expiresAt: new Date(Date.now() + 48 * HOUR_MS) } as const
  const { integrationKey } = await createKey(pool, accountId, {
    ...restrictions,
    scopes: [...restrictions.scopes],
    addresses: ['10.0.0.0/8'],
  })
  await pool.query(`update integration_keys set created_at = now() - interval '1 day' where integration_key = $1`, [integrationKey])
  await page.goto(at(`keys/${integrationKey}`))
  await button(page, 'Make the second key').click()
  const dialog = dialogOf(page)
  assert.equal(await dialog.getByLabel('Addresses').inputValue(), '10.0.0.0/8')
  assert.equal(await dialog.getByLabel('read').isChecked(), true)
  assert.equal(await dialog.getByLabel('send').isChecked(), false)
  const daysLeft = (Date.parse(await dialog.getByLabel('Expires').inputValue()) - Date.now()) / (24 * HOUR_MS)
  assert.equal(Math.round(daysLeft), 3)
  assert.deepEqual(problems, [])
})

test('a key of another account is not found', browserTest, async (t) => {
  const { page, at } = await openAccount(t)
  await page.goto(at(`keys/${/hk_\w+/.exec(herald.authorization)?.[0]}`))
  await page.getByRole('alert').getByText('There is no live integration key').waitFor()
  assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1)
})

test('a viewer sees keys, and can change nothing', browserTest, async (t) => {
  const { page, problems, at, own } = await openAccount(t, 'viewer')
  const links = page.getByRole('link', { name: 'Create a key' })
  await page.goto(at('keys/new'))
  await page.getByRole('link', { name: own }).waitFor()
  assert.deepEqual([await links.count(), await dialogOf(page).count()], [0, 0])
  await page.getByRole('link', { name: own }).click()
  await page.getByRole('region', { name: 'The key' }).getByText('any address').waitFor()
  assert.equal(await page.getByRole('button', { name: /Revoke|Change|Replace|Make|curl/ }).count(), 0)
  assert.deepEqual(problems, [])
})
