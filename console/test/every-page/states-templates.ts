import type { Page } from 'playwright-core'
import { emptyAccount } from './shared.ts'
import { at, button, dialog, heading, type State } from './state.ts'

const field = (page: Page, label: string) => page.getByRole('textbox', { name: label, exact: true })

async function openNew(page: Page, query = ''): Promise<void> {
  await page.goto(at(`templates/new${query}`))
  // The page keeps the draft of another state.
  await page.evaluate('sessionStorage.clear()')
  await page.reload()
  await page.getByRole('heading', { name: 'New template' }).waitFor()
}

/** The template that the account has. */
async function openTemplate(page: Page): Promise<void> {
  await page.goto(at('templates'))
  await page.evaluate('sessionStorage.clear()')
  await page.reload()
  await page.getByRole('link', { name: 'parcel', exact: true }).click()
  await page.getByText('Billing class').waitFor()
}

async function change(page: Page): Promise<void> {
  await openTemplate(page)
  await field(page, 'Title').fill('Your order 4711 is on its way')
  await page.getByText('Unsaved changes').waitFor()
}

/** A changed template, and the dialog behind this button. */
const asking = (name: string, ofButton: string, ready: string): State => ({
  name,
  open: async (page) => {
    await change(page)
    await button(page, ofButton).click()
    await dialog(page).getByText(ready).first().waitFor()
  },
})

const CAROUSEL = {
  type: 'CAROUSEL',
  data: {
    cards: [
      {
        title: 'Tulips in a pot',
        content: 'In flower now.',
        buttons: [{ id: 'see', type: 'url', text: 'See it', url: 'https://example.com/1' }],
      },
      { title: 'A cactus', content: 'Water it at Easter. '.repeat(12) },
    ],
  },
}

export const TEMPLATES: State[] = [
  {
    name: 'Templates of an empty account',
    open: async (page) => {
      await page.goto(at('templates', emptyAccount.accountId))
      await heading(page, 'No template yet').waitFor()
    },
  },
  {
    name: 'Templates',
    open: async (page) => {
      await page.goto(at('templates'))
      await button(page, 'Preview parcel').click()
      await page.getByRole('figure', { name: 'iPhone' }).getByText('Your order is on its way').waitFor()
    },
  },
  {
    name: 'Templates, none found',
    open: async (page) => {
      await page.goto(at('templates?type=AUDIO'))
      await heading(page, 'Nothing matches these filters').waitFor()
    },
  },
  {
    name: 'a new template',
    open: async (page) => {
      await openNew(page)
      await page.getByText('3 things to correct').or(page.getByText('2 things to correct')).waitFor()
    },
  },
  { name: 'a template', open: openTemplate },
  {
    name: 'a template, as a viewer sees it',
    role: 'viewer',
    open: async (page) => {
      await openTemplate(page)
      await page.locator('.parts summary').last().click()
    },
  },
  {
    name: 'a template with a carousel',
    open: async (page) => {
      await openNew(page, '?view=json')
      await field(page, 'Content in JSON').fill(JSON.stringify(CAROUSEL))
      await page.getByText('Form', { exact: true }).click()
      await page.getByText('Tulips in a pot').first().click()
      await page.locator('.part-body .parts summary').click()
      await page.getByText('Title and text over about 150').waitFor()
    },
  },
  {
    name: 'a template with variables',
    open: async (page) => {
      await openTemplate(page)
      const long = 'the_number_of_the_order_as_the_shop_and_its_courier_write_it_all'
      await field(page, 'Title').fill(`Hello {{name|there}}, {{${long}}}`)
      await field(page, long).fill('1002/7')
      await field(page, 'name').fill('x'.repeat(300))
      await page.getByText('must have at most 200 characters, with the values of the variables').first().waitFor()
    },
  },
  {
    name: 'a template, its picture',
    refused: 422,
    open: async (page) => {
      await openTemplate(page)
      await field(page, 'Picture').fill('https://nowhere.example.com/door.png')
      await button(page, 'Look again').waitFor()
    },
  },
  {
    name: 'a template, as JSON that is broken',
    open: async (page) => {
      await openNew(page, '?view=json')
      await field(page, 'Content in JSON').fill('{ "type": "CARD", "content": }')
      await page.getByText(/^This is not JSON yet/).waitFor()
    },
  },
  {
    name: 'a template whose JSON is broken, as a form',
    open: async (page) => {
      await openNew(page, '?view=json')
      await field(page, 'Content in JSON').fill('{')
      await page.getByText('Form', { exact: true }).click()
      await page.getByText('The JSON can’t be read.').waitFor()
    },
  },
  asking('a template, its changes', 'Changes', '"title": "Your order 4711 is on its way"'),
  asking('a template, saving it while it is approved', 'Save', 'New messages get this content at once.'),
  asking('a template, discarding the changes', 'Discard the changes', 'will be lost'),
  asking('a template, deleting it', 'Delete', 'This deletes one template.'),
  {
    name: 'a template, sending a test',
    open: async (page) => {
      await openTemplate(page)
      await button(page, 'Send a test').click()
      await field(page, 'To').fill('+48511222501')
      await button(page, 'Send').click()
      await dialog(page).getByRole('figure').getByText('Your order is on its way').waitFor()
      await dialog(page).getByText('Delivered', { exact: true }).waitFor()
    },
  },
  {
    name: 'a template that does not exist',
    refused: 404,
    open: async (page) => {
      await page.goto(at('templates/786471321601234'))
      await page.getByRole('alert').waitFor()
    },
  },
]
