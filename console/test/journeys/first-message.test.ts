import { createDataDir, spawnHerald } from '../../../server/test/support/process.ts'
import { until } from '../../../server/test/support/until.ts'
import { assertWithin } from '../support/timed.ts'
import { testJourney } from './shared.ts'

// Journey 1: from `npm start` to the first message on a phone on the screen.

const TARGET_MS = 60_000

/** Starts Herald as `npm start` does, with nothing in its directory. Its output has the link for the first operator. */
async function start() {
  const startedAt = performance.now()
  const { child, output, ended } = spawnHerald(['serve'], { HERALD_DATA_DIR: await createDataDir(), HERALD_PORT: '0' })
  const link = await until('the link is printed', () => /https?:\/\/\S+#setup=\S+/.exec(output.stderr)?.[0])
  const end = () => {
    child.kill('SIGTERM')
    return ended
  }
  return { startedAt, link, base: new URL(link).origin, end }
}

testJourney('sends a first message to a phone on the screen within a minute of the start', start, async (journey) => {
  const { t, page, person, way, link, startedAt } = journey
  const readyMs = performance.now() - startedAt
  await page.goto(link)
  await person.write(page.getByLabel('Your name'), 'Anna Nowak')
  await person.write(page.getByLabel('E-mail address'), 'anna@example.com')
  await person.write(page.getByLabel('Password'), 'correct horse battery')
  await person.press(page.getByRole('button', { name: 'Set the password and sign in' }))
  await person.press(page.getByRole('button', { name: 'Send a first message' }))
  await page.getByRole('log').getByText('Your order is on its way').waitFor()
  t.diagnostic(`Herald printed the link after ${Math.round(readyMs)} ms`)
  assertWithin(t, `the first message with the ${way}`, performance.now() - startedAt, TARGET_MS)
})
