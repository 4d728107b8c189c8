import type { Page } from 'playwright-core'
import { changePerson, createPerson, setRole } from '../../../server/src/people/people.ts'
import { openSession } from '../../../server/src/people/sessions.ts'
import { createToken } from '../../../server/src/people/tokens.ts'
import { emptyAccount, herald } from './shared.ts'
import { at, button, dialog, heading, type State } from './state.ts'

let people = 0

/** The page of a person who has roles in two accounts and a session. */
async function openPerson(page: Page, { isDisabled = false } = {}): Promise<void> {
  people += 1
  const { pool } = herald
  const email = `a-person-with-a-long-address-${people}@customers.example.com`
  const { personId } = await createPerson(pool, { email, name: 'Maria Wiśniewska-Kowalska' })
  for (const accountId of [herald.accountId, emptyAccount.accountId]) await setRole(pool, personId, accountId, 'admin')
  if (!isDisabled)
    await openSession(pool, personId, { address: '2001:db8::4711', userAgent: 'Mozilla/5.0 (Windows NT 10.0) Firefox/144.0' })
  await changePerson(pool, personId, { isDisabled })
  await page.goto(at(`people/${personId}`))
  await heading(page, 'Maria Wiśniewska-Kowalska').waitFor()
  await page.getByText('Firefox on Windows').or(heading(page, 'No open session')).waitFor()
}

const onPerson = (name: string, press: string): State => ({
  name,
  open: async (page) => {
    await openPerson(page)
    await button(page, press).first().click()
    await dialog(page).waitFor()
  },
})

async function openTokens(page: Page): Promise<void> {
  const token = {
    name: 'The nightly report of all accounts',
    role: 'viewer' as const,
    accountIds: [herald.accountId, emptyAccount.accountId],
  }
  await createToken(herald.pool, { ...token, expiresAt: new Date(Date.now() + 90 * 86_400_000) })
  await page.goto(at('tokens'))
  await page.getByText(token.name).first().waitFor()
}

export const PEOPLE: State[] = [
  {
    name: 'People',
    open: async (page) => {
      await page.goto(at('people'))
      await page.getByRole('row').nth(1).getByRole('link').waitFor()
    },
  },
  {
    name: 'People, as an admin',
    role: 'admin',
    open: async (page) => {
      await page.goto(at('people'))
      await page.getByRole('row').nth(1).getByRole('link').waitFor()
    },
  },
  {
    name: 'People of an account without people',
    open: async (page) => {
      const { accountId } = await herald.newAccount()
      await page.goto(at('people?of=account', accountId))
      await heading(page, 'Nobody has a role in this account yet').waitFor()
    },
  },
  {
    name: 'People, nobody found',
    open: async (page) => {
      await page.goto(at('people?search=nobody'))
      await heading(page, 'Nobody matches this search').waitFor()
    },
  },
  {
    name: 'a new person',
    open: async (page) => {
      await page.goto(at('people/new'))
      await dialog(page).getByLabel('E-mail address').waitFor()
    },
  },
  {
    name: 'a new person, the link',
    open: async (page) => {
      await page.goto(at('people'))
      await button(page, 'Add a person').click()
      await dialog(page).getByLabel('Name').fill('Jan Kowalski')
      people += 1
      await dialog(page).getByLabel('E-mail address').fill(`new-${people}@example.com`)
      await dialog(page).getByRole('button', { name: 'Add a person' }).click()
      await heading(page, 'Jan Kowalski is added').waitFor()
    },
  },
  { name: 'a person', open: (page) => openPerson(page) },
  { name: 'a disabled person', open: (page) => openPerson(page, { isDisabled: true }) },
  {
    name: 'a person who does not exist',
    refused: 404,
    open: async (page) => {
      await page.goto(at('people/999999'))
      await page.getByRole('main').getByRole('alert').waitFor()
    },
  },
  onPerson('a person, a new link', 'New one-time link'),
  onPerson('a person, another name', 'Rename'),
  onPerson('a person, an operator', 'Give operator role'),
  onPerson('a person, locking them out', 'Disable'),
  onPerson('a person, another role', 'Set a role'),
  onPerson('a person, one role less', 'Remove the role in Test'),
  onPerson('a person, ending all sessions', 'End all'),
  { name: 'Tokens', open: openTokens },
  {
    name: 'a new token',
    open: async (page) => {
      await page.goto(at('tokens/new'))
      await dialog(page).getByLabel('Name').waitFor()
    },
  },
  {
    name: 'a token, revoking it',
    open: async (page) => {
      await openTokens(page)
      await page.getByRole('button', { name: 'Revoke The nightly report' }).first().click()
      await dialog(page).waitFor()
    },
  },
  {
    name: 'your profile',
    role: 'viewer',
    open: async (page) => {
      await page.goto(at('me'))
      await page.getByText('this session').waitFor()
    },
  },
  {
    name: 'your profile, another password',
    role: 'viewer',
    open: async (page) => {
      await page.goto(at('me/password'))
      await dialog(page).getByLabel('Current password').waitFor()
    },
  },
]
