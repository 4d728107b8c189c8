import type { Page } from 'playwright-core'
import { call } from '../../../server/test/support/service.ts'
import { herald } from './shared.ts'
import { at, button, dialog, heading, type State } from './state.ts'

const [BLOCKED, STOPPED, ERASED] = ['+48511444101', '+48511444102', '+48511444103'] as const

type Shop = Awaited<ReturnType<typeof prepare>>
let preparing: Promise<Shop> | undefined

async function prepare() {
  const account = await herald.newAccount()
  const { accountId, agentId, authorization } = account
  const cookie = await account.signIn('admin')
  const headers = { cookie: `herald-local=${cookie}`, 'sec-fetch-site': 'same-origin' }
  const ask = async (method: string, path: string, body: object) => {
    const url = `${herald.url}/admin/v1/accounts/${accountId}/${path}`
    const response = await call(url, { method, headers, body })
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
    return response.body
  }
  await call(`${herald.url}/v1/opt-outs/${BLOCKED}`, { method: 'PUT', authorization, body: { block: true } })
  await call(`${herald.url}/v1/opt-outs/${STOPPED}`, { method: 'PUT', authorization, body: { agentId } })
  const message = { type: 'MESSAGE', content: 'We are open from 9 to 18.' }
  const { id: templateId } = await ask('POST', 'templates', { name: 'opening-hours', status: 'APPROVED', message })
  await ask('POST', 'auto-replies', { agentId, keyword: 'opening hours', templateId })
  await ask('POST', `recipients/${ERASED}/erase`, {})
  return account
}

async function openShop(page: Page, path: string): Promise<void> {
  preparing ??= prepare()
  await page.goto(at(path, (await preparing).accountId))
}

async function openOptOuts(page: Page): Promise<void> {
  await openShop(page, 'replies')
  await page.getByRole('row').filter({ hasText: '444 102' }).waitFor()
}

async function openAutomatic(page: Page): Promise<void> {
  await openShop(page, 'replies/automatic')
  await page.getByRole('row').filter({ hasText: 'opening-hours' }).waitFor()
}

/** Opens the page, and a dialog by its first button of this name. */
const withDialog = (name: string, open: (page: Page) => Promise<void>, ofButton: string): State => ({
  name,
  open: async (page) => {
    await open(page)
    await button(page, ofButton).first().click()
    await dialog(page).waitFor()
  },
})

const openNumber =
  (phone: string, more = '') =>
  async (page: Page) => {
    await openShop(page, `replies/number?phone=${encodeURIComponent(phone)}${more}`)
    await page.getByText(/^Herald stores/).waitFor()
  }

export const REPLIES: State[] = [
  {
    name: 'Opt-outs, none',
    open: async (page) => {
      await page.goto(at('replies', (await herald.newAccount()).accountId))
      await heading(page, 'Nobody has opted out').waitFor()
    },
  },
  { name: 'Opt-outs', open: openOptOuts },
  {
    name: 'Opt-outs, none found',
    open: async (page) => {
      await openShop(page, `replies?phone=${encodeURIComponent('+48511444199')}`)
      await heading(page, 'No opt-out matches these filters').waitFor()
    },
  },
  {
    name: 'Opt-outs, of a number that is none',
    refused: 400,
    open: async (page) => {
      await openShop(page, 'replies?phone=12')
      await page.getByRole('alert').first().waitFor()
    },
  },
  withDialog('Opt-outs, a new one', openOptOuts, 'Add an opt-out'),
  withDialog('Opt-outs, blocking a number', openOptOuts, 'Block'),
  withDialog('Opt-outs, removing one', openOptOuts, 'Remove'),
  {
    name: 'Automatic replies, none, to a viewer',
    role: 'viewer',
    open: async (page) => {
      await page.goto(at('replies/automatic'))
      await heading(page, 'No automatic reply yet').waitFor()
    },
  },
  { name: 'Automatic replies', open: openAutomatic },
  withDialog('Automatic replies, a new one', openAutomatic, 'Add an automatic reply'),
  withDialog('Automatic replies, editing one', openAutomatic, 'Edit'),
  withDialog('Automatic replies, removing one', openAutomatic, 'Remove'),
  {
    name: 'everything about a number, before one is given',
    open: async (page) => {
      await page.goto(at('replies/number'))
      await heading(page, 'Which number?').waitFor()
    },
  },
  {
    name: 'everything about a number, to a viewer',
    role: 'viewer',
    open: async (page) => {
      await page.goto(at('replies/number'))
      await heading(page, 'Only admins see what is stored about a number').waitFor()
    },
  },
  { name: 'everything about a number', open: openNumber(BLOCKED) },
  { name: 'everything about a number, in all accounts', open: openNumber(BLOCKED, '&in=all') },
  withDialog('everything about a number, erasing it', openNumber(BLOCKED), 'Erase'),
  withDialog('everything about a number that was erased, allowing it', openNumber(ERASED), 'Allow messages again'),
]
