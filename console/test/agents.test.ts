import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { assignAgent, createAgent } from '../../server/src/agents/agents.ts'
import type { Role } from '../../server/src/people/roles.ts'
import { addAutoReply } from '../../server/src/replies/auto-replies.ts'
import { createTemplate } from '../../server/src/templates/templates.ts'
import { call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald()
const { pool } = herald
const TEXT = { type: 'MESSAGE', content: 'Your parcel is on its way.' } as const

/** The page of a new account with an agent, as a person with this role sees it. */
async function openAccount(t: TestContext, role: Role = 'admin') {
  const account = await herald.newAccount()
  const opened = await openPage({ base: herald.url, cookie: await account.signIn(role) })
  t.after(opened.close)
  const at = (path: string, accountId = account.accountId) => `/console#/${accountId}/${path}`
  const status = async (messageId: string) => {
    const { body } = await call(`${herald.url}/v1/messages/${messageId}`, { authorization: account.authorization })
    return `${body.status} ${body.failure?.reason ?? ''}`.trim()
  }
  return { ...opened, ...account, at, status }
}

const rows = (page: Page) => page.getByRole('table', { name: 'Agents' }).getByRole('row')
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const dialogOf = (page: Page) => page.getByRole('dialog')

/** An agent that no account has. */
async function newAgent(agentId: string): Promise<string> {
  await createAgent(pool, { agentId, name: agentId, billingType: 'basic', carrier: herald.simulator.rcs.name })
  return agentId
}

test(
  'the list shows names, billing, carrier and whether an agent is active here, and its address keeps the filter',
  browserTest,
  async (t) => {
    const { page, problems, at, accountId, agentId } = await openAccount(t)
    const second = await assignAgent(pool, await newAgent(`second-${accountId}`), accountId)
    await page.goto(at('agents'))
    const row = rows(page).filter({ hasText: agentId })
    for (const cell of [/^Greenhouse/, 'Active', 'Single message', herald.simulator.rcs.name])
      await row.getByRole('cell', { name: cell }).waitFor()
    await rows(page).filter({ hasText: second.agentId }).getByRole('cell', { name: 'Basic' }).waitFor()
    await page.getByLabel('Status').selectOption('Inactive')
    await page.getByRole('heading', { name: 'No agent has this status' }).waitFor()
    await page.waitForURL(/agents\?active=false$/)
    await page.reload()
    await page.locator('.empty').getByRole('button', { name: 'Clear the filter' }).click()
    await rows(page).nth(2).waitFor()
    await button(page, 'As curl').click()
    await dialogOf(page).getByText("/v1/agents'").waitFor()
    assert.deepEqual(problems, [])
  },
)

test('an account without an agent says who can assign one', browserTest, async (t) => {
  const { page, problems, at, accountId, agentId } = await openAccount(t)
  await pool.query('update agent_assignments set assigned = false, active = false where account_id = $1', [accountId])
  await page.goto(at('agents'))
  await page.getByRole('heading', { name: 'No agent yet' }).waitFor()
  await page.getByText('Only an operator can assign one.').waitFor()
  assert.equal(await page.getByText(agentId).count(), 0)
  assert.deepEqual(problems, [])
})

test('deactivating says what will fail, asks for the id, and makes exactly that fail', browserTest, async (t) => {
  const { page, problems, at, accountId, agentId, send, status } = await openAccount(t)
  const { id: templateId } = await createTemplate(pool, accountId, { name: 'Hours', basic: false, status: 'APPROVED', message: TEXT })
  await addAutoReply(pool, { accountId, agentId, keyword: 'hours', templateId })
  await herald.simulator.ask('faults', { api: { serverError: { rate: 1 } } }, 'PUT')
  t.after(() => herald.simulator.ask('faults', undefined, 'DELETE'))
  const messageIds = [await send('+48500100200', TEXT), await send('+48500100201', TEXT)]
  await page.goto(at(`agents/${agentId}`))
  await button(page, 'Deactivate').click()
  const dialog = dialogOf(page)
  await dialog.getByText('2 queued messages fail with AGENT_INACTIVE.').waitFor()
  await dialog.getByText('0 campaigns are not over').waitFor()
  await dialog.getByText('1 automatic reply is no longer sent.').waitFor()
  await dialog.getByText('Only an operator can activate it again.').waitFor()
  const deactivate = dialog.getByRole('button', { name: 'Deactivate' })
  assert.equal(await deactivate.isDisabled(), true)
  await dialog.getByLabel(`Type ${agentId} to confirm`).fill(agentId)
  let requests = 0
  page.on('request', (request) => {
    if (request.method() === 'PATCH') requests += 1
  })
  await deactivate.dblclick()
  await page.getByText('The agent is inactive.').waitFor()
  assert.equal(requests, 1)
  await page.getByText('Only an operator can activate it again.').waitFor()
  assert.equal(await page.getByRole('button', { name: /Deactivate|Activate|Unassign|Change/ }).count(), 0)
  for (const messageId of messageIds)
    await until('the message has failed', async () => (await status(messageId)) === 'FAILED AGENT_INACTIVE')
  assert.deepEqual(problems, [])
})

test('deactivating says how many campaigns are not over', browserTest, async (t) => {
  const { page, problems, at, agentId, sendCampaign } = await openAccount(t)
  await herald.simulator.ask('faults', { api: { serverError: { rate: 1 } } }, 'PUT')
  t.after(() => herald.simulator.ask('faults', undefined, 'DELETE'))
  await sendCampaign('Spring sale', ['+48500100200'], TEXT)
  await page.goto(at(`agents/${agentId}`))
  await button(page, 'Deactivate').click()
  await dialogOf(page).getByText('1 campaign is not over: their next messages fail, too.').waitFor()
  await button(page, 'Cancel').click()
  await page.locator('.title-row').getByText('Active').waitFor()
  assert.deepEqual(problems, [])
})

test('an agent that nothing depends on is deactivated without typing, and an operator activates it again', browserTest, async (t) => {
  const { page, problems, at, agentId, authorization } = await openAccount(t, 'operator')
  await page.goto(at(`agents/${agentId}`))
  await button(page, 'Deactivate').click()
  await dialogOf(page).getByText('No queued message and no campaign uses it.').waitFor()
  await dialogOf(page).getByText('You can activate it again').waitFor()
  await dialogOf(page).getByRole('button', { name: 'Deactivate' }).click()
  const activate = button(page, 'Activate again')
  await activate.waitFor()
  const active = async () => (await call(`${herald.url}/v1/agents`, { authorization })).body.items.length
  assert.equal(await active(), 0)
  await activate.dblclick()
  await page.getByText('The agent is active again.').waitFor()
  assert.equal(await active(), 1)
  assert.deepEqual(problems, [])
})

test('a refused deactivation says why, and the dialog stays open', browserTest, async (t) => {
  const { page, at, agentId, accountId } = await openAccount(t)
  await page.goto(at(`agents/${agentId}`))
  await button(page, 'Deactivate').click()
  await dialogOf(page).getByText('No queued message and no campaign uses it.').waitFor()
  await pool.query('update agent_assignments set active = false where account_id = $1', [accountId])
  await dialogOf(page).getByRole('button', { name: 'Deactivate' }).click()
  await dialogOf(page)
    .getByRole('alert')
    .getByRole('button', { name: /^Copy req_/ })
    .waitFor()
})

test('an admin changes the display name, and an empty one shows the technical name again', browserTest, async (t) => {
  const { page, problems, at, agentId } = await openAccount(t)
  await page.goto(at(`agents/${agentId}`))
  const rename = async (name: string) => {
    await button(page, 'Change the display name').click()
    await dialogOf(page).getByLabel('Display name').fill(name)
    await button(page, 'Save').click()
  }
  await rename('Garden centre')
  await page.getByRole('heading', { level: 1, name: 'Garden centre' }).waitFor()
  await rename('')
  await page.getByRole('heading', { level: 1, name: 'Greenhouse' }).waitFor()
  assert.deepEqual(problems, [])
  await rename('A name that is longer than any that fits')
  await dialogOf(page).locator('[aria-invalid="true"]').and(dialogOf(page).getByLabel('Display name')).waitFor()
})

test('an operator registers an agent, assigns it here and to another account, and unassigns it', browserTest, async (t) => {
  const { page, problems, at, accountId } = await openAccount(t, 'operator')
  const other = await herald.newAccount()
  const carrier = herald.simulator.rcs.name
  const id = `letters/${accountId}`
  await page.goto(at('agents'))
  await page.getByRole('link', { name: 'Register an agent' }).click()
  const dialog = dialogOf(page)
  await dialog.getByLabel('Id', { exact: true }).fill(id)
  await dialog.getByLabel('Technical name').fill('letters')
  await dialog.getByLabel('Carrier').fill(carrier)
  await dialog.getByRole('button', { name: 'Register an agent' }).click()
  await page.getByText('Not assigned', { exact: true }).waitFor()
  await button(page, 'Assign to this account').dblclick()
  await page.getByText('The agent is assigned to this account.').waitFor()
  await page.goto(at(`agents/${encodeURIComponent(id)}`, other.accountId))
  await button(page, 'Assign to this account').click()
  await page.getByText('The agent is assigned to this account.').waitFor()
  await page.goto(at(`agents/${encodeURIComponent(id)}`))
  await button(page, 'Unassign').click()
  await dialog.getByText('0 automatic replies are removed for good.').waitFor()
  await dialog.getByRole('button', { name: 'Unassign' }).click()
  await page.getByText('The agent is no longer assigned to this account.').waitFor()
  await button(page, 'Assign to this account').waitFor()

  await page.goto(at('agents?all=true'))
  const row = rows(page).filter({ hasText: id })
  await row.getByRole('cell', { name: 'Not assigned' }).waitFor()
  await row.getByRole('cell', { name: '1', exact: true }).waitFor()
  assert.deepEqual(problems, [])
})

test('a wrong carrier is named beside its field', browserTest, async (t) => {
  const { page, at } = await openAccount(t, 'operator')
  await page.goto(at('agents?new=true'))
  const dialog = dialogOf(page)
  await dialog.getByLabel('Id', { exact: true }).fill('pigeon-post')
  await dialog.getByLabel('Technical name').fill('pigeon-post')
  await dialog.getByLabel('Carrier').fill('pigeons')
  await dialog.getByRole('button', { name: 'Register an agent' }).click()
  await dialog
    .locator('.field', { has: page.getByLabel('Carrier') })
    .getByText('must be one of')
    .waitFor()
})

test('an admin sees neither the agents of other accounts nor what only operators may do', browserTest, async (t) => {
  const { page, problems, at, agentId } = await openAccount(t)
  await page.goto(at('agents?all=true&new=true'))
  await rows(page).nth(1).waitFor()
  assert.deepEqual([await rows(page).count(), await dialogOf(page).count(), await page.getByText('All accounts').count()], [2, 0, 0])
  await page.getByRole('link', { name: 'Greenhouse' }).click()
  await button(page, 'Deactivate').waitFor()
  await page.getByRole('region', { name: 'The agent' }).waitFor()
  assert.equal(await page.getByRole('button', { name: /Assign|Unassign/ }).count(), 0)
  assert.match(page.url(), new RegExp(`agents/${agentId}$`))
  assert.deepEqual(problems, [])
})

test('a viewer sees agents and what depends on them, and can change nothing', browserTest, async (t) => {
  const { page, problems, at, agentId } = await openAccount(t, 'viewer')
  await page.goto(at('agents'))
  await page.getByRole('link', { name: 'Greenhouse' }).click()
  await page.getByRole('region', { name: 'The agent' }).waitFor()
  await page.getByRole('navigation', { name: 'Breadcrumbs' }).getByText(agentId).waitFor()
  assert.equal(await page.getByRole('button', { name: /Assign|Unassign|Change|Deactivate|Activate/ }).count(), 0)
  assert.deepEqual(problems, [])
})
