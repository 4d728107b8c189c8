import type { Page } from 'playwright-core'
import { createKey, type Restrictions, revokeKey } from '../../../server/src/accounts/keys.ts'
import { emptyAccount, herald } from './shared.ts'
import { at, button, dialog, heading, type State } from './state.ts'

const DAY_MS = 86_400_000
const newKey = async (restrictions: Partial<Restrictions> = {}) =>
  (await createKey(herald.pool, herald.accountId, restrictions)).integrationKey

async function openKey(page: Page, query = ''): Promise<void> {
  const key = await newKey({
    scopes: ['send', 'read', 'export', 'manage'],
    addresses: ['2001:db8:1111:2222:3333:4444:5555:6666', '10.0.0.0/8'],
  })
  await page.goto(at(`keys/${key}${query}`))
  await page.getByRole('region', { name: 'The key' }).waitFor()
}

/** Opens a key, and a dialog by its button. */
const onKey = (name: string, ofButton: string): State => ({
  name,
  open: async (page) => {
    await openKey(page)
    await page.locator('.actions').getByRole('button', { name: ofButton }).click()
    await dialog(page).waitFor()
  },
})

export const KEYS: State[] = [
  {
    name: 'Keys, none found',
    open: async (page) => {
      await page.goto(at('keys?status=EXPIRED', emptyAccount.accountId))
      await heading(page, 'No key has this status').waitFor()
    },
  },
  {
    name: 'Keys',
    open: async (page) => {
      await newKey({ scopes: ['read', 'send', 'export'], addresses: ['2001:db8::/32', '10.0.0.0/8', '192.0.2.7'] })
      await newKey({ expiresAt: new Date(Date.now() + DAY_MS) })
      await newKey({ expiresAt: new Date(Date.now() - DAY_MS) })
      await revokeKey(herald.pool, await newKey())
      await page.goto(at('keys'))
      await page.getByRole('row').nth(5).waitFor()
    },
  },
  {
    name: 'Keys for a viewer',
    role: 'viewer',
    open: async (page) => {
      await page.goto(at('keys'))
      await page.getByRole('row').nth(1).getByRole('link').first().waitFor()
    },
  },
  {
    name: 'Keys, not read',
    problem: 'net::ERR_FAILED',
    open: async (page) => {
      await page.route('**/keys?*', (route) => route.abort())
      await page.goto(at('keys'))
      await page.getByRole('alert').waitFor()
    },
  },
  {
    name: 'a new key',
    open: async (page) => {
      await page.goto(at('keys/new'))
      await dialog(page).getByText('Only this:').click()
    },
  },
  {
    name: 'a new key, refused',
    refused: 400,
    open: async (page) => {
      // Otherwise the console may ask for the password first.
      await herald.pool.query('update sessions set confirmed_at = now()')
      await page.goto(at('keys/new'))
      await dialog(page).getByText('Only this:').click()
      await dialog(page).getByLabel('Addresses').fill('10.0.0.300')
      await dialog(page).getByRole('button', { name: 'Create a key' }).click()
      await dialog(page).getByText('Choose at least one').waitFor()
    },
  },
  {
    name: 'a new key, created',
    open: async (page) => {
      await herald.pool.query('update sessions set confirmed_at = now()')
      await page.goto(at('keys/new'))
      await dialog(page).getByRole('button', { name: 'Create a key' }).click()
      await dialog(page).getByText('it is shown only this once').waitFor()
    },
  },
  {
    name: 'a key, before its rotation',
    open: async (page) => {
      await openKey(page)
      await page.getByRole('button', { name: 'Make the second key' }).waitFor()
    },
  },
  {
    name: 'a key, during its rotation',
    open: async (page) => {
      await openKey(page, `?next=${await newKey()}`)
      await page.getByText('No system has used it yet.').first().waitFor()
    },
  },
  {
    name: 'a key that is revoked',
    open: async (page) => {
      const key = await newKey()
      await revokeKey(herald.pool, key)
      await page.goto(at(`keys/${key}?next=${await newKey()}`))
      await page.getByText('Every request with this key gets 401.').waitFor()
    },
  },
  onKey('a key, changing it', 'Change what it may do'),
  {
    name: 'a key, revoking it',
    open: async (page) => {
      await openKey(page)
      await button(page, 'Revoke').click()
      await dialog(page).getByText('This can’t be undone.').waitFor()
    },
  },
  {
    name: 'a key, as curl',
    open: async (page) => {
      await openKey(page)
      await button(page, 'As curl').click()
      await dialog(page).waitFor()
    },
  },
  {
    name: 'a key that does not exist',
    refused: 404,
    open: async (page) => {
      await page.goto(at('keys/hk_none'))
      await page.getByRole('alert').waitFor()
    },
  },
]
