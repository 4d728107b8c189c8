import type { Page } from 'playwright-core'
import { newSender, numbers, TEMPLATE } from '../support/campaigns.ts'
import { emptyAccount, herald } from './shared.ts'
import { at, button, dialog, heading, type State } from './state.ts'

type Data = { accountId: number; sent: string; scheduled: string }
let making: Promise<Data> | undefined

/** An account of its own, so that the other pages stay as they are. */
function data(): Promise<Data> {
  making ??= make()
  return making
}

async function make(): Promise<Data> {
  // Without a phone that writes STOP: it would be one recipient less.
  const sender = await newSender(herald, [numbers(600_000, 8), numbers(600_006, 2)])
  const sent = await sender.untilStatus(await sender.create('Spring sale', { clientReferenceId: 'spring-2027' }), 'COMPLETED')
  const scheduled = await sender.create('A long name of a campaign, as some shops give them', {
    scheduledAt: new Date(Date.now() + 86_400_000).toISOString(),
  })
  return { accountId: sender.accountId, sent, scheduled }
}

async function openCampaign(page: Page, which: 'sent' | 'scheduled'): Promise<void> {
  const all = await data()
  await page.goto(at(`campaigns/${all[which]}`, all.accountId))
  await page.getByRole('figure', { name: 'Android phone' }).getByText('Monstera, 60 cm').waitFor()
}

async function openStep(page: Page, step: string): Promise<void> {
  const { accountId } = await data()
  await page.goto(at('campaigns/new', accountId))
  // The page keeps what another state has filled in.
  await page.evaluate('sessionStorage.clear()')
  await page.reload()
  await page.getByLabel('Name').fill('Spring sale')
  await page.getByLabel('Template').selectOption(TEMPLATE)
  await page.getByRole('figure', { name: 'Android phone' }).waitFor()
  if (step === 'content') return
  await button(page, 'Continue').click()
  await page.getByRole('checkbox', { name: 'Customers 1' }).check()
  await page.getByRole('region', { name: 'Who gets it if it starts now' }).getByText('8 recipients').waitFor()
  if (step !== 'groups') await page.goto(at(`campaigns/new?step=${step}`, accountId))
}

export const CAMPAIGNS: State[] = [
  {
    name: 'Campaigns',
    open: async (page) => {
      await page.goto(at('campaigns', (await data()).accountId))
      await page.getByRole('link', { name: 'Spring sale' }).waitFor()
    },
  },
  {
    name: 'Campaigns, none yet',
    open: async (page) => {
      await page.goto(at('campaigns', emptyAccount.accountId))
      await heading(page, 'No campaign yet').waitFor()
    },
  },
  {
    name: 'Campaigns, none found',
    open: async (page) => {
      await page.goto(at('campaigns?status=PAUSED', (await data()).accountId))
      await heading(page, 'Nothing matches these filters').waitFor()
    },
  },
  { name: 'Campaigns, the content of a new one', open: (page) => openStep(page, 'content') },
  { name: 'Campaigns, the groups of a new one', open: (page) => openStep(page, 'groups') },
  {
    name: 'Campaigns, the time of a new one, incomplete',
    open: async (page) => {
      await openStep(page, 'time')
      await page.getByText('Later', { exact: true }).click()
      await button(page, 'Continue').click()
      await page.getByText('Enter the start time.').waitFor()
    },
  },
  {
    name: 'Campaigns, the SMS of a new one',
    open: async (page) => {
      await openStep(page, 'sms')
      await page.getByText('SMS if RCS fails', { exact: true }).click()
      await page.getByLabel('Text').fill('Żółta róża')
      await page.getByText('Sent as').waitFor()
    },
  },
  {
    name: 'Campaigns, the review of a new one',
    open: async (page) => {
      await openStep(page, 'review')
      await page.getByLabel('Type 8 to confirm').fill('8')
    },
  },
  {
    name: 'Campaigns, the review of an empty one',
    open: async (page) => {
      await openStep(page, 'content')
      await page.evaluate('sessionStorage.clear()')
      await page.goto('about:blank')
      await page.goto(at('campaigns/new?step=review', (await data()).accountId))
      await page.getByText('Enter a name.').waitFor()
    },
  },
  {
    name: 'Campaigns, one that is over',
    open: async (page) => {
      await openCampaign(page, 'sent')
      await page.getByRole('table', { name: 'Why they failed' }).waitFor()
      await page.locator('.chart-line').first().waitFor()
    },
  },
  { name: 'Campaigns, one that is scheduled', open: (page) => openCampaign(page, 'scheduled') },
  {
    name: 'Campaigns, cancelling one',
    open: async (page) => {
      await openCampaign(page, 'scheduled')
      await button(page, 'Cancel…').click()
      await dialog(page).getByText('Herald withdraws').waitFor()
    },
  },
  {
    name: 'Campaigns, retrying one',
    open: async (page) => {
      await openCampaign(page, 'sent')
      await button(page, 'Retry failed…').click()
      await dialog(page).getByText('whose message failed').waitFor()
    },
  },
  {
    name: 'Campaigns, one that does not exist',
    refused: 404,
    open: async (page) => {
      await page.goto(at('campaigns/0198c0de-0000-7000-8000-000000000001'))
      await page.getByRole('alert').waitFor()
    },
  },
]
