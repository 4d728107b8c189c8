import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page, Route } from 'playwright-core'
import { setModules, suspendAccount } from '../../server/src/accounts/accounts.ts'
import { type ApiResponse, call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'
import { BUTTONS, CONTENTS, withButtons } from './support/samples.ts'

const herald = await startHerald()
const cookie = await herald.signIn('admin')

async function read(path: string): Promise<ApiResponse['body']> {
  const headers = { cookie: `herald-local=${cookie}` }
  return (await call(`${herald.url}/admin/v1/accounts/${herald.accountId}/${path}`, { headers })).body
}

async function openSend() {
  const opened = await openPage({ base: herald.url, cookie })
  await opened.page.goto(`/console#/${herald.accountId}/send`)
  await button(opened.page, 'Send').waitFor()
  return opened
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

/** Sends what the form has, and returns the id of the message, which the link to it has. */
async function submit(page: Page): Promise<string> {
  const follow = page.getByRole('link', { name: 'Follow it' })
  const before = (await follow.count()) === 0 ? undefined : await follow.getAttribute('href')
  await button(page, 'Send').click()
  const href = await until('the message is accepted', async () => {
    const now = (await follow.count()) === 0 ? null : await follow.getAttribute('href')
    return now === before ? null : now
  })
  await page.getByText('Herald accepted the message.').waitFor()
  return href.split('/').at(-1) as string
}

async function delivered(messageId: string): Promise<void> {
  await until('it is delivered', async () => ['DELIVERED', 'READ'].includes((await read(`messages/${messageId}`)).status))
}

/** The request that failed, with its id, and what stands at a field. */
async function assertProblem(page: Page, label: string, reason: RegExp): Promise<void> {
  const alert = page.getByRole('alert')
  await alert.waitFor()
  assert.match((await alert.textContent()) ?? '', reason)
  await alert.getByRole('button', { name: /^Copy req_/ }).waitFor()
  const described = await page.getByLabel(label, { exact: true }).getAttribute('aria-describedby')
  const description = (await page.locator(`[id="${described}"]`).textContent()) ?? ''
  assert.match(description, reason)
}

test('sends a text to a number with spaces, and leads to the message and to the phone', browserTest, async (t) => {
  const { page, problems, close } = await openSend()
  t.after(close)
  await page.getByLabel('To', { exact: true }).fill('+48 500 800 101')
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Your parcel is on its way.')
  await page.getByLabel('Your reference (optional)').fill('order-4711')
  const messageId = await submit(page)
  await delivered(messageId)
  const { recipient, clientReferenceId } = await read(`messages/${messageId}`)
  assert.deepEqual({ recipient, clientReferenceId }, { recipient: '+48500800101', clientReferenceId: 'order-4711' })
  await page.getByRole('link', { name: 'See the phone' }).click()
  await page.getByRole('log').getByText('Your parcel is on its way.').waitFor()
  await page.goto(`/console#/${herald.accountId}/messages/${messageId}`)
  await page.locator('.outcome', { hasText: 'The recipient got it' }).waitFor()
  assert.deepEqual(problems, [])
})

test('sends every type of content, with buttons', browserTest, async (t) => {
  const { page, problems, close } = await openSend()
  t.after(close)
  await page.getByLabel('To', { exact: true }).fill('+48500800201')
  await page.getByText('Card, buttons and more').click()
  const { url, quick_reply: reply } = BUTTONS
  for (const [type, content] of Object.entries(CONTENTS)) {
    assert.ok(url && reply)
    const sent = withButtons(content, url, reply)
    await page.getByLabel('Content in JSON').fill(JSON.stringify(sent))
    const messageId = await submit(page)
    await delivered(messageId)
    assert.deepEqual((await read(`messages/${messageId}/content`)).content, sent, type)
  }
  const { entries } = await herald.simulator.ask('phones/+48500800201/ledger')
  const arrived = entries.filter(({ kind }: { kind: string }) => kind === 'delivered')
  assert.equal(arrived.length, Object.keys(CONTENTS).length)
  assert.deepEqual(problems, [])
})

test('sends the sample card of the JSON field', browserTest, async (t) => {
  const { page, problems, close } = await openSend()
  t.after(close)
  await page.getByLabel('To', { exact: true }).fill('+48500800301')
  await page.getByText('Card, buttons and more').click()
  await delivered(await submit(page))
  assert.deepEqual(problems, [])
})

test('sends a template', browserTest, async (t) => {
  const created = await call(`${herald.url}/v1/templates`, {
    method: 'POST',
    authorization: herald.authorization,
    body: { name: 'parcel', status: 'APPROVED', message: { type: 'MESSAGE', content: 'From a template' } },
  })
  assert.equal(created.status, 201)
  const { page, problems, close } = await openSend()
  t.after(close)
  await page.getByLabel('To', { exact: true }).fill('+48500800401')
  await page.getByText('Template', { exact: true }).click()
  await page.getByRole('combobox', { name: 'Template' }).selectOption('parcel')
  const messageId = await submit(page)
  assert.equal((await read(`messages/${messageId}/content`)).content.content, 'From a template')
  assert.deepEqual(problems, [])
})

test('sends a text and a template with the values of their variables', browserTest, async (t) => {
  const message = { type: 'MESSAGE', content: 'Order {{order}} for {{name|you}}' }
  const url = `${herald.url}/v1/templates`
  const { authorization } = herald
  await call(url, { method: 'POST', authorization, body: { name: 'Personal', status: 'APPROVED', message } })
  const { page, problems, close } = await openSend()
  t.after(close)
  await page.getByLabel('To', { exact: true }).fill('+48500800161')
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Hello {{name}}')
  await page.getByLabel('name', { exact: true }).fill('Anna')
  assert.equal((await read(`messages/${await submit(page)}/content`)).content.content, 'Hello Anna')
  await page.getByText('Template', { exact: true }).click()
  await page.getByRole('combobox', { name: 'Template', exact: true }).selectOption('Personal')
  await page.getByLabel('order', { exact: true }).fill('1001')
  assert.equal((await read(`messages/${await submit(page)}/content`)).content.content, 'Order 1001 for Anna')
  await page.getByLabel('order', { exact: true }).fill('')
  await button(page, 'Send').click()
  await page.getByRole('alert').getByText('has the variable order, which has no value and no default').first().waitFor()
  assert.deepEqual(
    problems.filter((problem) => !problem.includes('400')),
    [],
  )
})

test('sends an SMS to a number without RCS', browserTest, async (t) => {
  const { page, problems, close } = await openSend()
  t.after(close)
  await page.getByLabel('To', { exact: true }).fill('+48500800502')
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Your parcel is on its way.')
  await page.getByText('SMS if RCS fails').click()
  await page.getByLabel('Text of the SMS').fill('Your parcel, by SMS.')
  const messageId = await submit(page)
  await until('the SMS is delivered', async () => (await read(`messages/${messageId}`)).smsFallback.status === 'DELIVERED')
  await page.getByRole('link', { name: 'See the phone' }).click()
  await page.getByRole('log').getByText('Your parcel, by SMS.').waitFor()
  assert.deepEqual(problems, [])
})

test('shows what the API refuses at its field, with the sentence and the id of the request', browserTest, async (t) => {
  const { page, close } = await openSend()
  t.after(close)
  await page.getByLabel('To', { exact: true }).fill('500')
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Hello')
  await button(page, 'Send').click()
  await assertProblem(page, 'To', /must be/)
  assert.equal(await page.getByLabel('To', { exact: true }).getAttribute('aria-invalid'), 'true')

  await page.getByLabel('To', { exact: true }).fill('+48500800601')
  await page.getByText('SMS if RCS fails').click()
  await page.getByLabel('Sender of the SMS').fill('A sender that is much too long')
  await page.getByLabel('Text of the SMS').fill('Hello')
  await button(page, 'Send').click()
  await assertProblem(page, 'Sender of the SMS', /must/)
  await page.getByText('RCS only').click()

  await page.getByText('Card, buttons and more').click()
  await page.getByLabel('Content in JSON').fill('{"type": "CARD"')
  await page.getByText('This is not JSON yet.').waitFor()
  await page.getByLabel('Content in JSON').fill('{"type": "CARD", "data": {"title": 3}}')
  await button(page, 'Send').click()
  await assertProblem(page, 'Content in JSON', /data\/title must be a string/)
  assert.equal(await page.getByRole('link', { name: 'Follow it' }).count(), 0)

  await page.getByLabel('Content in JSON').fill('{"type": "CARD", "data": {"title": "Three"}}')
  await delivered(await submit(page))
  assert.equal(await page.getByRole('alert').count(), 0, 'the error is gone')
})

/** Ways to lose the response to a request that Herald has processed. A proxy may respond with a page of its own. */
const LOST: [name: string, lose: (route: Route) => Promise<void>][] = [
  ['was lost', (route) => route.abort()],
  ['was cut off', (route) => route.fulfill({ status: 202, contentType: 'application/json', body: '{"messageId": "0198' })],
  ['came from a proxy', (route) => route.fulfill({ status: 200, contentType: 'text/html', body: '<h1>Signed in</h1>' })],
  ['has details of another form', (route) => route.fulfill({ status: 502, json: { code: 'BAD_GATEWAY', details: 'upstream' } })],
]

for (const [index, [name, lose]] of LOST.entries()) {
  test(`a message whose response ${name} is sent once when it is sent again`, browserTest, async (t) => {
    const { page, close } = await openSend()
    t.after(close)
    const phone = `+485008007${index}1`
    await page.getByLabel('To', { exact: true }).fill(phone)
    await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Only once')
    await page.route('**/messages', async (route) => {
      await route.fetch()
      await lose(route)
    })
    await button(page, 'Send').click()
    await page.getByText('Herald does not respond.').waitFor()
    await page.unroute('**/messages')
    const messageId = await submit(page)
    await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Another message')
    assert.notEqual(await submit(page), messageId)
    const { items } = await read(`messages?recipient=${encodeURIComponent(phone)}`)
    assert.equal(items.length, 2)
  })
}

test('a template must be chosen, and a list that was not loaded can be loaded again', browserTest, async (t) => {
  const { page, close } = await openSend()
  t.after(close)
  let requests = 0
  page.on('request', (request) => {
    if (request.method() === 'POST') requests += 1
  })
  await page.route('**/templates?*', (route) => route.abort())
  await page.getByLabel('To', { exact: true }).fill('+48500800801')
  await page.getByText('Template', { exact: true }).click()
  const alert = page.getByRole('alert').filter({ hasText: 'Herald does not respond.' })
  await alert.waitFor()
  const template = page.getByRole('combobox', { name: 'Template' })
  await button(page, 'Send').click()
  assert.equal(
    await template.evaluate((select) => (select as unknown as { validity: { valueMissing: boolean } }).validity.valueMissing),
    true,
  )
  assert.equal(await page.getByRole('button', { name: 'As curl' }).count(), 0, 'there is no request yet')
  await page.unroute('**/templates?*')
  await alert.getByRole('button', { name: 'Try again' }).click()
  await alert.waitFor({ state: 'detached' })
  await template.waitFor()
  assert.equal(requests, 0)
})

test('an account without the module sms has no fields for an SMS', browserTest, async (t) => {
  const account = await herald.newAccount()
  await setModules(herald.pool, account.accountId, ['rcs'])
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await account.signIn('admin') })
  t.after(close)
  await page.goto(`/console#/${account.accountId}/send`)
  await button(page, 'Send').waitFor()
  assert.equal(await page.getByText('SMS if RCS fails').count(), 0)
  assert.deepEqual(problems, [])
})

test('nobody is offered to send from a suspended account', browserTest, async (t) => {
  const account = await herald.newAccount()
  await suspendAccount(herald.pool, account.accountId)
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await account.signIn('admin') })
  t.after(close)
  await page.goto(`/console#/${account.accountId}/send`)
  await page.getByRole('heading', { name: 'The operator has suspended this account' }).waitFor()
  assert.equal(await button(page, 'Send').count(), 0)
  await page.goto(`/console#/${account.accountId}`)
  await page.getByText('The operator has suspended this account').first().waitFor()
  assert.equal(await button(page, 'Send a first message').count(), 0)
  for (const path of ['phones', 'messages']) {
    await page.goto(`/console#/${account.accountId}/${path}`)
    await page.getByRole('heading', { name: path === 'phones' ? 'No phone yet' : 'No messages yet' }).waitFor()
    assert.equal(await page.getByRole('main').getByRole('link', { name: 'Send a message' }).count(), 0, path)
  }
  assert.deepEqual(problems, [])
})

test('a viewer of an account without messages is not offered to send one', browserTest, async (t) => {
  const account = await herald.newAccount()
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await account.signIn('viewer') })
  t.after(close)
  await page.goto(`/console#/${account.accountId}/messages`)
  await page.getByRole('heading', { name: 'No messages yet' }).waitFor()
  assert.equal(await page.getByRole('main').getByRole('link', { name: 'Send a message' }).count(), 0)
  assert.deepEqual(problems, [])
})
