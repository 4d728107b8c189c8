import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { isAtLeast, ROLES, type Role } from '../../server/src/people/roles.ts'
import { createToken } from '../../server/src/people/tokens.ts'
import { until } from '../../server/test/support/until.ts'
import { cookieOf, herald, PHONES } from './every-page/shared.ts'
import { browserTest, openPage } from './support/browser.ts'
import { type DeclaredPage, declaredPages } from './support/pages.ts'
import { refusals, watchRequests } from './support/roles.ts'

// Opens every page as every role, and presses every button: the page has what the role may do, and nothing else.

const refusalOf = await refusals(herald.url)
await herald.sendCampaign('Spring sale', [PHONES.reads, PHONES.keeps], { type: 'MESSAGE', content: 'The sale begins.' })
await createToken(herald.pool, {
  name: 'Nightly report',
  role: 'viewer',
  accountIds: [herald.accountId],
  expiresAt: new Date(Date.now() + 1e9),
})
for (const role of ROLES) await cookieOf(role)

const { page: blank, close } = await openPage({ base: herald.url })
const PAGES = await declaredPages(blank)
await close()

type Opened = Awaited<ReturnType<typeof openAs>>

/** A page of a person with the role. `failed`: the responses that a browser reports as errors. */
async function openAs(role: Role) {
  const opened = await openPage({ base: herald.url, cookie: await cookieOf(role) })
  const { page } = opened
  page.setDefaultTimeout(20_000)
  const failed: string[] = []
  page.on('response', (response) => {
    if (response.status() >= 400) failed.push(`${response.status()} ${response.request().method()} ${response.url()}`)
  })
  const requests = watchRequests(page)
  /** Waits until the page has read what it shows. */
  const settle = () =>
    until('the page is read', async () => {
      if (requests.count() > 0 || (await page.locator('main .loading, main .spinner').count()) > 0) return false
      // A response may lead to another request.
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
      return requests.count() === 0
    })
  return { ...opened, role, failed, settle }
}

const NO_PAGE = 'There is no such page'

/** Opens a page anew. Only the first one loads the script: an address without a page, in between, forgets what the last page kept. */
async function show({ page, problems, failed, settle }: Opened, hash: string): Promise<void> {
  const nowhere = `#/${herald.accountId}/nowhere`
  if (page.url() === 'about:blank') await page.goto(`/console${nowhere}`)
  await page.evaluate(`location.hash = '${nowhere}'`)
  await page.getByRole('heading', { name: NO_PAGE }).waitFor()
  await settle()
  problems.length = 0
  failed.length = 0
  await page.evaluate(`location.hash = '${hash}'`)
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  await page.locator('main h1, main [role="alert"]').first().waitFor()
  await settle()
}

const hashOf = ({ name }: DeclaredPage) => `#/${herald.accountId}/${name === 'overview' ? '' : name}`

function linkInNavigation(page: Page, { title }: DeclaredPage): Locator {
  // The badge of the failing endpoints is part of the name.
  return page.getByRole('navigation', { name: 'Pages', exact: true }).getByRole('link', { name: new RegExp(`^${title}( \\d.*)?$`) })
}

async function assertWorks(opened: Opened, what: string): Promise<void> {
  const { page, problems, failed } = opened
  assert.deepEqual(failed, [], `${what}: failed requests`)
  assert.deepEqual(problems, [], `${what}: errors of the page`)
  assert.deepEqual(await page.locator('main [role="alert"]').allTextContents(), [], `${what}: errors on the page`)
}

const CONTROLS = 'main :is(button, summary, a[download]):visible:not([disabled]):not([aria-disabled="true"])'
const IN_DIALOG = 'dialog[open] :is(button, summary):visible:not([disabled]):not([aria-disabled="true"])'

/** The names of the controls, in the order of the page. */
const namesOf = (controls: Locator) =>
  controls.evaluateAll((elements) =>
    elements.map((element) => `${element.getAttribute('aria-label') ?? element.textContent}`.replaceAll(/\s+/g, ' ').trim()),
  )

/** Buttons that only change what the browser shows. */
const isHarmless = (name: string) => /^(Copy|Close|Cancel|As curl)/.test(name)

/** Presses every control of the page, and sends what is in each dialog. Returns what the service would refuse. Nothing is changed. */
async function pressAll(opened: Opened, hash: string): Promise<{ refused: string[]; sent: string[] }> {
  const { page, role, settle } = opened
  const [refused, sent]: [string[], string[]] = [[], []]
  await page.route('**/admin/v1/**', async (route) => {
    const request = route.request()
    const method = request.method()
    const reason = refusalOf(role, method, request.url())
    if (reason !== undefined) refused.push(reason)
    if (method === 'GET') return await route.fallback()
    sent.push(`${method} ${request.url()}`)
    await route.fulfill({ status: 409, json: { code: 'RCS_REFUSED', details: [] } })
  })
  const pressed = new Set<string>()
  for (;;) {
    const control = await nextOf(page.locator(CONTROLS), pressed)
    if (control === undefined) break
    const href = await control.getAttribute('href')
    if (href !== null) {
      const reason = refusalOf(role, 'GET', new URL(href, `${herald.url}/`).href)
      if (reason !== undefined) refused.push(reason)
      continue
    }
    await control.click()
    await settle()
    await sendDialog(page, settle)
    if (!page.url().endsWith(hash)) await show(opened, hash)
  }
  await page.unrouteAll({ behavior: 'wait' })
  return { refused, sent }
}

/** How many controls are pressed at most: the rows of a list have the same ones. */
const MOST = 60

/** The first control that was not pressed yet. */
async function nextOf(controls: Locator, pressed: Set<string>): Promise<Locator | undefined> {
  const names = await namesOf(controls)
  const index = names.findIndex((name) => !pressed.has(name) && !isHarmless(name))
  if (index < 0 || pressed.size > MOST) return undefined
  pressed.add(names[index] as string)
  return controls.nth(index)
}

/** Fills in and sends the dialogs that a press has opened. */
async function sendDialog(page: Page, settle: () => Promise<unknown>): Promise<void> {
  if ((await page.locator('dialog[open]').count()) === 0) return
  for (const field of await page.locator('dialog[open] :is(input, textarea):visible').all()) await fill(field)
  for (const select of await page.locator('dialog[open] select:visible').all()) await choose(select)
  const pressed = new Set<string>()
  for (;;) {
    const control = await nextOf(page.locator(IN_DIALOG), pressed)
    if (control === undefined) break
    await control.click()
    await settle()
  }
  for (let times = 0; times < 3 && (await page.locator('dialog[open]').count()) > 0; times += 1) {
    await page.keyboard.press('Escape')
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  }
}

const VALUES: Record<string, string> = {
  email: 'new@example.com',
  password: 'correct horse battery',
  number: '1',
  'datetime-local': '2030-01-31T08:00',
}

async function fill(field: Locator): Promise<void> {
  const type = (await field.getAttribute('type')) ?? 'text'
  if (['radio', 'checkbox', 'file', 'hidden', 'range'].includes(type) || (await field.inputValue()) !== '') return
  await field.fill(VALUES[type] ?? 'https://hooks.example.com/herald')
}

async function choose(select: Locator): Promise<void> {
  const values = await select
    .locator('option')
    .evaluateAll((options) => options.map((option) => (option as { value?: string }).value ?? ''))
  const first = values.find((value) => value !== '')
  if ((await select.inputValue()) === '' && first !== undefined) await select.selectOption(first)
}

const people = new Map<Role, Promise<Opened>>()

/** The page that all tests of a role share, since a new browser profile takes long. */
function pageOf(role: Role): Promise<Opened> {
  const known = people.get(role) ?? openAs(role)
  people.set(role, known)
  return known
}

/** How many requests the presses of a role have sent. */
const sent = new Map<Role, number>()

// The roles do not wait for each other: a page mostly waits for the service.
describe('each role', { concurrency: ROLES.length }, () => {
  for (const role of ROLES) describe(role, { concurrency: 1 }, () => testPagesOf(role))
})

function testPagesOf(role: Role): void {
  for (const declared of PAGES) {
    const hasPage = isAtLeast(role, declared.role)
    const { title } = declared
    test(hasPage ? `${title} has what the role ${role} may do` : `the role ${role} has no page ${title}`, browserTest, async (t) => {
      const opened = await pageOf(role)
      const { page } = opened
      await show(opened, hashOf(declared))
      assert.equal(await linkInNavigation(page, declared).count(), hasPage && declared.isInNavigation ? 1 : 0)
      assert.equal(await page.getByRole('heading', { name: NO_PAGE }).count(), hasPage ? 0 : 1)
      await assertWorks(opened, title)
      if (hasPage) sent.set(role, (sent.get(role) ?? 0) + (await pressAllOn(opened, declared, t)))
    })
  }
}

test('the presses of admins and operators reach the service', browserTest, () => {
  for (const role of ['admin', 'operator'] as const) assert.ok((sent.get(role) ?? 0) > 10, role)
})

/** Presses everything on the page, and on the first thing that it links to, such as one campaign. Returns how much that would change. */
async function pressAllOn(opened: Opened, declared: DeclaredPage, t: TestContext): Promise<number> {
  let total = 0
  const links = opened.page.locator(`main a[href^="#/${herald.accountId}/${declared.name}/"]:not([href$="/new"])`)
  const [below] = await Promise.all((await links.all()).slice(0, 1).map((link) => link.getAttribute('href')))
  for (const hash of [hashOf(declared), ...(below ? [below] : [])]) {
    await show(opened, hash)
    await assertWorks(opened, hash)
    const { refused, sent } = await pressAll(opened, hash)
    assert.deepEqual(refused, [], hash)
    t.diagnostic(`${hash}: ${sent.length} requests to change something`)
    total += sent.length
  }
  return total
}

test('the check finds a request that a role may not send', async () => {
  const url = `${herald.url}/admin/v1/accounts/${herald.accountId}`
  assert.match(refusalOf('viewer', 'POST', `${url}/webhook-endpoints`) ?? '', /needs the role admin$/)
  assert.match(refusalOf('admin', 'GET', `${herald.url}/admin/v1/people`) ?? '', /needs the role operator$/)
  assert.match(refusalOf('operator', 'GET', `${url}/no-such-list`) ?? '', /is no operation/)
  assert.equal(refusalOf('viewer', 'GET', `${url}/messages?limit=1`), undefined)
})
