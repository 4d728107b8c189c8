import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../../../server/test/support/until.ts'
import { browserTest } from '../support/browser.ts'
import { ask, herald, open, TEXT, waitForOutcome, withSms } from './shared.ts'

const rows = (page: Page) => page.getByRole('row').filter({ has: page.getByRole('cell') })
const row = (page: Page, number: string) => rows(page).filter({ hasText: number })

async function settled(messageId: string, ...statuses: string[]): Promise<void> {
  await until(`${messageId} is ${statuses}`, async () => statuses.includes((await ask(`/messages/${messageId}`)).status))
}

const failedId = await herald.send('+48500200103', TEXT, { clientReferenceId: 'order-failed' })
const readId = await herald.send('+48500200110', TEXT, { clientReferenceId: 'order-read' })
const heldBackId = await herald.send('+48500200102', TEXT, withSms({ consentIDS: [1] }))
await settled(failedId, 'FAILED')
await settled(readId, 'READ')
await settled(heldBackId, 'FAILED')

/** Adds messages like this one, of the same millisecond. */
async function copyMessage(messageId: string, copies: number): Promise<void> {
  await herald.pool.query(
    `insert into messages (id, account_id, agent_id, recipient, status, basic, test, client_reference_id, content, accepted_at, expires_at, sent_at,
       delivered_at, read_at)
     select overlay(gen_random_uuid()::text placing left(m.id::text, 15) from 1)::uuid, account_id, agent_id, recipient, status, basic, test,
       client_reference_id, content, accepted_at, expires_at, sent_at, delivered_at, read_at
     from messages m, generate_series(1, $2) where m.id = $1`,
    [messageId, copies],
  )
}

test('keeps the filters in the address, so that they survive a reload', browserTest, async () => {
  const { page, end } = await open('')
  await row(page, '+48 500 200 110').waitFor()
  await page.getByLabel('Status').selectOption('Failed')
  await page.getByLabel('Agent').selectOption({ label: 'Greenhouse' })
  await row(page, '+48 500 200 110').waitFor({ state: 'detached' })
  assert.match(page.url(), /\?status=FAILED&agentId=greenhouse$/)
  await page.reload()
  await row(page, '+48 500 200 103').getByText('the network refused the message').waitFor()
  assert.equal(await page.getByLabel('Status').inputValue(), 'FAILED')
  assert.equal(await row(page, '+48 500 200 110').count(), 0)
  await page.getByRole('button', { name: 'Clear the filters' }).click()
  await row(page, '+48 500 200 110').waitFor()
  await end()
})

test('shows no time of an accepted message in the future if the clock of the browser is slow', browserTest, async () => {
  const { page, end } = await open('')
  await page.addInitScript('const { now } = Date; Date.now = () => now() - 20_000')
  await page.reload()
  const messageId = await herald.send('+48500200310', TEXT, { clientReferenceId: 'order-now' })
  await settled(messageId, 'READ')
  await row(page, '+48 500 200 310').getByText('now', { exact: true }).filter({ visible: true }).waitFor()
  await end()
})

test('filters by the time, and by test messages', browserTest, async () => {
  await ask('/messages/test', {
    method: 'POST',
    body: { agentId: herald.agentId, recipients: ['+48500200111'], message: { inline: TEXT } },
  })
  const { page, problems, close } = await open('')
  await row(page, '+48 500 200 110').waitFor()
  assert.equal(await row(page, '+48 500 200 111').count(), 0, 'test messages are not in the list')
  await page.getByLabel('Kind').selectOption('Tests only')
  await row(page, '+48 500 200 111').getByText('Test', { exact: true }).waitFor()
  await page.getByLabel('Kind').selectOption('All but tests')
  await page.getByLabel('Accepted before').fill('2020-01-31T08:00')
  await page.getByText('No message matches these filters').waitFor()
  assert.match(page.url(), /acceptedTo=20/)
  await page.getByLabel('Accepted from').fill('2021-01-31T08:00')
  await page.getByText('must not be before acceptedFrom').waitFor()
  await page.getByLabel('Accepted before').fill('')
  await row(page, '+48 500 200 110').waitFor()
  assert.ok(
    problems.length > 0 && problems.every((problem) => problem.includes('400')),
    'Chromium reports the wrong range, and nothing else',
  )
  await close()
})

test('finds messages by number, reference and id', browserTest, async () => {
  const { page, end } = await open('')
  const search = page.getByLabel('Search')
  await search.fill('+48 500 200 110')
  await search.press('Enter')
  await page.waitForURL(/recipient=%2B48500200110$/)
  await row(page, '+48 500 200 103').waitFor({ state: 'detached' })
  await row(page, '+48 500 200 110').waitFor()
  assert.equal(await rows(page).count(), 1)
  await search.fill('order-failed')
  await page.getByRole('button', { name: 'Find', exact: true }).click()
  await page.waitForURL(/\?clientReferenceId=order-failed$/)
  await row(page, '+48 500 200 103').waitFor()
  await search.fill(readId)
  await search.press('Enter')
  await waitForOutcome(page, 'The recipient read it')
  await page.goBack()
  await row(page, '+48 500 200 103').waitFor()
  assert.equal(await search.inputValue(), 'order-failed')
  await end()
})

test('offers the search for a reference if no number and no message is found', browserTest, async () => {
  const [digits, short, id] = ['48500200999', '10023456', '0198c0de-0000-7000-8000-000000000017']
  for (const clientReferenceId of [digits, short, id]) await herald.send('+48500200177', TEXT, { clientReferenceId })
  const { page, close } = await open('')
  const search = page.getByLabel('Search')
  const offer = page.getByRole('link', { name: 'Search as a reference' })
  for (const reference of [digits, short, id]) {
    await search.fill(reference)
    await search.press('Enter')
    await offer.click()
    await page.waitForURL(new RegExp(`\\?clientReferenceId=${reference}$`))
    await row(page, reference).waitFor()
    assert.equal(await rows(page).count(), 1)
  }
  await search.fill('+48500200999')
  await search.press('Enter')
  await page.getByText('No message matches these filters').waitFor()
  assert.equal(await offer.count(), 0, 'a number with its plus sign is no reference')
  await close()
})

test('shows new messages at the top, announces them, and can be paused', browserTest, async () => {
  const [tail, paused] = [await open(''), await open('')]
  for (const { page } of [tail, paused]) await row(page, '+48 500 200 110').waitFor()
  await paused.page.getByRole('button', { name: 'Pause' }).click()
  await paused.page.getByRole('button', { name: 'Resume' }).waitFor()
  const reloads: string[] = []
  paused.page.on('request', (request) => request.url().includes('/messages?') && reloads.push(request.url()))
  await tail.page.getByText('live', { exact: true }).waitFor()
  await herald.send('+48500200112', TEXT)
  await row(tail.page, '+48 500 200 112').waitFor()
  assert.match((await rows(tail.page).first().textContent()) ?? '', /200 112/)
  await tail.page.getByText('1 new message at the top of the list.').waitFor({ state: 'attached' })
  // By the second reload of the live page, the paused one would have begun its first.
  await herald.send('+48500200212', TEXT)
  await row(tail.page, '+48 500 200 212').waitFor()
  assert.deepEqual(reloads, [])
  assert.equal(await row(paused.page, '+48 500 200 112').count(), 0)
  await paused.page.getByRole('button', { name: 'Resume' }).click()
  await row(paused.page, '+48 500 200 112').waitFor()
  await tail.end()
  await paused.end()
})

test('changes the status of a row as soon as it changes', browserTest, async () => {
  const phone = '+48500200104'
  const messageId = await herald.send(phone, TEXT)
  const { page, end } = await open('')
  await row(page, '+48 500 200 104').getByText('Sent', { exact: true }).waitFor()
  await page.getByText('live', { exact: true }).waitFor()
  await herald.simulator.ask(`phones/${phone}/deliver`, { agentId: herald.agentId, messageId })
  await row(page, '+48 500 200 104').getByText('Read', { exact: true }).waitFor()
  await end()
})

test('looks for new messages every two seconds, since an accepted message emits no event', browserTest, async () => {
  const { page, close } = await open('?clientReferenceId=order-read')
  await page.route('**/stream?*', (route) => route.abort())
  let reads = 0
  page.on('request', (request) => {
    if (request.url().includes('/messages?')) reads += 1
  })
  await page.clock.install()
  await page.reload()
  await row(page, '+48 500 200 110').waitFor()
  await page.clock.pauseAt(Date.now() + 1_000)
  for (let turn = 0; turn < 4; turn += 1) {
    const before = reads
    await page.clock.runFor(2_000)
    await until('it is read again', async () => reads > before)
  }
  await close()
})

test('shows 50 messages a page, and the API call of the page', browserTest, async () => {
  const messageId = await herald.send('+48500200301', TEXT, { clientReferenceId: 'many' })
  await settled(messageId, 'DELIVERED')
  await copyMessage(messageId, 54)
  const { page, end } = await open('?clientReferenceId=many')
  await page.getByText('50 messages shown').waitFor()
  await page.getByRole('link', { name: 'Older' }).click()
  await page.getByText('5 messages shown').waitFor()
  await page.getByText('There are no more.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Pause' }).count(), 0, 'only the first page is live')
  await page.getByRole('link', { name: 'Newest' }).click()
  await page.getByText('50 messages shown').waitFor()
  await page.getByRole('button', { name: 'As curl' }).click()
  const command = (await page.getByRole('region', { name: 'The same request to the API' }).textContent()) ?? ''
  const response = await fetch(/'(http[^']+)'$/.exec(command)?.[1] ?? '', { headers: { authorization: herald.authorization } })
  assert.equal(((await response.json()) as { items: unknown[] }).items.length, 50)
  await end()
})

test('downloads what the filters find as CSV, and copies ids', browserTest, async () => {
  const { page, end } = await open('?clientReferenceId=order-read')
  await row(page, '+48 500 200 110')
    .getByRole('button', { name: `Copy ${readId}` })
    .waitFor()
  const downloading = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download as CSV' }).click()
  const download = await downloading
  assert.equal(download.suggestedFilename(), 'messages.csv')
  const [head, ...lines] = (await readFile(await download.path(), 'utf8')).trim().split('\r\n')
  assert.match(head ?? '', /^messageId,/)
  assert.deepEqual(
    lines.map((line) => line.split(',')[0]),
    [readId],
  )
  await end()
})

test('says that the agents and campaigns could not be read, and reads them again', browserTest, async () => {
  const { page, close } = await open('')
  await page.route(/\/(agents|campaigns\?limit=200)$/, (route) => route.abort())
  await page.reload()
  const alerts = page.getByRole('search').getByRole('alert')
  await until('both say so', async () => (await alerts.count()) === 2)
  await page.unroute(/\/(agents|campaigns\?limit=200)$/)
  for (let n = 2; n > 0; n -= 1) {
    await alerts.first().getByRole('button', { name: 'Try again' }).click()
    await until('one is read', async () => (await alerts.count()) === n - 1)
  }
  await page.getByLabel('Agent').selectOption({ label: 'Greenhouse' })
  await close()
})

test('works by the keyboard alone', browserTest, async () => {
  const { page, end } = await open('?clientReferenceId=order-read')
  await row(page, '+48 500 200 110').waitFor()
  const focused = () => page.evaluate('document.activeElement.textContent')
  await page.getByLabel('Search').focus()
  await until('the focus reaches the message', async () => {
    await page.keyboard.press('Tab')
    return (await focused()) === '+48 500 200 110'
  })
  await page.keyboard.press('Enter')
  await waitForOutcome(page, 'The recipient read it')
  await page.getByRole('link', { name: 'Messages' }).last().focus()
  await until('the focus reaches the curl button', async () => {
    await page.keyboard.press('Tab')
    return (await focused()) === 'As curl'
  })
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.equal(await focused(), 'As curl', 'the focus returns to the button')
  await end()
})

test('says that no message matches the filters', browserTest, async () => {
  const { page, end } = await open('?clientReferenceId=nothing')
  await page.getByRole('heading', { name: 'No message matches these filters' }).waitFor()
  await end()
})

test('a viewer sees no whole number, neither on the page nor in a response, and can change nothing', browserTest, async () => {
  const viewer = await herald.signIn('viewer')
  const { page, end } = await open('', { cookie: viewer })
  const texts: Promise<string>[] = []
  page.on('response', (response) => {
    // A response that a navigation cuts off reaches nobody.
    if (response.url().includes('/admin/v1/') && !response.url().includes('/stream')) texts.push(response.text().catch(() => ''))
  })
  await page.reload()
  await rows(page).first().waitFor()
  texts.push(page.content())
  await page.goto(`/console#/${herald.accountId}/messages/${failedId}`)
  await waitForOutcome(page, 'The recipient got nothing.')
  await page.getByText('Your parcel is on its way.').or(page.getByText('Nothing arrived')).first().waitFor()
  texts.push(page.content())
  const seen = await Promise.all(texts)
  assert.ok(
    seen.some((text) => text.includes('+48•••••••03')),
    'it sees masked numbers',
  )
  for (const text of seen) assert.doesNotMatch(text.replace(/[\s ]/g, ''), /\+48500200\d{3}/)
  assert.equal(await page.getByRole('button', { name: /Post|Cancel/ }).count(), 0)
  await page.goto(`/console#/${herald.accountId}/messages?status=FAILED`)
  await rows(page).first().waitFor()
  assert.equal(await page.getByRole('link', { name: 'Download as CSV' }).count(), 0)
  // The API for callers does not know the encrypted cursors of viewers.
  await page.route(/messages\?.*cursor=/, (route) => route.fulfill({ json: { items: [], nextCursor: null } }))
  await page.goto(`/console#/${herald.accountId}/messages?status=FAILED&cursor=encrypted`)
  await page.getByText('There are no more.').waitFor()
  await page.getByRole('button', { name: 'As curl' }).click()
  await page.getByRole('dialog').getByText("/v1/messages?status=FAILED'").waitFor()
  await end()
})

// Last, since it fills the list.
test('says that it has searched only some of the messages, and searches further', browserTest, async () => {
  const agentId = 'rarely'
  const first = await herald.send('+48500200203', TEXT, { clientReferenceId: 'rare' })
  await settled(first, 'FAILED')
  const last = await herald.send('+48500200210', TEXT)
  await settled(last, 'READ')
  // Thousands of newer messages do not match.
  for (let n = 0; n < 5; n += 1) await copyMessage(last, 4_000)
  await herald.pool.query('update messages set agent_id = $2 where id = $1', [first, agentId])
  const { page, problems, end } = await open(`?agentId=${agentId}`)
  await page.getByText('Herald has searched only some of the messages so far.').waitFor()
  await page.route(/messages\?.*cursor=/, (route) => route.abort())
  await page.getByRole('button', { name: 'Search further', exact: true }).click()
  const alert = page.getByRole('alert').filter({ hasText: 'Herald does not respond.' })
  await alert.waitFor()
  // Other filters are another search.
  await page.goto(`/console#/${herald.accountId}/messages?clientReferenceId=order-read`)
  await alert.waitFor({ state: 'detached' })
  await page.goBack()
  // It ends the search that is under way, which would replace what the other one finds.
  const other = page.waitForEvent('requestfailed', (request) => /cursor=/.test(request.url()))
  await page.unroute(/messages\?.*cursor=/)
  await page.route(/messages\?.*cursor=/, () => {})
  const looking = page.waitForRequest(/messages\?.*cursor=/)
  await page.getByRole('button', { name: 'Search further', exact: true }).click()
  await looking
  await page.goto(`/console#/${herald.accountId}/messages?clientReferenceId=order-read`)
  assert.equal((await other).failure()?.errorText, 'net::ERR_ABORTED')
  await page.goBack()
  await page.unroute(/messages\?.*cursor=/)
  await page.route(/messages\?.*cursor=/, (route) => route.abort())
  await page.getByRole('button', { name: 'Search further', exact: true }).click()
  await alert.waitFor()
  await page.unroute(/messages\?.*cursor=/)
  const further = page.waitForRequest(/messages\?.*cursor=/)
  await alert.getByRole('button', { name: 'Try again' }).click()
  await further
  await alert.waitFor({ state: 'detached' })
  problems.length = 0
  await until('the message is found', async () => {
    if ((await row(page, '+48 500 200 203').count()) === 1) return true
    const further = page.getByRole('button', { name: 'Search further', exact: true })
    if ((await further.count()) === 1) await further.click({ timeout: 1_000 }).catch(() => {})
    return false
  })
  await page.getByRole('button', { name: 'Resume' }).waitFor()
  await end()
})

test('leads from a page that no longer exists to the newest messages', browserTest, async () => {
  await herald.send('+48500100610', TEXT)
  const { page, close } = await open('?cursor=gone')
  const alert = page.getByRole('alert')
  await alert.getByText('This page of the list no longer exists.', { exact: true }).waitFor()
  await alert.getByRole('link', { name: 'Newest' }).click()
  await page
    .getByRole('row', { name: /500 100 610/ })
    .first()
    .waitFor()
  assert.doesNotMatch(page.url(), /cursor/)
  await close()
})
