import type { Page } from 'playwright-core'
import { call } from '../../../server/test/support/service.ts'
import { emptyAccount, herald, PHONES } from './shared.ts'
import { at, button, dialog, heading, type State } from './state.ts'

const FILE = { name: 'customers-of-the-spring-sale.csv', mimeType: 'text/csv' }
const HEADER = 'name;telefon;consents;favourite-plants-of-the-customer'
const LINES = ['Anna;+48511222310;"1;7";Monstera', 'Jan;500;1;Tulips', 'Ola;+48511222301', 'Ewa;+48511222303;1;"Tulips\r\nand roses"']

let groups: Promise<void> | undefined

/** Two groups, one of them empty. They are made when the first state needs them. */
const withGroups = () => (groups ??= addGroups())

async function addGroups(): Promise<void> {
  const ask = async (method: string, path: string, body: object) => {
    const response = await call(`${herald.url}/v1/segments/${path}`, { method, authorization: herald.authorization, body })
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
  }
  await ask('PUT', '71', { name: 'Customers with a name as long as those of some shops, and more' })
  await ask('PUT', '72', { name: 'Empty' })
  const members = Object.values(PHONES).map((phone, index) => ({
    phone,
    consents: [1, 7, 12],
    controlGroup: index === 1,
    status: index === 2 ? 'inactive' : 'active',
    timeZone: 'America/Argentina/Buenos_Aires',
    attributes: {
      city: 'Gdynia',
      note: `call ${PHONES.reads}`,
      'a-long-attribute-without-any-space': 'Monstera-deliciosa-of-sixty-centimetres',
    },
  }))
  await ask('POST', '71/members', { members })
}

async function openGroups(page: Page, path = ''): Promise<void> {
  await withGroups()
  await page.goto(at(`groups${path}`))
}

async function openGroup(page: Page): Promise<void> {
  await openGroups(page, '/71')
  await page.getByRole('table', { name: 'Members' }).locator('tbody tr').nth(5).waitFor()
}

async function prepare(page: Page, path = '/new', lines = LINES): Promise<void> {
  await openGroups(page, path)
  await page.getByLabel('Choose a CSV file').setInputFiles({ ...FILE, buffer: Buffer.from([HEADER, ...lines].join('\r\n')) })
  await page.getByRole('region', { name: /^The first/ }).waitFor()
}

/** Begins an import that Herald does not take part in. */
async function begin(page: Page): Promise<void> {
  await prepare(page)
  await button(page, 'Import 4 lines').click()
}

export const GROUPS: State[] = [
  {
    name: 'groups',
    open: async (page) => {
      await openGroups(page)
      await page.getByRole('link', { name: 'Empty' }).waitFor()
    },
  },
  {
    name: 'groups, as a viewer',
    role: 'viewer',
    open: async (page) => {
      await openGroups(page)
      await page.getByRole('link', { name: 'Empty' }).waitFor()
    },
  },
  {
    name: 'groups, none',
    open: async (page) => {
      await page.goto(at('groups', emptyAccount.accountId))
      await heading(page, 'No group yet').waitFor()
    },
  },
  {
    name: 'groups, filtered to none',
    open: async (page) => {
      await openGroups(page, '?search=nothing')
      await heading(page, 'Nothing matches these filters').waitFor()
    },
  },
  {
    name: 'groups, a new one',
    open: async (page) => {
      await openGroups(page)
      await button(page, 'Create a group').click()
      await dialog(page).waitFor()
    },
  },
  { name: 'group', open: openGroup },
  { name: 'group, as a viewer', role: 'viewer', open: openGroup },
  {
    name: 'group, without members',
    open: async (page) => {
      await openGroups(page, '/72')
      await heading(page, 'The group has no members').waitFor()
    },
  },
  {
    name: 'group, a number that is no member',
    open: async (page) => {
      await openGroups(page, '/71?phone=%2B48511222000')
      await heading(page, '+48511222000 is not a member').waitFor()
    },
  },
  {
    name: 'group, unknown',
    refused: 404,
    open: async (page) => {
      // Below the others: imports of other states make groups.
      await openGroups(page, '/70')
      await heading(page, 'There is no group 70 in this account').waitFor()
    },
  },
  {
    name: 'group, add members, some rejected',
    open: async (page) => {
      await openGroup(page)
      await button(page, 'Add members').click()
      await dialog(page).getByLabel('Phone numbers').fill('500\n501')
      await dialog(page).getByRole('button', { name: 'Add members' }).click()
      await dialog(page).getByRole('alert').waitFor()
    },
  },
  {
    name: 'group, remove members',
    open: async (page) => {
      await openGroup(page)
      for (const index of [0, 1, 2]) await page.getByRole('checkbox').nth(index).check()
      await button(page, 'Remove 3 members').click()
      await dialog(page).waitFor()
    },
  },
  {
    name: 'group, rename',
    open: async (page) => {
      await openGroup(page)
      await button(page, 'Rename').click()
      await dialog(page).waitFor()
    },
  },
  {
    name: 'group, delete',
    open: async (page) => {
      await openGroup(page)
      await button(page, 'Delete').click()
      await dialog(page).waitFor()
    },
  },
  {
    name: 'import, no file yet',
    open: async (page) => {
      await openGroups(page, '/new')
      await page.getByText('Choose a CSV file').waitFor()
    },
  },
  {
    name: 'import, an empty file',
    open: async (page) => {
      await openGroups(page, '/new')
      await page.getByLabel('Choose a CSV file').setInputFiles({ ...FILE, buffer: Buffer.from('\n') })
      await page.getByRole('alert').waitFor()
    },
  },
  { name: 'import, the first lines', open: (page) => prepare(page) },
  {
    name: 'import, no column with numbers',
    open: async (page) => {
      await prepare(page, '/new', ['Anna;no;1;Tulips'])
      await page.getByLabel('telefon', { exact: true }).selectOption('attribute')
      await page.getByText('Choose the column with the phone numbers.').waitFor()
    },
  },
  {
    name: 'import, asks before members are replaced',
    open: async (page) => {
      await prepare(page, '/new?into=71')
      await button(page, 'Import 4 lines').click()
      await dialog(page).waitFor()
    },
  },
  {
    name: 'import, under way',
    open: async (page) => {
      await page.route('**/segments/*/import', () => {})
      await begin(page)
      await page.getByRole('heading', { name: /is being imported$/ }).waitFor()
    },
  },
  {
    name: 'import, failed',
    problem: 'ERR_FAILED',
    open: async (page) => {
      await page.route('**/segments/*/import', (route) => route.abort())
      await begin(page)
      await page.getByRole('alert').waitFor()
    },
  },
  {
    name: 'import, done with rejected lines',
    open: async (page) => {
      await prepare(page, '/new?into=72', ['Jan;500;1;Tulips', 'Ola;+48511222301', 'Ewa;x;1;Roses'])
      await button(page, 'Import 3 lines').click()
      await button(page, 'Download the rejected lines').waitFor()
    },
  },
]
