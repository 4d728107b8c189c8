import type { Page } from 'playwright-core'
import { recordChange } from '../../../server/src/audit/record.ts'
import { herald } from './shared.ts'
import { at, dialog, heading, type State } from './state.ts'

const ACTION = 'changeWebhookEndpointOfAnAccount'

async function openLog(page: Page): Promise<void> {
  const actor = { kind: 'person' as const, id: 1, name: 'a-person-with-a-long-address@customers.example.com', address: '2001:db8::4711' }
  const states = {
    before: { url: `https://hooks.example.com/${'a'.repeat(80)}`, types: null },
    after: { types: ['message.sent'], isActive: true },
  }
  const entry = { action: ACTION, accountId: herald.accountId, subject: '0198c0de-0000-7000-8000-000000000009' }
  await recordChange(herald.pool, { ...actor, requestId: 'req_0335ed0baa472e56d808cd36d6726f15' }, { ...entry, ...states })
  await recordChange(herald.pool, { kind: 'command', name: 'root' }, { action: 'createAgent' })
  await page.goto(at('audit'))
  await page.getByRole('button', { name: 'Create agent' }).first().waitFor()
}

export const AUDIT: State[] = [
  { name: 'Audit log', open: openLog },
  {
    name: 'Audit log, an entry',
    open: async (page) => {
      await openLog(page)
      await page.getByRole('button', { name: 'Change webhook endpoint of an account' }).first().click()
      await dialog(page).getByRole('table').waitFor()
    },
  },
  {
    name: 'Audit log, an entry of a command',
    open: async (page) => {
      await openLog(page)
      await page.getByRole('button', { name: 'Create agent' }).first().click()
      await dialog(page).getByText('command line').waitFor()
    },
  },
  {
    name: 'Audit log, nothing found',
    role: 'admin',
    open: async (page) => {
      await page.goto(at('audit?actor=nobody&from=2026-01-01T00:00:00Z'))
      await heading(page, 'No such change').waitFor()
    },
  },
]
