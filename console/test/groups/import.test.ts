import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../../../server/test/support/until.ts'
import { browserTest } from '../support/browser.ts'
import { button, choose, dialog, heading, herald, newShop, numbers, open, previewed, useOf } from './shared.ts'

const IMPORT = '**/segments/*/import'

type Group = { segmentId: number; name?: string; members: number }

/** Waits for the end of an import, and returns what the page says about it. */
async function outcome(page: Page): Promise<string> {
  const counts = page.locator('.import-job').getByRole('status').filter({ hasText: 'imported.' })
  await counts.waitFor()
  return ((await counts.textContent()) ?? '').trim()
}

test('imports a file as Excel saves it: with a byte order mark, semicolons, CRLF and quotes', browserTest, async () => {
  const shop = await newShop()
  const { page, end } = await open(shop)
  await page.getByRole('link', { name: 'Import CSV' }).first().click()
  const lines = [
    'Name;Telefon;consents;"Note; long"',
    'Anna;+48500100200;1;x',
    '"Jan ""J"" Nowak";+48 500 100 201;"1;7";"two',
    'lines; one note"',
    'Ola;500;;',
  ]
  await choose(page, `\uFEFF${lines.join('\r\n')}\r\n`, 'spring sale.csv')
  await page.getByText('3 lines · separated by semicolons').waitFor()
  assert.equal(await page.getByLabel('Name', { exact: true }).first().inputValue(), 'spring sale')
  assert.equal(await useOf(page, 'Telefon').inputValue(), 'phone')
  assert.equal(await useOf(page, 'consents').inputValue(), 'consents')
  assert.deepEqual(await previewed(page, 1), ['Anna', 'Jan "J" Nowak', 'Ola'])
  assert.deepEqual(await previewed(page, 4), ['x', 'two\r\nlines; one note', ''])
  await page.getByRole('cell', { name: '500 not an international number' }).waitFor()
  await button(page, 'Import 3 lines').click()
  assert.equal(await outcome(page), '2 recipients imported.1 line was rejected.')
  // Line 3 takes two lines of the file.
  await page.getByText('Line 5: "500" is not a possible international phone number').waitFor()
  await page.getByRole('link', { name: 'Open the group' }).click()
  await heading(page, 'spring sale').waitFor()
  await page.getByRole('link', { name: '+48 500 100 201' }).waitFor()
  assert.deepEqual(
    (await shop.members(1)).map(({ phone, consents, attributes }) => ({ phone, consents, attributes })),
    [
      { phone: '+48500100200', consents: [1], attributes: { Name: 'Anna', 'Note; long': 'x' } },
      { phone: '+48500100201', consents: [1, 7], attributes: { Name: 'Jan "J" Nowak', 'Note; long': 'two\r\nlines; one note' } },
    ],
  )
  await end()
})

test('uses the columns that the person chooses, and asks before it replaces members', browserTest, async () => {
  const shop = await newShop()
  await shop.addGroup(5, 'Customers', ['+48500100200', '+48500100209'])
  const { page, end } = await open(shop, '/5')
  await page.getByRole('link', { name: 'Import CSV' }).click()
  await choose(page, 'status,mobile,fax\nfine,+48500100200,+48500100900\nso-so,+48500100201,+48500100901\n')
  // Herald would take a column of that name for something else.
  await useOf(page, 'status').selectOption('attribute')
  await useOf(page, 'fax').selectOption({ label: 'Phone number' })
  assert.equal(await useOf(page, 'mobile').inputValue(), 'attribute')
  await button(page, 'Import 2 lines').click()
  await dialog(page).getByText('The group has 2 members.').waitFor()
  await button(page, 'Cancel').click()
  await useOf(page, 'mobile').selectOption({ label: 'Phone number' })
  await button(page, 'Import 2 lines').click()
  await dialog(page).getByRole('button', { name: 'Import' }).click()
  assert.match(await outcome(page), /^2 recipients imported\.$/)
  assert.deepEqual(
    (await shop.members(5)).map(({ phone, attributes }) => [phone, attributes]),
    [
      ['+48500100200', { 'status 2': 'fine', fax: '+48500100900' }],
      ['+48500100201', { 'status 2': 'so-so', fax: '+48500100901' }],
      ['+48500100209', undefined],
    ],
  )
  assert.equal((await shop.ask('GET', 'segments/5')).name, 'Customers')
  await end()
})

test('sends nothing of a column that the person leaves out', browserTest, async () => {
  const shop = await newShop()
  const { page, end } = await open(shop, '/new')
  await choose(page, 'phone,diagnosis,city\r\n+48500100200,"a\r\nsecret",Gdynia\r\n+48500100201,secret\r\n500,secret,Sopot\r\n')
  await useOf(page, 'diagnosis').selectOption({ label: 'Leave out' })
  // The proxy of the test reads what the browser sends.
  const bodies: (string | undefined)[] = []
  await page.route(IMPORT, async (route) => {
    bodies.push(route.request().postDataBuffer()?.toString())
    await route.continue()
  })
  await button(page, 'Import 3 lines').click()
  assert.match(await outcome(page), /^1 recipient imported\.2 lines/)
  await page.getByText('Line 4: it has 2 fields, and the first line has 3').waitFor()
  await page.getByText('Line 5: "500" is not a possible international phone number').waitFor()
  assert.deepEqual((await shop.members(1))[0]?.attributes, { city: 'Gdynia' })
  for (const body of bodies) assert.doesNotMatch(body ?? '', /secret/)
  await end()
})

test('imports a file without a header, and one with tabs and an odd header', browserTest, async () => {
  const shop = await newShop()
  const { page, end } = await open(shop, '/new')
  await choose(page, '\uFEFF\n"+48500100200",Anna\n+48500100201,Jan\nx,Ola\n')
  const hasHeader = page.getByRole('checkbox', { name: 'The first line names the columns' })
  assert.equal(await hasHeader.isChecked(), false)
  assert.equal(await useOf(page, 'column 1').inputValue(), 'phone')
  await button(page, 'Import 3 lines').click()
  assert.match(await outcome(page), /^2 recipients .*1 line was rejected\.$/)
  await page.getByText('Line 4: "x" is not a possible international phone number').waitFor()
  assert.deepEqual((await shop.members(1))[0]?.attributes, { 'column 2': 'Anna' })

  await button(page, 'Choose another file').click()
  await choose(page, 'city\tcity\t\t"the\nnumber"\nGdynia\tSopot\tx\t+48500100300\n')
  await page.getByText('separated by tabs').waitFor()
  assert.equal(await hasHeader.isChecked(), true)
  assert.equal(await useOf(page, 'the number').inputValue(), 'phone')
  await button(page, 'Import 1 line').click()
  assert.match(await outcome(page), /^1 recipient imported/)
  assert.deepEqual((await shop.members(2))[0]?.attributes, { city: 'Gdynia', 'city 2': 'Sopot', 'column 3': 'x' })
  await end()
})

test('says what is wrong with a file that cannot be imported', browserTest, async () => {
  const shop = await newShop()
  const { page, end } = await open(shop, '/new')
  await choose(page, '', 'nothing.csv')
  await page.getByText('nothing.csv is empty.').waitFor()
  await choose(page, '\uFEFF\r\n\r\n', 'blank.csv')
  await page.getByText('blank.csv is empty.').waitFor()
  await choose(page, Buffer.from('ff fe 70 00 68 00'.replaceAll(' ', ''), 'hex'), 'utf-16.csv')
  await page.getByText('The first line of utf-16.csv can’t be read: the line is not UTF-8.').waitFor()
  await choose(page, 'phone,"na\n')
  await page.getByText('a quote is opened and never closed').waitFor()
  await choose(page, 'phone,name\n')
  await heading(page, 'The file has only a header').waitFor()
  assert.ok(await button(page, 'Import 0 lines').isDisabled())
  await button(page, 'Choose another file').click()
  await choose(page, 'name,city\nAnna,Gdynia\nJan,Sopot\n')
  await page.getByText('Choose the column with the phone numbers.').waitFor()
  assert.ok(await button(page, 'Import 2 lines').isDisabled())
  await useOf(page, 'name').selectOption({ label: 'Phone number' })
  await button(page, 'Import 2 lines').click()
  assert.match(await outcome(page), /^0 recipients .*Nothing was changed.*2 lines were rejected\.$/)
  assert.deepEqual((await shop.ask('GET', 'segments')).items, [])
  await end()
})

test('imports 50,000 lines while the person looks at other pages, and saves the rejected lines as a file', browserTest, async () => {
  const shop = await newShop()
  const { page, end } = await open(shop, '/new')
  const broken = new Map([
    [3, '=1+1,"x"'],
    [20_000, '500,"a, b"'],
    [49_999, '+48500100200,too,many'],
  ])
  const lines = numbers(50_000).map((phone, index) => broken.get(index + 2) ?? `${phone},Anna`)
  await choose(page, `phone,name\n${lines.join('\n')}\n`, 'large.csv')
  await page.getByText('about 50,000 lines · separated by commas').waitFor()
  assert.equal((await previewed(page, 1)).length, 20)
  // Held, so that the test sees the import under way.
  const held = Promise.withResolvers<void>()
  await page.route(IMPORT, async (route) => {
    await held.promise
    await route.continue()
  })
  await button(page, 'Import about 50,000 lines').click()
  await page.getByRole('progressbar', { name: 'Import CSV' }).waitFor()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Groups' }).click()
  await page.getByRole('link', { name: 'Import CSV' }).click()
  await heading(page, 'large.csv is being imported').waitFor()
  held.resolve()
  await page.getByRole('link', { name: 'Open the group' }).click()
  await page.getByText('Group 1 · 49,997 members').waitFor()
  await page.goto(`/console#/${shop.accountId}/groups/new`)
  assert.equal(await outcome(page), '49,997 recipients imported.3 lines were rejected.')
  const downloading = page.waitForEvent('download')
  await button(page, 'Download the rejected lines').click()
  const download = await downloading
  assert.equal(download.suggestedFilename(), 'large-rejected.csv')
  assert.deepEqual((await readFile(await download.path(), 'utf8')).split('\r\n'), [
    '\uFEFFline,reason,text',
    `3,"""'=1+1"" is not a possible international phone number","'=1+1,""x"""`,
    '20000,"""500"" is not a possible international phone number","500,""a, b"""',
    `49999,"it has 3 fields, and the header has 2","'+48500100200,too,many"`,
    '',
  ])
  await button(page, 'Choose another file').click()
  await page.getByLabel('Choose a CSV file').waitFor({ state: 'attached' })
  await end()
})

test('a cancelled import changes nothing, and keeps what the person has filled in', browserTest, async () => {
  const shop = await newShop()
  const { page, end } = await open(shop, '/new')
  await choose(page, `phone\n${numbers(100).join('\n')}\n`)
  await page.route(IMPORT, () => {})
  await page.getByLabel('Name', { exact: true }).fill('Others')
  await button(page, 'Import 100 lines').click()
  await heading(page, 'customers.csv is being imported').waitFor()
  await button(page, 'Cancel').click()
  await button(page, 'Import 100 lines').waitFor()
  assert.deepEqual((await shop.ask('GET', 'segments')).items, [])
  await page.unroute(IMPORT)
  await button(page, 'Import 100 lines').click()
  assert.match(await outcome(page), /^100 recipients/)
  assert.equal((await shop.ask('GET', 'segments/1')).name, 'Others')
  await end(/ERR_/)
})

test('says why an import failed, and tries again', browserTest, async () => {
  const shop = await newShop()
  const { page, end } = await open(shop, '/new')
  await choose(page, `phone\n${numbers(100).join('\n')}\n`)
  await page.route(IMPORT, (route) => route.abort())
  await button(page, 'Import 100 lines').click()
  await page.getByRole('alert').getByText('Herald does not respond.').waitFor()
  await page.unroute(IMPORT)
  const reason = 'This node already runs 4 imports, the maximum; try again later.'
  await page.route(IMPORT, (route) =>
    route.fulfill({ status: 503, json: { code: 'RCS_UNAVAILABLE', requestId: 'req_1', details: [{ path: '', reason }] } }),
  )
  await button(page, 'Try again').click()
  await page.getByRole('alert').getByText(reason).waitFor()
  await page.unroute(IMPORT)
  // A proxy in between may respond with a page of its own.
  await page.route(IMPORT, (route) => route.fulfill({ status: 200, contentType: 'text/html', body: '<h1>Welcome</h1>' }))
  await button(page, 'Try again').click()
  await page.getByRole('alert').getByText('Herald does not respond.').waitFor()
  await page.unroute(IMPORT)
  await button(page, 'Try again').click()
  assert.match(await outcome(page), /^100 recipients/)
  const { name, members } = await shop.ask('GET', 'segments/1')
  assert.deepEqual([name, members], ['customers', 100])
  await end(/ERR_FAILED|status of 503/)
})

test('two imports into new groups at the same time make two groups', browserTest, async () => {
  const shop = await newShop()
  const [first, second] = [await open(shop, '/new'), await open(shop, '/new')]
  await choose(first.page, `phone\n${numbers(3).join('\n')}\n`, 'spring.csv')
  await choose(second.page, `phone\n${numbers(2, 10).join('\n')}\n`, 'autumn.csv')
  const held = Promise.withResolvers<void>()
  await first.page.route(IMPORT, async (route) => {
    await held.promise
    await route.continue()
  })
  await button(first.page, 'Import 3 lines').click()
  await heading(first.page, 'spring.csv is being imported').waitFor()
  await until('its group exists', async () => (await shop.ask('GET', 'segments')).items.length === 1)
  await button(second.page, 'Import 2 lines').click()
  assert.match(await outcome(second.page), /^2 recipients/)
  held.resolve()
  assert.match(await outcome(first.page), /^3 recipients/)
  assert.deepEqual(
    (await shop.ask('GET', 'segments')).items.map(({ segmentId, name, members }: Group) => [segmentId, name, members]),
    [
      [1, 'spring', 3],
      [2, 'autumn', 2],
    ],
  )
  await first.end()
  await second.end()
})

test('a repeated import whose first response was lost fills the same group', browserTest, async () => {
  const shop = await newShop()
  const { page, end } = await open(shop, '/new')
  await choose(page, `phone\n${numbers(3).join('\n')}\n`)
  await page.route(IMPORT, async (route) => {
    // Not what the browser sends: Playwright does not see the content of a file.
    const headers = { authorization: shop.authorization, 'content-type': 'text/csv' }
    const body = `phone\n${numbers(3).join('\n')}\n`
    const { status } = await fetch(`${herald.url}/v1/segments/1/import`, { method: 'PUT', headers, body })
    assert.equal(status, 200)
    await route.abort()
  })
  await button(page, 'Import 3 lines').click()
  await page.getByRole('alert').getByText('Herald does not respond.').waitFor()
  await page.unroute(IMPORT)
  await button(page, 'Try again').click()
  assert.match(await outcome(page), /^3 recipients/)
  const { items } = await shop.ask('GET', 'segments')
  assert.deepEqual(
    items.map(({ segmentId, name, members }: Group) => [segmentId, name, members]),
    [[1, 'customers', 3]],
  )
  await end(/ERR_FAILED/)
})

test('never changes a group that somebody else has made meanwhile', browserTest, async () => {
  const shop = await newShop()
  const { page, end } = await open(shop, '/new')
  await choose(page, `phone\n${numbers(3).join('\n')}\n`)
  await page.getByLabel('Into').waitFor()
  await shop.addGroup(1, 'Of somebody else')
  // Another one, after the page has read the numbers.
  await page.route('**/segments/2', async (route) => {
    if (route.request().method() === 'PUT') await shop.addGroup(2, 'Also of somebody else')
    await route.continue()
  })
  await button(page, 'Import 3 lines').click()
  assert.match(await outcome(page), /^3 recipients/)
  assert.deepEqual(
    (await shop.ask('GET', 'segments')).items.map(({ name, members }: Group) => [name, members]),
    [
      ['Of somebody else', 0],
      ['Also of somebody else', 0],
      ['customers', 3],
    ],
  )
  await end(/status of 412/)
})

test('says that the file was changed since it was chosen', browserTest, async () => {
  const shop = await newShop()
  const folder = await mkdtemp(join(tmpdir(), 'herald-import-'))
  const path = join(folder, 'customers.csv')
  await writeFile(path, `phone\n${numbers(100).join('\n')}\n`)
  const { page, end } = await open(shop, '/new')
  await page.getByLabel('Choose a CSV file').setInputFiles(path)
  await button(page, 'Import 100 lines').waitFor()
  await rm(folder, { recursive: true })
  await button(page, 'Import 100 lines').click()
  await page.getByRole('alert').getByText('The file can’t be read: it was changed').waitFor()
  assert.deepEqual((await shop.ask('GET', 'segments')).items, [])
  await end(/ERR_/)
})
