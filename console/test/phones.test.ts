import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'
import { assertWithin, repeatIfSlow } from './support/timed.ts'

const herald = await startHerald()
const SECOND_MS = 1_000
const IMAGE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mP8z8BQz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC',
  'base64',
)

const CARD = {
  type: 'CARD',
  content: 'It comes tomorrow between 9 and 12.',
  data: { title: 'Your order is on its way', imageUrl: 'https://example.com/a.png', height: 'TALL' },
  buttons: [
    { id: 'track', type: 'url', text: 'Track the parcel', url: 'https://example.com/track' },
    { id: 'day', type: 'quick_reply', text: 'Another day, please', payload: 'another-day' },
    { id: 'where', type: 'location', text: 'Share my location' },
  ],
}

let phones = 0

/** A new number. Its last two digits say what the phone does; 01 gets everything, and does nothing by itself. */
function newPhone(ending = '01'): string {
  phones += 1
  return `+48500${String(700 + phones)}4${ending}`
}

type Options = { role?: 'viewer' | 'admin' | 'operator'; phone?: string; isDark?: boolean; width?: number }

/** The page Phones, signed in. Images come from here instead of the internet. */
async function openPhones({ role = 'admin', phone, isDark = false, width = 1400 }: Options = {}) {
  const cookie = await herald.signIn(role)
  const opened = await openPage({ base: herald.url, cookie, isDark, width, height: 1000 })
  await opened.page.route('**/admin/v1/media?*', (route) => route.fulfill({ contentType: 'image/png', body: IMAGE }))
  const query = phone === undefined ? '' : `?phone=${encodeURIComponent(phone)}`
  await opened.page.goto(`/console#/${herald.accountId}/phones${query}`)
  await opened.page.getByRole('heading', { name: 'Phones', exact: true }).waitFor()
  return opened
}

const drawn = (page: Page) => page.getByRole('log')
const saw = (page: Page) => page.getByRole('region', { name: 'What Herald saw' })
const tool = (page: Page, name: string) => page.getByRole('region', { name: 'The phone' }).getByRole('button', { name })
const ledgerOf = async (phone: string) => (await herald.simulator.ask(`phones/${phone}/ledger`)).entries as { kind: string; at: string }[]

test('the phone is inside its stage, large, and above its buttons, at the sizes of windows', browserTest, async () => {
  const phone = newPhone()
  await herald.send(phone, CARD)
  const { page, problems, close } = await openPhones({ phone })
  await drawn(page).getByText('Your order is on its way').waitFor()
  for (const kind of ['Android', 'iPhone']) {
    await page.getByText(kind).first().click()
    const figure = page.getByRole('figure', { name: kind })
    for (const width of [1240, 1260, 1261, 1280, 1366, 1440, 1920]) {
      await page.setViewportSize({ width, height: 800 })
      await page.waitForFunction(`innerWidth === ${width}`)
      const [inner, outer] = [await figure.boundingBox(), await page.locator('.stage').boundingBox()]
      assert.ok(inner && outer && inner.x >= outer.x && inner.x + inner.width <= outer.x + outer.width, `${kind} at ${width}`)
      assert.ok(inner.width >= 320, `${kind} at ${width} is ${inner.width} pixels wide`)
      const below = await tool(page, 'Go offline').boundingBox()
      assert.ok(below && below.y + below.height <= 800, `${kind} at ${width}: the buttons end at ${(below?.y ?? 0) + (below?.height ?? 0)}`)
    }
  }
  assert.deepEqual(problems, [])
  await close()
})

test('a message appears on the drawn phone within a second of its delivery', browserTest, async (t) => {
  await repeatIfSlow(async () => {
    const phone = newPhone()
    const { page, problems, close } = await openPhones({ phone })
    await page.getByText('Nothing yet. Send a message to this phone.').waitFor()
    await page.getByText('live', { exact: true }).first().waitFor()
    await herald.send(phone, CARD)
    await drawn(page).getByText('Your order is on its way').waitFor()
    const shownAt = Date.now()
    const delivered = (await ledgerOf(phone)).find(({ kind }) => kind === 'delivered')
    await saw(page).getByText('Delivered', { exact: true }).waitFor()
    assert.deepEqual(problems, [])
    await close()
    assertWithin(t, 'a message on the phone', shownAt - Date.parse(delivered?.at ?? ''), SECOND_MS)
  })
})

test('a tap appears in what Herald saw, and so does what the phone opens', browserTest, async () => {
  const phone = newPhone()
  const messageId = await herald.send(phone, CARD)
  const { page, problems, close } = await openPhones({ phone })
  const button = drawn(page).getByRole('button', { name: 'Another day, please' })
  await button.click()
  await saw(page).getByText('Tapped “Another day, please”', { exact: true }).waitFor()
  await saw(page).getByText('message.replied · another-day').waitFor()
  await drawn(page).locator('.an-mine').getByText('Another day, please').waitFor()

  await drawn(page).getByRole('button', { name: 'Track the parcel' }).click()
  await page.getByText('The phone opens https://example.com/track').waitFor()
  await saw(page).getByText('Clicked “Track the parcel”', { exact: true }).waitFor()
  await saw(page).getByRole('link', { name: 'The whole timeline' }).click()
  await page.waitForURL(new RegExp(`messages/${messageId}$`))
  assert.deepEqual(problems, [])
  await close()
})

test('the owner of a phone writes, shares a location, and opts out with STOP', browserTest, async () => {
  const phone = newPhone()
  await herald.send(phone, CARD)
  const { page, problems, close } = await openPhones({ phone })
  await drawn(page).getByText('Your order is on its way').waitFor()
  await page.getByLabel('Write a text').fill('Is it heavy?')
  await page.keyboard.press('Enter')
  await drawn(page).getByText('Is it heavy?').waitFor()
  await saw(page).getByText('Wrote “Is it heavy?”', { exact: true }).waitFor()

  await drawn(page).getByRole('button', { name: 'Share my location' }).click()
  const dialog = page.getByRole('dialog', { name: 'Share a location' })
  await dialog.getByLabel('Latitude').fill('91')
  await dialog.getByText('Enter a number from -90 to 90.').waitFor()
  await dialog.getByLabel('Latitude').fill('50.5')
  await dialog.getByRole('button', { name: 'Share' }).click()
  await drawn(page).getByText('50.50000, 21.01220').waitFor()
  await saw(page).getByText('Shared a location', { exact: true }).waitFor()

  await tool(page, 'STOP').click()
  await drawn(page).locator('.an-mine').getByText('STOP').waitFor()
  await saw(page).getByText('Opted out “STOP”', { exact: true }).waitFor()
  const { body } = await call(`${herald.url}/v1/opt-outs?phone=${encodeURIComponent(phone)}`, { authorization: herald.authorization })
  assert.equal(JSON.stringify(body).includes(phone), true, 'the opt-out is recorded')
  assert.deepEqual(problems, [])
  await close()
})

test('a phone that is offline gets its messages when it is online again', browserTest, async () => {
  const phone = newPhone()
  const { page, problems, close } = await openPhones({ phone })
  await tool(page, 'Go offline').click()
  await page.getByText('Offline: it gets nothing.').waitFor()
  await herald.send(phone, CARD)
  await page.getByText('Offline: 1 message waits.').waitFor()
  assert.equal(await drawn(page).getByText('Your order is on its way').count(), 0)
  assert.equal(await tool(page, 'STOP').isDisabled(), true)
  await page.getByRole('region', { name: 'Phones' }).getByText('offline').waitFor()
  await tool(page, 'Go online').click()
  await drawn(page).getByText('Your order is on its way').waitFor()
  await saw(page).getByText('Delivered', { exact: true }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('a phone without RCS shows the SMS that it got instead', browserTest, async () => {
  const phone = newPhone('02')
  const smsFallback = { planParams: { sender: 'HERALD' }, smsMessagesPlan: [{ content: 'Your order is on its way: as an SMS.' }] }
  const { page, problems, close } = await openPhones({ phone })
  await herald.send(phone, CARD, { smsFallback })
  await drawn(page).getByText('Your order is on its way: as an SMS.').waitFor()
  await saw(page).getByText('SMS delivered', { exact: true }).waitFor()
  const item = page.getByRole('region', { name: 'Phones' }).getByRole('link').filter({ hasText: 'no RCS' }).first()
  await item.getByText('Your order is on its way: as an SMS.').waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('an operator switches faults on and off, and sees which are on', browserTest, async () => {
  const phone = newPhone()
  await herald.send(phone, CARD)
  const { page, problems, close } = await openPhones({ role: 'operator', phone })
  await page.getByRole('button', { name: 'Faults: none' }).click()
  const dialog = page.getByRole('dialog', { name: 'Faults of the simulated network' })
  await dialog.getByRole('switch', { name: 'Refuses with 503' }).click()
  await page.getByRole('button', { name: 'Faults: 1 on', includeHidden: true }).waitFor()
  await dialog.getByRole('switch', { name: 'Loses receipts' }).first().click()
  await page.getByRole('button', { name: 'Faults: 2 on', includeHidden: true }).waitFor()
  const { api, webhooks } = await herald.simulator.ask('faults')
  assert.deepEqual([api, webhooks], [{ serverError: { rate: 1, status: 503 } }, { lost: { rate: 1 } }])
  await dialog.getByRole('switch', { name: 'Refuses with 503' }).click()
  await page.getByRole('button', { name: 'Faults: 1 on', includeHidden: true }).waitFor()
  await dialog.getByRole('button', { name: 'End all faults' }).click()
  await page.getByRole('button', { name: 'Faults: none', includeHidden: true }).waitFor()
  assert.equal((await herald.simulator.ask('faults')).webhooks, undefined)
  assert.deepEqual(problems, [])
  await close()
})

test('a phone is added by its number, and its last two digits are explained', browserTest, async () => {
  const { page, problems, close } = await openPhones()
  await page.getByRole('button', { name: 'Add a phone' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'Add a phone' })
  await dialog.getByLabel('Phone number').fill('500')
  await dialog.getByRole('button', { name: 'Open the phone' }).click()
  await dialog.getByText('Enter a number with its country code').waitFor()
  await dialog.getByLabel('Phone number').fill('+48 500 999 100')
  await dialog.getByRole('button', { name: '…07 taps the first button' }).click()
  await dialog.getByRole('button', { name: 'Open the phone' }).click()
  const item = page.getByRole('region', { name: 'Phones' }).getByRole('link', { name: '+48 500 999 107' })
  await item.getByText('taps the first button').waitFor()
  await herald.send('+48500999107', CARD)
  await saw(page).getByText('Tap on “Track the parcel”', { exact: true }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('a keyboard alone chooses a phone, opens the iPhone’s menu, and taps', browserTest, async () => {
  const phone = newPhone()
  await herald.send(phone, CARD)
  const { page, problems, close } = await openPhones({ phone })
  const focusOn = async (name: string, key = 'Tab') => {
    for (let presses = 0; presses < 80; presses++) {
      await page.keyboard.press(key)
      const focused = await page.evaluate<string>(
        '(document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.closest("label")?.textContent ?? document.activeElement?.textContent ?? "").trim()',
      )
      if (focused.startsWith(name)) return
    }
    assert.fail(`Tab does not reach ${name}`)
  }
  await drawn(page).getByText('Your order is on its way').waitFor()
  await focusOn('Android')
  await page.keyboard.press('ArrowRight')
  await page.getByRole('figure', { name: 'iPhone' }).waitFor()
  await focusOn('Messages, as an iPhone')
  await focusOn('Options')
  await page.keyboard.press('Enter')
  await focusOn('Track the parcel')
  await page.keyboard.press('Enter')
  await page.getByText('The phone opens https://example.com/track').waitFor()
  await focusOn('STOP')
  await page.keyboard.press('Space')
  await saw(page).getByText('Opted out “STOP”', { exact: true }).waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('a viewer sees the phone with masked numbers, and can’t use it', browserTest, async () => {
  const phone = newPhone()
  const messageId = await herald.send(phone, { ...CARD, content: `Call ${phone}` })
  await until('it is delivered', async () => (await ledgerOf(phone)).some(({ kind }) => kind === 'delivered'))
  const bodies: Promise<string>[] = []
  const cookie = await herald.signIn('viewer')
  const { page, problems, close } = await openPage({ base: herald.url, cookie })
  await page.route('**/admin/v1/media?*', (route) => route.fulfill({ contentType: 'image/png', body: IMAGE }))
  page.on('response', (response) => {
    if (response.url().includes('/admin/v1/') && !response.url().includes('/stream')) bodies.push(response.text().catch(() => ''))
  })
  await page.goto(`/console#/${herald.accountId}/phones`)
  await drawn(page).getByText('Your order is on its way').waitFor()
  await drawn(page)
    .getByText(`Call ${phone.slice(0, 3)}`)
    .waitFor()
  await saw(page).getByText('Delivered', { exact: true }).waitFor()
  await page.getByText('Your role lets you see the phone, but not use it.').waitFor()
  assert.equal(await drawn(page).getByRole('button', { name: 'Another day, please' }).isDisabled(), true)
  assert.equal(await page.getByRole('button', { name: 'STOP' }).count(), 0)
  const seen = [await page.content(), ...(await Promise.all(bodies.slice(0, -1)))].join('\n')
  assert.ok(seen.includes(messageId))
  assert.doesNotMatch(seen, /\+48\d{3}/, 'no whole number')
  assert.deepEqual(problems, [])
  await close()
})
