import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../server/test/support/until.ts'
import { browserTest } from '../support/browser.ts'
import { CONTENTS, VARIANTS } from '../support/samples.ts'
import { assertWithin, repeatIfSlow } from '../support/timed.ts'
import {
  android,
  ask,
  button,
  CARD,
  checks,
  contentOf,
  create,
  field,
  herald,
  iphone,
  json,
  labelled,
  open,
  row,
  TEXT,
  view,
} from './shared.ts'

test('keeps the filters in the address, so that they survive a reload', browserTest, async () => {
  await create('a-draft')
  await create('an-approved-card', CARD, { status: 'APPROVED' })
  const { page, end } = await open()
  await row(page, 'a-draft').getByText('Your parcel is on its way.').waitFor()
  await labelled(page, 'Status').selectOption('Approved')
  await labelled(page, 'Content').selectOption('Card')
  await row(page, 'a-draft').waitFor({ state: 'detached' })
  assert.match(page.url(), /\?status=APPROVED&type=CARD$/)
  await page.reload()
  await row(page, 'an-approved-card').waitFor()
  assert.deepEqual([await labelled(page, 'Status').inputValue(), await row(page, 'a-draft').count()], ['APPROVED', 0])
  await labelled(page, 'Content').selectOption('Audio')
  await page.getByRole('heading', { name: 'Nothing matches these filters' }).waitFor()
  await page.getByRole('link', { name: 'Clear the filters' }).click()
  await row(page, 'a-draft').waitFor()
  await end()
})

test('shows the chosen template of the list on both kinds of phone', browserTest, async () => {
  const { page, end } = await open()
  await button(page, 'Preview an-approved-card').click()
  for (const phone of [android(page), iphone(page)]) await phone.getByText('Your order is on its way').waitFor()
  await page.reload()
  await android(page).getByText('Your order is on its way').waitFor()
  await end()
})

test('says what to do in an account without templates', browserTest, async () => {
  const account = await herald.newAccount()
  const { page, end } = await open('', { account, cookie: await account.signIn('admin') })
  await page.getByRole('heading', { name: 'No template yet' }).waitFor()
  await page.locator('.empty').getByRole('link', { name: 'New template' }).click()
  await page.getByRole('heading', { name: 'New template' }).waitFor()
  await end()
})

test('lists 500 templates within a second, and draws only those near the window', browserTest, async (t) => {
  const account = await herald.newAccount()
  const first = await create('template 0', TEXT, {}, account)
  await herald.pool.query(
    `insert into templates (id, account_id, name, status, type, content_id, created_at, updated_at)
     select id + n, account_id, 'template ' || n, status, type, content_id, created_at + n * interval '1 second', updated_at
     from templates, generate_series(1, 499) n where id = $1`,
    [first],
  )
  const cookie = await account.signIn('admin')
  await repeatIfSlow(async () => {
    const { page, end } = await open('', { account, cookie })
    await row(page, 'template 499').waitFor()
    await page.goto(`/console#/${account.accountId}/webhooks`)
    await page.getByRole('heading', { name: 'No endpoint yet' }).waitFor()
    const from = performance.now()
    await page.getByRole('link', { name: 'Templates', exact: true }).click()
    await row(page, 'template 499').waitFor()
    assertWithin(t, 'the list of 500 templates', performance.now() - from, 1_000)
    await until('the last one is reached', async () => {
      await page.mouse.wheel(0, 20_000)
      return (await row(page, 'template 0').count()) > 0
    })
    assert.ok((await page.getByRole('row').count()) < 400)
    await end()
  })
})

test('the form and the JSON are two views of one object', browserTest, async () => {
  const id = await create('two views', CARD)
  const { page, end } = await open(`/${id}`)
  await field(page, 'Title').fill('Your order 4711')
  await view(page, 'JSON')
  assert.deepEqual(await contentOf(page), { ...CARD, data: { title: 'Your order 4711' } })
  await json(page).fill(JSON.stringify({ ...CARD, data: { title: 'From JSON', height: 'TALL' } }))
  await android(page).getByText('From JSON').waitFor()
  await page.reload()
  await view(page, 'Form')
  assert.equal(await field(page, 'Title').inputValue(), 'From JSON')
  await button(page, 'Add a button').click()
  await field(page, 'Label').last().fill('Another day')
  await iphone(page).getByText('Another day').waitFor()
  await view(page, 'JSON')
  const { buttons } = (await contentOf(page)) as typeof CARD
  assert.deepEqual(buttons.at(-1), { id: 'button-1', type: 'quick_reply', text: 'Another day', payload: 'button-1' })
  await end()
})

test('reads the templates once for all buttons that send one, and not without such a button', browserTest, async () => {
  const other = await create('sent by buttons', TEXT, { status: 'APPROVED' })
  const buttons = ['one', 'two'].map((id) => ({ id, type: 'trigger_template', text: id, templateId: other }))
  const [plain, withButtons] = [await create('no such button', TEXT), await create('two such buttons', { ...TEXT, buttons })]
  const { page, end } = await open(`/${plain}`)
  const reads: string[] = []
  page.on('request', (request) => request.url().includes('/templates?') && reads.push(request.url()))
  await checks(page).getByText('Herald accepts this content').waitFor()
  assert.deepEqual(reads, [])
  await page.goto(`/console#/${herald.accountId}/templates/${withButtons}`)
  for (const name of ['one', 'two']) {
    await page.locator('.parts summary', { hasText: name }).click()
    await page.locator('.parts details[open]', { hasText: name }).getByLabel('Template', { exact: true }).waitFor()
  }
  await until('the fields have the template', async () => (await page.getByRole('option', { name: 'sent by buttons' }).count()) === 2)
  assert.equal(reads.length, 1)
  await end()
})

test('shows the id of the template, to copy, and what phones must support', browserTest, async () => {
  const id = await create('known by its id', CARD)
  const { page, end } = await open(`/${id}`)
  await button(page, `Copy ${id}`).getByText(String(id)).waitFor()
  await checks(page).getByText('ACTION_DIAL, RICHCARD_STANDALONE').waitFor()
  await end()
})

test('JSON that is broken is kept, says where it is wrong, and is not saved', browserTest, async () => {
  const id = await create('broken', CARD)
  const { page, end } = await open(`/${id}?view=json`)
  await json(page).fill('{ "type": "CARD",\n "content": }')
  await page.getByText(/^This is not JSON yet: .*"content": \}/).waitFor()
  await page.reload()
  assert.equal(await json(page).inputValue(), '{ "type": "CARD",\n "content": }')
  await button(page, 'Save').click()
  await page.getByText('Nothing is saved: the JSON can’t be read yet.').waitFor()
  await view(page, 'Form')
  await page.getByText('The JSON can’t be read.').waitFor()
  assert.equal(await field(page, 'Title').inputValue(), 'Your order is on its way')
  assert.deepEqual((await ask('GET', `templates/${id}`)).message, CARD)
  await end()
})

test('the form shows and keeps every type of content', browserTest, async () => {
  const contents = { ...CONTENTS, ...VARIANTS }
  const { page, end } = await open('/new?view=json')
  await page.route(/\/media\?/, (route) => route.fulfill({ contentType: 'image/png', body: '' }))
  for (const [name, content] of Object.entries(contents)) {
    await view(page, 'JSON')
    await json(page).fill(JSON.stringify(content))
    await view(page, 'Form')
    const type = page.getByRole('group', { name: 'What it is' }).getByRole('radio', { checked: true })
    await type.waitFor({ state: 'attached' })
    await view(page, 'JSON')
    assert.deepEqual(await contentOf(page), content, name)
  }
  await end()
})

test('what is wrong, how full each limit is and what it costs come from the check of the server', browserTest, async () => {
  const id = await create('checked', TEXT)
  const { page, end } = await open(`/${id}`)
  await checks(page).getByText('Herald accepts this content').waitFor()
  const meter = (name: string) => checks(page).getByRole('meter', { name, exact: true }).locator('..')
  await meter('Text').getByText('26 of 3,072').waitFor()
  await checks(page).getByText('basic', { exact: true }).waitFor()
  await page.getByText('RCS Basic', { exact: true }).click()
  await field(page, 'Text').fill('ą'.repeat(81))
  await meter('Text, in bytes').getByText('162 of 160').waitFor()
  await checks(page).getByText('1 thing to correct').waitFor()
  await page
    .locator('.field', { has: field(page, 'Text') })
    .getByText('has 162 bytes in UTF-8; Basic mode allows 160')
    .waitFor()
  await page.getByText('RCS', { exact: true }).click()
  await button(page, 'Add a button').click()
  await field(page, 'Label').fill('A label that is much longer than all phones show')
  await checks(page).getByText('Button 1: Label').waitFor()
  await meter('Buttons').getByText('1 of 11').waitFor()
  await checks(page).getByText('single', { exact: true }).waitFor()
  await end()
})

test('marks what iPhones cut, and says how much of a card they show', browserTest, async () => {
  const id = await create('long', { ...CARD, content: 'Somebody has to be at home for the box. '.repeat(9).trim() })
  const { page, end } = await open(`/${id}`)
  await iphone(page).getByText('cut after 6 lines').waitFor()
  assert.equal(await android(page).getByText(/^cut/).count(), 0)
  await checks(page).getByText('383 of 150').waitFor()
  await checks(page).getByText('Title and text over about 150 characters can be cut off.').waitFor()
  await end()
})

test('says that a picture cannot be checked when Herald does not respond', browserTest, async () => {
  const { page, close } = await open('/new')
  // The page waits 15 s; a test can't.
  await page.addInitScript(
    'const timeout = AbortSignal.timeout; AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms === 15_000 ? 100 : ms)',
  )
  await page.reload()
  await page.route(/\/media\?/, () => {})
  await page.getByText('Card', { exact: true }).click()
  await field(page, 'Picture').fill('https://shop.example/door.png')
  await page.getByText('Herald does not respond.').waitFor()
  await close()
})

test('checks a picture through Herald, and shows it on both phones or says why not', browserTest, async () => {
  const id = await create('picture', CARD)
  const { page, problems, close } = await open(`/${id}`)
  const asked: string[] = []
  page.on('request', (request) => request.url().includes('/media?') && asked.push(new URL(request.url()).searchParams.get('url') ?? ''))
  await field(page, 'Picture').pressSequentially('https://nowhere.example.com/door.png')
  await page.getByText(/^The file can't be fetched: /).waitFor()
  assert.equal(asked.at(-1), 'https://nowhere.example.com/door.png')
  assert.ok(asked.length <= 4, `not each key is a request: ${asked}`)
  const png = await page.screenshot({ clip: { x: 0, y: 0, width: 90, height: 60 } })
  await page.route(/\/media\?/, (route) => route.fulfill({ contentType: 'image/png', body: png }))
  await button(page, 'Look again').click()
  await page.getByText(/^90 × 60 · \d+ kB$/).waitFor()
  for (const phone of [android(page), iphone(page)]) await phone.locator('.ph-media img').waitFor()
  assert.ok(
    problems.every((problem) => problem.includes('status of 422')),
    problems.join(),
  )
  await close()
})
