import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { createAccount } from '../../server/src/accounts/accounts.ts'
import { createFirstLink, createLink } from '../../server/src/people/links.ts'
import { createPerson } from '../../server/src/people/people.ts'
import { call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { assertAccessible, browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald()

/** Signs out by a press. Chromium reports each request that arrived after the end of the session. */
async function signOut(page: Page, problems: string[], press: () => Promise<void>): Promise<void> {
  assert.deepEqual([...problems], [])
  await press()
  await page.getByRole('heading', { name: 'Sign in to Herald' }).waitFor()
  for (const problem of problems.splice(0)) assert.match(problem, /status of 401/)
}

test('the link of a person asks only for a password, also before there is an operator', browserTest, async () => {
  const { personId } = await createPerson(herald.pool, { email: 'early@example.com', name: 'Jan Kowalski' })
  const { page, close } = await openPage({ base: herald.url })
  await page.goto(`/console#setup=${(await createLink(herald.pool, personId)).token}`)
  await page.getByText('Choose your password.').waitFor()
  assert.equal(await page.getByLabel('Your name').count(), 0)
  await close()
})

test('the person who opens the link of the first start becomes the operator, and sees the overview', browserTest, async () => {
  const token = await createFirstLink(herald.pool)
  const { page, problems, close } = await openPage({ base: herald.url })
  await page.goto(`/console#setup=${token}`)
  await page.getByLabel('Your name').fill('Anna Nowak')
  await page.getByLabel('E-mail address').fill('anna@example.com')
  await page.getByLabel('Password').fill('correct horse battery')
  assert.ok(!page.url().includes('setup='), 'the secret stays in no history')
  await page.getByRole('button', { name: 'Set the password and sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByText('live', { exact: true }).first().waitFor()
  await page.getByRole('button', { name: 'Signed in as Anna Nowak' }).click()
  await signOut(page, problems, () => page.getByRole('button', { name: 'Sign out' }).click())
  await until('the title names no account', async () => (await page.title()) === 'Herald')
  await page.getByLabel('E-mail address').fill('anna@example.com')
  await page.getByLabel('Password').fill('correct horse battery')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('a person whose session has ended comes to the sign-in page', browserTest, async () => {
  const { page, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.goto('/console')
  await page.getByText('live', { exact: true }).first().waitFor()
  await herald.pool.query('delete from sessions')
  await page.getByRole('heading', { name: 'Sign in to Herald' }).waitFor()
  await close()
})

test('a form stays open when the session cannot be read again, until it has really ended', browserTest, async () => {
  const { page, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.goto(`/console#/${herald.accountId}/webhooks/new`)
  const address = page.getByRole('dialog', { name: 'Add an endpoint' }).getByLabel('Address')
  await address.fill('https://shop.example/herald')
  await page.route('**/sign-in-options', (route) => route.abort())
  const failed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/sign-in-options'))
  await page.evaluate(`new BroadcastChannel('herald-session').postMessage('changed')`)
  await failed
  // The page reads it again by itself.
  await page.waitForEvent('requestfailed', (request) => request.url().endsWith('/sign-in-options'))
  assert.equal(await address.inputValue(), 'https://shop.example/herald')
  await herald.pool.query('delete from sessions')
  await page.unroute('**/sign-in-options')
  await page.getByRole('heading', { name: 'Sign in to Herald' }).waitFor()
  await close()
})

test('the first page of a visit never shows "There is no such page"', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.addInitScript(`
    window.texts = []
    new MutationObserver(() => window.texts.push(document.body?.textContent ?? '')).observe(document, { childList: true, subtree: true })
  `)
  await page.goto('/console')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const wasMissing = await page.evaluate<boolean>(`window.texts.some((text) => text.includes('There is no such page'))`)
  assert.equal(wasMissing, false)
  assert.deepEqual(problems, [])
  await close()
})

test('a page that failed works at another place', browserTest, async () => {
  const messageId = await herald.send('+48500100210', { type: 'MESSAGE', content: 'Your parcel is on its way.' })
  const { page, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.route('**/messages/broken', (route) => route.fulfill({ json: { messageId: 'broken' } }))
  await page.route('**/messages/broken/timeline', (route) => route.fulfill({ json: { items: [] } }))
  await page.goto(`/console#/${herald.accountId}/messages/broken`)
  await page.getByRole('heading', { name: 'This page failed' }).waitFor()
  await page.goto(`/console#/${herald.accountId}/messages/${messageId}`)
  await page.locator('.outcome').waitFor()
  await close()
})

test('a dialog can be closed after a request that got no response', browserTest, async () => {
  const { page, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  // The page waits 30 s; a test can't.
  await page.addInitScript(
    'const timeout = AbortSignal.timeout; AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms === 30_000 ? 500 : ms)',
  )
  await page.goto(`/console#/${herald.accountId}/webhooks/new`)
  const dialog = page.getByRole('dialog', { name: 'Add an endpoint' })
  await dialog.getByLabel('Address').fill('https://shop.example/herald')
  await page.route('**/webhook-endpoints', () => {})
  await page.keyboard.press('Enter')
  await dialog.getByRole('alert').getByText('Herald does not respond.').waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await close()
})

test('Ctrl-K finds the messages to a number', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.goto('/console')
  await page.getByText('live', { exact: true }).first().waitFor()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('+48 500 100 200')
  await page.keyboard.press('Enter')
  await page.waitForURL(/messages\?recipient=%2B48500100200$/)
  assert.deepEqual(problems, [])
  await close()
})

/** What the palette shows. */
const found = (page: Page) => page.locator('.palette').getByRole('option')

test('Ctrl-K offers everything that digits or an id can mean', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.goto('/console')
  await page.getByText('live', { exact: true }).first().waitFor()
  const id = '0198c0de-0000-7000-8000-000000000009'
  const meanings = async (text: string) => {
    await page.keyboard.press('Control+k')
    await page.keyboard.type(text)
    await page.getByRole('option', { name: `Messages with the reference ${text}` }).waitFor()
    const options = await found(page).allTextContents()
    await page.keyboard.press('Escape')
    return options.map((option) => option.trim())
  }
  const reference = (text: string) => `Messages with the reference ${text}`
  assert.deepEqual(await meanings('10023456'), ['Messages to 10023456', reference('10023456')])
  assert.deepEqual(await meanings(id), [`Message ${id}`, `Campaign ${id}`, `Messages of the campaign ${id}`, reference(id)])
  assert.deepEqual(problems, [])
  await close()
})

async function find(page: Page, text: string): Promise<void> {
  await page.getByText('live', { exact: true }).first().waitFor()
  await page.keyboard.press('Control+k')
  await page.keyboard.type(text)
}

test('Ctrl-K finds the form of a new endpoint, and Escape closes it', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.goto('/console')
  await find(page, 'endpoint')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Add an endpoint' }).waitFor()
  await page.keyboard.press('Escape')
  await page.waitForURL(/webhooks$/)
  await page.getByRole('dialog', { name: 'Add an endpoint' }).waitFor({ state: 'detached' })
  assert.deepEqual(problems, [])
  await close()
})

test('Ctrl-K finds the sign-out', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.goto('/console')
  await find(page, 'sign out')
  await signOut(page, problems, () => page.keyboard.press('Enter'))
  await close()
})

test('Ctrl-K offers a viewer no change', browserTest, async () => {
  const { page, close } = await openPage({ base: herald.url, cookie: await herald.signIn('viewer') })
  await page.goto(`/console#/${herald.accountId}/webhooks/new`)
  await find(page, 'endpoint')
  await page.getByRole('option', { name: 'Messages with the reference endpoint' }).waitFor()
  assert.equal(await found(page).count(), 1)
  assert.equal(await page.getByRole('dialog', { name: 'Add an endpoint' }).count(), 0)
  await close()
})

test('Enter in the palette presses nothing on the page below it', browserTest, async () => {
  const { page, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  const changes: string[] = []
  page.on('request', (request) => {
    if (request.method() !== 'GET') changes.push(`${request.method()} ${request.url()}`)
  })
  await page.goto(`/console#/${herald.accountId}/send`)
  await page.getByRole('textbox', { name: 'Text' }).fill('Not finished')
  await page.getByLabel('To', { exact: true }).fill('+48500100200')
  await page.keyboard.press('Control+k')
  await page.keyboard.type('webhooks')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor()
  assert.deepEqual(changes, [])
  await page.getByRole('button', { name: 'Add an endpoint' }).first().click()
  await page.getByRole('dialog', { name: 'Add an endpoint' }).waitFor()
  await page.keyboard.press('Control+k')
  assert.equal(await page.locator('dialog[open]').count(), 1, 'it does not open above another dialog')
  await close()
})

test('a one-time link works in a tab that shows the console already, and after a reload', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url })
  await page.goto('/console')
  await page.getByRole('heading', { name: 'Sign in to Herald' }).waitFor()
  const { personId } = await createPerson(herald.pool, { email: 'invited@example.com', name: 'Jan Kowalski' })
  const { token } = await createLink(herald.pool, personId)
  await page.goto(`/console#setup=${token}`)
  await page.getByText('Choose your password.').waitFor()
  assert.ok(!page.url().includes('setup='))
  await page.reload()
  await page.getByLabel('Password').fill('correct horse battery')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'No account yet' }).waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to Herald' }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('a failed sign-out shows an error, and the person stays signed in', browserTest, async () => {
  const { page, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.goto('/console')
  await page.route('**/admin/v1/session', (route) => (route.request().method() === 'DELETE' ? route.abort() : route.continue()))
  await page.getByRole('button', { name: 'Signed in as Anna Nowak' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.locator('.me-menu').getByRole('alert').waitFor()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await close()
})

test('a sign-in and a set-up whose responses are cut off show an error, and can be repeated', browserTest, async () => {
  const { page, close } = await openPage({ base: herald.url })
  const cut = { status: 200, contentType: 'application/json', body: '{"personId": ' }
  await page.route(/admin\/v1\/(session|setup)$/, (route) => route.fulfill(cut))
  await page.goto('/console')
  await page.getByLabel('E-mail address').fill('anna@example.com')
  await page.getByLabel('Password').fill('correct horse battery')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('Herald does not respond.').waitFor()
  await page.locator('button[type=submit][aria-busy=false]').waitFor()

  const { personId } = await createPerson(herald.pool, { email: 'cut@example.com', name: 'Jan Kowalski' })
  const { token } = await createLink(herald.pool, personId)
  await page.goto(`/console#setup=${token}`)
  await page.getByText('Choose your password.').waitFor()
  await page.getByLabel('Password').fill('correct horse battery')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('Herald does not respond.').waitFor()
  await page.unroute(/admin\/v1\/(session|setup)$/)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'No account yet' }).waitFor()
  await close()
})

test('a set-up that cannot be loaded shows an error below the heading, and is loaded again', browserTest, async () => {
  const { page, close } = await openPage({ base: herald.url })
  await page.route('**/sign-in-options', (route) => route.abort())
  await page.goto('/console#setup=a-link')
  const main = page.getByRole('main')
  await main.getByRole('heading', { name: 'Welcome to Herald' }).waitFor()
  await assertAccessible(page, 'a failed set-up')
  await page.unroute('**/sign-in-options')
  await main.getByRole('alert').getByRole('button', { name: 'Try again' }).click()
  await page.getByLabel('Password').waitFor()
  await close()
})

test('the badge of the network says that it is unknown, and a press loads it again', browserTest, async () => {
  const { page, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.route('**/carriers', (route) => route.abort())
  await page.goto(`/console#/${herald.accountId}/webhooks`)
  const badge = page.getByRole('button', { name: 'Network unknown Try again' })
  await badge.waitFor()
  await assertAccessible(page, 'an unknown network')
  await page.unroute('**/carriers')
  await badge.click()
  await page.getByText('Simulated network', { exact: true }).waitFor()
  await close()
})

test('an unknown address shows a page that says so', browserTest, async () => {
  const { page, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  for (const hash of [`#/${herald.accountId}/%`, '#/999', '#/%/%']) {
    // Otherwise only the hash would change, and the page would not be loaded.
    await page.goto('about:blank')
    await page.goto(`/console${hash}`)
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
  }
  await close()
})

test('an unknown address below a page shows that there is no such page', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  const phones = ['phones/zzz/yyy', 'phones/+48500100200', 'phones/%2B48500100200']
  const others = ['overview/x', 'send/x', 'messages/0198c0de-0000-7000-8000-000000000009/x', 'webhooks/x', 'webhooks/0', 'webhooks/1/x']
  for (const path of [...phones, ...others]) {
    await page.goto(`/console#/${herald.accountId}/webhooks`)
    await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor()
    await page.goto(`/console#/${herald.accountId}/${path}`)
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
  }
  assert.deepEqual(problems, [])
  await close()
})

test('tabs of different people do not share a stream', browserTest, async () => {
  const { page, close } = await openPage({ base: herald.url, cookie: await herald.signIn('operator') })
  await page.goto(`/console#/${herald.accountId}/webhooks`)
  await page.getByText('live', { exact: true }).first().waitFor()
  const value = await herald.signIn('viewer')
  await page.context().addCookies([{ name: 'herald-local', value, url: herald.url, httpOnly: true, sameSite: 'Strict' }])
  const other = await page.context().newPage()
  const stream = other.waitForRequest(/\/stream\?/)
  await other.goto(`/console#/${herald.accountId}/webhooks`)
  await stream
  await close()
})

test('the keyboard goes through all accounts in the switch', browserTest, async () => {
  for (const name of ['Second', 'Third']) await createAccount(herald.pool, name, ['rcs'])
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('operator') })
  await page.goto(`/console#/${herald.accountId}`)
  const control = page.getByRole('combobox', { name: 'Account' })
  await control.focus()
  for (const name of ['Second', 'Third']) {
    await page.keyboard.press('ArrowDown')
    await page.locator('.switch b', { hasText: name }).waitFor()
    await until('the switch has the focus', () =>
      page.evaluate<boolean>(`document.activeElement?.getAttribute('aria-label') === 'Account'`),
    )
  }
  assert.deepEqual(problems, [])
  await close()
})

test('a narrow page has the navigation in a menu, which Escape, a click beside it and a chosen page close', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin'), width: 320, height: 640 })
  await page.goto('/console')
  const menu = page.getByRole('button', { name: 'Menu' })
  const link = page.getByRole('link', { name: 'Webhooks' })
  const ways = [() => page.keyboard.press('Escape'), () => page.mouse.click(310, 400), () => link.click()]
  for (const close of ways) {
    await menu.click()
    await link.waitFor()
    await close()
    await link.waitFor({ state: 'hidden' })
  }
  await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('Ctrl-K finds endpoints, agents, other accounts and events', browserTest, async (t) => {
  const [account, other] = [await herald.newAccount(), await herald.newAccount()]
  const { body } = await call(`${herald.url}/v1/webhook-endpoints`, {
    method: 'POST',
    authorization: account.authorization,
    body: { url: 'http://127.0.0.1:9/found' },
  })
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('operator') })
  t.after(close)
  await page.goto(`/console#/${account.accountId}/webhooks`)
  const eventId = '0198c0de-0000-7000-8000-000000000010'
  const links: [text: string, address: string][] = [
    ['127.0.0.1:9/fo', `webhooks/${body.endpointId}`],
    [eventId, `webhooks/${body.endpointId}?eventId=${eventId}`],
    ['greenhouse', 'agents/'],
  ]
  for (const [text, address] of links) {
    await find(page, text)
    await page.locator(`.palette a[href^="#/${account.accountId}/${address}"]`).first().click()
    await page.waitForURL((url) => url.hash.startsWith(`#/${account.accountId}/${address}`))
  }
  await page.goto(`/console#/${account.accountId}/webhooks/${body.endpointId}?eventId=${eventId}`)
  await page.getByText('This event was not posted to the endpoint in the last 30 days').waitFor()
  await find(page, String(other.accountId))
  await page.locator(`.palette a[href="#/${other.accountId}"]`).click()
  await page.waitForURL((url) => url.hash.startsWith(`#/${other.accountId}`))
  assert.deepEqual(problems, [])
})
