import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { recordChange } from '../../server/src/audit/record.ts'
import { call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { changesOf, operationOf } from '../src/pages/audit/entry.ts'
import { action } from '../src/words/en-audit.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald()
const { pool, accountId } = herald
const other = await herald.newAccount()

const anna = { kind: 'person', id: 1, name: 'anna@example.com', address: '192.0.2.7', requestId: 'req_4711' } as const
const OLD = Array.from({ length: 300 }, (_, index) => index)
for (const index of OLD) await recordChange(pool, anna, { action: 'changeGroup', accountId, subject: `group-${index}` })
await recordChange(pool, anna, {
  action: 'setPersonRole',
  accountId,
  subject: '5',
  before: { personId: 5, role: 'viewer', name: 'Jan' },
  after: { personId: 5, role: 'admin', name: 'Jan' },
})
await recordChange(
  pool,
  { kind: 'token', id: 2, name: 'Nightly report' },
  { action: 'createKey', accountId, subject: 'hk_1', after: { key: 'hk_1' } },
)
await recordChange(pool, { kind: 'command', name: 'root' }, { action: 'createAgent', subject: 'my-shop' })
await recordChange(pool, anna, { action: 'createKey', accountId: other.accountId, subject: 'hk_other' })

async function openAs(role: 'operator' | 'admin', query = '') {
  const opened = await openPage({ base: herald.url, cookie: await herald.signIn(role) })
  await opened.page.goto(`/console#/${accountId}/audit${query}`)
  await opened.page.getByRole('heading', { name: 'Audit log' }).waitFor()
  return opened
}

/** The subjects of the rows, from the newest. */
const subjects = (page: Page) => page.locator('.long-table tbody tr td:nth-child(2)').allTextContents()

async function untilSubjects(page: Page, expected: string[]): Promise<void> {
  await until(`the rows are ${expected}`, async () => (await subjects(page)).join() === expected.join())
}

test('the log is filtered by who, what, subject and time, and each filter is in the address', browserTest, async (t) => {
  const { page, problems, close } = await openAs('operator')
  t.after(close)
  await page.getByRole('row').nth(4).waitFor()
  const find = async (label: string, text: string) => {
    await page.getByLabel(label, { exact: true }).fill(text)
    await page.keyboard.press('Enter')
  }
  await find('By', 'Nightly report')
  await untilSubjects(page, ['hk_1'])
  assert.match(page.url(), /\?actor=Nightly\+report$/)
  await page.getByRole('button', { name: 'Clear all filters' }).click()
  await find('Change', 'Create key')
  await untilSubjects(page, ['hk_other', 'hk_1'])
  assert.match(page.url(), /\?action=createKey$/)
  await page.getByText('Of this account', { exact: true }).click()
  await untilSubjects(page, ['hk_1'])
  await page.reload()
  await untilSubjects(page, ['hk_1'])
  await page.getByRole('button', { name: 'Clear all filters' }).click()
  await find('Subject', 'group-7')
  await untilSubjects(page, ['group-7'])
  await page.getByLabel('Before', { exact: true }).fill('2020-01-01T00:00')
  await page.getByRole('heading', { name: 'No such change' }).waitFor()
  assert.match(page.url(), /subject=group-7&to=20(19|20)-/)
  assert.deepEqual(problems, [])
})

test('an entry shows what was before and after, and the request', browserTest, async (t) => {
  const { page, problems, close } = await openAs('admin', '?subject=5')
  t.after(close)
  const opener = page.getByRole('button', { name: 'Set person role' })
  await opener.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Set person role' })
  const row = dialog.getByRole('row').filter({ hasText: 'role' })
  assert.deepEqual(await row.locator('td').allTextContents(), ['viewer', 'admin'])
  assert.equal(await dialog.getByRole('row').count(), 2, 'a field that stayed the same has no row')
  for (const text of ['req_4711', 'anna@example.com', '192.0.2.7', 'setPersonRole']) await dialog.getByText(text, { exact: true }).waitFor()
  await page.keyboard.press('Escape')
  await until('the row has the focus again', () => opener.evaluate((element) => element.ownerDocument.activeElement === element))
  await opener.press('Enter')
  await dialog.getByRole('link', { name: 'All with the same value: By', exact: true }).click()
  await page.waitForURL(/audit\?actor=anna%40example\.com$/)
  await dialog.waitFor({ state: 'detached' })
  assert.deepEqual(problems, [])
})

test('a click anywhere in a row opens its entry', browserTest, async (t) => {
  const { page, close } = await openAs('admin', '?subject=5')
  t.after(close)
  const cell = await page.getByRole('cell', { name: 'anna@example.com' }).boundingBox()
  assert.ok(cell !== null)
  await page.mouse.click(cell.x + cell.width / 2, cell.y + cell.height / 2)
  await page.getByRole('dialog', { name: 'Set person role' }).waitFor()
})

test('an admin sees the entries of the account only, and the file has no others', browserTest, async (t) => {
  const { page, problems, close } = await openAs('admin', '?action=createKey')
  t.after(close)
  await untilSubjects(page, ['hk_1'])
  assert.equal(await page.getByText('Of this account').count(), 0)
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: 'CSV' }).click()
  const file = (await (await (await download).createReadStream()).toArray()).join('')
  assert.match(file, /"createKey","hk_1"/)
  assert.equal(file.trimEnd().split('\r\n').length, 2)
  assert.deepEqual(problems, [])
})

test('a log of any length has only the rows near the window', browserTest, async (t) => {
  const { page, problems, close } = await openAs('admin', '?action=changeGroup')
  t.after(close)
  await page.getByRole('row').filter({ hasText: 'group-299' }).waitFor()
  assert.ok((await subjects(page)).length < OLD.length)
  const oldest = page.getByText('group-0', { exact: true })
  await until('the oldest is there', async () => {
    await page.evaluate('scrollTo(0, document.body.scrollHeight)')
    return (await oldest.count()) === 1
  })
  await until('the newest is no longer drawn', async () => (await page.getByText('group-299', { exact: true }).count()) === 0)
  assert.deepEqual(problems, [])
})

test('a new change appears without a reload', browserTest, async (t) => {
  const { page, close } = await openAs('admin', '?action=renameGroup')
  t.after(close)
  await page.getByRole('heading', { name: 'No such change' }).waitFor()
  await recordChange(pool, anna, { action: 'renameGroup', accountId, subject: 'new' })
  await until('it is there', async () => (await subjects(page)).join() === 'new')
})

test('every operation of the admin API can be found by its words', async () => {
  const { body } = await call(`${herald.url}/admin/v1/openapi.json`)
  const operations = Object.values(body.paths as Record<string, Record<string, { operationId: string }>>)
    .flatMap((path) => Object.values(path))
    .map(({ operationId }) => operationId)
  assert.ok(operations.length > 100)
  for (const operation of operations) assert.equal(operationOf(action(operation)), operation)
  assert.equal(action('setPersonRole'), 'Set person role')
  assert.equal(operationOf('setPersonRole'), 'setPersonRole')
})

test('changes are the fields that differ; a state that is no object is one field', () => {
  const change = (before: unknown, after: unknown) => changesOf({ before, after })
  assert.deepEqual(change(null, null), [])
  assert.deepEqual(change(null, { a: 1 }), [{ name: 'a', before: undefined, after: 1 }])
  assert.deepEqual(change({ a: 1, b: [2] }, { a: 1, b: [3] }), [{ name: 'b', before: [2], after: [3] }])
  assert.deepEqual(change([1], null), [{ name: '', before: [1], after: undefined }])
})
