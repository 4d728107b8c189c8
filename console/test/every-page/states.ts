import type { Page } from 'playwright-core'
import { createFirstLink, createLink } from '../../../server/src/people/links.ts'
import { emptyAccount, endpoints, herald, messages, PHONES } from './shared.ts'
import { at, button, dialog, heading, type State } from './state.ts'
import { ACCOUNTS } from './states-accounts.ts'
import { AGENTS } from './states-agents.ts'
import { AUDIT } from './states-audit.ts'
import { CAMPAIGNS } from './states-campaigns.ts'
import { GROUPS } from './states-groups.ts'
import { HEALTH } from './states-health.ts'
import { KEYS } from './states-keys.ts'
import { PEOPLE } from './states-people.ts'
import { REPLIES } from './states-replies.ts'
import { REPORTS } from './states-reports.ts'
import { TEMPLATES } from './states-templates.ts'

const phone = (number: string, more = '') => at(`phones?phone=${encodeURIComponent(number)}${more}`)

async function openSend(page: Page): Promise<void> {
  await page.goto(at(`send?recipient=${encodeURIComponent(PHONES.reads)}`))
  // The page keeps the draft of another state.
  await page.evaluate('sessionStorage.clear()')
  await page.reload()
  await button(page, 'Send').waitFor()
}

async function openPhone(page: Page): Promise<void> {
  await page.goto(phone(PHONES.keeps))
  await page.getByRole('log').getByText('Your order is on its way').waitFor()
  // Not a certain line: the retries of the failing endpoint push earlier ones off the list.
  await page.getByRole('region', { name: 'What Herald saw' }).getByRole('listitem').first().waitFor()
}

async function openMessage(page: Page, messageId: string, outcome: string): Promise<void> {
  await page.goto(at(`messages/${messageId}`))
  await page.locator('.outcome', { hasText: outcome }).waitFor()
  await page.locator('.lanes').waitFor()
}

async function openEndpoint(page: Page, endpointId: number): Promise<void> {
  await page.goto(at(`webhooks/${endpointId}`))
  await page.locator('.attempts details').first().waitFor()
}

// Before anybody is there: the first is the operator.
const DOORS: State[] = [
  {
    name: 'set-up, the first operator',
    role: 'nobody',
    open: async (page) => {
      await page.goto(`/console#setup=${await createFirstLink(herald.pool)}`)
      await page.getByLabel('Your name').waitFor()
    },
  },
  {
    name: 'set-up, a later person',
    role: 'nobody',
    open: async (page) => {
      await herald.signIn('admin')
      const { rows } = await herald.pool.query('select id from people limit 1')
      await page.goto(`/console#setup=${(await createLink(herald.pool, rows[0].id)).token}`)
      await page.getByText('Choose your password.').waitFor()
    },
  },
  {
    name: 'sign-in',
    role: 'nobody',
    open: async (page) => {
      await page.goto('/console')
      await heading(page, 'Sign in to Herald').waitFor()
    },
  },
  {
    name: 'sign-in, refused',
    role: 'nobody',
    refused: 401,
    open: async (page) => {
      await page.goto('/console')
      await page.getByLabel('E-mail address').fill('nobody@example.com')
      await page.getByLabel('Password').fill('a wrong password')
      await button(page, 'Sign in').click()
      await page.getByRole('alert').getByText('The e-mail address or the password is wrong.', { exact: true }).waitFor()
    },
  },
  {
    name: 'a person without an account',
    role: 'stranger',
    open: async (page) => {
      await page.goto('/console')
      await heading(page, 'No account yet').waitFor()
    },
  },
  {
    name: 'an account that does not exist',
    open: async (page) => {
      await page.goto(at('messages', 999))
      await heading(page, 'There is no such page').waitFor()
    },
  },
]

const OVERVIEW: State[] = [
  {
    name: 'Overview without an agent',
    open: async (page) => {
      await page.goto(at('', emptyAccount.accountId))
      await heading(page, 'This account has no active agent').waitFor()
    },
  },
  {
    name: 'Overview, the first steps',
    open: async (page) => {
      await page.goto(at('', (await herald.newAccount()).accountId))
      await button(page, 'Send a first message').click()
      await page.getByRole('log').getByText('Your order is on its way').waitFor()
    },
  },
  {
    name: 'Overview, the first steps in a real network',
    open: async (page) => {
      await page.goto(at('', (await herald.newAccount('real-network')).accountId))
      await page.getByText('Messages of this account go to real phones.').waitFor()
    },
  },
  {
    name: 'Overview, the first endpoint',
    open: async (page) => {
      await page.goto(at('', (await herald.newAccount()).accountId))
      await button(page, 'Add an endpoint').click()
      await page.getByText('No server yet?').click()
    },
  },
  {
    name: 'Overview',
    open: async (page) => {
      await page.goto(at(''))
      await page.locator('.chart-line').first().waitFor()
      await page.locator('.lines a').first().waitFor()
      await page.getByText('as a table').click()
    },
  },
  {
    name: 'the menu of the person',
    open: async (page) => {
      await page.goto(at(''))
      await button(page, 'Signed in as Anna Nowak').click()
      await button(page, 'Sign out').waitFor()
    },
  },
  {
    name: 'the palette',
    open: async (page) => {
      await page.goto(at(''))
      await page.getByText('live', { exact: true }).waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type('500100200')
      await dialog(page).getByRole('option').first().waitFor()
    },
  },
  {
    name: 'an unknown page',
    open: async (page) => {
      await page.goto(at('nothing'))
      await heading(page, 'There is no such page').waitFor()
    },
  },
  {
    name: 'a lost connection',
    problem: 'net::ERR_FAILED',
    open: async (page) => {
      await page.route(/\/stream\?/, (route) => route.abort())
      await page.goto(at('webhooks'))
      await page.getByText('connection lost, trying again').first().waitFor()
      await page.route(/\/messages(?:\?|$)/, (route) => route.abort())
      await page.goto(at('messages'))
      await page.getByRole('alert').getByText('Herald does not respond.').waitFor()
    },
  },
  {
    name: 'a page that fails',
    problem: "TypeError: Cannot read properties of undefined (reading 'startsWith')",
    open: async (page) => {
      await page.route(/\/messages(?:\?|$)/, (route) => route.fulfill({ json: { items: [{}] } }))
      await page.goto(at('messages'))
      await heading(page, 'This page failed').waitFor()
    },
  },
]

const ON_PHONES: State[] = [
  {
    name: 'Phones where the network is real',
    refused: 409,
    open: async (page) => {
      await page.goto(at('phones', emptyAccount.accountId))
      await heading(page, 'There are no phones here').waitFor()
    },
  },
  { name: 'Phones, an Android', open: openPhone },
  {
    name: 'Phones, an iPhone',
    open: async (page) => {
      await page.goto(phone(PHONES.keeps, '&as=iphone'))
      await page.getByRole('figure', { name: 'iPhone' }).getByText('Your order is on its way').waitFor()
    },
  },
  {
    name: 'Phones, an SMS',
    open: async (page) => {
      await page.goto(phone(PHONES.sms))
      await page.getByRole('log').getByText('By SMS').waitFor()
    },
  },
  {
    name: 'Phones, one that is offline',
    open: async (page) => {
      await page.goto(phone('+48500999100'))
      await button(page, 'Go offline').click()
      await page.getByText('Offline: it gets nothing.').waitFor()
    },
  },
  {
    name: 'Phones, sharing a location',
    open: async (page) => {
      await openPhone(page)
      await button(page, 'Share a location').click()
      await dialog(page).getByLabel('Latitude').fill('91')
      await dialog(page).getByText('Enter a number from -90 to 90.').waitFor()
    },
  },
  {
    name: 'Phones, a new phone',
    open: async (page) => {
      await openPhone(page)
      await button(page, 'Add a phone').first().click()
      await dialog(page).getByText('What the last two digits mean').waitFor()
    },
  },
  {
    name: 'Phones, the faults',
    open: async (page) => {
      await openPhone(page)
      await button(page, 'Faults: none').click()
      await dialog(page).getByRole('switch').first().waitFor()
    },
  },
]

const SEND: State[] = [
  {
    name: 'Send without an agent',
    open: async (page) => {
      await page.goto(at('send', emptyAccount.accountId))
      await heading(page, 'This account has no active agent').waitFor()
    },
  },
  { name: 'Send a text', open: openSend },
  {
    name: 'Send a card, with an SMS',
    open: async (page) => {
      await openSend(page)
      await page.getByText('Card, buttons and more').click()
      await page.getByText('SMS if RCS fails').click()
      await page.getByLabel('Text of the SMS').waitFor()
    },
  },
  {
    name: 'Send a template',
    open: async (page) => {
      await openSend(page)
      await page.getByText('Template', { exact: true }).click()
      await page.getByRole('combobox', { name: 'Template' }).selectOption('parcel')
    },
  },
  {
    name: 'Send, refused',
    refused: 400,
    open: async (page) => {
      await openSend(page)
      await page.getByText('Card, buttons and more').click()
      await page.getByLabel('Content in JSON').fill('{"type": "CARD", "data": {"title": 3}}')
      await button(page, 'Send').click()
      await page.getByRole('alert').waitFor()
    },
  },
]

const ON_MESSAGES: State[] = [
  {
    name: 'Messages of an empty account',
    open: async (page) => {
      await page.goto(at('messages', emptyAccount.accountId))
      await page.locator('.empty').waitFor()
    },
  },
  {
    name: 'Messages',
    open: async (page) => {
      await page.goto(at('messages'))
      await page.getByRole('row').nth(1).waitFor()
    },
  },
  {
    name: 'Messages, none found',
    open: async (page) => {
      await page.goto(at('messages?clientReferenceId=nothing'))
      await heading(page, 'No message matches these filters').waitFor()
    },
  },
  {
    name: 'Messages, as curl',
    open: async (page) => {
      await page.goto(at('messages?status=FAILED,EXPIRED'))
      await button(page, 'As curl').click()
      await dialog(page).waitFor()
    },
  },
  { name: 'a message that was read', open: (page) => openMessage(page, messages.read, 'The recipient read it') },
  {
    name: 'a message on an iPhone',
    open: async (page) => {
      await openMessage(page, messages.kept, 'The recipient got it by RCS')
      await page.getByText('iPhone').click()
      await page.getByRole('figure', { name: 'iPhone' }).getByText('Your order is on its way').waitFor()
    },
  },
  { name: 'a message that failed', open: (page) => openMessage(page, messages.failed, 'The recipient got nothing.') },
  { name: 'a message that waits', open: (page) => openMessage(page, messages.waiting, 'The network has it') },
  { name: 'a message that arrived by SMS', open: (page) => openMessage(page, messages.bySms, 'The recipient got it by SMS') },
  { name: 'a message whose SMS was held back', open: (page) => openMessage(page, messages.heldBack, 'The recipient got nothing.') },
  {
    name: 'a message, as JSON',
    open: async (page) => {
      await openMessage(page, messages.read, 'The recipient read it')
      await button(page, 'As JSON').click()
      await dialog(page).waitFor()
    },
  },
  {
    name: 'a message, cancelling it',
    open: async (page) => {
      await herald.simulator.ask('faults', { api: { serverError: { rate: 1 } } }, 'PUT')
      const messageId = await herald.send('+48511222510', { type: 'MESSAGE', content: 'Hello' })
      await openMessage(page, messageId, 'It is being sent.')
      await button(page, 'Cancel the message').click()
      await dialog(page).waitFor()
      await herald.simulator.ask('faults', undefined, 'DELETE')
    },
  },
  {
    name: 'a message that does not exist',
    refused: 404,
    open: async (page) => {
      await page.goto(at('messages/0198c0de-0000-7000-8000-000000000009'))
      await page.getByRole('alert').waitFor()
    },
  },
]

/** Opens the endpoint, and a dialog by its button. */
const onEndpoint = (name: string, ofButton: string): State => ({
  name,
  open: async (page) => {
    await openEndpoint(page, endpoints.failing)
    await button(page, ofButton).click()
    await dialog(page).waitFor()
  },
})

const WEBHOOKS: State[] = [
  {
    name: 'Webhooks of an empty account',
    open: async (page) => {
      await page.goto(at('webhooks', emptyAccount.accountId))
      await heading(page, 'No endpoint yet').waitFor()
    },
  },
  {
    name: 'Webhooks',
    open: async (page) => {
      await page.goto(at('webhooks'))
      await page.getByText('fails', { exact: true }).waitFor()
    },
  },
  {
    name: 'an endpoint that fails',
    open: async (page) => {
      await openEndpoint(page, endpoints.failing)
      await page.locator('.attempts summary').first().click()
      await page.getByText('out of disk').first().waitFor()
    },
  },
  { name: 'an endpoint that accepts events', open: (page) => openEndpoint(page, endpoints.accepting) },
  {
    name: 'an endpoint that is disabled',
    open: async (page) => {
      await openEndpoint(page, endpoints.accepting)
      await button(page, 'Disable').click()
      await dialog(page).getByRole('button', { name: 'Disable' }).click()
      await page.getByText('The operator disabled it.').waitFor()
      await page.getByRole('status').filter({ hasText: 'The endpoint is disabled.' }).waitFor()
    },
  },
  onEndpoint('an endpoint, posting again', 'Post events again'),
  onEndpoint('an endpoint, a new secret', 'Replace the secret'),
  onEndpoint('an endpoint, deleting it', 'Delete'),
  {
    name: 'a new endpoint',
    open: async (page) => {
      await page.goto(at('webhooks'))
      await button(page, 'Add an endpoint').click()
      await dialog(page).getByLabel('Address').waitFor()
    },
  },
  {
    name: 'the password',
    refused: 403,
    open: async (page) => {
      await herald.pool.query(`update sessions set confirmed_at = now() - interval '1 hour'`)
      await page.goto(at('webhooks'))
      await button(page, 'Add an endpoint').click()
      await page.getByLabel('Address').fill('https://hooks.example.com/herald')
      await dialog(page).getByRole('button', { name: 'Add an endpoint' }).click()
      await heading(page, 'Confirm that it is you').waitFor()
    },
  },
]

export const STATES = [
  ...DOORS,
  ...OVERVIEW,
  ...ON_PHONES,
  ...SEND,
  ...TEMPLATES,
  ...CAMPAIGNS,
  ...GROUPS,
  ...ON_MESSAGES,
  ...REPORTS,
  ...REPLIES,
  ...WEBHOOKS,
  ...KEYS,
  ...AGENTS,
  ...HEALTH,
  ...ACCOUNTS,
  ...PEOPLE,
  ...AUDIT,
]
