import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../../server/test/support/until.ts'
import { browserTest } from './support/browser.ts'
import { button, numbers, openCampaigns as openAs, newSender as senderOf } from './support/campaigns.ts'
import { startHerald } from './support/herald.ts'
import { assertWithin, repeatIfSlow } from './support/timed.ts'

const herald = await startHerald({ byHand: 'a thousand campaigns are written as if they had been sent' })
const newSender = (groups: string[][]) => senderOf(herald, groups)
const figure = (page: Page, name: string) =>
  page.getByRole('region', { name: 'Progress' }).locator('div', { has: page.getByText(name, { exact: true }) })
const IN_A_DAY = new Date(Date.now() + 86_400_000).toISOString()

test('lists campaigns with their progress; filters stay in the address over a reload', browserTest, async () => {
  const sender = await newSender([numbers(500_000, 2)])
  const { page, problems, close } = await openAs(sender, 'admin')
  await page.getByRole('heading', { name: 'No campaign yet' }).waitFor()
  await sender.untilStatus(await sender.create('Spring sale', { clientReferenceId: 'spring' }), 'COMPLETED')
  await sender.create('Autumn bulbs', { scheduledAt: IN_A_DAY })
  const row = (name: string) => page.getByRole('row').filter({ hasText: name })
  await page.reload()
  await row('Spring sale').getByText('2 of 2').last().waitFor()
  await row('Autumn bulbs').getByText('Scheduled').waitFor()

  await page.getByLabel('Status').selectOption('COMPLETED')
  await row('Autumn bulbs').waitFor({ state: 'detached' })
  assert.match(page.url(), /status=COMPLETED/)
  await page.reload()
  await row('Spring sale').waitFor()
  assert.equal(await row('Autumn bulbs').count(), 0)
  await page.evaluate(`location.hash += '&clientReferenceId=winter'`)
  await page.getByRole('heading', { name: 'Nothing matches these filters' }).waitFor()
  await page.getByRole('link', { name: 'Clear the filters' }).click()
  await row('Autumn bulbs').waitFor()
  await page.evaluate(`location.hash += '?sort=name'`)
  await until('they are sorted by name', async () => /Autumn/.test((await page.getByRole('row').nth(1).textContent()) ?? ''))
  await page.getByRole('link', { name: 'Spring sale' }).click()
  await page.getByRole('heading', { name: 'Spring sale', level: 1 }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('a list of a thousand campaigns is there within a second, and draws only the rows near the window', browserTest, async (t) => {
  const sender = await newSender([numbers(500_000, 1)])
  await herald.pool.query(
    `insert into campaigns (id, account_id, agent_id, name, group_numbers, basic, content_id, status, scheduled_at, started_at, completed_at,
       fan_out_completed_at, created_at)
     select uuid_v7(), $1, $2, 'Campaign ' || n, '{1}', false, 1, 'COMPLETED', now(), now(), now(), now(), now() - n * interval '1 minute'
     from generate_series(1, 1000) as n`,
    [sender.accountId, sender.agentId],
  )
  const { page, problems, close } = await openAs(sender, 'admin')
  await page.getByRole('row').nth(10).waitFor()
  await repeatIfSlow(async () => {
    await page.evaluate(`location.hash = '#/${sender.accountId}/messages'`)
    await page.getByRole('heading', { name: 'Messages', level: 1 }).waitFor()
    const from = performance.now()
    await page.evaluate(`location.hash = '#/${sender.accountId}/campaigns'`)
    await page.getByRole('link', { name: 'Campaign 1', exact: true }).waitFor()
    assertWithin(t, 'the list of a thousand campaigns', performance.now() - from, 1_000)
  })
  assert.ok((await page.getByRole('row').count()) < 300)
  assert.deepEqual(problems, [])
  await close()
})

test('pause, resume and cancel say how many messages they affect, and ask', browserTest, async (t) => {
  const sender = await newSender([numbers(500_300, 3)])
  await herald.simulator.ask('faults', { api: { serverError: { rate: 1 } } }, 'PUT')
  const endFaults = () => herald.simulator.ask('faults', undefined, 'DELETE')
  t.after(endFaults)
  const campaignId = await sender.untilStatus(await sender.create('Spring sale'), 'RUNNING')
  await until('its messages are created', async () => (await sender.ask('GET', `campaigns/${campaignId}`)).recipients === 3)
  const { page, problems, close } = await openAs(sender, 'admin', `/${campaignId}`)
  t.after(close)
  const dialog = page.getByRole('dialog')
  await button(page, 'Pause').click()
  await dialog.getByText('Herald holds 3 messages back until you resume the campaign.').waitFor()
  await dialog.getByRole('button', { name: 'Leave it as it is' }).click()
  await page.getByText('Running', { exact: true }).waitFor()
  await button(page, 'Pause').click()
  await dialog.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('Paused', { exact: true }).waitFor()
  await button(page, 'Resume').click()
  await dialog.getByText('Herald goes on to send 3 messages.').waitFor()
  await dialog.getByRole('button', { name: 'Resume' }).click()
  await page.getByText('Running', { exact: true }).waitFor()
  await button(page, 'Cancel…').click()
  await dialog.getByText('Herald withdraws 3 messages.').waitFor()
  await dialog.getByRole('button', { name: 'Cancel the campaign' }).click()
  await page.getByText('Cancelled', { exact: true }).waitFor()
  assert.equal(await button(page, 'Pause').count(), 0)
  const withdrawn = 'select from campaigns where id = $1 and withdrawn_at is not null'
  await until('its messages are withdrawn', async () => (await herald.pool.query(withdrawn, [campaignId])).rowCount === 1)
  await endFaults()
  await figure(page, 'Handed over').getByText('0%', { exact: true }).waitFor()
  await figure(page, 'Failed').getByText('100%').waitFor()
  await button(page, 'Retry failed…').click()
  await dialog.getByText('to 3 recipients whose message failed').waitFor()
  await dialog.getByLabel('Also to 3 recipients whose message the cancellation withdrew').uncheck()
  await dialog.getByText('to 0 recipients whose message failed').waitFor()
  assert.deepEqual(problems, [])
})

test('a retry after a cancellation takes the withdrawn messages only if the person says so', browserTest, async (t) => {
  const sender = await newSender([numbers(500_401, 3)])
  const campaignId = await sender.untilStatus(await sender.create('Spring sale'), 'COMPLETED')
  const { page, problems, close } = await openAs(sender, 'admin', `/${campaignId}`)
  t.after(close)
  const plan = { messages: 240_000, withdrawn: 239_995, isMore: false, reasons: {} }
  await page.route('**/retry-plan?*', (route) => route.fulfill({ json: plan }))
  const bodies: unknown[] = []
  await page.route('**/retry', async (route) => {
    bodies.push(route.request().postDataJSON())
    await route.fulfill({ status: 409, json: { code: 'RCS_REFUSED', details: [{ path: '', reason: 'Not now.' }] } })
  })
  const dialog = page.getByRole('dialog')
  const withdrawn = dialog.getByRole('checkbox')
  const retry = async () => {
    await dialog.getByRole('button', { name: 'Send the failed messages again' }).click()
    await dialog.getByText('Not now.').waitFor()
  }
  await button(page, 'Retry failed…').click()
  await dialog.getByText('to 5 recipients whose message failed').waitFor()
  await dialog.getByText('A campaign can be retried only once').waitFor()
  await retry()
  await withdrawn.check()
  await dialog.getByText('to 240,000 recipients whose message failed').waitFor()
  await retry()
  await until('both requests are made', () => bodies.length === 2)
  assert.deepEqual(bodies, [{ includeCancelled: false }, { includeCancelled: true }])

  // The count was cut before the first failure.
  Object.assign(plan, { messages: 90_000, withdrawn: 90_000, isMore: true })
  await dialog.getByRole('button', { name: 'Leave it as it is' }).click()
  await button(page, 'Retry failed…').click()
  await dialog.getByText('Also to at least 90,000 recipients').waitFor()
  assert.equal(await withdrawn.isChecked(), false)
  assert.deepEqual(
    problems.filter((text) => !text.includes('status of 409')),
    [],
  )
})

test('shows why messages failed and what was sent instead; a retry says to how many it sends, and asks', browserTest, async (t) => {
  // One that keeps the message, one without RCS, and one that the network refuses.
  const sender = await newSender([numbers(500_401, 3)])
  const campaignId = await sender.untilStatus(await sender.create('Spring sale'), 'COMPLETED')
  const { page, problems, close } = await openAs(sender, 'admin', `/${campaignId}`)
  t.after(close)
  await figure(page, 'Handed over').getByText('33.3%').waitFor()
  await figure(page, 'Failed').getByText('66.7%').waitFor()
  const reasons = page.getByRole('table', { name: 'Why they failed' })
  await reasons.getByRole('row', { name: /NOT_REACHABLE The number has no RCS\. 1 1 by SMS/ }).waitFor()
  await reasons.getByRole('row', { name: /REJECTED .* 1/ }).waitFor()
  await page.locator('.funnel li', { hasText: 'Delivered' }).getByText('1', { exact: true }).waitFor()
  await page.locator('.part', { hasText: 'Each minute' }).getByText('as a table').click()
  await page.getByRole('columnheader', { name: 'Delivered' }).waitFor()
  await page.getByRole('figure', { name: 'Android phone' }).getByText('Monstera, 60 cm').waitFor()
  await page.getByText('iPhone (approximation)', { exact: true }).click()
  await page.getByRole('figure', { name: 'iPhone' }).waitFor()

  await button(page, 'Retry failed…').click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('to 2 recipients whose message failed').waitFor()
  assert.deepEqual(await sender.names(), ['Spring sale'])
  await dialog.getByRole('button', { name: 'Send the failed messages again' }).dblclick()
  await page.getByRole('link', { name: 'another campaign' }).waitFor()
  assert.deepEqual(await sender.names(), ['Spring sale', 'Spring sale'])
  await page.getByRole('link', { name: 'another campaign' }).click()
  await page.waitForURL((url) => url.hash.endsWith(campaignId))
  await page.getByRole('link', { name: 'retried by another campaign' }).waitFor()
  assert.equal(await button(page, 'Retry failed…').count(), 0)
  assert.deepEqual(problems, [])
})

test('the page of a campaign links to its failed messages and to its report', browserTest, async (t) => {
  const sender = await newSender([numbers(500_401, 3)])
  const campaignId = await sender.untilStatus(await sender.create('Spring sale'), 'COMPLETED')
  const { page, problems, close, show } = await openAs(sender, 'viewer', `/${campaignId}`)
  t.after(close)
  await page.getByRole('link', { name: 'Why they failed' }).click()
  await page.waitForURL(new RegExp(`/messages\\?campaignId=${campaignId}&status=FAILED`))
  await show(`/${campaignId}`)
  await page.getByRole('link', { name: 'Report', exact: true }).click()
  await page.getByRole('heading', { name: 'Campaign Spring sale' }).waitFor()
  assert.deepEqual(problems, [])
})

test('a viewer sees campaigns, but nothing that would change one', browserTest, async () => {
  const sender = await newSender([numbers(500_501, 1)])
  const campaignId = await sender.create('Spring sale', { scheduledAt: IN_A_DAY })
  const { page, problems, close, show } = await openAs(sender, 'viewer')
  await page.getByRole('link', { name: 'Spring sale' }).waitFor()
  assert.equal(await page.getByRole('link', { name: 'New campaign' }).count(), 0)
  await show(`/${campaignId}`)
  await page.getByRole('figure', { name: 'Android phone' }).getByText('Monstera, 60 cm').waitFor()
  // The start has its year and its zone.
  await page.getByText(/^\d+ \w{3} 20\d\d, \d\d:\d\d:\d\d \S+$/).waitFor()
  assert.equal(await page.getByRole('button', { name: /Pause|Resume|Cancel|Retry/ }).count(), 0)
  await show('/new')
  await page.getByRole('heading', { name: 'Your role lets you read this account, but not send' }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})
