import { createAccount } from '../../../server/src/accounts/accounts.ts'
import { emptyAccount, herald } from './shared.ts'
import { at, button, dialog, heading, type State } from './state.ts'

const one = (accountId = herald.accountId) => at(`accounts/${accountId}`)

/** Opens an account, and a dialog by its button. */
const onAccount = (name: string, ofButton: string): State => ({
  name,
  open: async (page) => {
    await page.goto(one())
    await button(page, ofButton).click()
    await dialog(page).waitFor()
  },
})

export const ACCOUNTS: State[] = [
  {
    name: 'the first account',
    open: async (page) => {
      await page.route('**/admin/v1/accounts?*', (route) => route.fulfill({ json: { items: [], nextCursor: null } }))
      await page.goto('/console')
      await button(page, 'Add an account').click()
      await dialog(page).getByLabel('Name').waitFor()
    },
  },
  {
    name: 'Accounts',
    open: async (page) => {
      const longName = 'Rindfleischetikettierungsüberwachungsgesellschaft and daughters, the flower shops of the northern harbour'
      const { rowCount } = await herald.pool.query('select from accounts where name = $1', [longName])
      if (rowCount === 0) {
        const { accountId } = await createAccount(herald.pool, longName, ['rcs'])
        await herald.pool.query('update accounts set suspended_at = now() where id = $1', [accountId])
      }
      await page.goto(at('accounts'))
      await page.getByRole('row').filter({ hasText: 'Rindfleisch' }).waitFor()
      await page.getByRole('link', { name: 'a webhook endpoint fails' }).waitFor()
    },
  },
  {
    name: 'Accounts, none found',
    open: async (page) => {
      await page.goto(at('accounts?q=nothing'))
      await heading(page, 'No account matches these filters').waitFor()
    },
  },
  {
    name: 'a new account',
    open: async (page) => {
      await page.goto(at('accounts/new'))
      await dialog(page).getByLabel('Name').waitFor()
    },
  },
  {
    name: 'an account with trouble',
    open: async (page) => {
      await page.goto(one())
      await page.getByRole('link', { name: 'a webhook endpoint fails' }).waitFor()
      await page.getByRole('meter').first().waitFor()
    },
  },
  {
    name: 'another account',
    open: async (page) => {
      await page.goto(one(emptyAccount.accountId))
      await page.getByText('nothing', { exact: true }).waitFor()
      await page.getByRole('meter').first().waitFor()
    },
  },
  onAccount('an account, changing it', 'Change the account'),
  onAccount('an account, suspending it', 'Suspend'),
  onAccount('an account, changing its quotas', 'Change the quotas'),
  {
    name: 'Accounts, one that does not exist',
    refused: 404,
    open: async (page) => {
      await page.goto(one(999_999))
      await heading(page, 'There is no account 999999').waitFor()
    },
  },
]
