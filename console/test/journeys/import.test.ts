import assert from 'node:assert/strict'
import { call } from '../../../server/test/support/service.ts'
import { assertWithin } from '../support/timed.ts'
import { herald, newAccount, testJourney } from './shared.ts'

// The first half of journey 4: a file with 120 recipients becomes a group. The other half is the campaign.

const RECIPIENTS = 120
/** Of the three minutes that the whole journey may take. */
const TARGET_MS = 60_000

const LINES = Array.from({ length: RECIPIENTS }, (_, index) => `Customer ${index};+48${511_000_000 + index};Gdynia`)
const FILE = { name: 'spring-sale.csv', mimeType: 'text/csv', buffer: Buffer.from(`\uFEFFName;Telefon;City\r\n${LINES.join('\r\n')}\r\n`) }

testJourney('imports 120 recipients into a new group', newAccount, async ({ t, page, person, way, accountId, authorization }) => {
  await page.goto('/console')
  const from = performance.now()
  await person.press(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Groups' }))
  await person.press(page.getByRole('link', { name: 'Import CSV' }).first())
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), person.press(page.getByLabel('Choose a CSV file'))])
  await chooser.setFiles(FILE)
  await page.getByText('120 lines · separated by semicolons').waitFor()
  assert.equal(await page.getByRole('region', { name: 'The first 20 lines' }).locator('tbody tr').count(), 20)
  await person.press(page.getByRole('button', { name: 'Import 120 lines' }))
  await page.getByText('120 recipients imported.').waitFor()
  assertWithin(t, `120 recipients imported with the ${way} in ${person.presses()} presses`, performance.now() - from, TARGET_MS)
  await person.press(page.getByRole('link', { name: 'Open the group' }))
  await page.getByRole('heading', { name: 'spring-sale' }).waitFor()
  await page.getByRole('link', { name: '+48 511 000 049' }).waitFor()
  await page.getByRole('row', { name: /Customer 49/ }).waitFor()

  const { body } = await call(`${herald.url}/v1/segments`, { authorization })
  assert.deepEqual(
    body.items.map(({ segmentId, name, members }: { segmentId: number; name: string; members: number }) => [segmentId, name, members]),
    [[1, 'spring-sale', RECIPIENTS]],
    `account ${accountId}`,
  )
})
