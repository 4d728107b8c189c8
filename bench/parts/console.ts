import type { Page } from 'playwright-core'
import { launchChromium, PROGRAM } from '../../console/test/support/chromium.ts'
import { changePerson, createPerson } from '../../server/src/people/people.ts'
import { openSession } from '../../server/src/people/sessions.ts'
import { CAMPAIGNS, fillAccount, GROUPS, TEMPLATES } from '../data/full-account.ts'
import { fillList } from '../data/listed-messages.ts'
import { atMost, grouped, median, once } from '../measure/figures.ts'
import type { Bench } from '../part.ts'
import { createBenchAgent, createSender } from '../setup/accounts.ts'
import { atEnd } from '../setup/clean-up.ts'
import { createDatabase, type Database, startPostgres } from '../setup/postgres.ts'
import { startReportService } from '../setup/report-database.ts'

// How long each page of the console takes from a click to its content, in an account that has everything in large numbers.

const TARGET_MS = 1_000
const VISITS = 5
const MAX_WAIT_MS = 60_000

export async function measureConsole(bench: Bench): Promise<void> {
  const { quick, report, reportTable, note, say } = bench
  if (PROGRAM === undefined) {
    note('There is no Chromium on this machine, so no page was opened.')
    return
  }
  const messages = quick ? 100_000 : 10_000_000
  const database = await createDatabase(await startPostgres({ max_wal_size: '16GB' }))
  await createBenchAgent(database.pool)
  const account = await createSender(database.pool)
  const { from } = await fillList({ ...database, account, say }, messages)
  await fillAccount(database.client, account, { quick, from })
  const page = await openConsole(database, (await startReportService(database)).url, account.accountId)
  const places = await placesOf(page)
  const found: { place: string; times: number[] }[] = places.map((place) => ({ place, times: [] }))
  for (let visit = 0; visit < (quick ? 1 : VISITS); visit += 1) {
    for (const { place, times } of found) times.push(await timeOf(page, place))
  }
  const slowest = found.toSorted((a, b) => Math.max(...b.times) - Math.max(...a.times))
  const rows = slowest.map(({ place, times }) => [
    place.replace(/^#\/\d+\/?/, '/'),
    median(times).toFixed(0),
    Math.max(...times).toFixed(0),
  ])
  const world = `${grouped(messages)} messages, ${TEMPLATES} templates, ${GROUPS} groups, ${grouped(CAMPAIGNS)} campaigns`
  reportTable({ title: `pages of the console, ${world}, ms`, head: ['page', '50 %', 'slowest'], rows })
  const most = Math.max(...found.flatMap(({ times }) => times))
  report({ what: 'the slowest page, from a click to its content', unit: 'ms', measured: once(most), target: atMost(TARGET_MS) })
}

/** The console as an operator sees it. */
async function openConsole({ pool }: Database, url: string, accountId: number): Promise<Page> {
  const { personId } = await createPerson(pool, { email: 'operator@example.com', name: 'Operator' })
  await changePerson(pool, personId, { isOperator: true })
  const value = await openSession(pool, personId, { address: '127.0.0.1', userAgent: 'bench' })
  const browser = await launchChromium()
  atEnd(() => browser.close())
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } })
  await context.addCookies([{ name: 'herald-local', value, url, httpOnly: true, sameSite: 'Strict' }])
  const page = await context.newPage()
  await page.goto(`${url}/console#/${accountId}/`)
  await page.locator('aside nav a').first().waitFor()
  return page
}

/** Every page of the navigation, and for each list the first thing on it. */
async function placesOf(page: Page): Promise<string[]> {
  const places = await page.locator('aside nav a').evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''))
  const found = [...places]
  for (const place of places) {
    await timeOf(page, place)
    const first = await page.evaluate<string | null>(`document.querySelector('main a.row-link')?.getAttribute('href') ?? null`)
    if (first !== null) found.push(first)
  }
  return found
}

/** From the change of the address until the page has its heading and its content, and nothing on it is still loading. */
async function timeOf(page: Page, place: string): Promise<number> {
  return await page.evaluate<number>(`new Promise((resolve, reject) => {
    const from = performance.now()
    location.hash = ${JSON.stringify(place)}
    const isReady = () => document.querySelector('main :is(h1, .empty)') !== null &&
      document.querySelector('main :is(.loading, [aria-busy="true"])') === null
    // Three frames in a row: the first effect of a page may be to load more.
    let ready = 0
    const look = () => {
      ready = isReady() ? ready + 1 : 0
      const ms = performance.now() - from
      if (ready === 3) resolve(ms)
      else if (ms > ${MAX_WAIT_MS}) reject(new Error('the page ' + location.hash + ' is not ready'))
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(() => requestAnimationFrame(look))
  })`)
}
