import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { Locator } from 'playwright-core'
import { call } from '../../../server/test/support/service.ts'
import { assertWithin } from '../support/timed.ts'
import { herald, newAccount, testJourney } from './shared.ts'

// Journey 7: rotate a key without a gap. The steps are on the page, which follows the use of both keys.

const TARGET_MS = 60_000
/** Herald stores a use within a second, and the page reads every two. */
const SEEN_TARGET_MS = 5_000
const PAUSE_MS = 50

/** A system that uses the API all the time. `statuses`: of all its requests. `authorization`: what it was configured with last. */
function startSystem(authorization: string) {
  const system = { authorization, statuses: [] as number[] }
  const stopping = new AbortController()
  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const { status } = await call(`${herald.url}/v1/agents`, { authorization: system.authorization })
      system.statuses.push(status)
      await wait(PAUSE_MS)
    }
  }
  const running = run()
  const end = () => {
    stopping.abort()
    return running
  }
  return { system, end }
}

async function start() {
  const account = await newAccount()
  return { ...account, ...startSystem(account.authorization) }
}

const keyOf = (authorization: string) => authorization.replace(/^Bearer (\w+):.*$/, '$1')

/** The title of the step to do now. */
const stepOf = (recipe: Locator, title: string) => recipe.locator('[aria-current="step"]').getByRole('heading', { name: title })

testJourney('rotates a key without a failed request by the steps on the page', start, async (journey) => {
  const { t, page, person, way, system, authorization } = journey
  const from = performance.now()
  await page.goto('/console')
  await person.press(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Keys' }))
  await person.press(page.getByRole('link', { name: keyOf(authorization) }))
  const recipe = page.getByRole('region', { name: 'Rotate this key without a gap' })
  await stepOf(recipe, 'Make the second key').waitFor()
  await person.press(recipe.getByRole('button', { name: 'Make the second key' }))
  const dialog = page.getByRole('dialog')
  await person.press(dialog.getByRole('button', { name: 'Make the second key' }))
  const credentials = await dialog.getByRole('region', { name: 'Key and secret' }).textContent()
  await person.press(dialog.getByRole('button', { name: 'Close' }))

  await stepOf(recipe, 'Deploy the second key').waitFor()
  await recipe.getByText('No system has used it yet.').first().waitFor()
  const deployedAt = performance.now()
  system.authorization = `Bearer ${credentials}`
  await stepOf(recipe, 'Wait until the old key is no longer used').waitFor()
  assertWithin(t, `the first use of the second key appears with the ${way}`, performance.now() - deployedAt, SEEN_TARGET_MS)
  await recipe.getByText('A system still uses it.').waitFor()
  assert.equal(await recipe.getByRole('button', { name: 'Revoke the old key' }).count(), 0)

  // Two minutes without a use, which the test does not wait for.
  const earlier = `update integration_key_uses set last_used_at = last_used_at - interval '3 minutes' where integration_key = $1`
  await herald.pool.query(earlier, [keyOf(authorization)])
  await recipe.getByText('Not used for 3 min.').waitFor()
  await person.press(recipe.getByRole('button', { name: 'Revoke the old key' }))
  await dialog.getByText('Last used 3 min. ago.').waitFor()
  await person.press(dialog.getByRole('button', { name: 'Revoke' }))
  await page.getByText('Every request with this key gets 401.').waitFor()
  assertWithin(t, `the rotation with the ${way}`, performance.now() - from, TARGET_MS)

  const { status } = await call(`${herald.url}/v1/agents`, { authorization })
  assert.equal(status, 401)
  assert.ok(system.statuses.length > 0)
  assert.deepEqual(new Set(system.statuses), new Set([200]))
})
