import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { call } from '../../../server/test/support/service.ts'
import { openPage } from '../support/browser.ts'
import { startHerald } from '../support/herald.ts'

// A Herald with templates, and what tests do on their pages.

export const herald = await startHerald({ byHand: 'a long list needs hundreds of templates' })
const admin = await herald.signIn('admin')

export const TEXT = { type: 'MESSAGE', content: 'Your parcel is on its way.' }
export const CARD = {
  type: 'CARD',
  content: 'It comes tomorrow between 9 and 12.',
  data: { title: 'Your order is on its way' },
  buttons: [{ id: 'call', type: 'call', text: 'Call the courier', phoneNumber: '+48500100111' }],
}

type Account = Pick<typeof herald, 'accountId' | 'authorization'>

/** A request as a caller of the API. */
export async function ask(method: string, path: string, body?: unknown, { authorization }: Account = herald) {
  const response = await call(`${herald.url}/v1/${path}`, { method, authorization, body })
  assert.ok(response.status < 300, `${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
  return response.body
}

export const create = async (name: string, message: object = TEXT, more: object = {}, account: Account = herald): Promise<number> =>
  (await ask('POST', 'templates', { name, message, ...more }, account)).id

type Options = { cookie?: string; account?: Account }

/** Opens the list, or a template. `end` fails if something went wrong on the page meanwhile. */
export async function open(path = '', { cookie = admin, account = herald }: Options = {}) {
  const opened = await openPage({ base: herald.url, cookie })
  await opened.page.goto(`/console#/${account.accountId}/templates${path}`)
  const end = async () => {
    assert.deepEqual(opened.problems, [])
    await opened.close()
  }
  return { ...opened, end }
}

export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
export const row = (page: Page, name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
export const field = (page: Page, label: string) => page.getByRole('textbox', { name: label, exact: true })
export const labelled = (page: Page, label: string) => page.getByLabel(label, { exact: true })
export const json = (page: Page) => field(page, 'Content in JSON')
export const android = (page: Page) => page.getByRole('figure', { name: 'Android phone' })
export const iphone = (page: Page) => page.getByRole('figure', { name: 'iPhone' })
export const checks = (page: Page) => page.getByRole('complementary', { name: 'Check' })
export const view = (page: Page, name: 'Form' | 'JSON') => page.getByRole('radio', { name, exact: true }).check({ force: true })

export async function contentOf(page: Page): Promise<unknown> {
  return JSON.parse(await json(page).inputValue())
}
