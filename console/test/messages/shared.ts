import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import type { Page } from 'playwright-core'
import { call } from '../../../server/test/support/service.ts'
import { openPage } from '../support/browser.ts'
import { startHerald } from '../support/herald.ts'

export const herald = await startHerald({ byHand: 'a page of the list needs thousands of messages' })
export const admin = await herald.signIn('admin')

export const TEXT = { type: 'MESSAGE', content: 'Your parcel is on its way.' }

/** A fallback with these settings. */
export const withSms = (settings: object = {}, more: object = {}) => ({
  smsFallback: {
    planParams: { sender: 'Greenhouse', smsShipmentType: 1, ...settings },
    smsMessagesPlan: [{ content: 'Your parcel is on its way, by SMS.' }],
  },
  ...more,
})

/** A request as an admin’s page sends it, below the account. */
export async function ask(
  path: string,
  { method = 'GET', body, cookie = admin }: { method?: string; body?: unknown; cookie?: string } = {},
) {
  const headers = { cookie: `herald-local=${cookie}`, 'sec-fetch-site': 'same-origin' }
  const response = await call(`${herald.url}/admin/v1/accounts/${herald.accountId}${path}`, { method, body, headers })
  assert.ok(response.status < 300, `${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
  return response.body
}

/** Opens the list, or a message. `end` fails if something went wrong on the page meanwhile. */
export async function open(path: string, options: { cookie?: string; isDark?: boolean; width?: number } = {}) {
  const opened = await openPage({ base: herald.url, cookie: admin, ...options })
  await opened.page.goto(`/console#/${herald.accountId}/messages${path}`)
  const end = async () => {
    assert.deepEqual(opened.problems, [])
    await opened.close()
  }
  return { ...opened, end }
}

/** Waits until the first sentence of a message page begins with this. */
export async function waitForOutcome(page: Page, begin: string): Promise<string> {
  const outcome = page.locator('.outcome', { hasText: begin })
  await outcome.waitFor()
  return (await outcome.textContent()) ?? ''
}

export const step = (page: Page, title: string) => page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: title }) })

/** A webhook endpoint of the account. `statuses`: its responses, one after the other; then 200. */
export async function startEndpoint(statuses: number[] = []): Promise<{ host: string; bodies: string[] }> {
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    bodies.push((await request.toArray()).join(''))
    response.statusCode = statuses.shift() ?? 200
    response.end()
  }).listen(0, '127.0.0.1')
  after(() => server.close())
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  await ask('/webhook-endpoints', { method: 'POST', body: { url: `http://${host}/hook` } })
  return { host, bodies }
}
