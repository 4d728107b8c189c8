import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openStream } from '../../../server/test/support/server-sent.ts'
import { until } from '../../../server/test/support/until.ts'
import { browserTest, openPage } from '../support/browser.ts'
import { cookieOf, endpoints, herald, messages, PHONES } from './shared.ts'

/** The digits of all phones, without the code of the country: these are in every spelling of a number. */
const DIGITS = Object.values(PHONES).map((phone) => phone.slice(3))
const BASE64 = /[\w-]{16,}/g

/** The numbers in a text, also with spaces or percent signs between their parts, or hidden in base64. */
function numbersIn(text: string): string[] {
  const decoded = text.match(BASE64)?.map((part) => Buffer.from(part, 'base64url').toString('latin1')) ?? []
  const all = [text, ...decoded].map((each) => each.replace(/%2B|%20|&nbsp;|[\s()+.-]/gi, ''))
  return DIGITS.filter((digits) => all.some((each) => each.includes(digits)))
}

/** Everything that reaches the browser: `seen` has the texts by where they were seen. */
async function openSeeing(role: 'viewer' | 'admin') {
  const opened = await openPage({ base: herald.url, cookie: await cookieOf(role) })
  const { page } = opened
  const seen: { where: string; text: string }[] = []
  const reading: Promise<unknown>[] = []
  page.on('request', (request) => seen.push({ where: 'an address', text: request.url() }))
  page.on('response', (response) => {
    const url = response.url()
    if (!url.includes('/admin/v1/') || url.includes('/stream')) return
    // A response that a navigation cuts off reaches nobody.
    const body = response.text().catch(() => '')
    reading.push(body.then((text) => seen.push({ where: url, text: `${text} ${JSON.stringify(response.headers())}` })))
  })
  /** Notes the whole page, with all attributes. Values of fields are no attributes. */
  async function look(where: string): Promise<void> {
    const values = await page.evaluate<string>(
      `[...document.querySelectorAll('input, textarea, select')].map(({ value }) => value).join(' ')`,
    )
    seen.push({ where, text: `${await page.content()} ${values} ${await page.title()} ${page.url()}` })
  }
  return { ...opened, seen, look, settle: () => Promise.all(reading) }
}

type Seeing = Awaited<ReturnType<typeof openSeeing>>
const at = (path: string) => `/console#/${herald.accountId}/${path}`

async function visitPhones({ page, look }: Seeing): Promise<void> {
  await page.goto(at('phones'))
  const list = page.getByRole('region', { name: 'Phones' }).getByRole('link')
  await list.first().waitFor()
  for (let index = 0; index < (await list.count()); index += 1) {
    await list.nth(index).click()
    await page.locator('.stage[aria-busy="false"]').waitFor()
    await page.locator('.saw li').first().waitFor()
    await look(`phone ${index}`)
  }
  await page.getByText('iPhone (approximation)').click()
  await page.getByRole('figure', { name: 'iPhone' }).waitFor()
  await look('an iPhone')
}

async function visitMessages({ page, look }: Seeing): Promise<void> {
  await page.goto(at('messages'))
  await page.getByRole('row').nth(Object.keys(messages).length).waitFor()
  await look('the list of messages')
  for (const [name, messageId] of Object.entries(messages)) {
    await page.goto(at(`messages/${messageId}`))
    await page.locator('.outcome').waitFor()
    await page.getByRole('region', { name: /phone/i }).first().waitFor()
    await look(`message ${name}`)
    for (const button of ['As JSON', 'As curl']) {
      await page.getByRole('button', { name: button }).click()
      await page.getByRole('dialog').waitFor()
      await look(`message ${name}, ${button}`)
      await page.keyboard.press('Escape')
    }
  }
}

async function visitOthers({ page, look }: Seeing): Promise<void> {
  await page.goto(at(''))
  await page.locator('.lines a').first().waitFor()
  await look('Overview')
  await page.keyboard.press('Control+k')
  await page.keyboard.type(messages.read)
  await page.getByRole('option', { name: `Message ${messages.read}` }).waitFor()
  await look('the palette')
  await page.keyboard.press('Escape')
  await page.goto(at('webhooks'))
  await page.getByText('fails', { exact: true }).waitFor()
  await look('Webhooks')
  for (const endpointId of Object.values(endpoints)) {
    await page.goto(at(`webhooks/${endpointId}`))
    await page.locator('.attempts summary').first().waitFor()
    for (const summary of (await page.locator('.attempts summary').all()).slice(0, 3)) await summary.click()
    await look(`endpoint ${endpointId}`)
  }
  await page.goto(at('send'))
  await page.getByRole('heading', { name: 'Send a message' }).waitFor()
  await look('Send')
}

/** Lists a page at a time, as a person who turns pages does, and reads the feed of events. */
async function turnPages({ page, seen }: Seeing): Promise<void> {
  const cookie = { headers: { 'sec-fetch-site': 'same-origin' } }
  const lists = ['messages?limit=1', 'events?limit=200', `webhook-endpoints/${endpoints.failing}/attempts?limit=1`, 'opt-outs?limit=1']
  for (const path of lists) {
    const response = await page.context().request.get(`/admin/v1/accounts/${herald.accountId}/${path}`, cookie)
    assert.equal(response.status(), 200, path)
    seen.push({ where: path, text: await response.text() })
  }
}

async function visitAll(role: 'viewer' | 'admin') {
  const seeing = await openSeeing(role)
  await visitPhones(seeing)
  await visitMessages(seeing)
  await visitOthers(seeing)
  await turnPages(seeing)
  await seeing.settle()
  assert.deepEqual(seeing.problems, [])
  await seeing.close()
  return seeing.seen
}

const found = (seen: { where: string; text: string }[]) =>
  seen.flatMap(({ where, text }) => numbersIn(text).map((number) => `${number} in ${where}`))

test('a viewer sees no whole number on any page, in any response or in any address', browserTest, async () => {
  const seen = await visitAll('viewer')
  assert.deepEqual(found(seen), [])
  assert.ok(
    seen.some(({ text }) => text.includes('+48•••••••10')),
    'it sees masked numbers',
  )
})

test('an admin sees whole numbers, so the search finds them', browserTest, async () => {
  const seen = await visitAll('admin')
  const places = found(seen).join('\n')
  for (const digits of DIGITS) assert.ok(places.includes(digits), digits)
  for (const where of [
    'phone 0',
    'message read',
    'message bySms',
    'the list of messages',
    '/timeline',
    '/content',
    '/ledger',
    'events?limit',
  ])
    assert.ok(places.includes(where), where)
  assert.deepEqual(numbersIn(Buffer.from(`["${PHONES.reads}"]`).toString('base64url')), [PHONES.reads.slice(3)])
})

test('the stream has masked numbers for a viewer, and whole ones for an admin', async () => {
  const open = async (role: 'viewer' | 'admin') =>
    await openStream(`${herald.url}/admin/v1/stream?accountId=${herald.accountId}`, { cookie: `herald-local=${await cookieOf(role)}` })
  const streams = { viewer: await open('viewer'), admin: await open('admin') }
  for (const stream of Object.values(streams)) await stream.next('ready')
  await herald.simulator.ask(`phones/${PHONES.keeps}/reply`, { agentId: herald.agentId, text: `Call ${PHONES.off}` })
  for (const stream of Object.values(streams)) await until('the reply has arrived', () => stream.logged().length > 0)
  assert.deepEqual(numbersIn(JSON.stringify(streams.viewer.received)), [])
  assert.ok(numbersIn(JSON.stringify(streams.admin.received)).length >= 2)
})

test('a message that arrives while a viewer looks has a masked number', browserTest, async () => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await cookieOf('viewer') })
  await page.goto(at('messages'))
  await page.getByText('live', { exact: true }).waitFor()
  await herald.send(PHONES.reads, { type: 'MESSAGE', content: 'One more' }, { clientReferenceId: 'one-more' })
  await page.getByRole('row').filter({ hasText: 'one-more' }).waitFor()
  assert.deepEqual(numbersIn(await page.content()), [])
  assert.deepEqual(problems, [])
  await close()
})
