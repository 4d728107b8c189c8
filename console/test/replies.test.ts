import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { hashPassword } from '../../server/src/people/passwords.ts'
import type { Role } from '../../server/src/people/roles.ts'
import { call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald()
const PASSWORD = 'correct horse battery'
const passwordHash = await hashPassword(PASSWORD)
const TEXT = { type: 'MESSAGE', content: 'Your parcel is on its way.' }

type Account = Awaited<ReturnType<typeof herald.newAccount>>

/** A request of a caller of the API. */
async function ask(account: Account, method: string, path: string, body?: object) {
  const response = await call(`${herald.url}/v1/${path}`, { method, authorization: account.authorization, body })
  assert.ok(response.status < 300, `${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
  return response.body
}

/** Opens a part of the page of the account. `end` fails if something went wrong meanwhile. */
async function open(account: Account, path: string, role: Role = 'admin') {
  const cookie = await account.signIn(role)
  await herald.pool.query('update people set password_hash = $1', [passwordHash])
  const opened = await openPage({ base: herald.url, cookie })
  await opened.page.goto(`/console#/${account.accountId}/${path}`)
  const end = async () => {
    assert.deepEqual(opened.problems, [])
    await opened.close()
  }
  return { ...opened, end }
}

const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })
const dialog = (page: Page) => page.getByRole('dialog')
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

const [STOPPED, BLOCKED, WROTE] = ['+48500771110', '+48500771210', '+48500771309'] as const

async function withOptOuts() {
  const account = await herald.newAccount()
  await ask(account, 'PUT', `opt-outs/${STOPPED}`, { agentId: account.agentId })
  await ask(account, 'PUT', `opt-outs/${BLOCKED}`, { block: true })
  return account
}

test('opt-outs show what is stopped, how and since when, also of a recipient who writes STOP', browserTest, async () => {
  const account = await withOptOuts()
  const { page, end } = await open(account, 'replies')
  await page.getByText('live', { exact: true }).first().waitFor()
  const ofStopped = row(page, '+48 500 771 110')
  await ofStopped.getByText('Campaigns', { exact: true }).filter({ visible: true }).waitFor()
  await ofStopped.getByText('through the API or this page').waitFor()
  await row(page, '+48 500 771 210').getByText('All messages', { exact: true }).filter({ visible: true }).waitFor()
  await account.send(WROTE, TEXT)
  await row(page, '+48 500 771 309').getByText('wrote STOP').filter({ visible: true }).waitFor()
  await end()
})

test('an opt-out from campaigns does not end a block', browserTest, async () => {
  const account = await withOptOuts()
  const { page, end } = await open(account, 'replies')
  await row(page, '771 210').waitFor()
  await button(page, 'Add an opt-out').first().click()
  await dialog(page).getByLabel('Phone number').fill(BLOCKED)
  await dialog(page).getByRole('button', { name: 'Add an opt-out' }).click()
  await dialog(page).getByText('This recipient is blocked.').waitFor()
  const { items } = await ask(account, 'GET', `opt-outs?phone=${encodeURIComponent(BLOCKED)}`)
  assert.deepEqual(
    (items as { block: boolean }[]).map(({ block }) => block),
    [true],
  )
  await end()
})

test('opt-outs of an inactive agent say why they can’t be changed', browserTest, async () => {
  const account = await withOptOuts()
  await herald.pool.query('update agent_assignments set active = false where account_id = $1', [account.accountId])
  const { page, end } = await open(account, 'replies')
  await row(page, '771 210').getByText('While the agent is inactive').filter({ visible: true }).waitFor()
  assert.equal(await row(page, '771 210').getByRole('button').count(), 0)
  await end()
})

test('opt-outs can be added for all agents or one, and say how many agents it is', browserTest, async () => {
  const account = await withOptOuts()
  const { page, end } = await open(account, 'replies')
  await row(page, '771 110').waitFor()
  await button(page, 'Add an opt-out').first().click()
  await dialog(page).getByLabel('Phone number').fill('+48 500 771 410')
  await dialog(page).getByLabel('What is stopped').selectOption('All messages')
  await dialog(page).getByText('START does not end a block').waitFor()
  await dialog(page).getByRole('button', { name: 'Add an opt-out' }).click()
  await page.getByText('Opted out of 1 agent.').waitFor()
  await row(page, '+48 500 771 410').getByText('All messages', { exact: true }).filter({ visible: true }).waitFor()
  const { items } = await ask(account, 'GET', `opt-outs?phone=${encodeURIComponent('+48500771410')}`)
  assert.deepEqual([items.length, items[0].block, items[0].source], [1, true, 'api'])
  await end()
})

test('opt-outs are blocked, unblocked and removed only after a question that names the recipient', browserTest, async () => {
  const account = await withOptOuts()
  const { page, end } = await open(account, 'replies')
  const ofStopped = row(page, '+48 500 771 110')
  for (const [name, question, said] of [
    ['Block', /stops all messages of Greenhouse to one recipient, \+48 500 771 110/, 'The recipient is blocked.'],
    ['Unblock', /Single messages of Greenhouse go out again to one recipient/, 'The recipient is no longer blocked.'],
    ['Remove', /Campaigns of Greenhouse go out again to one recipient/, 'The opt-out is removed.'],
  ] as const) {
    await ofStopped.getByRole('button', { name, exact: true }).click()
    await dialog(page).getByText(question).waitFor()
    await dialog(page).getByRole('button', { name: 'Cancel' }).click()
    await dialog(page).waitFor({ state: 'detached' })
    await ofStopped.getByRole('button', { name, exact: true }).click()
    await dialog(page).getByRole('button', { name, exact: true }).click()
    await page.getByRole('status').getByText(said).waitFor()
  }
  await ofStopped.waitFor({ state: 'detached' })
  const { items } = await ask(account, 'GET', 'opt-outs')
  assert.deepEqual(
    items.map(({ phone }: { phone: string }) => phone),
    [BLOCKED],
  )
  await end()
})

test('the focus stays in the list when a row disappears', browserTest, async () => {
  const { page, end } = await open(await withOptOuts(), 'replies')
  const ofStopped = row(page, '+48 500 771 110')
  await ofStopped.getByRole('button', { name: 'Remove' }).focus()
  await page.keyboard.press('Enter')
  await dialog(page).getByRole('button', { name: 'Remove' }).focus()
  await page.keyboard.press('Enter')
  await ofStopped.waitFor({ state: 'detached' })
  await until('the list has the focus', async () => await page.evaluate(`document.activeElement.closest('table') !== null`))
  await page.keyboard.press('Tab')
  assert.equal(await row(page, '771 210').locator(':focus').count(), 1, 'Tab goes on in the list')
  await end()
})

test('opt-outs are found by number and agent, with the filters in the address', browserTest, async () => {
  const account = await withOptOuts()
  const { page, end } = await open(account, 'replies')
  await row(page, '771 110').waitFor()
  await page.getByLabel('Phone number').fill('+48 500 771 210')
  await button(page, 'Find').click()
  await page.waitForURL(/\?phone=/)
  await row(page, '771 110').waitFor({ state: 'detached' })
  await row(page, '771 210').waitFor()
  await page.getByLabel('Agent').selectOption('Greenhouse')
  await page.waitForURL(new RegExp(`agentId=${account.agentId}`))
  await page.reload()
  await row(page, '771 210').waitFor()
  assert.equal(await row(page, '771 110').count(), 0)
  await button(page, 'As curl').click()
  await dialog(page).getByText(`/v1/opt-outs?phone=%2B48+500+771+210&agentId=${account.agentId}'`).waitFor()
  await page.keyboard.press('Escape')
  await page.getByLabel('Phone number').fill('+48500771999')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'No opt-out matches these filters' }).waitFor()
  await button(page, 'Clear the filters').click()
  await row(page, '771 110').waitFor()
  await end()
})

test('an empty list of opt-outs says what to do, and a wrong number says what would be right', browserTest, async () => {
  const { page, close } = await open(await herald.newAccount(), 'replies')
  await page.getByRole('heading', { name: 'Nobody has opted out' }).waitFor()
  await button(page, 'Add an opt-out').first().click()
  await dialog(page).getByLabel('Phone number').fill('12')
  await dialog(page).getByRole('button', { name: 'Add an opt-out' }).click()
  await dialog(page)
    .getByRole('alert')
    .getByText(/international/)
    .waitFor()
  await close()
})

test('opt-outs are masked for a viewer, who can change nothing', browserTest, async () => {
  const { page, end } = await open(await withOptOuts(), 'replies', 'viewer')
  await row(page, '+48 •').first().waitFor()
  assert.doesNotMatch(await page.content(), /771 ?[12]10/)
  assert.equal(await page.getByRole('button', { name: /Add|Block|Unblock|Remove/ }).count(), 0)
  assert.equal(await page.getByRole('link', { name: 'Everything about a number' }).count(), 0)
  await page.goto(page.url().replace(/replies.*/, 'replies/number'))
  await page.getByRole('heading', { name: 'Only admins see what is stored about a number' }).waitFor()
  await end()
})

async function withTemplates() {
  const account = await herald.newAccount()
  for (const name of ['hours', 'prices'])
    await ask(account, 'POST', 'templates', { name, status: 'APPROVED', message: { type: 'MESSAGE', content: `Our ${name}` } })
  await ask(account, 'POST', 'templates', { name: 'draft', status: 'DRAFT', message: TEXT })
  return account
}

test('automatic replies are added, changed and removed, and Herald replies with the chosen template', browserTest, async () => {
  const account = await withTemplates()
  const { page, end } = await open(account, 'replies/automatic')
  await page.getByRole('heading', { name: 'No automatic reply yet' }).waitFor()
  await button(page, 'Add an automatic reply').first().click()
  await dialog(page).getByLabel('Keyword').fill('  Opening HOURS!')
  const options = await dialog(page).getByLabel('Template').getByRole('option').allInnerTexts()
  assert.deepEqual(options.length, 3, `no draft among ${options}`)
  await dialog(page).getByLabel('Template').selectOption({ index: 2 })
  await dialog(page).getByRole('button', { name: 'Save' }).click()
  await page.getByText('Recipients who write “opening hours” get the reply from now on.').waitFor()
  await row(page, 'opening hours').getByRole('link', { name: 'prices' }).waitFor()
  await row(page, 'opening hours').getByRole('button', { name: 'Edit' }).click()
  await dialog(page).getByLabel('Keyword').fill('hours')
  await dialog(page).getByLabel('Template').selectOption({ index: 1 })
  await dialog(page).getByRole('button', { name: 'Save' }).click()
  await page.getByText('Recipients who write “hours” get the reply from now on.').waitFor()
  await row(page, 'hours').getByRole('link', { name: 'hours' }).waitFor()

  const phone = '+48500772110'
  await account.send(phone, TEXT)
  await herald.simulator.ask(`phones/${phone}/reply`, { agentId: account.agentId, text: 'Your hours, please?' })
  await until('the reply has arrived', async () => {
    const { items } = await ask(account, 'GET', `messages?recipient=${encodeURIComponent(phone)}`)
    return items.some(({ triggeredBy }: { triggeredBy?: string }) => triggeredBy !== undefined)
  })

  await row(page, 'hours').getByRole('button', { name: 'Remove' }).click()
  await dialog(page).getByText('Recipients who write “hours” to Greenhouse get no reply from then on.').waitFor()
  await dialog(page).getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('heading', { name: 'No automatic reply yet' }).waitFor()
  await end()
})

test('automatic replies that Herald refuses say why, and the dialog keeps what was written', browserTest, async () => {
  const { page, close } = await open(await withTemplates(), 'replies/automatic')
  await button(page, 'Add an automatic reply').first().click()
  await dialog(page).getByLabel('Keyword').fill('stop')
  await dialog(page).getByLabel('Template').selectOption({ index: 1 })
  await dialog(page).getByRole('button', { name: 'Save' }).click()
  await dialog(page)
    .getByRole('alert')
    .getByText(/opts recipients out or in/)
    .waitFor()
  assert.equal(await dialog(page).getByLabel('Keyword').inputValue(), 'stop')
  await close()
})

test('automatic replies without an approved template lead to the templates', browserTest, async () => {
  const { page, end } = await open(await herald.newAccount(), 'replies/automatic')
  await button(page, 'Add an automatic reply').first().click()
  await dialog(page).getByText('No template is approved yet.').waitFor()
  await dialog(page).getByRole('link', { name: 'Templates' }).click()
  await page.waitForURL(/\/templates$/)
  await end()
})

test('automatic replies are read by a viewer, who can change nothing', browserTest, async () => {
  const account = await withTemplates()
  const { page, end } = await open(account, 'replies/automatic')
  await button(page, 'Add an automatic reply').first().click()
  await dialog(page).getByLabel('Keyword').fill('prices')
  await dialog(page).getByLabel('Template').selectOption({ index: 2 })
  await dialog(page).getByRole('button', { name: 'Save' }).click()
  await row(page, 'prices').waitFor()
  await end()
  const viewer = await open(account, 'replies/automatic', 'viewer')
  await row(viewer.page, 'prices').waitFor()
  assert.equal(await viewer.page.getByRole('button', { name: /Add|Edit|Remove/ }).count(), 0)
  await viewer.end()
})

const PHONE = '+48500773110'
/** How many rows the page says are stored about the number. */
async function storedIn(page: Page): Promise<number> {
  const text = await page.getByText(/^Herald stores \d+ rows about this number\.$/).textContent()
  return Number(/\d+/.exec(text ?? '')?.[0])
}

/** An account that has sent one message to the number, which has read it. */
async function withMessage() {
  const account = await herald.newAccount()
  const messageId = await account.send(PHONE, TEXT)
  await until('it is read', async () => (await ask(account, 'GET', `messages/${messageId}`)).status === 'READ')
  return account
}

test('everything about a number is counted and exported', browserTest, async () => {
  const account = await withMessage()
  const { page, end } = await open(account, 'replies/number')
  await page.getByRole('heading', { name: 'Which number?' }).waitFor()
  await page.getByLabel('Phone number').fill('+48 500 773 110')
  await button(page, 'Find').click()
  await page.waitForURL(/\/number\?phone=/)
  assert.ok((await storedIn(page)) > 0)
  const downloading = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Export as JSON' }).click()
  const { messages } = JSON.parse(await readFile(await (await downloading).path(), 'utf8'))
  assert.deepEqual(
    messages.map(({ status }: { status: string }) => status),
    ['READ'],
  )
  await end()
})

test(
  'everything about a number is erased after the number is typed and the password given, and can be allowed again',
  browserTest,
  async () => {
    const account = await withMessage()
    const { page, close } = await open(account, `replies/number?phone=${encodeURIComponent(PHONE)}`)
    await herald.pool.query(`update sessions set confirmed_at = now() - interval '1 hour'`)
    await button(page, 'Erase').click()
    await dialog(page)
      .getByText(/^This account: this erases \d+ rows about one person/)
      .waitFor()
    const erase = dialog(page).getByRole('button', { name: 'Erase' })
    await dialog(page).getByLabel(`Type ${PHONE} to confirm`).fill('+48500773119')
    assert.equal(await erase.isDisabled(), true)
    await dialog(page).getByLabel(`Type ${PHONE} to confirm`).fill(PHONE)
    await erase.click()
    const confirm = page.getByRole('dialog', { name: 'Confirm that it is you' })
    await confirm.getByLabel('Password').fill(PASSWORD)
    await confirm.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('The data is erased.').waitFor()
    await page.getByText('Herald stores nothing about this number.').waitFor()
    await page.getByText(/^This account: erased/).waitFor()
    assert.deepEqual((await ask(account, 'GET', `messages?recipient=${encodeURIComponent(PHONE)}`)).items, [])
    await button(page, 'Allow messages again').click()
    await dialog(page).getByText('Herald can write to one person again.').waitFor()
    await dialog(page).getByRole('button', { name: 'Allow messages again' }).click()
    await page.getByText('Herald may write to the number again.').waitFor()
    await page.getByText(/^This account: erased/).waitFor({ state: 'detached' })
    await close()
  },
)

test('everything about a number is searched in all accounts by an operator only', browserTest, async () => {
  const accounts = [await withMessage(), await withMessage()]
  const [account] = accounts as [Account]
  const path = `replies/number?phone=${encodeURIComponent(PHONE)}`
  const admin = await open(account, `${path}&in=all`)
  const ofAccount = await storedIn(admin.page)
  assert.equal(await admin.page.getByText('All accounts').count(), 0)
  await admin.end()
  const { page, end } = await open(account, path, 'operator')
  await storedIn(page)
  await page.getByLabel('Where').selectOption('All accounts')
  await page.waitForURL(/in=all$/)
  await until('all accounts are counted', async () => (await storedIn(page)) > ofAccount)
  await end()
})
