import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../../server/test/support/until.ts'
import { browserTest } from './support/browser.ts'
import { button, newSender, numbers, openCampaigns, TEMPLATE } from './support/campaigns.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald()

/** Each step is left only when it is right. The start is more than a year ahead. */
async function fillTimeAndSms(page: Page): Promise<void> {
  await page.getByText('Later', { exact: true }).click()
  await button(page, 'Continue').click()
  await page.getByText('Enter the start time.').waitFor()
  await page.getByLabel('Starts at').fill('2030-01-02T10:00')
  await page.getByLabel('Delivered until').fill('2030-01-02T09:00')
  await page.getByText('This must be later than the start.').waitFor()
  await page.getByLabel('Delivered until').fill('2030-01-03T09:00')
  await button(page, 'Continue').click()

  await page.getByText('SMS if RCS fails', { exact: true }).click()
  await button(page, 'Continue').click()
  await page.getByText('Enter a sender.').waitFor()
  await page.getByText('Enter the SMS text.').waitFor()
  await page.getByLabel('Sender').fill('Greenhouse')
  await page.getByLabel('Text').fill('Żółta róża')
  await page.getByText('1 SMS, 10 characters in GSM-7').waitFor()
  await page.getByText('Sent as “Zolta roza”').waitFor()
  await button(page, 'Continue').click()
}

test('each step of the wizard says what is missing, and the review names all of it', browserTest, async () => {
  const sender = await newSender(herald, [numbers(500_100, 3), numbers(500_102, 3)])
  const { page, problems, close, show } = await openCampaigns(sender, 'admin', '/new?step=review')
  const missing = page.getByRole('alert')
  for (const text of ['Enter a name.', 'Choose an approved template.', 'Choose 1 to 100 groups.']) await missing.getByText(text).waitFor()
  await missing.getByRole('link', { name: 'Content' }).first().click()

  await button(page, 'Continue').click()
  await page.getByText('Enter a name.').waitFor()
  const label = `document.activeElement.labels?.[0]?.textContent`
  await until('the wrong field has the focus', async () => (await page.evaluate<string>(label)) === 'Name')
  await page.getByLabel('Name').fill('Spring sale')
  await page.getByLabel('Template').selectOption(TEMPLATE)
  await button(page, 'Continue').click()

  await button(page, 'Continue').click()
  await page.getByText('Choose 1 to 100 groups.').waitFor()
  await page.getByRole('checkbox', { name: 'Customers 1' }).check()
  await page.getByRole('checkbox', { name: 'Customers 2' }).check()
  await sender.ask('PUT', `opt-outs/${numbers(500_102, 1)[0]}`, {})
  await page.reload()
  const audience = page.getByRole('region', { name: 'Who gets it if it starts now' })
  await audience.getByText('4 recipients').waitFor()
  assert.match((await audience.innerText()).replace(/\s+/g, ' '), /Members 6 In several groups 1 Opted out 1 /)
  await button(page, 'Continue').click()

  await fillTimeAndSms(page)

  await page.getByText('2 Jan 2030, 10:00:00').waitFor()

  // The API has the clock: it refuses a start more than a year ahead, and the page names the step.
  const confirm = page.getByLabel('Type 4 to confirm')
  const schedule = button(page, 'Schedule for 4 recipients')
  await confirm.fill('5')
  assert.equal(await schedule.isDisabled(), true)
  await confirm.fill('4')
  await schedule.click()
  await page.getByRole('alert').getByText('must be at most a year ahead').waitFor()
  await page.getByRole('alert').getByRole('link', { name: 'Time' }).click()
  await page.getByText('must be at most a year ahead').first().waitFor()
  await show('/new')
  assert.deepEqual(await sender.names(), [])
  assert.deepEqual(
    problems.filter((text) => !text.includes('status of 400')),
    [],
  )
  await close()
})

/** A wizard at its review, for a campaign to the three members of group 1. */
async function openReview() {
  const sender = await newSender(herald, [numbers(500_200, 3)])
  const opened = await openCampaigns(sender, 'admin', '/new')
  const { page } = opened
  await page.getByLabel('Name').fill('Spring sale')
  await page.getByLabel('Template').selectOption(TEMPLATE)
  await button(page, 'Continue').click()
  await page.getByRole('checkbox', { name: 'Customers 1' }).check()
  await opened.show('/new?step=review')
  const send = async () => {
    await page.getByLabel('Type 3 to confirm').fill('3')
    return button(page, 'Send to 3 recipients')
  }
  return { ...opened, sender, send }
}

test('a double click creates one campaign', browserTest, async () => {
  const { page, problems, close, sender, send } = await openReview()
  let requests = 0
  const held = Promise.withResolvers<void>()
  await page.route(/\/campaigns$/, async (route) => {
    if (route.request().method() === 'POST') requests += 1
    await held.promise
    await route.continue()
  })
  await (await send()).dblclick()
  await page.keyboard.press('Enter')
  await until('a request is on its way', () => requests > 0)
  held.resolve()
  await page.getByRole('heading', { name: 'Spring sale', level: 1 }).waitFor()
  assert.equal(requests, 1)
  assert.deepEqual(await sender.names(), ['Spring sale'])
  // The wizard begins anew.
  await page.goto(`/console#/${sender.accountId}/campaigns/new`)
  assert.equal(await page.getByLabel('Name').inputValue(), '')
  assert.deepEqual(problems, [])
  await close()
})

test('a late response does not take the person away from another page', browserTest, async () => {
  const { page, problems, close, sender, send } = await openReview()
  const held = Promise.withResolvers<void>()
  await page.route(/\/campaigns$/, async (route) => {
    if (route.request().method() === 'POST') await held.promise
    await route.continue()
  })
  const response = page.waitForResponse((each) => each.request().method() === 'POST' && /\/campaigns$/.test(each.url()))
  await (await send()).click()
  await page.evaluate(`location.hash = '#/${sender.accountId}/messages'`)
  await page.getByRole('heading', { name: 'Messages', level: 1 }).waitFor()
  held.resolve()
  await (await response).finished()
  await until(
    'its draft is forgotten',
    async () => await page.evaluate(`!Object.keys(sessionStorage).some((key) => key.includes('campaign'))`),
  )
  assert.match(page.url(), /\/messages$/)
  assert.deepEqual(await sender.names(), ['Spring sale'])
  assert.deepEqual(problems, [])
  await close()
})

/** A request to create a campaign arrives, and its response is lost. Then the person changes the name, and sends again. */
async function sendChanged({ page, sender, send }: Awaited<ReturnType<typeof openReview>>): Promise<void> {
  await page.route(/\/campaigns$/, async (route) => {
    if (route.request().method() !== 'POST') return await route.continue()
    await route.fetch()
    await route.abort()
  })
  await (await send()).click()
  await page.getByRole('alert').getByText('Herald does not respond').waitFor()
  assert.deepEqual(await sender.names(), ['Spring sale'])
  await page.unrouteAll({ behavior: 'wait' })
  await page.reload()
  await page.getByText('3 recipients', { exact: false }).first().waitFor()
  await page.evaluate(`location.hash = '#/${sender.accountId}/campaigns/new'`)
  await page.getByLabel('Name').fill('Summer sale')
  await page.evaluate(`location.hash = '#/${sender.accountId}/campaigns/new?step=review'`)
  await (await send()).click()
  await page.getByRole('alert').getByText('This campaign was created before you changed it here.').waitFor()
}

test(
  'a campaign that was created before it was changed leads to the list, and a new one has to be confirmed again',
  browserTest,
  async () => {
    const review = await openReview()
    const { page, close, sender, send } = review
    await sendChanged(review)
    const link = page.getByRole('alert').getByRole('link', { name: 'Campaigns' })
    assert.equal(await link.getAttribute('href'), `#/${sender.accountId}/campaigns`)
    await button(page, 'Start a new campaign').click()
    await page.getByRole('alert').waitFor({ state: 'detached' })
    assert.equal(await page.getByLabel('Type 3 to confirm').inputValue(), '')
    assert.ok(await button(page, 'Send to 3 recipients').isDisabled())
    await (await send()).click()
    await page.getByRole('heading', { name: 'Summer sale', level: 1 }).waitFor()
    assert.deepEqual((await sender.names()).toSorted(), ['Spring sale', 'Summer sale'])
    await close()
  },
)

test(
  'the wizard survives a reload with its key: after a lost response, a repeated or changed request creates no second campaign',
  browserTest,
  async () => {
    const review = await openReview()
    const { page, close, sender, send } = review
    await sendChanged(review)
    await page.evaluate(`location.hash = '#/${sender.accountId}/campaigns/new'`)
    await page.getByLabel('Name').fill('Spring sale')
    await page.evaluate(`location.hash = '#/${sender.accountId}/campaigns/new?step=review'`)
    await (await send()).click()
    await page.getByRole('heading', { name: 'Spring sale', level: 1 }).waitFor()
    assert.deepEqual(await sender.names(), ['Spring sale'])
    await close()
  },
)
