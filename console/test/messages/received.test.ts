import assert from 'node:assert/strict'
import { test } from 'node:test'
import { moveExpiry } from '../../../server/test/support/expiring.ts'
import { until } from '../../../server/test/support/until.ts'
import { browserTest } from '../support/browser.ts'
import { ask, herald, open, step, TEXT, waitForOutcome, withSms } from './shared.ts'

// What arrived at the phone, where the network or a receipt fails.

const BY_SMS = 'Your parcel is on its way, by SMS.'

test('shows what the phone has although the receipts are lost', browserTest, async (t) => {
  await herald.simulator.ask('faults', { webhooks: { lost: { rate: 1 } } }, 'PUT')
  t.after(() => herald.simulator.ask('faults', undefined, 'DELETE'))
  const messageId = await herald.send('+48500120101', TEXT)
  const { page, end } = await open(`/${messageId}`)
  await waitForOutcome(page, 'The network has it, but has reported no delivery')
  await page.getByRole('figure', { name: 'Android phone' }).getByText(TEXT.content, { exact: true }).waitFor()
  await end()
})

test('shows a message that was delivered after it expired', browserTest, async (t) => {
  const phone = '+48500120204'
  const messageId = await herald.send(phone, TEXT)
  await until('the network has it', async () => (await ask(`/messages/${messageId}`)).status === 'SENT')
  // The network does not revoke it either.
  await herald.simulator.ask('faults', { api: { serverError: { rate: 1 } } }, 'PUT')
  t.after(() => herald.simulator.ask('faults', undefined, 'DELETE'))
  await moveExpiry(herald.pool, [messageId])
  const { page, end } = await open(`/${messageId}`)
  await step(page, 'Expired').waitFor()
  await page.getByRole('heading', { name: 'Nothing arrived', exact: true }).waitFor()
  await herald.simulator.ask(`phones/${phone}/deliver`, { agentId: herald.agentId, messageId })
  await page.getByRole('figure', { name: 'Android phone' }).getByText(TEXT.content, { exact: true }).waitFor()
  await end()
})

test('shows an SMS of unknown outcome that the phone has', browserTest, async (t) => {
  await herald.simulator.ask('faults', { smpp: { dropUnanswered: { count: 1, submits: 1 } } }, 'PUT')
  t.after(() => herald.simulator.ask('faults', undefined, 'DELETE'))
  const messageId = await herald.send('+48500120302', TEXT, withSms())
  await until('the outcome is unknown', async () => (await ask(`/messages/${messageId}`)).smsFallback.reason === 'OUTCOME_UNKNOWN')
  const { page, end } = await open(`/${messageId}`)
  await page.getByRole('figure', { name: 'Android phone' }).getByText(BY_SMS).waitFor()
  await end()
})

test('follows a message whose status changes while what arrived is read for the first time', browserTest, async () => {
  const phone = '+48500120404'
  const messageId = await herald.send(phone, TEXT)
  await until('the network has it', async () => (await ask(`/messages/${messageId}`)).status === 'SENT')
  const { page, end } = await open('')
  const held = Promise.withResolvers<void>()
  let reads = 0
  await page.route(/\/received$/, async (route) => {
    reads += 1
    if (reads > 1) return await route.continue()
    const response = await route.fetch()
    await held.promise
    await route.fulfill({ response })
  })
  await page.goto(`/console#/${herald.accountId}/messages/${messageId}`)
  await waitForOutcome(page, 'The network has it, but has reported no delivery')
  await until('it is read', () => reads > 0)
  await herald.simulator.ask(`phones/${phone}/deliver`, { agentId: herald.agentId, messageId })
  await waitForOutcome(page, 'The recipient read it')
  assert.equal(reads, 1, 'a change does not cut the first read off')
  held.resolve()
  await page.getByRole('figure', { name: 'Android phone' }).getByText(TEXT.content, { exact: true }).waitFor()
  await end()
})
