import type { Page } from 'playwright-core'
import { until } from '../../../server/test/support/until.ts'
import { emptyAccount, herald } from './shared.ts'
import { at, button, dialog, heading, type State } from './state.ts'

const CAMPAIGN = {
  type: 'MESSAGE',
  content: 'Tulips are in flower. Shall we keep some for you?',
  buttons: [{ id: 'keep', type: 'quick_reply', text: 'Yes, please', payload: 'keep' }],
}
/** The last two digits: reads, taps the first button, has no RCS, refuses. */
const NUMBERS = ['+48511333110', '+48511333107', '+48511333102', '+48511333103']

let preparing: Promise<{ accountId: number; campaignId: string }> | undefined

async function prepare() {
  const { accountId, sendCampaign } = await herald.newAccount()
  const campaignId = await sendCampaign('Spring sale in all our shops, with a name as long as some are', NUMBERS, CAMPAIGN)
  const count = 'select count(*)::int as n from message_events where campaign_id = $1 and kind = any ($2)'
  await until('the campaign has failures and replies', async () => {
    const { rows } = await herald.pool.query(count, [campaignId, ['failed', 'replied']])
    return rows[0].n >= 3
  })
  return { accountId, campaignId }
}

async function openCampaign(page: Page, more = ''): Promise<void> {
  preparing ??= prepare()
  const { accountId, campaignId } = await preparing
  await page.goto(at(`reports?campaignId=${campaignId}${more}`, accountId))
  await page.locator('.chart-line').first().waitFor()
  await page.getByRole('table').last().getByRole('link').first().waitFor()
}

export const REPORTS: State[] = [
  {
    name: 'Reports of an empty account',
    open: async (page) => {
      await page.goto(at('reports', emptyAccount.accountId))
      await heading(page, 'Nothing happened in this range').waitFor()
    },
  },
  {
    name: 'Reports of single messages',
    open: async (page) => {
      await page.goto(at('reports'))
      await page.locator('.chart-line').first().waitFor()
      await page.getByRole('table', { name: 'All counts' }).waitFor()
      await page.getByText('as a table').click()
    },
  },
  {
    name: 'Reports, to a viewer',
    role: 'viewer',
    open: async (page) => {
      await page.goto(at('reports'))
      await page.locator('.chart-line').first().waitFor()
    },
  },
  {
    name: 'Reports, a range that ends before it begins',
    open: async (page) => {
      await page.goto(at('reports?from=2026-02-01&to=2026-01-01'))
      await page.getByText('Choose a day that is not before the first day.').waitFor()
    },
  },
  { name: 'Report of a campaign, by hour', open: (page) => openCampaign(page, '&interval=hour') },
  { name: 'Report of a campaign, the actions', open: (page) => openCampaign(page, '&interval=day&list=actions') },
  {
    name: 'Report of a campaign, as curl',
    open: async (page) => {
      await openCampaign(page)
      await button(page, 'As curl').first().click()
      await dialog(page).waitFor()
    },
  },
  {
    name: 'Report of a campaign that does not exist',
    refused: 404,
    open: async (page) => {
      await page.goto(at('reports?campaignId=0198c0de-0000-7000-8000-000000000009'))
      await page.getByRole('alert').first().waitFor()
    },
  },
]
