import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { call } from '../../../server/test/support/service.ts'
import { openPage } from '../support/browser.ts'
import { startHerald } from '../support/herald.ts'

export const herald = await startHerald()

export type Shop = Awaited<ReturnType<typeof newShop>>

/** An account without groups, and an admin of it. `ask` sends a request as a caller of the API. */
export async function newShop() {
  const account = await herald.newAccount()
  const cookie = await account.signIn('admin')
  const { accountId, authorization } = account
  async function ask(method: string, path: string, body?: unknown) {
    const response = await call(`${herald.url}/v1/${path}`, { method, authorization, body })
    assert.ok(response.status < 300, `${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
    return response.body
  }
  const members = async (segmentId: number): Promise<Member[]> => (await ask('GET', `segments/${segmentId}/members?limit=200`)).items
  /** A group with these members. */
  async function addGroup(segmentId: number, name: string, phones: string[] = []) {
    await ask('PUT', `segments/${segmentId}`, { name })
    if (phones.length > 0) await ask('POST', `segments/${segmentId}/members`, { members: phones.map((phone) => ({ phone })) })
  }
  return { accountId, authorization, ask, members, addGroup, cookie, signIn: account.signIn }
}

export type Member = { phone: string; consents: number[]; controlGroup: boolean; status: string; attributes?: Record<string, string> }

/** So many numbers, one after the other. */
export const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, index) => `+48${500_100_000 + from + index}`)

/** Opens a page of the groups. `end` fails if something went wrong on the page meanwhile, apart from what is `expected`. */
export async function open(shop: Shop, path = '', { cookie = shop.cookie, height = 900 }: { cookie?: string; height?: number } = {}) {
  const opened = await openPage({ base: herald.url, cookie, height })
  await opened.page.goto(`/console#/${shop.accountId}/groups${path}`)
  const end = async (expected?: RegExp) => {
    assert.deepEqual(
      opened.problems.filter((problem) => !expected?.test(problem)),
      [],
    )
    await opened.close()
  }
  return { ...opened, end }
}

export const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true })
export const dialog = (page: Page) => page.getByRole('dialog')
export const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { name, exact: true })

/** Chooses a file with this content on the page of the import. */
export async function choose(page: Page, content: string | Buffer, name = 'customers.csv'): Promise<void> {
  await page.getByLabel('Choose a CSV file').setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(content) })
}

/** The values that a column of the preview shows, from the first line on. */
export const previewed = (page: Page, column: number) =>
  page
    .getByRole('region', { name: /^The first/ })
    .locator(`tbody td:nth-child(${column + 1})`)
    .allTextContents()

/** The list above a column, in which a person chooses what it has. */
export const useOf = (page: Page, column: string) => page.getByRole('region', { name: /^The first/ }).getByLabel(column, { exact: true })
