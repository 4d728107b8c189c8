import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { NO_CAMPAIGN } from '../../server/src/ids.ts'
import { changePerson, createPerson } from '../../server/src/people/people.ts'
import { openSession } from '../../server/src/people/sessions.ts'
import { createTestDatabase } from '../../server/test/support/database.ts'
import { call, startTestService } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import type { Account, Figures } from '../src/pages/accounts/accounts-types.ts'
import { byTrouble, troublesOf } from '../src/pages/accounts/troubles.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald({ byHand: 'failed messages are counted by hand' })
const cookie = await herald.signIn('operator')
const { pool } = herald

const NO_TROUBLE: Figures = { accountId: 1, oldestDueMs: null, failingEndpoints: 0, accepted: 0, failed: 0, quotaUsed: 0 }
const said = (figures: Partial<Figures>) => troublesOf({ ...NO_TROUBLE, ...figures }).map(({ tone, text }) => `${tone}: ${text}`)

describe('the trouble of an account', () => {
  test('is waiting messages, failing endpoints, failed messages and used quotas', () => {
    assert.deepEqual(said({}), [])
    assert.deepEqual(said({ oldestDueMs: 30_000, accepted: 100, failed: 9, quotaUsed: 0.7 }), [], 'as happens on every day')
    assert.deepEqual(said({ oldestDueMs: 240_000, failingEndpoints: 2, accepted: 100, failed: 30, quotaUsed: 1 }), [
      'bad: messages have waited for 4 min',
      'bad: 2 webhook endpoints fail',
      'bad: 100% of a quota is used',
      'warn: 30 of 100 messages failed in 24 hours',
    ])
    assert.deepEqual(said({ accepted: 4, failed: 3 }), ['bad: 3 of 4 messages failed in 24 hours'])
  })

  test('decides the order: what is wrong, then warnings, then failed messages, then the name', () => {
    const names = ['Well B', 'Well A', 'Warned', 'Wrong', 'Very wrong', 'More failed']
    const accounts = names.map((name, index) => ({ accountId: index + 1, name }) as Account)
    const of = (name: string, figures: Partial<Figures>) => ({ ...NO_TROUBLE, accountId: names.indexOf(name) + 1, ...figures })
    const rows = byTrouble(accounts, [
      of('Warned', { accepted: 50, failed: 10, quotaUsed: 0.9 }),
      of('Wrong', { failingEndpoints: 1 }),
      of('Very wrong', { failingEndpoints: 1, oldestDueMs: 100_000 }),
      of('More failed', { failingEndpoints: 1, accepted: 900, failed: 80 }),
    ])
    assert.deepEqual(
      rows.map(({ account }) => account.name),
      ['Very wrong', 'More failed', 'Wrong', 'Warned', 'Well A', 'Well B'],
    )
  })
})

async function open(path: string) {
  const opened = await openPage({ base: herald.url, cookie })
  await opened.page.goto(`/console#/${herald.accountId}/${path}`)
  const end = async () => {
    assert.deepEqual(opened.problems, [])
    await opened.close()
  }
  return { ...opened, end }
}
const dialog = (page: Page) => page.getByRole('dialog')
const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

test('adds an account once, although the button is pressed twice, and shows it', browserTest, async () => {
  const { page, end } = await open('accounts')
  await page.getByRole('link', { name: 'Add an account' }).click()
  await dialog(page).getByLabel('Name').fill('Bakery')
  await dialog(page).getByRole('checkbox', { name: 'SMS' }).uncheck()
  await dialog(page).getByRole('button', { name: 'Add an account' }).dblclick()
  await page.getByRole('heading', { name: 'Bakery' }).waitFor()
  const { rows } = await pool.query(`select id, modules from accounts where name = 'Bakery'`)
  assert.deepEqual(
    rows.map(({ modules }) => modules),
    [['rcs']],
  )
  assert.ok(page.url().endsWith(`/accounts/${rows[0].id}`))
  // The switch of accounts has it at once.
  await page.locator('.switch option', { hasText: 'Bakery' }).waitFor({ state: 'attached' })
  await page.getByRole('link', { name: 'Switch to this account' }).click()
  await page.waitForURL(new RegExp(`#/${rows[0].id}/?$`))
  await end()
})

test('says what is wrong with a name', browserTest, async () => {
  const { page, close } = await open('accounts/new')
  await dialog(page).getByLabel('Name').fill('x'.repeat(201))
  await dialog(page).getByRole('button', { name: 'Add an account' }).click()
  await dialog(page).getByText('must have at most 200 characters').or(dialog(page).getByText('must NOT have more than 200')).waitFor()
  await page.keyboard.press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
  await close()
})

test('renames an account, changes its quarantine, and asks before it removes a module', browserTest, async () => {
  const { accountId } = await herald.newAccount()
  const { page, end } = await open(`accounts/${accountId}`)
  await button(page, 'Change the account').click()
  await dialog(page).getByLabel('Name').fill('Garden centre')
  await dialog(page).getByRole('checkbox', { name: 'RCS' }).uncheck()
  await page.getByLabel('Hours between two SMS to a recipient').fill('many')
  await dialog(page).getByText('must be a whole number').waitFor()
  await page.getByLabel('Hours between two SMS to a recipient').fill('48')
  await button(page, 'Save').click()
  await dialog(page).getByText('Without RCS, all API requests get 403.').waitFor()
  await button(page, 'Cancel').click()
  assert.equal(await dialog(page).getByLabel('Name').inputValue(), 'Garden centre')
  assert.deepEqual((await pool.query('select modules from accounts where id = $1', [accountId])).rows, [{ modules: ['rcs', 'sms'] }])
  await button(page, 'Save').click()
  await dialog(page).getByText('Without RCS').waitFor()
  await button(page, 'Save').click()
  await page.getByText('Saved.').waitFor()
  await page.getByRole('heading', { name: 'Garden centre' }).waitFor()
  await page.getByText('48 hours').waitFor()
  await page.locator('.switch option', { hasText: 'Garden centre' }).waitFor({ state: 'attached' })
  const { rows } = await pool.query('select modules, quarantine_hours from accounts where id = $1', [accountId])
  assert.deepEqual(rows, [{ modules: ['sms'], quarantine_hours: 48 }])
  await end()
})

test('saves only what was changed, so that what a colleague saves meanwhile stays', browserTest, async () => {
  const { accountId } = await herald.newAccount()
  const { page, end } = await open(`accounts/${accountId}`)
  await page.getByText('0 of 5,000,000').waitFor()
  await button(page, 'Change the account').click()
  await pool.query('update accounts set quarantine_hours = 12, quota_templates = 7 where id = $1', [accountId])
  await dialog(page).getByLabel('Name').fill('Tulips')
  await button(page, 'Save').click()
  await page.getByRole('heading', { name: 'Tulips' }).waitFor()
  await page.getByText('0 of 7').waitFor()
  await button(page, 'Change the quotas').click()
  await pool.query('update accounts set quota_templates = 8 where id = $1', [accountId])
  await page.getByText('0 of 8').waitFor()
  await dialog(page).getByLabel('Messages a day').fill('900')
  await button(page, 'Save').click()
  await page.getByText('0 of 900').waitFor()
  const { rows } = await pool.query('select name, quarantine_hours, quota_templates from accounts where id = $1', [accountId])
  assert.deepEqual(rows, [{ name: 'Tulips', quarantine_hours: 12, quota_templates: 8 }])
  await button(page, 'Change the account').click()
  await button(page, 'Save').click()
  await dialog(page).waitFor({ state: 'detached' })
  await end()
})

test('says what a suspension stops, suspends once, and resumes', browserTest, async () => {
  const account = await herald.newAccount()
  await herald.simulator.ask('faults', { api: { serverError: { rate: 1 } } }, 'PUT')
  for (const phone of ['+48500400101', '+48500400102']) await account.send(phone, { type: 'MESSAGE', content: 'Hello' })
  const { page, end } = await open(`accounts/${account.accountId}`)
  await button(page, 'Suspend').click()
  await dialog(page).getByText('This stops 2 messages, 0 SMS and 0 running campaigns.').waitFor()
  await page.keyboard.press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
  await button(page, 'Suspend').click()
  await dialog(page).getByRole('button', { name: 'Suspend' }).dblclick()
  await page.getByText('The account is suspended.').waitFor()
  await page.getByText('suspended', { exact: true }).first().waitFor()
  const isRefused = async () => (await call(`${herald.url}/v1/agents`, { authorization: account.authorization })).status === 403
  await until('its requests are refused', isRefused)
  await herald.simulator.ask('faults', undefined, 'DELETE')
  await button(page, 'Resume').click()
  await page.getByText('The account is resumed.').waitFor()
  await button(page, 'Suspend').waitFor()
  const left = 'select from queue where account_id = $1 and task = $2'
  await until('its messages are sent', async () => (await pool.query(left, [account.accountId, 'send'])).rowCount === 0)
  await end()
})

test('shows and sets quotas, and returns to the default', browserTest, async () => {
  const { accountId } = await herald.newAccount()
  const { page, end } = await open(`accounts/${accountId}`)
  await page.getByText('0 of 5,000,000').waitFor()
  await button(page, 'Change the quotas').click()
  await dialog(page).getByLabel('Messages a day').fill('none')
  await dialog(page).getByText('must be a whole number').waitFor()
  await dialog(page).getByLabel('Messages a day').fill('2,500')
  await button(page, 'Save').click()
  await page.getByText('Saved.').waitFor()
  await page.getByText('0 of 2,500').waitFor()
  await button(page, 'Change the quotas').click()
  assert.equal(await dialog(page).getByLabel('Messages a day').inputValue(), '2,500')
  assert.equal(await dialog(page).getByLabel('Templates', { exact: true }).inputValue(), '', 'a default is not set for the account')
  await dialog(page).getByLabel('Messages a day').fill('')
  await button(page, 'Save').click()
  await page.getByText('0 of 5,000,000').waitFor()
  await end()
})

test('keeps the search and the filter in the address', browserTest, async () => {
  const account = await herald.newAccount()
  await pool.query(`update accounts set name = 'Pharmacy', suspended_at = now() where id = $1`, [account.accountId])
  const { page, end } = await open('accounts')
  await row(page, 'Pharmacy').getByText('suspended', { exact: true }).waitFor()
  const all = await page.getByRole('row').count()
  await page.getByLabel('Show').selectOption('Suspended')
  await page.waitForURL(/show=suspended/)
  await until('the others are hidden', async () => (await page.getByRole('row').count()) === 2)
  await page.reload()
  await row(page, 'Pharmacy').waitFor()
  assert.equal(await page.getByRole('row').count(), 2)
  await page.getByLabel('Name or id').fill('no such name')
  await page.getByRole('heading', { name: 'No account matches these filters' }).waitFor()
  await page.getByRole('link', { name: 'Show all accounts' }).click()
  await until('all are back', async () => (await page.getByRole('row').count()) === all)
  await page.getByLabel('Name or id').fill(String(account.accountId))
  await until('the id finds it', async () => (await page.getByRole('row').count()) === 2)
  await row(page, 'Pharmacy').waitFor()
  await end()
})

test('shows the troubles of an account, and leads to its pages', browserTest, async () => {
  const { accountId } = await herald.newAccount()
  await pool.query(
    `insert into report_deltas (account_id, campaign_id, hour, accepted, failed) values ($1, $2, date_trunc('hour', now()), 40, 30)`,
    [accountId, NO_CAMPAIGN],
  )
  const { page, end } = await open(`accounts/${accountId}`)
  await page.getByRole('link', { name: '30 of 40 messages failed in 24 hours' }).click()
  await page.waitForURL(new RegExp(`#/${accountId}/messages\\?status=FAILED`))
  await end()
})

test('says that an account does not exist', browserTest, async () => {
  const { page, close } = await open('accounts/999999')
  await page.getByRole('heading', { name: 'There is no account 999999' }).waitFor()
  await page.getByRole('link', { name: 'Show all accounts' }).click()
  await page.getByRole('table', { name: 'Accounts' }).waitFor()
  await close()
})

test('an operator adds the first account of a new Herald', browserTest, async () => {
  const database = await createTestDatabase()
  const service = await startTestService({ HERALD_DATABASE_URL: database.url }, { roles: ['api'] })
  const { personId } = await createPerson(database.pool, { email: 'first@example.com', name: 'Anna Nowak' })
  await changePerson(database.pool, personId, { isOperator: true })
  const own = await openSession(database.pool, personId, { address: '127.0.0.1', userAgent: 'test' })
  const { page, problems, close } = await openPage({ base: service.url, cookie: own })
  await page.goto('/console')
  await button(page, 'Add an account').click()
  await dialog(page).getByLabel('Name').fill('My shop')
  await dialog(page).getByRole('button', { name: 'Add an account' }).dblclick()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Overview' }).waitFor()
  assert.equal((await database.pool.query('select from accounts')).rowCount, 1)
  assert.deepEqual(problems, [])
  await close()
})

test('an admin does not have the page', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.goto(`/console#/${herald.accountId}/accounts`)
  await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})
