import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { call } from '../../../server/test/support/service.ts'
import { until } from '../../../server/test/support/until.ts'
import { openPage } from './browser.ts'
import type { Herald } from './herald.ts'

// An account that can send campaigns: an approved template, and groups.

export const CARD = {
  type: 'CARD',
  content: '24.00 € instead of 30.00 €. Likes shade, forgives.',
  data: { title: 'Monstera, 60 cm' },
  buttons: [{ id: 'see', type: 'url', text: 'See it', url: 'https://example.com/monstera' }],
}
export const TEMPLATE = 'Monstera card'
const SMS = { planParams: { sender: 'Greenhouse', smsShipmentType: 1 }, smsMessagesPlan: [{ content: 'A fifth off until Sunday.' }] }

/** `count` numbers from the n-th on. Their last two digits say what the phones do. */
export const numbers = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => `+48500${String(from + index).padStart(6, '0')}`)

/** `groups`: the numbers of each group, from group 1 on. */
export async function newSender(herald: Herald, groups: string[][]) {
  const account = await herald.newAccount()
  let keys = 0
  async function ask(method: string, path: string, body?: object) {
    keys += 1
    const headers = { 'idempotency-key': `campaign-${keys}` }
    const response = await call(`${herald.url}/v1/${path}`, { method, authorization: account.authorization, headers, body })
    assert.ok(response.status < 300, `${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
    return response.body
  }
  const { id: templateId } = await ask('POST', 'templates', { name: TEMPLATE, status: 'APPROVED', message: CARD })
  for (const [index, members] of groups.entries()) {
    await ask('PUT', `segments/${index + 1}`, { name: `Customers ${index + 1}` })
    await ask('POST', `segments/${index + 1}/members`, { members: members.map((phone) => ({ phone })) })
  }
  const create = async (name: string, more: object = {}): Promise<string> =>
    (
      await ask('POST', 'campaigns', {
        name,
        agentId: account.agentId,
        segmentIds: [1],
        message: { templateId },
        smsFallback: SMS,
        ...more,
      })
    ).campaignId
  const untilStatus = async (campaignId: string, status: string) => {
    await until(`the campaign is ${status}`, async () => (await ask('GET', `campaigns/${campaignId}`)).status === status)
    return campaignId
  }
  const names = async () => (await ask('GET', 'campaigns?limit=200')).items.map(({ name }: { name: string }) => name)
  return { ...account, base: herald.url, ask, templateId, create, untilStatus, names }
}

export type Sender = Awaited<ReturnType<typeof newSender>>

/** The campaigns of the account, as this role sees them. */
export async function openCampaigns(sender: Sender, role: 'admin' | 'viewer', path = '') {
  const opened = await openPage({ base: sender.base, cookie: await sender.signIn(role) })
  const show = (to: string) => opened.page.goto(`/console#/${sender.accountId}/campaigns${to}`)
  await show(path)
  return { ...opened, show }
}

export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
