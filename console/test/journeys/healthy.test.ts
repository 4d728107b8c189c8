import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { type HeraldProcess, startLastingHerald } from '../../../server/test/support/process.ts'
import { until } from '../../../server/test/support/until.ts'
import { browserTest, openPage } from '../support/browser.ts'
import { startHerald } from '../support/herald.ts'
import { startPairedDatabase } from '../support/paired-database.ts'
import { assertWithin, repeatIfSlow } from '../support/timed.ts'

// Journey 9: is it healthy? The page turns red within ten seconds of losing the standby of the database, a process, or a network.

const TARGET_MS = 10_000

const database = await startPairedDatabase()
const herald = await startHerald({ database })
const cookie = await herald.signIn('operator')
const { pool } = database

const verdict = (page: Page) => page.getByRole('region', { name: 'Health', exact: true })
const red = (page: Page) => page.locator('.verdict.tone-bad')
/** What the page says is wrong. Screen readers hear it, too. */
const told = (page: Page, sentence: string) => red(page).locator('h2, b').filter({ hasText: sentence })
/** Other work of the machine may be a warning. */
const well = (page: Page) => page.locator('.verdict:not(.tone-bad)')

async function openHealth() {
  const opened = await openPage({ base: herald.url, cookie })
  await opened.page.goto(`/console#/${herald.accountId}`)
  await opened.page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Health' }).click()
  await well(opened.page).waitFor()
  return opened
}

/** Loses something, and waits until the page is red and says so. Elsewhere, the navigation says it, too. */
async function loses(t: TestContext, what: string, page: Page, lose: () => unknown, sentence: string): Promise<void> {
  const lostAt = performance.now()
  await lose()
  await told(page, sentence).waitFor()
  assertWithin(t, `red after the loss of ${what}`, performance.now() - lostAt, TARGET_MS)
  const pages = page.getByRole('navigation', { name: 'Pages' })
  await pages.getByRole('link', { name: 'Overview' }).click()
  await pages.getByRole('link', { name: /^Health \d problems?$/ }).waitFor()
  await pages.getByRole('link', { name: /^Health/ }).click()
  await told(page, sentence).waitFor()
}

async function untilSeen(): Promise<void> {
  const seen = `select from node_status where figures ->> 'standbysSeen' = '1'`
  await until('Herald has seen the standby', async () => ((await pool.query(seen)).rowCount ?? 0) > 0)
}

test('turns red when the standby of the database is lost, and green when it is back', browserTest, async (t) => {
  await repeatIfSlow(async () => {
    await untilSeen()
    const { page, problems, close } = await openHealth()
    await page.getByText('1 connected').waitFor()
    try {
      await loses(t, 'the standby', page, database.killStandby, 'The database’s standby is lost.')
      await verdict(page).getByText('Start the standby again.').waitFor()
      await page.getByText('1 lost').waitFor()
    } finally {
      await database.startStandby()
    }
    await well(page).waitFor()
    assert.deepEqual(problems, [])
    await close()
  })
})

test('turns red when the standby is lost that every commit waits for', browserTest, async (t) => {
  await repeatIfSlow(async () => {
    await untilSeen()
    await database.setSynchronous(true)
    const { page, close } = await openHealth()
    try {
      const sentence = 'The database’s standby is lost, and every commit waits.'
      await loses(t, 'the synchronous standby', page, database.killStandby, sentence)
      await verdict(page).getByText('Start the standby, or remove it from synchronous_standby_names.').waitFor()
    } finally {
      await database.startStandby()
      await database.setSynchronous(false)
    }
    await well(page).waitFor()
    // Meanwhile, requests that write get no response.
    await close()
  })
})

const nodes: HeraldProcess[] = []
after(() => {
  for (const { child } of nodes) child.kill('SIGKILL')
})

async function startNode(): Promise<HeraldProcess> {
  const node = await startLastingHerald({ HERALD_DATABASE_URL: database.url })
  nodes.push(node)
  return node
}

test('turns red when a process is lost, and green when another one takes its place', browserTest, async (t) => {
  await repeatIfSlow(async () => {
    const node = await startNode()
    const { page, problems, close } = await openHealth()
    await page
      .getByRole('listitem')
      .filter({ hasText: `${node.child.pid}` })
      .getByText('live', { exact: true })
      .waitFor()
    try {
      await loses(t, 'a process', page, () => node.child.kill('SIGKILL'), `(${node.child.pid}) is lost.`)
      await verdict(page).getByText('start it again').waitFor()
    } finally {
      await startNode()
    }
    await well(page).waitFor()
    await page
      .getByRole('listitem')
      .filter({ hasText: `${node.child.pid}` })
      .getByText('replaced', { exact: true })
      .waitFor()
    assert.deepEqual(problems, [])
    await close()
  })
})

// Last, since the simulated network does not come back.
test('turns red when a network is lost', browserTest, async (t) => {
  const { page, problems, close } = await openHealth()
  const sendAll = async () => {
    await herald.simulator.stop()
    for (let n = 0; n < 8; n += 1) await herald.send(`+4850030010${n}`, { type: 'MESSAGE', content: 'Hello' })
  }
  await loses(t, 'the networks', page, sendAll, 'The network simulator-sms is lost: no session is bound.')
  await told(page, 'The network simulator is lost: Herald pauses its requests after failures.').waitFor()
  assert.deepEqual(problems, [])
  await close()
})
