import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../server/test/support/until.ts'
import { browserTest, openPage } from '../support/browser.ts'
import { newSender } from '../support/campaigns.ts'
import { assertWithin, repeatIfSlow } from '../support/timed.ts'
import { button, dialog, heading, herald, newShop, numbers, open } from './shared.ts'

const USABLE_MS = 1_000

test('lists 200 groups within a second, and keeps the filters in the address', browserTest, async (t) => {
  const shop = await newShop()
  for (let id = 1; id <= 200; id += 1) await shop.addGroup(id, `Shop ${id}`, id % 50 === 0 ? numbers(id) : [])
  const { page, end } = await open(shop, 'x')
  await heading(page, 'There is no such page').waitFor()
  await repeatIfSlow(async () => {
    await page.goto(`/console#/${shop.accountId}/webhooks`)
    await heading(page, 'Webhooks').waitFor()
    const from = performance.now()
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Groups' }).click()
    await page.getByRole('link', { name: 'Shop 100', exact: true }).waitFor()
    assertWithin(t, 'from the click to the list of 200 groups', performance.now() - from, USABLE_MS)
  })
  await page.getByText('200 groups, 500 members in all').waitFor()
  const rows = page.getByRole('table', { name: 'Groups' }).locator('tbody tr')
  const showsOnly = (...names: string[]) =>
    until(names.join(), async () => (await rows.locator('a').allTextContents()).join() === names.join())
  await page.getByLabel('Search').fill('shop 15')
  await showsOnly('Shop 15', ...Array.from({ length: 10 }, (_, index) => `Shop ${150 + index}`))
  await page.reload()
  await page.getByRole('link', { name: 'Shop 159', exact: true }).waitFor()
  assert.equal(await rows.count(), 11)
  await page.getByLabel('Search').fill('no shop')
  await heading(page, 'Nothing matches these filters').waitFor()
  await page.getByLabel('Search').fill('77')
  await showsOnly('Shop 77', 'Shop 177')
  await rows.first().click()
  await heading(page, 'Shop 77').waitFor()
  await end()
})

test('draws all rows that a tall window has room for', browserTest, async () => {
  const shop = await newShop()
  for (let id = 1; id <= 210; id += 1) await shop.addGroup(id, `Shop ${id}`)
  const { page, end } = await open(shop, '', { height: 12_000 })
  await page.getByRole('link', { name: 'Shop 210', exact: true }).waitFor()
  await end()
})

test('does not read the groups again before the last read has ended', browserTest, async () => {
  const shop = await newShop()
  await shop.addGroup(1, 'Customers')
  const { page, end } = await open(shop, '/1')
  await heading(page, 'Customers').waitFor()
  await page.clock.install()
  let requests = 0
  const held = Promise.withResolvers<void>()
  await page.route(/\/segments\?/, async (route) => {
    requests += 1
    await held.promise
    await route.continue()
  })
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Groups' }).click()
  await until('a read is on its way', () => requests === 1)
  // As if the person came back to the tab again and again, before the read has timed out.
  for (let times = 0; times < 3; times += 1) {
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
    await page.clock.runFor(1_000)
  }
  // The browser would have sent other reads before this request.
  await page.evaluate(`fetch('admin/v1/sign-in-options').then((response) => response.text())`)
  assert.equal(requests, 1)
  held.resolve()
  await page.getByRole('link', { name: 'Customers' }).waitFor()
  await until('it is read again', () => requests === 2)
  await end()
})

test('an account without groups says what to do, and a new group gets the next number', browserTest, async () => {
  const shop = await newShop()
  const { page, end } = await open(shop)
  await heading(page, 'No group yet').waitFor()
  // A new group would rename this one, if it got its number.
  await shop.addGroup(41, 'Of somebody else')
  await button(page, 'Create a group').click()
  await dialog(page).getByLabel('Name', { exact: true }).fill('Loyal customers')
  await dialog(page).getByRole('button', { name: 'Create a group' }).dblclick()
  await heading(page, 'Loyal customers').waitFor()
  await heading(page, 'The group has no members').waitFor()
  assert.deepEqual(
    (await shop.ask('GET', 'segments')).items.map(({ segmentId, name }: { segmentId: number; name: string }) => [segmentId, name]),
    [
      [41, 'Of somebody else'],
      [42, 'Loyal customers'],
    ],
  )
  await end()
})

test('renames a group, and deletes it with its members after their number was typed', browserTest, async () => {
  const shop = await newShop()
  await shop.addGroup(1, 'Customers', numbers(120))
  const { page, end } = await open(shop, '/1')
  await button(page, 'Rename').click()
  await dialog(page).getByLabel('Name', { exact: true }).fill('Customers of the spring sale')
  await dialog(page).getByRole('button', { name: 'Rename' }).click()
  await heading(page, 'Customers of the spring sale').waitFor()
  await button(page, 'Delete').click()
  await dialog(page).getByText('This deletes the group and 120 members.').waitFor()
  const confirm = dialog(page).getByRole('button', { name: 'Delete' })
  assert.ok(await confirm.isDisabled())
  await dialog(page).getByLabel('Type 120 to confirm').fill('120')
  await confirm.click()
  await heading(page, 'No group yet').waitFor()
  assert.deepEqual((await shop.ask('GET', 'segments')).items, [])
  await end()
})

test('the deletion of a group says how many scheduled campaigns would not reach its members', browserTest, async () => {
  const sender = await newSender(herald, [numbers(2), numbers(2)])
  const scheduledAt = new Date(Date.now() + 86_400_000).toISOString()
  for (const segmentIds of [[1], [1, 2], [2]]) await sender.create('Spring sale', { scheduledAt, segmentIds })
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await sender.signIn('admin') })
  await page.goto(`/console#/${sender.accountId}/groups/1`)
  await button(page, 'Delete').click()
  await dialog(page).getByText('2 scheduled campaigns name this group, and will not reach these members.').waitFor()
  assert.deepEqual(problems, [])
  await close()
})

test('adds members by hand, and leaves in the field what was rejected', browserTest, async () => {
  const shop = await newShop()
  await shop.addGroup(1, 'Customers', ['+48500100200'])
  const { page, end } = await open(shop, '/1')
  await button(page, 'Add members').click()
  const field = dialog(page).getByLabel('Phone numbers')
  await field.fill('+48 500 100 200\n+48 500 100 201; 500\n+48500100202\n')
  const add = dialog(page).getByRole('button', { name: 'Add members' })
  await add.click()
  await dialog(page).getByText('"500" is not a possible international phone number').waitFor()
  assert.equal(await field.inputValue(), '500')
  await field.fill('+48500100203')
  await add.click()
  await page.getByText('1 member added.', { exact: true }).waitFor()
  await page.getByText('Group 1 · 4 members').waitFor()
  await page.getByRole('link', { name: '+48 500 100 203' }).waitFor()
  assert.deepEqual(
    (await shop.members(1)).map(({ phone }) => phone),
    ['+48500100200', '+48500100201', '+48500100202', '+48500100203'],
  )
  await end()
})

test('finds a member by its number, and removes selected members after it has asked', browserTest, async () => {
  const shop = await newShop()
  await shop.addGroup(1, 'Customers', numbers(120))
  const { page, end } = await open(shop, '/1')
  const rows = page.getByRole('table', { name: 'Members' }).locator('tbody tr')
  await rows.nth(49).waitFor()
  await page.getByLabel('Phone number').fill('48 500 100 117')
  await button(page, 'Find').click()
  await page.getByRole('link', { name: '+48 500 100 117' }).waitFor()
  assert.equal(await rows.count(), 1)
  assert.match(page.url(), /phone=48/)
  await page.getByRole('checkbox', { name: 'Select +48500100117' }).check()
  await button(page, 'Remove 1 member').waitFor()
  // What the search shows no longer is not selected either.
  await button(page, 'Clear the filters').click()
  await button(page, 'Remove 1 member').waitFor({ state: 'detached' })
  for (const digits of ['003', '017']) await page.getByRole('checkbox', { name: `Select +48500100${digits}` }).check()
  await button(page, 'Remove 2 members').click()
  await dialog(page).getByText('This removes 2 of 120 members').waitFor()
  await dialog(page).getByText('Campaigns that have started still send to them.').waitFor()
  await button(page, 'Cancel').click()
  assert.equal((await shop.ask('GET', 'segments/1')).members, 120)
  await button(page, 'Remove 2 members').click()
  await dialog(page).getByRole('button', { name: 'Remove 2 members' }).dblclick()
  await page.getByText('2 members removed.').waitFor()
  await page.getByText('Group 1 · 118 members').waitFor()
  assert.ok(!(await shop.members(1)).some(({ phone }) => ['+48500100003', '+48500100017'].includes(phone)))
  await page.getByLabel('Phone number').fill('+48500100017')
  await button(page, 'Find').click()
  await heading(page, '+48500100017 is not a member').waitFor()
  await end()
})

test('goes on with the members that are left when a removal has failed', browserTest, async () => {
  const shop = await newShop()
  await shop.addGroup(1, 'Customers', numbers(3))
  const { page, end } = await open(shop, '/1')
  for (const phone of numbers(3)) await page.getByRole('checkbox', { name: `Select ${phone}` }).check()
  await page.route('**/members/*01', (route) => route.abort())
  await button(page, 'Remove 3 members').click()
  await dialog(page).getByRole('button', { name: 'Remove 3 members' }).click()
  await dialog(page).getByText('Herald does not respond.').waitFor()
  assert.equal((await shop.ask('GET', 'segments/1')).members, 2)
  await page.unroute('**/members/*01')
  await dialog(page).getByRole('button', { name: 'Remove 3 members' }).click()
  await heading(page, 'The group has no members').waitFor()
  await page.getByText('3 members removed.').waitFor()
  await end(/ERR_FAILED/)
})

test('scrolls through thousands of members with some hundreds of rows in the page', browserTest, async () => {
  const shop = await newShop()
  await shop.addGroup(1, 'Customers')
  for (let from = 0; from < 3_000; from += 1_000)
    await shop.ask('POST', 'segments/1/members', { members: numbers(1_000, from).map((phone) => ({ phone })) })
  const { page, end } = await open(shop, '/1')
  const last = page.getByRole('link', { name: '+48 500 102 999' })
  await page.getByRole('link', { name: '+48 500 100 000' }).waitFor()
  while (!(await last.isVisible())) {
    await page.mouse.wheel(0, 4_000)
    await page.evaluate('new Promise(requestAnimationFrame)')
    assert.ok((await page.locator('tbody tr').count()) < 700)
  }
  await end()
})

test('a viewer sees groups with masked numbers, and nothing to change them', browserTest, async () => {
  const shop = await newShop()
  await shop.addGroup(1, 'Customers', numbers(2))
  const { page, end } = await open(shop, '', { cookie: await shop.signIn('viewer') })
  await page.getByRole('link', { name: 'Customers' }).waitFor()
  assert.equal(await page.getByRole('link', { name: 'Import CSV' }).count(), 0)
  assert.equal(await button(page, 'Create a group').count(), 0)
  await page.getByRole('link', { name: 'Customers' }).click()
  await page
    .getByText(/^\+48 •/)
    .first()
    .waitFor()
  assert.doesNotMatch(await page.content(), /500.?100.?00[01]/)
  for (const name of ['Add members', 'Rename', 'Delete', /^Remove/]) assert.equal(await button(page, name).count(), 0)
  assert.equal(await page.getByRole('checkbox').count(), 0)
  await page.goto(`/console#/${shop.accountId}/groups/new`)
  await page.getByRole('link', { name: 'Customers' }).waitFor()
  await end()
})
