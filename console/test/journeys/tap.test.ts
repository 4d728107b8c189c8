import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { after } from 'node:test'
import type { Page } from 'playwright-core'
import { freePort } from '../../../server/test/support/ports.ts'
import { until } from '../../../server/test/support/until.ts'
import { assertWithin } from '../support/timed.ts'
import { type Journey, newAccount, testJourney } from './shared.ts'

// Journey 2: a tap, the event that it becomes, and the webhook that reports it, in one view. All steps of a newcomer are on the overview.

const TARGET_MS = 1_000
const BUTTON = 'Another day, please'

/** Runs the command that the page gives to a person who has no server, on another port. Returns what it has printed. */
async function runReceiver(command: string, port: number): Promise<() => string> {
  const child = spawn('sh', ['-c', `exec ${command.replace('9000', String(port))}`], { stdio: ['ignore', 'pipe', 'inherit'] })
  after(() => child.kill())
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString()
  })
  const url = `http://127.0.0.1:${port}/`
  await until('the server listens', () => fetch(url).then(Boolean, () => false))
  return () => printed
}

async function addWebhook({ page, person }: Journey): Promise<() => string> {
  await person.press(page.getByRole('button', { name: 'Add an endpoint' }))
  const dialog = page.getByRole('dialog')
  await person.press(dialog.getByText('No server yet?'))
  const port = await freePort()
  const printed = await runReceiver((await dialog.getByRole('region', { name: 'The command' }).textContent()) ?? '', port)
  await person.press(dialog.getByRole('button', { name: 'Use its address, http://127.0.0.1:9000/' }))
  assert.equal(await dialog.getByLabel('Address').inputValue(), 'http://127.0.0.1:9000/')
  await person.write(dialog.getByLabel('Address'), `http://127.0.0.1:${port}/`)
  await person.press(dialog.getByRole('button', { name: 'Add an endpoint' }))
  await dialog.getByText(/^whsec_/).waitFor()
  await person.press(dialog.getByRole('button', { name: 'Close' }))
  return printed
}

/** How long after a click on the button the page shows this text in what Herald saw, measured in the page. */
async function measure(page: Page, text: string): Promise<() => Promise<number>> {
  await page.evaluate(`void (globalThis.tookMs = new Promise((resolve) => {
    let tappedAt
    document.addEventListener('click', () => { tappedAt ??= performance.now() }, { capture: true })
    const saw = document.querySelector('.saw')
    new MutationObserver(() => {
      if (saw.textContent.includes('${text}')) resolve(performance.now() - tappedAt)
    }).observe(saw, { childList: true, characterData: true, subtree: true })
  }))`)
  return () => page.evaluate<number>('globalThis.tookMs')
}

testJourney('shows a tap, its event within a second, and its webhook in one view', newAccount, async (journey) => {
  const { t, page, person, way } = journey
  await page.goto('/console')
  const steps = page.getByRole('list', { name: 'The first steps' }).getByRole('listitem')
  await person.press(page.getByRole('button', { name: 'Send a first message' }))
  const button = page.getByRole('log').getByRole('button', { name: BUTTON })
  await button.waitFor()
  const printed = await addWebhook(journey)
  await page.getByText('live', { exact: true }).first().waitFor()
  const tookMs = await measure(page, `Tapped “${BUTTON}”`)
  const from = performance.now()
  await person.press(button)
  const saw = page.getByRole('region', { name: 'What Herald saw' })
  await saw.getByText('message.replied · change-day').waitFor()
  assertWithin(t, `the event of a tap with the ${way}`, await tookMs(), TARGET_MS)
  await saw.getByText('webhook · message.replied · attempt 1').waitFor()
  t.diagnostic(`its webhook after ${Math.round(performance.now() - from)} ms`)
  await saw
    .getByText(/^127\.0\.0\.1:\d+ responded 200$/)
    .first()
    .waitFor()
  assert.match(printed(), /"type":"message.replied".*"payload":"change-day"/)
  assert.equal(await steps.filter({ hasText: '(done)' }).count(), 3)
})
