import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { call } from '../../server/test/support/service.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald()

const to = (page: Page) => page.getByLabel('To', { exact: true })
const text = (page: Page) => page.getByRole('textbox', { name: 'Text', exact: true })
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const accepted = (page: Page) => page.getByText('Herald accepted the message.')

async function openSend(signedIn?: string) {
  const opened = await openPage({ base: herald.url, cookie: signedIn ?? (await herald.signIn('admin')) })
  await opened.page.goto(`/console#/${herald.accountId}/send`)
  await button(opened.page, 'Send').waitFor()
  return opened
}

async function reload(page: Page): Promise<void> {
  await page.reload()
  await button(page, 'Send').waitFor()
}

async function countTo(recipient: string): Promise<number> {
  const url = `${herald.url}/v1/messages?recipient=${encodeURIComponent(recipient)}`
  return (await call(url, { authorization: herald.authorization })).body.items.length
}

test('the success of a message is no longer shown when the form changes', browserTest, async (t) => {
  const { page, problems, close } = await openSend()
  t.after(close)
  await to(page).fill('+48500810101')
  await text(page).fill('To the first one')
  await button(page, 'Send').click()
  await accepted(page).waitFor()
  await to(page).fill('+48500810201')
  await accepted(page).waitFor({ state: 'detached' })
  let posts = 0
  page.on('request', (request) => {
    if (request.method() === 'POST') posts += 1
  })
  await page.getByText('SMS if RCS fails').click()
  await button(page, 'Send').click()
  const smsText = page.getByLabel('Text of the SMS')
  assert.equal(await smsText.evaluate((field) => (field as unknown as { validity: { valueMissing: boolean } }).validity.valueMissing), true)
  // A form that is complete sends its request before the click has ended.
  assert.deepEqual([posts, problems], [0, []])
})

test('a draft stays when the page is loaded again or another one is opened, until it is sent', browserTest, async (t) => {
  const { page, problems, close } = await openSend()
  t.after(close)
  await to(page).fill('+48500810301')
  await text(page).fill('Not finished')
  await page.getByText('SMS if RCS fails').click()
  await page.getByLabel('Text of the SMS').fill('By SMS')
  await reload(page)
  assert.equal(await to(page).inputValue(), '+48500810301')
  assert.equal(await text(page).inputValue(), 'Not finished')
  assert.equal(await page.getByLabel('Text of the SMS').inputValue(), 'By SMS')
  await page.getByRole('link', { name: 'Webhooks' }).click()
  await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor()
  await page.goBack()
  assert.equal(await text(page).inputValue(), 'Not finished')
  await button(page, 'Send').click()
  await accepted(page).waitFor()
  await reload(page)
  assert.equal(await text(page).inputValue(), '')
  assert.deepEqual(problems, [])
})

test('a recipient in the address replaces that of the draft once', browserTest, async (t) => {
  const { page, close } = await openSend()
  t.after(close)
  await to(page).fill('+48500810401')
  await text(page).fill('Not finished')
  await page.goto(`/console#/${herald.accountId}/webhooks`)
  await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor()
  await page.goto(`/console#/${herald.accountId}/send?recipient=%2B48500810501`)
  assert.equal(await text(page).inputValue(), 'Not finished')
  assert.equal(await to(page).inputValue(), '+48500810501')
  await to(page).fill('+48500810601')
  await reload(page)
  assert.equal(await to(page).inputValue(), '+48500810601')
})

test('a message whose response was lost is sent once after the page is loaded again', browserTest, async (t) => {
  const { page, close } = await openSend()
  t.after(close)
  await to(page).fill('+48500810701')
  await text(page).fill('Only once')
  await page.route('**/messages', async (route) => {
    await route.fetch()
    await route.abort()
  })
  await button(page, 'Send').click()
  await page.getByText('Herald does not respond.').waitFor()
  await page.unroute('**/messages')
  await reload(page)
  await button(page, 'Send').click()
  await accepted(page).waitFor()
  assert.equal(await countTo('+48500810701'), 1)
})

test('a draft is gone after the sign-out in any tab, and another account does not show it', browserTest, async (t) => {
  const { accountId } = await herald.newAccount()
  const { page, close } = await openSend(await herald.signIn('operator'))
  t.after(close)
  const drafts = () => page.evaluate<number>('sessionStorage.length')
  await text(page).fill('Not finished')
  assert.equal(await drafts(), 1)
  await page.goto(`/console#/${accountId}/send`)
  await page.locator('.switch small', { hasText: `account ${accountId}` }).waitFor()
  assert.equal(await text(page).inputValue(), '')
  const other = await page.context().newPage()
  await other.goto('/console')
  await other.getByRole('button', { name: 'Signed in as Anna Nowak' }).click()
  await button(other, 'Sign out').click()
  await page.getByRole('heading', { name: 'Sign in to Herald' }).waitFor()
  assert.equal(await drafts(), 0)
})

test('a late response does not say that the changed form was sent', browserTest, async (t) => {
  const { page, problems, close } = await openSend()
  t.after(close)
  const held = Promise.withResolvers<void>()
  await page.route('**/messages', async (route) => {
    await held.promise
    await route.continue()
  })
  await to(page).fill('+48500810801')
  await text(page).fill('The first')
  await button(page, 'Send').click()
  await page.locator('button[type=submit][aria-busy=true]').waitFor()
  await text(page).fill('The second')
  held.resolve()
  await page.locator('button[type=submit][aria-busy=false]').waitFor()
  assert.equal(await countTo('+48500810801'), 1)
  assert.equal(await accepted(page).count(), 0)
  assert.deepEqual(problems, [])
})
