import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { hashPassword } from '../../server/src/people/passwords.ts'
import { changePerson, createPerson, findPerson, setRole } from '../../server/src/people/people.ts'
import { openSession } from '../../server/src/people/sessions.ts'
import { call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { browserOf } from '../src/pages/people/browser-of.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald()
const { pool, accountId } = herald
const PASSWORD = 'correct horse battery'
const passwordHash = await hashPassword(PASSWORD)
const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36'

let people = 0

/** A person with a role in the account and a password. Returns the id and how many sessions they have, each with its secret. */
async function addPerson({ role = 'viewer' as 'viewer' | 'admin', sessions = 0, account = accountId } = {}) {
  people += 1
  const person = { email: `person-${people}@example.com`, name: `Jan Kowalski ${people}` }
  const { personId } = await createPerson(pool, person)
  await setRole(pool, personId, account, role)
  await pool.query('update people set password_hash = $1 where id = $2', [passwordHash, personId])
  const secrets = []
  for (let index = 0; index < sessions; index += 1)
    secrets.push(await openSession(pool, personId, { address: `192.0.2.${index + 1}`, userAgent: CHROME }))
  return { ...person, personId, secrets }
}

async function openAs(role: 'operator' | 'admin', path: string) {
  const opened = await openPage({ base: herald.url, cookie: await herald.signIn(role) })
  await opened.page.goto(`/console#/${accountId}/${path}`)
  return opened
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const inDialog = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true })

test('a person whom an operator adds signs in by the link, with the role that the operator chose', browserTest, async (t) => {
  const { page, problems, close } = await openAs('operator', 'people')
  t.after(close)
  await button(page, 'Add a person').click()
  await page.getByLabel('Name', { exact: true }).fill('Maria Wiśniewska')
  await page.getByLabel('E-mail address', { exact: true }).fill('maria@example.com')
  await page.getByLabel('Role').selectOption('Admin')
  await inDialog(page, 'Add a person').click()
  const link = (await page.getByRole('region', { name: 'The link' }).textContent()) ?? ''
  // A stray click does not lose the link.
  await page.mouse.click(5, 5)
  assert.ok(await page.getByRole('region', { name: 'The link' }).isVisible())
  await button(page, 'Close').click()
  await page.getByRole('row').filter({ hasText: 'maria@example.com' }).getByText('Admin in Test').waitFor()
  assert.match(page.url(), /#\/\d+\/people$/)
  assert.deepEqual(problems, [])

  const other = await openPage({ base: herald.url })
  t.after(other.close)
  await other.page.goto(link)
  await other.page.getByLabel('Password').fill(PASSWORD)
  await other.page.keyboard.press('Enter')
  await other.page.getByRole('button', { name: 'Signed in as Maria Wiśniewska' }).waitFor()
  await other.page.getByRole('link', { name: 'People', exact: true }).waitFor()
  assert.equal(await other.page.getByRole('link', { name: 'Tokens' }).count(), 0)
})

test('two presses add one person, and an address that is taken says so', browserTest, async (t) => {
  const { page, close } = await openAs('operator', 'people/new')
  t.after(close)
  const requests: string[] = []
  page.on('request', (request) => request.method() === 'POST' && requests.push(request.url()))
  await page.getByLabel('Name', { exact: true }).fill('Twice')
  await page.getByLabel('E-mail address', { exact: true }).fill('twice@example.com')
  await page.getByLabel('Role').selectOption('Operator')
  await inDialog(page, 'Add a person').dblclick()
  await page.getByRole('region', { name: 'The link' }).waitFor()
  assert.equal(requests.filter((url) => url.endsWith('/people')).length, 1)
  await button(page, 'Close').click()
  await button(page, 'Add a person').click()
  await page.getByLabel('Name', { exact: true }).fill('Once more')
  await page.getByLabel('E-mail address', { exact: true }).fill('twice@example.com')
  await page.getByLabel('Role').selectOption('Operator')
  await inDialog(page, 'Add a person').click()
  await page.getByRole('alert').getByText('A person with the e-mail address twice@example.com already exists.').waitFor()
})

test('an admin sees, changes and removes the people of the account only', browserTest, async (t) => {
  const elsewhere = await herald.newAccount()
  const [own, foreign] = [await addPerson(), await addPerson({ account: elsewhere.accountId })]
  const { page, problems, close } = await openAs('admin', 'people')
  t.after(close)
  await page.getByRole('row').filter({ hasText: own.email }).waitFor()
  assert.equal(await page.getByText(foreign.email).count(), 0)
  await page.getByRole('link', { name: own.name, exact: true }).click()
  for (const name of ['Disable', 'Rename', 'Give operator role']) assert.equal(await button(page, name).count(), 0, name)
  await button(page, 'Set a role').click()
  assert.equal(await page.getByRole('dialog').getByLabel('Account').count(), 0)
  await page.getByRole('dialog').getByLabel('Role').selectOption('Admin')
  await inDialog(page, 'Set a role').click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.deepEqual((await findPerson(pool, own)).roles, [{ accountId, role: 'admin' }])
  await button(page, 'Remove the role in Test').click()
  await page.getByRole('dialog').getByText(`${own.name} can no longer use the account Test`).waitFor()
  await inDialog(page, 'Remove').click()
  await page.waitForURL(/people$/)
  await page.getByRole('row').filter({ hasText: own.email }).waitFor({ state: 'detached' })
  assert.deepEqual((await findPerson(pool, own)).roles, [])
  assert.deepEqual(problems, [])
})

test('an operator gives roles in more accounts, and the filter of the list is in the address', browserTest, async (t) => {
  const other = await herald.newAccount()
  const [here, there] = [await addPerson(), await addPerson({ account: other.accountId })]
  const { page, problems, close } = await openAs('operator', 'people?of=account')
  t.after(close)
  await page.getByRole('row').filter({ hasText: here.email }).waitFor()
  assert.equal(await page.getByText(there.email).count(), 0)
  await page.getByText('Everybody', { exact: true }).click()
  await page.waitForURL(/people$/)
  await page.getByRole('link', { name: there.name, exact: true }).click()
  await button(page, 'Set a role').click()
  await page.getByRole('dialog').getByLabel('Account').selectOption(String(accountId))
  await inDialog(page, 'Set a role').click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.deepEqual(
    (await findPerson(pool, there)).roles.map((role) => role.accountId),
    [accountId, other.accountId],
  )
  assert.deepEqual(problems, [])
})

test('the list is searched by a part of a name or an address, and the search is in the address', browserTest, async (t) => {
  const [one, other] = [await addPerson(), await addPerson()]
  const { page, problems, close } = await openAs('operator', 'people')
  t.after(close)
  await page.getByRole('row').filter({ hasText: other.email }).waitFor()
  await page.getByLabel('Name or e-mail address').fill(one.email.toUpperCase().slice(0, -4))
  await page.keyboard.press('Enter')
  await page.getByRole('row').filter({ hasText: other.email }).waitFor({ state: 'detached' })
  await page.getByRole('row').filter({ hasText: one.email }).waitFor()
  assert.match(page.url(), /people\?search=PERSON-/)
  await page.reload()
  await page.getByRole('row').filter({ hasText: one.email }).waitFor()
  assert.equal(await page.getByRole('row').count(), 2)
  await page.getByLabel('Name or e-mail address').fill('100% nobody_')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Nobody matches this search' }).waitFor()
  await page.getByLabel('Name or e-mail address').fill('')
  await page.keyboard.press('Enter')
  await page.getByRole('row').filter({ hasText: other.email }).waitFor()
  assert.deepEqual(problems, [])
})

test('a person whom an operator locks out loses all sessions, and is let in again', browserTest, async (t) => {
  const person = await addPerson({ sessions: 2 })
  const theirs = await openPage({ base: herald.url, cookie: person.secrets[0] as string })
  t.after(theirs.close)
  await theirs.page.goto(`/console#/${accountId}/webhooks`)
  await theirs.page.getByText('live', { exact: true }).first().waitFor()
  const { page, problems, close } = await openAs('operator', `people/${person.personId}`)
  t.after(close)
  await button(page, 'Disable').click()
  await page.getByRole('dialog').getByText('All sessions and one-time links').waitFor()
  await inDialog(page, 'Disable').click()
  await page.getByText('disabled', { exact: true }).waitFor()
  await page.getByRole('heading', { name: 'No open session' }).waitFor()
  await theirs.page.getByRole('heading', { name: 'Sign in to Herald' }).waitFor()
  assert.equal(await button(page, 'New one-time link').count(), 0, 'a person who is disabled gets no link')
  await button(page, 'Enable').click()
  await inDialog(page, 'Enable').click()
  await page.getByText('can sign in', { exact: true }).waitFor()
  assert.equal((await findPerson(pool, person)).disabledAt, undefined)
  assert.deepEqual(problems, [])
})

test('a dialog does what was asked, although somebody else has done it meanwhile', browserTest, async (t) => {
  const person = await addPerson()
  const { page, problems, close } = await openAs('operator', `people/${person.personId}`)
  t.after(close)
  await button(page, 'Disable').click()
  await changePerson(pool, person.personId, { isDisabled: true })
  // The page reads the person again when it becomes visible.
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
  await page.getByText('disabled', { exact: true }).waitFor()
  await page.getByRole('dialog').getByText('All sessions and one-time links').waitFor()
  await inDialog(page, 'Disable').click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.notEqual((await findPerson(pool, person)).disabledAt, undefined)
  assert.deepEqual(problems, [])
})

test('an operator makes another operator, and nobody changes their own rights', browserTest, async (t) => {
  const person = await addPerson()
  const { page, problems, close } = await openAs('operator', `people/${person.personId}`)
  t.after(close)
  await button(page, 'Give operator role').click()
  await inDialog(page, 'Give operator role').click()
  await page.getByText('Does everything, in all accounts.').waitFor()
  assert.equal((await findPerson(pool, person)).isOperator, true)
  await button(page, 'End operator role').click()
  await page.getByRole('dialog').getByText(`${person.name} keeps 1 role in single accounts.`).waitFor()
  await inDialog(page, 'End operator role').click()
  await button(page, 'Give operator role').waitFor()
  assert.equal((await findPerson(pool, person)).isOperator, false)
  await page.goto(`/console#/${accountId}/people`)
  await page.getByRole('row').filter({ hasText: 'you' }).getByRole('link').click()
  await page.getByText('This is you.').waitFor()
  for (const name of ['Disable', 'End operator role']) assert.equal(await button(page, name).count(), 0, name)
  assert.deepEqual(problems, [])
})

test('an operator ends one session of a person, and the others stay', browserTest, async (t) => {
  const person = await addPerson({ sessions: 3 })
  const { page, problems, close } = await openAs('operator', `people/${person.personId}`)
  t.after(close)
  const row = page.getByRole('row').filter({ hasText: '192.0.2.2' })
  await row.getByText('Chrome').waitFor()
  await row.getByRole('button').click()
  await row.waitFor({ state: 'detached' })
  const { rows } = await pool.query('select address from sessions where person_id = $1 order by 1', [person.personId])
  assert.deepEqual(
    rows.map(({ address }) => address),
    ['192.0.2.1', '192.0.2.3'],
  )
  assert.deepEqual(problems, [])
})

test('a step that needs the password asks for it, and is done after it', browserTest, async (t) => {
  const person = await addPerson()
  const cookie = await herald.signIn('operator')
  await pool.query(`update sessions set confirmed_at = now() - interval '1 hour'`)
  await pool.query('update people set password_hash = $1 where is_operator', [passwordHash])
  const { page, close } = await openPage({ base: herald.url, cookie })
  t.after(close)
  await page.goto(`/console#/${accountId}/people/${person.personId}`)
  await button(page, 'Rename').click()
  await page.getByRole('dialog').getByLabel('Name').fill('Jan Nowak')
  await inDialog(page, 'Rename').click()
  await page.getByLabel('Password').fill(PASSWORD)
  await button(page, 'Continue').click()
  await page.getByRole('heading', { name: 'Jan Nowak' }).waitFor()
})

test('a person ends their other sessions, and keeps the present one', browserTest, async (t) => {
  const person = await addPerson({ sessions: 3 })
  const { page, problems, close } = await openPage({ base: herald.url, cookie: person.secrets[0] as string })
  t.after(close)
  await page.goto(`/console#/${accountId}`)
  await page.getByRole('button', { name: `Signed in as ${person.name}` }).click()
  await page.getByRole('link', { name: 'Your profile' }).click()
  await page.getByText('Viewer in Test').waitFor()
  const own = page.getByRole('row').filter({ hasText: 'this session' })
  await own.waitFor()
  assert.equal(await own.getByRole('button').count(), 0)
  await button(page, 'End all others').click()
  await page.getByRole('dialog').getByText('All sessions but this one end at once.').waitFor()
  await inDialog(page, 'End all others').click()
  await page.getByText('2 sessions have ended.').waitFor()
  await until('one session is left', async () => (await page.getByRole('row').count()) === 2)
  assert.equal((await pool.query('select from sessions where person_id = $1', [person.personId])).rowCount, 1)
  assert.deepEqual(problems, [])
})

test('a person changes the password: what is wrong stands at its field, and other sessions end', browserTest, async (t) => {
  const person = await addPerson({ sessions: 2 })
  const { page, close } = await openPage({ base: herald.url, cookie: person.secrets[0] as string })
  t.after(close)
  await page.goto(`/console#/${accountId}/me/password`)
  const dialog = page.getByRole('dialog', { name: 'Change the password' })
  const submit = dialog.getByRole('button', { name: 'Change the password' })
  await dialog.getByLabel('Current password').fill('a wrong password')
  await dialog.getByLabel('New password').fill('another horse battery')
  await submit.click()
  await dialog.getByRole('alert').waitFor()
  await dialog.getByLabel('Current password').fill(PASSWORD)
  await submit.click()
  await page.getByText('The password is changed').waitFor()
  await page.waitForURL(/\/me$/)
  assert.equal((await pool.query('select from sessions where person_id = $1', [person.personId])).rowCount, 1)
  const signIn = (password: string) =>
    call(`${herald.url}/admin/v1/session`, { method: 'POST', body: { email: person.email, password }, headers: { origin: herald.url } })
  assert.equal((await signIn('another horse battery')).status, 200)
  assert.equal((await signIn(PASSWORD)).status, 401)
})

test('an operator creates a token, whose secret is shown once and works until it is revoked', browserTest, async (t) => {
  const { page, problems, close } = await openAs('operator', 'tokens')
  t.after(close)
  await page.getByRole('heading', { name: 'No token yet' }).waitFor()
  await button(page, 'Create a token').first().click()
  await page.getByLabel('Name', { exact: true }).fill('Nightly report')
  await inDialog(page, 'Create a token').dblclick()
  const secret = (await page.getByText(/^ho_/).textContent()) ?? ''
  await button(page, 'Close').click()
  await page.getByText(/^ho_/).waitFor({ state: 'detached' })
  const read = async () =>
    (await call(`${herald.url}/admin/v1/accounts/${accountId}/messages`, { authorization: `Bearer ${secret}` })).status
  assert.equal(await read(), 200)
  const row = page.getByRole('row').filter({ hasText: 'Nightly report' })
  await row.getByText('Viewer, Test').waitFor()
  assert.equal(await row.count(), 1, 'two presses make one token')
  await row.getByRole('button', { name: 'Revoke Nightly report' }).click()
  await page.getByRole('dialog').getByText('is refused from its next request on').waitFor()
  await inDialog(page, 'Revoke').click()
  await row.getByText('revoked', { exact: true }).waitFor()
  assert.equal(await read(), 401)
  assert.equal(await row.getByRole('button').count(), 0)
  assert.deepEqual(problems, [])
})

test('a token without an account is refused at the field of the accounts', browserTest, async (t) => {
  const { page, close } = await openAs('operator', 'tokens/new')
  t.after(close)
  await page.getByLabel('Name', { exact: true }).fill('Nothing')
  await page.getByRole('checkbox', { name: /^Test \(1\)/ }).uncheck()
  await inDialog(page, 'Create a token').click()
  await page.getByText('Choose at least one account.').waitFor()
})

test('a browser is named as people call it', () => {
  const webkit = 'AppleWebKit/537.36 (KHTML, like Gecko)'
  assert.equal(browserOf(`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webkit} Chrome/141.0 Safari/537.36 Edg/141.0`), 'Edge on Windows')
  assert.equal(browserOf(`Mozilla/5.0 (Linux; Android 16; K) ${webkit} Chrome/141.0 Mobile Safari/537.36`), 'Chrome on Android')
  assert.equal(browserOf('Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Mobile Safari/604.1'), 'Safari on iPhone')
  assert.equal(browserOf('Mozilla/5.0 (Macintosh; Intel Mac OS X 15.0; rv:144.0) Gecko/20100101 Firefox/144.0'), 'Firefox on macOS')
  assert.equal(browserOf('curl/8.5.0'), 'curl')
  assert.equal(browserOf(''), 'another program')
})
