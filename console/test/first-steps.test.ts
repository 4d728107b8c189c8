import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assignAgent, changeAgent, createAgent } from '../../server/src/agents/agents.ts'
import { call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald()

test('the first steps of an account in a real network send nothing by themselves', browserTest, async () => {
  const account = await herald.newAccount('real-network')
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await account.signIn('admin') })
  await page.goto('/console')
  await page.getByText('Messages of this account go to real phones.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Send a first message' }).count(), 0)
  await page.getByRole('button', { name: 'Add an endpoint' }).click()
  await page.getByText('With https, at a public host.', { exact: true }).waitFor()
  assert.equal(await page.getByText('No server yet?').count(), 0)
  assert.deepEqual(problems, [])
  await close()
})

test('the first message goes by an agent of the simulated network, even if another agent comes first', browserTest, async () => {
  const account = await herald.newAccount()
  const real = { agentId: 'a-real-agent', name: 'A real agent', billingType: 'single', carrier: 'real-network' } as const
  await createAgent(herald.pool, real)
  await assignAgent(herald.pool, real.agentId, account.accountId)
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await account.signIn('admin') })
  await page.goto('/console')
  await page.getByRole('button', { name: 'Send a first message' }).click()
  await page.getByRole('log').getByText('Your order is on its way').waitFor()
  const { body } = await call(`${herald.url}/v1/messages`, { authorization: account.authorization })
  assert.deepEqual(
    body.items.map(({ agentId }: { agentId: string }) => agentId),
    [account.agentId],
  )
  assert.deepEqual(problems, [])
  await close()
})

test('a viewer of an account that has sent nothing sees its numbers instead of the first steps', browserTest, async () => {
  const account = await herald.newAccount()
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await account.signIn('viewer') })
  await page.goto('/console')
  await page.getByText('No message failed.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Send a first message' }).count(), 0)
  assert.deepEqual(problems, [])
  await close()
})

test('an account that has only sent a campaign sees its numbers instead of the first steps', browserTest, async (t) => {
  const account = await herald.newAccount()
  await account.sendCampaign('Spring sale', ['+48500100500'], { type: 'MESSAGE', content: 'A fifth off until Sunday.' })
  await until('its message is accepted', async () => {
    const { body } = await call(`${herald.url}/v1/messages`, { authorization: account.authorization })
    return body.items.length === 1
  })
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await account.signIn('admin') })
  t.after(close)
  await page.goto('/console')
  await page.getByRole('heading', { name: 'Running campaigns' }).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Send a first message' }).count(), 0)
  assert.deepEqual(problems, [])
})

test('an account whose agents are inactive says why nothing can be sent', browserTest, async () => {
  const account = await herald.newAccount()
  await changeAgent(herald.pool, account.accountId, account.agentId, { active: false })
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await account.signIn('admin') })
  await page.goto('/console')
  await page.getByText('All agents in the simulated network are inactive.').first().waitFor()
  assert.equal(await page.getByRole('button', { name: 'Send a first message' }).count(), 0)
  assert.deepEqual(problems, [])
  await close()
})

test('agents that were not loaded are loaded again', browserTest, async () => {
  const account = await herald.newAccount()
  const { page, close } = await openPage({ base: herald.url, cookie: await account.signIn('admin') })
  await page.route('**/agents', (route) => route.abort())
  await page.goto('/console')
  const alert = page.getByRole('alert').filter({ hasText: 'Herald does not respond.' })
  await alert.waitFor()
  await page.unroute('**/agents')
  await alert.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('button', { name: 'Send a first message' }).click()
  await page.getByRole('log').getByText('Your order is on its way').waitFor()
  await close()
})
