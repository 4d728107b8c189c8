import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../../../server/test/support/until.ts'
import { browserTest } from '../support/browser.ts'
import { android, ask, button, CARD, checks, create, field, herald, json, open, row, TEXT, view } from './shared.ts'

const stored = (id: number | string) => ask('GET', `templates/${id}`)
const dialog = (page: Page) => page.getByRole('dialog')
const inDialog = (page: Page, name: string) => dialog(page).getByRole('button', { name, exact: true })

test('saves a new template once, even after a double click', browserTest, async () => {
  const { page, end } = await open('/new')
  await field(page, 'Name').fill('saved once')
  await field(page, 'Description (optional)').fill('For the tests')
  await field(page, 'Text').fill('Good morning!')
  await button(page, 'Save').dblclick()
  await page.waitForURL(/\/templates\/\d+$/)
  await page.getByRole('heading', { name: 'saved once' }).waitFor()
  const { items } = await ask('GET', 'templates?limit=200')
  const [{ id, createdAt, updatedAt, ...template }, ...others] = items.filter(({ name }: { name: string }) => name === 'saved once')
  assert.deepEqual(
    [template, others],
    [
      {
        name: 'saved once',
        description: 'For the tests',
        basic: false,
        status: 'DRAFT',
        message: { type: 'MESSAGE', content: 'Good morning!' },
      },
      [],
    ],
  )
  await page.goto(`/console#/${herald.accountId}/templates/new`)
  await page.getByRole('heading', { name: 'New template' }).waitFor()
  assert.equal(await field(page, 'Text').inputValue(), '', 'the draft of the saved one is gone')
  await end()
})

test('keeps what is typed while a new template is saved', browserTest, async () => {
  const { page, end } = await open('/new')
  await field(page, 'Name').fill('saved slowly')
  await field(page, 'Text').fill('Good morning!')
  const held = Promise.withResolvers<void>()
  await page.route('**/templates', async (route) => {
    await held.promise
    await route.continue()
  })
  await button(page, 'Save').click()
  await field(page, 'Text').fill('Good morning, Anna!')
  held.resolve()
  await page.waitForURL(/\/templates\/\d+$/)
  await page.getByText('Unsaved changes').waitFor()
  assert.equal(await field(page, 'Text').inputValue(), 'Good morning, Anna!')
  assert.equal((await stored(page.url().split('/').at(-1) as string)).message.content, 'Good morning!')
  await end()
})

test('a new template that is saved slowly does not pull the person back from another page', browserTest, async () => {
  const { page, end } = await open('/new')
  await field(page, 'Name').fill('left behind')
  await field(page, 'Text').fill('Good morning!')
  const held = Promise.withResolvers<void>()
  await page.route('**/templates', async (route) => {
    await held.promise
    await route.continue()
  })
  await button(page, 'Save').click()
  await page.getByRole('link', { name: 'Webhooks', exact: true }).click()
  await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor()
  const created = page.waitForResponse((response) => response.request().method() === 'POST' && response.url().endsWith('/templates'))
  held.resolve()
  await (await created).finished()
  await until('the draft is no longer kept', () =>
    page.evaluate<boolean>(`!Object.keys(sessionStorage).some((name) => name.endsWith('-new'))`),
  )
  assert.match(page.url(), /\/webhooks$/)
  await end()
})

test('work on a template that somebody else deletes can be saved as a new one, also after a reload', browserTest, async () => {
  const id = await create('deleted elsewhere', CARD)
  const { page, problems, close } = await open(`/${id}`)
  await field(page, 'Title').fill('My title')
  await ask('DELETE', `templates/${id}`)
  await button(page, 'Save').click()
  await page.getByText('It was deleted elsewhere.').waitFor()
  assert.equal(await field(page, 'Title').inputValue(), 'My title')
  await page.reload()
  await page.getByText('It was deleted elsewhere.').waitFor()
  assert.equal(await field(page, 'Title').inputValue(), 'My title')
  await button(page, 'Save').click()
  await page.waitForURL((url) => /\/templates\/\d+$/.test(url.hash) && !url.hash.endsWith(`/${id}`))
  await page.getByRole('heading', { name: 'deleted elsewhere' }).waitFor()
  const rescued = await stored(page.url().split('/').at(-1) as string)
  assert.deepEqual([rescued.status, rescued.message.data.title], ['DRAFT', 'My title'])
  assert.ok(problems.every((problem) => problem.includes('status of 404')))
  await close()
})

test('unsaved work survives a reload, shows how it differs, and can be discarded', browserTest, async () => {
  const id = await create('unsaved', CARD)
  const { page, end } = await open(`/${id}`)
  await field(page, 'Title').fill('Your order 4711')
  await page.reload()
  await page.getByText('Unsaved changes').waitFor()
  assert.equal(await field(page, 'Title').inputValue(), 'Your order 4711')
  await page.getByRole('link', { name: 'Webhooks', exact: true }).click()
  await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor()
  await page.goBack()
  await button(page, 'Changes').click()
  const lines = await dialog(page).locator('.is-added, .is-removed').allTextContents()
  assert.deepEqual(
    lines.map((line) => line.replace(/\s+/g, ' ')),
    ['−removed: "title": "Your order is on its way"', '+added: "title": "Your order 4711"'],
  )
  await page.keyboard.press('Escape')
  await button(page, 'Discard the changes').click()
  await dialog(page).getByText('2 changed lines will be lost.').waitFor()
  await inDialog(page, 'Discard the changes').click()
  await android(page).getByText('Your order is on its way').waitFor()
  await page.reload()
  await android(page).getByText('Your order is on its way').waitFor()
  assert.equal(await button(page, 'Changes').count(), 0)
  assert.deepEqual((await stored(id)).message, CARD)
  await end()
})

test('approves a draft, and shows the changes of an approved template before it saves them', browserTest, async () => {
  const id = await create('to approve', CARD)
  const { page, end } = await open(`/${id}`)
  await field(page, 'Title').fill('Approved title')
  await button(page, 'Approve').click()
  await page.getByText('The template is approved.').waitFor()
  assert.deepEqual(await stored(id).then(({ status, message }) => [status, message.data.title]), ['APPROVED', 'Approved title'])
  await button(page, 'Approve').waitFor({ state: 'detached' })
  await field(page, 'Title').fill('Later title')
  await button(page, 'Save').click()
  await dialog(page).getByText('New messages get this content at once.').waitFor()
  await dialog(page).getByText('"title": "Later title"').waitFor()
  assert.equal((await stored(id)).message.data.title, 'Approved title')
  await inDialog(page, 'Save').click()
  await page.getByText('The template is saved.').waitFor()
  assert.equal((await stored(id)).message.data.title, 'Later title')
  await end()
})

test('does not replace what somebody else has saved meanwhile without a word', browserTest, async () => {
  const id = await create('two people', TEXT)
  const { page, end } = await open(`/${id}`)
  await field(page, 'Text').fill('My text')
  const theirs = { name: 'two people', basic: false, status: 'DRAFT', message: { ...TEXT, content: 'Their text' } }
  await ask('PUT', `templates/${id}`, theirs)
  await button(page, 'Save').click()
  await page.getByText('Nothing is saved: somebody else').waitFor()
  assert.equal((await stored(id)).message.content, 'Their text')
  await page.getByText('It was saved elsewhere since you began.').waitFor()
  await button(page, 'Changes').click()
  await dialog(page).getByText('"content": "Their text"').waitFor()
  await page.keyboard.press('Escape')
  await button(page, 'Save').click()
  await page.getByText('The template is saved.').waitFor()
  assert.equal((await stored(id)).message.content, 'My text')
  await end()
})

test('says what the server refuses, and keeps what was written', browserTest, async () => {
  const { page, problems, close } = await open('/new')
  await field(page, 'Text').fill('x'.repeat(3_073))
  await button(page, 'Save').click()
  await page.getByRole('alert').getByText('must have at most 3072 characters').waitFor()
  assert.equal((await field(page, 'Text').inputValue()).length, 3_073)
  assert.ok(problems.every((problem) => problem.includes('status of 400')))
  await close()
})

test('deletes only a template that nothing uses', browserTest, async () => {
  const used = await create('opening hours', TEXT)
  const message = { ...TEXT, buttons: [{ id: 'hours', type: 'trigger_template', text: 'Hours', templateId: used }] }
  const user = await create('uses it', message)
  const { page, problems, close } = await open(`/${used}`)
  await button(page, 'Delete').click()
  await inDialog(page, 'Delete').click()
  await dialog(page).getByText(`is used by a button of template ${user}`).waitFor()
  await page.keyboard.press('Escape')
  await page.goto(`/console#/${herald.accountId}/templates/${user}`)
  await button(page, 'Delete').click()
  await inDialog(page, 'Delete').click()
  await row(page, 'opening hours').waitFor()
  assert.equal(await row(page, 'uses it').count(), 0)
  assert.ok(problems.every((problem) => problem.includes('status of 409')))
  await close()
})

test('sends what is on the page to a phone, and follows it there live', browserTest, async () => {
  const id = await create('to test', CARD)
  const { page, end } = await open(`/${id}`)
  await field(page, 'Title').fill('Not saved yet')
  await button(page, 'Send a test').click()
  await field(page, 'To').fill('+48 500 900 110')
  await inDialog(page, 'Send').click()
  const phone = dialog(page).getByRole('region', { name: 'The phone' })
  await phone.getByRole('figure', { name: 'Android phone' }).getByText('Not saved yet').waitFor()
  await dialog(page).getByText('Read', { exact: true }).waitFor()
  await phone.getByText('iPhone (approximation)', { exact: true }).click()
  await phone.getByRole('figure', { name: 'iPhone' }).getByText('Not saved yet').waitFor()
  await dialog(page).getByRole('link', { name: 'Follow it' }).click()
  await page.locator('.outcome', { hasText: 'The recipient read it' }).waitFor()
  const messageId = page.url().split('/').at(-1)?.split('?')[0]
  assert.equal((await ask('GET', `messages/${messageId}`)).test, true)
  assert.equal((await stored(id)).message.data.title, CARD.data.title)
  await end()
})

test('sends no test while the JSON is broken', browserTest, async () => {
  const id = await create('broken test', CARD)
  const { page, end } = await open(`/${id}?view=json`)
  await json(page).fill('{ "type": ')
  await button(page, 'Send a test').click()
  await page.getByText('Nothing is sent: the JSON can’t be read yet.').waitFor()
  assert.equal(await dialog(page).count(), 0)
  await end()
})

test('says at the field why a test cannot be sent', browserTest, async () => {
  const id = await create('wrong number', TEXT)
  const { page, problems, close } = await open(`/${id}`)
  await button(page, 'Send a test').click()
  await field(page, 'To').fill('12')
  await inDialog(page, 'Send').click()
  await dialog(page)
    .locator('.field', { has: field(page, 'To') })
    .locator('.is-wrong')
    .waitFor()
  assert.ok(problems.every((problem) => problem.includes('status of 400')))
  await close()
})

test('a viewer sees templates with masked numbers, and no button that would fail', browserTest, async () => {
  const id = await create('for viewers', CARD)
  const { page, end } = await open('', { cookie: await herald.signIn('viewer') })
  assert.equal(await page.getByRole('link', { name: 'New template' }).count(), 0)
  await row(page, 'for viewers').getByRole('link').click()
  await android(page).getByText('Your order is on its way').waitFor()
  await checks(page).getByText('single', { exact: true }).waitFor()
  assert.equal(
    await checks(page)
      .getByText(/to correct$/)
      .count(),
    0,
    'a masked number is not wrong',
  )
  for (const name of ['Save', 'Approve', 'Delete', 'Send a test']) assert.equal(await button(page, name).count(), 0, name)
  assert.ok(await field(page, 'Title').isDisabled())
  await view(page, 'JSON')
  await until('the number is masked', async () => (await json(page).inputValue()).includes('"+48•••••••11"'))
  assert.doesNotMatch(await page.content(), /500100111/)
  assert.deepEqual((await stored(id)).message, CARD)
  await end()
})

test('an unknown template says so', browserTest, async () => {
  const { page, problems, close } = await open('/786471321601234')
  await page.getByRole('alert').getByText('There is no such template in this account.').waitFor()
  assert.ok(problems.every((problem) => problem.includes('status of 404')))
  await close()
})
