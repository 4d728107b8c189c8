import assert from 'node:assert/strict'
import { newSender, numbers, TEMPLATE } from '../support/campaigns.ts'
import { assertWithin } from '../support/timed.ts'
import { herald, testJourney } from './shared.ts'

// Journey 4, its second half: a campaign to an imported group, and its progress.

const RECIPIENTS = 120
const TARGET_MS = 180_000

async function start() {
  const sender = await newSender(herald, [numbers(400_000, RECIPIENTS)])
  return { ...sender, cookie: await sender.signIn('admin') }
}

testJourney('prepares a campaign to 120 recipients in five steps, and follows it to its end', start, async (journey) => {
  const { t, page, person, way, names } = journey
  await page.goto('/console')
  const from = performance.now()
  const press = (name: string) => person.press(page.getByRole('button', { name, exact: true }))
  await person.press(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Campaigns' }))
  await person.press(page.getByRole('link', { name: 'New campaign' }).first())
  await person.write(page.getByLabel('Name'), 'Spring sale')
  // A native list, which the browser draws outside the page.
  await page.getByLabel('Template').selectOption(TEMPLATE)
  await page.getByRole('figure', { name: 'Android phone' }).getByText('Monstera, 60 cm').waitFor()
  await press('Continue')
  await person.press(page.getByRole('checkbox', { name: 'Customers 1' }))
  await page.getByRole('region', { name: 'Who gets it if it starts now' }).getByText(`${RECIPIENTS} recipients`).waitFor()
  await press('Continue')
  await page.getByRole('heading', { name: 'Time' }).waitFor()
  await press('Continue')
  await page.getByRole('heading', { name: 'SMS' }).waitFor()
  await press('Continue')
  await person.write(page.getByLabel(`Type ${RECIPIENTS} to confirm`), String(RECIPIENTS))
  await press(`Send to ${RECIPIENTS} recipients`)
  const sentMs = performance.now() - from

  const figures = page.getByRole('region', { name: 'Progress' })
  await figures.getByText('Handed over').waitFor()
  await page.getByText('Completed', { exact: true }).waitFor({ timeout: TARGET_MS })
  const figure = (name: string) => figures.locator('div', { has: page.getByText(name, { exact: true }) }).locator('dd')
  await figure('Left').getByText(/^0/).waitFor()
  const countOf = async (name: string) => Number.parseInt(await figure(name).innerText(), 10)
  assert.equal((await countOf('Handed over')) + (await countOf('Failed')), RECIPIENTS)
  assertWithin(t, `a campaign to 120 recipients with the ${way}, until it is completed`, performance.now() - from, TARGET_MS)
  t.diagnostic(`the wizard took ${Math.round(sentMs)} ms and ${person.presses()} presses`)
  await page.getByRole('table', { name: 'Why they failed' }).getByText('NOT_REACHABLE').waitFor()
  assert.deepEqual(await names(), ['Spring sale'])
})
