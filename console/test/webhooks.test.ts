import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { writeAgo } from '../../server/test/webhooks/support.ts'
import { sure, waiting } from '../src/words/en-webhooks.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'

const herald = await startHerald({ byHand: 'an event is written as if it had waited' })

/** A server for events, which can be made to fail for an hour. `accepted`: the bodies that it has accepted. `signature`: of the last post. */
const receiver = { fails: false, accepted: [] as string[], signature: '' }
const server = createServer(async (request, response) => {
  const body = (await request.toArray()).join('')
  if (!receiver.fails) receiver.accepted.push(body)
  receiver.signature = String(request.headers['webhook-signature'])
  response.writeHead(receiver.fails ? 503 : 200, { 'retry-after': '3600' }).end(receiver.fails ? 'out of disk' : '')
}).listen(0, '127.0.0.1')
await once(server, 'listening')
after(() => server.close())
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
const TEXT = { type: 'MESSAGE', content: 'Your parcel is on its way.' }

test('an admin adds an endpoint, sees why it refuses an event, tests it, and disables it', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  await page.goto(`/console#/${herald.accountId}/webhooks`)
  await page.getByRole('button', { name: 'Add an endpoint' }).click()
  await page.getByLabel('Address').fill(url)
  await page.getByRole('checkbox', { name: 'message.delivered' }).check()
  await page.getByRole('dialog').getByRole('button', { name: 'Add an endpoint' }).click()
  const secret = (await page.getByText(/^whsec_/).textContent()) ?? ''
  // A stray click does not lose the secret.
  await page.mouse.click(5, 5)
  await page
    .getByRole('dialog')
    .getByText(/^whsec_/)
    .waitFor()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByText(/^whsec_/).waitFor({ state: 'detached' })

  receiver.fails = true
  await herald.send('+48500100200', TEXT)
  await page.getByText('fails', { exact: true }).waitFor()
  await page.getByRole('link', { name: url }).click()
  const row = page.getByRole('listitem').filter({ hasText: 'message.delivered' }).first()
  await row.click()
  await row.getByText('out of disk').waitFor()
  await row.getByText('next attempt in 60 min.').or(row.getByText('next attempt in 1 hr.')).waitFor()
  await row.getByRole('region', { name: 'Address and headers' }).getByText('webhook-id: ').waitFor()
  await row.getByRole('region', { name: 'Body' }).getByText('"type": "message.delivered",').waitFor()
  await row.getByText('Check the signature').press('Enter')
  const command = (await row.getByRole('region', { name: 'Check the signature' }).textContent()) ?? ''
  const signature = execFileSync('sh', ['-c', command.replace('whsec_…', secret)], { encoding: 'utf8' })
  assert.equal(signature.trim(), receiver.signature)
  await page.getByRole('region', { name: 'The last attempts' }).getByText('An event has waited for').waitFor()

  receiver.fails = false
  await page.getByRole('button', { name: 'Send a test event' }).click()
  await page.getByText('The endpoint accepted the test event').waitFor()
  await page.getByRole('button', { name: 'Disable' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click()
  await page.getByText('The endpoint is disabled.').waitFor()
  const facts = page.getByRole('region', { name: 'The last attempts' })
  await facts.filter({ hasText: /Types of events *message\.delivered.*Disabled/ }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

/** The page of a new endpoint in a new account, as an admin sees it. */
async function openEndpoint() {
  const account = await herald.newAccount()
  const { authorization, accountId } = account
  const ask = async (path: string, method: string, body: object) => {
    const response = await call(`${herald.url}/v1/webhook-endpoints${path}`, { method, authorization, body })
    assert.ok(response.status < 300, JSON.stringify(response.body))
    return response.body
  }
  const { endpointId } = await ask('', 'POST', { url, types: ['message.delivered'] })
  const opened = await openPage({ base: herald.url, cookie: await account.signIn('admin') })
  const show = () => opened.page.goto(`/console#/${accountId}/webhooks/${endpointId}`)
  const change = (body: object) => ask(`/${endpointId}`, 'PATCH', body)
  return { ...opened, account, endpointId, show, change }
}

test('an admin who enables an endpoint posts all events that it missed', browserTest, async (t) => {
  const { page, problems, close, account, show, change } = await openEndpoint()
  t.after(close)
  await change({ status: 'DISABLED' })
  const messageId = await account.send('+48500100400', TEXT)
  await until('its delivery is recorded', async () => {
    const { body } = await call(`${herald.url}/v1/events?types=message.delivered`, { authorization: account.authorization })
    return body.items?.length === 1
  })
  await show()
  await page.getByRole('button', { name: 'Enable' }).click()
  const dialog = page.getByRole('dialog', { name: 'Post events again' })
  await dialog.getByText('To post what the endpoint missed').waitFor()
  assert.equal(await dialog.getByRole('radio', { name: 'All events' }).isChecked(), true)
  const since = await dialog.getByLabel('Recorded since').inputValue()
  const minutesAgo = (Date.now() - new Date(since).getTime()) / 60_000
  assert.ok(minutesAgo >= 0 && minutesAgo < 10, since)
  // A dialog that was closed suggests the same again.
  await page.keyboard.press('Escape')
  await page.getByText('The endpoint is enabled.').waitFor()
  await page.getByRole('button', { name: 'Post events again' }).click()
  await dialog.getByRole('button', { name: 'Post all since then' }).click()
  await page.getByText('1 event is posted again.').waitFor()
  await until('the event has arrived', () => receiver.accepted.some((body) => body.includes(messageId)))
  assert.deepEqual(problems, [])
})

test('all that failed includes an event that was recorded long before its first attempt', browserTest, async (t) => {
  const { page, problems, close, account, endpointId, show, change } = await openEndpoint()
  t.after(close)
  t.after(() => {
    receiver.fails = false
  })
  receiver.fails = true
  await change({ types: ['message.sent'] })
  await writeAgo(herald.pool, account.accountId, '10 minutes')
  // Only a replay posts it again during the test.
  const postpone = `update webhook_deliveries set due_at = now() + interval '1 hour' where endpoint_id = $1 and attempts > 0`
  await until('an attempt has failed', async () => (await herald.pool.query(postpone, [endpointId])).rowCount === 1)
  receiver.fails = false
  await show()
  await page.getByRole('button', { name: 'Post events again' }).click()
  const dialog = page.getByRole('dialog', { name: 'Post events again' })
  const submit = dialog.getByRole('button', { name: 'Post all that failed' })
  await submit.waitFor()
  // All events need a time.
  await dialog.getByText('All events', { exact: true }).click()
  await dialog.getByRole('button', { name: 'Post all since then' }).waitFor()
  assert.match(await dialog.getByLabel('Recorded since').inputValue(), /^\d{4}-/)
  await dialog.getByText('Only failed ones', { exact: true }).click()
  await submit.click()
  await page.getByText('1 event is posted again.').waitFor()
  await until('the event has arrived', () => receiver.accepted.some((body) => body.includes('message.sent')))
  assert.deepEqual(problems, [])
})

test('a dialog stays open while it sends, and shows the secret of the response', browserTest, async (t) => {
  const { page, problems, close, show } = await openEndpoint()
  t.after(close)
  await show()
  const held = Promise.withResolvers<void>()
  await page.route('**/rotate', async (route) => {
    await held.promise
    await route.continue()
  })
  await page.getByRole('button', { name: 'Replace the secret' }).click()
  const sent = page.waitForRequest('**/rotate')
  await page.getByRole('dialog').getByRole('button', { name: 'Replace the secret' }).click()
  await sent
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await page.mouse.click(5, 5)
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click({ force: true })
  held.resolve()
  await page
    .getByRole('dialog')
    .getByText(/^whsec_/)
    .waitFor()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByText('which expires').waitFor()
  assert.deepEqual(problems, [])
})

test('a failed resend shows the id of the request, and two presses send one', browserTest, async (t) => {
  const { page, close, account, endpointId, show } = await openEndpoint()
  t.after(close)
  await account.send('+48500100401', TEXT)
  await show()
  const row = page.getByRole('listitem').filter({ hasText: 'message.delivered' }).last()
  await row.locator('summary').click()
  const held = Promise.withResolvers<void>()
  let requests = 0
  await page.route('**/replay', async (route) => {
    requests += 1
    await held.promise
    await route.continue()
  })
  const resend = row.getByRole('button', { name: 'Post this event again' })
  await resend.click()
  await resend.click({ force: true })
  await call(`${herald.url}/v1/webhook-endpoints/${endpointId}`, { method: 'DELETE', authorization: account.authorization })
  held.resolve()
  await row
    .getByRole('alert')
    .getByRole('button', { name: /^Copy req_/ })
    .waitFor()
  assert.equal(requests, 1)
})

test('an empty list of attempts says why it is empty, and shows its API call', browserTest, async (t) => {
  const { page, problems, close, endpointId, show } = await openEndpoint()
  t.after(close)
  await show()
  const [attempts, bar] = [
    page.getByRole('region', { name: 'Attempts', exact: true }),
    page.getByRole('region', { name: 'The last attempts' }),
  ]
  await attempts.getByRole('heading', { name: 'Nothing was posted yet' }).waitFor()
  await bar.getByText('Nothing was posted yet').waitFor()
  await attempts.getByText('Only failed ones').click()
  await attempts.getByRole('heading', { name: 'No attempt of the last 30 days failed' }).waitFor()
  await attempts.getByRole('button', { name: 'As curl' }).click()
  await page.getByRole('dialog').getByText(`/v1/webhook-endpoints/${endpointId}/attempts?limit=50&failed=true'`).waitFor()
  await page.keyboard.press('Escape')
  assert.deepEqual(problems, [])
  await page.route('**/attempts?*failed=true*', (route) => route.fulfill({ json: { items: [], nextCursor: 'further' } }))
  await page.route('**/attempts?limit=40', (route) => route.abort())
  await page.reload()
  await attempts.getByText('Herald has searched only some of the attempts so far.').waitFor()
  await attempts.getByRole('button', { name: 'Older' }).waitFor()
  await bar.getByRole('alert').getByText('Herald does not respond.').waitFor()
  assert.equal(await page.getByText(/Nothing was posted yet|No attempt/).count(), 0)
})

test('the list reads the attempts of each endpoint again with time, not after each event', browserTest, async (t) => {
  const { page, close, account } = await openEndpoint()
  t.after(close)
  // Without its polls, which are five seconds apart, only events make the page read.
  await page.addInitScript('const later = window.setTimeout; window.setTimeout = (run, ms) => (ms === 5_000 ? 0 : later(run, ms))')
  await page.goto(`/console#/${account.accountId}/webhooks`)
  await page.reload()
  await page.getByText('live', { exact: true }).first().waitFor()
  await page.getByText('Nothing was posted yet').waitFor()
  let reads = 0
  page.on('request', (request) => {
    if (request.url().includes('/attempts?')) reads += 1
  })
  // Whatever the first event makes the page read, it has read when it has read the list for the second one.
  for (const recipient of ['+48500100402', '+48500100502']) {
    const readAgain = page.waitForResponse(/webhook-endpoints\?limit=200$/)
    await account.send(recipient, TEXT)
    await readAgain
  }
  assert.equal(reads, 0)
})

test('the page keeps a secret that the browser refuses to copy, and says so', browserTest, async (t) => {
  const { page, problems, close, show } = await openEndpoint()
  t.after(close)
  await page.addInitScript('navigator.clipboard.writeText = () => Promise.reject(new Error("refused"))')
  await show()
  await page.reload()
  await page.getByRole('button', { name: 'Replace the secret' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Replace the secret' }).click()
  await dialog.getByRole('button', { name: 'Copy', exact: true }).click()
  await dialog.getByRole('status').getByText('Not copied: select the text').waitFor()
  await dialog.getByText(/^whsec_/).waitFor()
  assert.deepEqual(problems, [])
})

test('the form of a new endpoint says that the carriers could not be read', browserTest, async (t) => {
  const { page, close, account } = await openEndpoint()
  t.after(close)
  await page.route('**/carriers', (route) => route.abort())
  await page.goto(`/console#/${account.accountId}/webhooks/new`)
  await page.reload()
  const alert = page.getByRole('dialog').getByRole('alert')
  await alert.getByText('Herald does not respond.').waitFor()
  await page.unroute('**/carriers')
  await alert.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('No server yet?').waitFor()
})

test('says that there are 10,000 events or more, since the API counts no further', () => {
  assert.equal(waiting(10_000, 9_999), '10,000 or more events wait, 9,999 failed.')
  assert.match(sure.disable(10_000), /10,000 or more events wait for it/)
  assert.match(sure.delete(10_000), /its attempts and 10,000 or more waiting events\./)
})

test('a viewer sees endpoints and attempts, and can change nothing', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('viewer') })
  await page.goto(`/console#/${herald.accountId}/webhooks`)
  const link = page.getByRole('link', { name: url })
  await link.waitFor()
  assert.equal(await page.getByRole('button', { name: 'Add an endpoint' }).count(), 0)
  await link.click()
  await page.getByRole('heading', { name: 'Attempts' }).waitFor()
  assert.equal(await page.getByRole('button', { name: /Post|Replace|Disable|Enable|Delete/ }).count(), 0)
  assert.deepEqual(problems, [])
  await close()
})
