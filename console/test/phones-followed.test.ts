import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { assignAgent, createAgent } from '../../server/src/agents/agents.ts'
import { until } from '../../server/test/support/until.ts'
import { conversationsOf, type LedgerEntry } from '../src/pages/phones/ledger.ts'
import * as say from '../src/words/en-phones.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

// The page Phones while other things happen: messages to other phones, retries, and what other people do.

const herald = await startHerald()
const text = (content: string) => ({ type: 'MESSAGE', content })
const stage = (page: Page) => page.getByRole('region', { name: 'The phone' })
const conversation = (page: Page) => stage(page).getByLabel('Conversation')
const list = (page: Page) => page.getByRole('region', { name: 'Phones' }).getByRole('link')

async function openPhones(phone?: string) {
  const opened = await openPage({ base: herald.url, cookie: await herald.signIn('admin'), height: 1000 })
  const query = phone === undefined ? '' : `?phone=${encodeURIComponent(phone)}`
  await opened.page.goto(`/console#/${herald.accountId}/phones${query}`)
  await opened.page.getByRole('log').waitFor()
  return opened
}

async function sentTexts(phone: string): Promise<unknown[]> {
  const { entries } = await herald.simulator.ask(`phones/${phone}/ledger`)
  return (entries as { kind: string; detail?: { text?: string } }[]).filter(({ kind }) => kind === 'sent').map(({ detail }) => detail?.text)
}

test('the drawn phone and its unsent text stay when another phone gets a message', browserTest, async () => {
  const [drawn, other] = ['+48500721101', '+48500721201']
  await herald.send(drawn, text('To the first phone'))
  await until('the phone has it', async () => JSON.stringify(await herald.simulator.ask(`phones/${drawn}/ledger`)).includes('delivered'))
  const { page, problems, close } = await openPhones()
  await page.getByRole('log').getByText('To the first phone').waitFor()
  await page.getByLabel('Write a text').fill('Not sent yet')
  await herald.send(other, text('To the other phone'))
  await list(page).first().getByText('To the other phone').waitFor()
  await page.getByRole('log').getByText('To the first phone').waitFor()
  assert.equal(await page.getByLabel('Write a text').inputValue(), 'Not sent yet')
  await stage(page).getByRole('button', { name: 'STOP' }).click()
  await page.getByRole('log').getByText('STOP').waitFor()
  assert.deepEqual([await sentTexts(drawn), await sentTexts(other)], [['STOP'], []])

  // The phone that sent STOP may be first by now.
  await list(page).filter({ hasText: 'To the other phone' }).click()
  await page.getByRole('log').getByText('To the other phone').waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('an unused phone keeps the agent that its person has begun to write to when an SMS comes', browserTest, async () => {
  const phone = '+48500722202'
  const { page, problems, close } = await openPhones(phone)
  await page.getByRole('log').getByText('Greenhouse').waitFor()
  const write = page.getByLabel('Write a text')
  await write.fill('Not sent yet')
  const smsFallback = { planParams: { sender: 'HERALD' }, smsMessagesPlan: [{ content: 'As an SMS.' }] }
  await herald.send(phone, text('Without RCS'), { smsFallback })
  await conversation(page).getByText('SMS: HERALD').waitFor({ state: 'attached' })
  assert.equal(await write.inputValue(), 'Not sent yet')
  assert.deepEqual(problems, [])
  await close()
})

test('a phone keeps its conversation and unsent text when another agent writes, and a text begun during a send', browserTest, async () => {
  const phone = '+48500721501'
  const other = { agentId: 'alerts', name: 'Alerts', billingType: 'single', carrier: herald.simulator.rcs.name } as const
  await createAgent(herald.pool, other)
  await assignAgent(herald.pool, other.agentId, herald.accountId)
  await herald.send(phone, text('From the greenhouse'))
  const { page, problems, close } = await openPhones(phone)
  await page.getByRole('log').getByText('From the greenhouse').waitFor()
  const write = page.getByLabel('Write a text')
  await write.fill('Not sent yet')
  await herald.send(phone, text('From the alerts'), { agentId: other.agentId })
  await conversation(page).getByText('Alerts').waitFor({ state: 'attached' })
  await page.getByRole('log').getByText('From the greenhouse').waitFor()
  assert.equal(await write.inputValue(), 'Not sent yet')

  const held = Promise.withResolvers<void>()
  await page.route('**/reply', async (route) => {
    await held.promise
    await route.continue()
  })
  const sending = page.waitForRequest('**/reply')
  await write.press('Enter')
  assert.equal((await sending).postDataJSON().agentId, herald.agentId)
  await write.fill('The next text')
  held.resolve()
  await page.getByRole('log').getByText('Not sent yet').waitFor()
  await until('the next text is sent, too', async () => {
    await write.press('Enter')
    return (await page.getByRole('log').getByText('The next text').count()) === 1
  })

  await conversation(page).selectOption({ label: 'Alerts' })
  await page.getByRole('log').getByText('From the alerts').waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('a phone draws a message that is delivered after its expiry', () => {
  const entry = { at: '2026-11-19T10:00:00.000Z', agentId: 'greenhouse', messageId: 'late' }
  const agentMessage = { contentMessage: { text: 'Better late than never' } }
  const ledger: LedgerEntry[] = [
    { ...entry, position: 1, kind: 'accepted', agentMessage },
    { ...entry, position: 2, kind: 'expired' },
    { ...entry, position: 3, kind: 'delivered' },
  ]
  const [expired] = conversationsOf(ledger.slice(0, 2), false, [])
  assert.deepEqual([expired?.entries, expired?.waiting], [[], 0])
  const [delivered] = conversationsOf(ledger, false, [])
  assert.deepEqual([delivered?.entries.length, delivered?.isCut], [1, false])
})

test('a text in Hebrew has its own direction on the phone, and none within a sentence', browserTest, async () => {
  assert.equal(say.onPhone.wrote('שלום 5'), 'Text “\u2068שלום 5\u2069”')
  const phone = '+48500721601'
  await herald.send(phone, text('שלום Herald'))
  const { page, problems, close } = await openPhones(phone)
  await page.getByRole('log').getByText('Herald').waitFor()
  const lefts = await page.evaluate<number[]>(`(() => {
    const bubble = document.querySelector('.an-bubble')
    const range = document.createRange()
    const node = document.createTreeWalker(bubble, NodeFilter.SHOW_TEXT).nextNode()
    return [0, node.length - 1].map((at) => {
      range.setStart(node, at)
      range.setEnd(node, at + 1)
      return range.getBoundingClientRect().left
    })
  })()`)
  assert.ok((lefts[0] as number) > (lefts[1] as number), 'it begins on the right')
  assert.deepEqual(problems, [])
  await close()
})

test('a message that the network refuses appears in what Herald saw, with its retries', browserTest, async (t) => {
  const phone = '+48500721301'
  const { page, problems, close } = await openPhones(phone)
  await page.getByText('Nothing yet. Send a message to this phone.').waitFor()
  await herald.simulator.ask('faults', { api: { serverError: { rate: 1 } } }, 'PUT')
  t.after(() => herald.simulator.ask('faults', undefined, 'DELETE'))
  await herald.send(phone, text('Later'))
  const saw = page.getByRole('region', { name: 'What Herald saw' })
  await saw.getByText('Accepted', { exact: true }).waitFor()
  await saw.getByRole('listitem').nth(2).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('a phone that another person takes offline is drawn as offline', browserTest, async () => {
  const phone = '+48500721401'
  const { page, problems, close } = await openPhones(phone)
  await herald.simulator.ask(`phones/${phone}/offline`, {})
  await page.getByText('Offline: it gets nothing.').waitFor()
  await stage(page).getByRole('button', { name: 'Go online' }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})
