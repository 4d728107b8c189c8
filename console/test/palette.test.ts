import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { createGroup } from '../../server/src/groups/groups.ts'
import { createPerson, setRole } from '../../server/src/people/people.ts'
import { isAtLeast, ROLES } from '../../server/src/people/roles.ts'
import { call } from '../../server/test/support/service.ts'
import { until } from '../../server/test/support/until.ts'
import { browserTest, openPage } from './support/browser.ts'
import { startHerald } from './support/herald.ts'
import { declaredPages } from './support/pages.ts'

// What Ctrl-K finds. frame.test.ts checks how it opens and closes, and ids, numbers and references.

const herald = await startHerald()
const { accountId } = herald

const { page: blank, close: closeBlank } = await openPage({ base: herald.url })
const PAGES = await declaredPages(blank)
await closeBlank()
const ACTIONS = PAGES.flatMap(({ name, actions }) => actions.map((action) => ({ ...action, page: name })))

async function open(page: Page, text: string): Promise<void> {
  await page.goto(`/console#/${accountId}/webhooks`)
  await page.getByRole('heading', { name: 'Webhooks', exact: true }).waitFor()
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Find a message, number, page, action…' }).fill(text)
}

const option = (page: Page, name: string) => page.getByRole('option', { name, exact: true })

test('each action leads to a page that exists', () => {
  assert.ok(ACTIONS.length >= 10)
  for (const { text, hasPage } of ACTIONS) assert.ok(hasPage, text)
})

for (const role of ROLES) {
  test(`Ctrl-K offers the role ${role} its pages and its actions, and no others`, browserTest, async (t) => {
    const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn(role) })
    t.after(close)
    await open(page, '')
    const texts = [
      ...PAGES.filter((declared) => isAtLeast(role, declared.role)).map(({ title }) => title),
      ...ACTIONS.filter((action) => isAtLeast(role, action.role)).map(({ text }) => text),
      'Sign out',
    ]
    const found = await page.locator('.palette').getByRole('option').allTextContents()
    assert.deepEqual(
      found.map((text) => text.trim()),
      texts,
    )
    assert.deepEqual(problems, [], 'it reads nothing that the role may not read')
  })
}

test('an action begins where its page declares it', browserTest, async (t) => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('operator') })
  t.after(close)
  for (const { text, page: name, path } of ACTIONS) {
    await open(page, text)
    await option(page, text).click()
    await page.waitForURL((url) => url.hash === `#/${accountId}/${name}/${path}`)
  }
  for (const [text, dialog] of [
    ['add a person', 'Add a person'],
    ['create a tok', 'Create a token'],
  ] as const) {
    await open(page, text)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: dialog }).waitFor()
    await page.keyboard.press('Escape')
    // The dialog leads back to its page when it closes.
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  assert.deepEqual(problems, [])
})

test('Ctrl-K finds campaigns, templates, groups and people by their names, and keys by their ids', browserTest, async (t) => {
  const campaignId = await herald.sendCampaign('Spring sale', ['+48500100200'], { type: 'MESSAGE', content: 'The sale begins.' })
  const ask = async (method: string, path: string, body: object) =>
    (await call(`${herald.url}/v1/${path}`, { method, authorization: herald.authorization, body })).body
  const { id: templateId } = await ask('POST', 'templates', {
    name: 'Parcel is on its way',
    message: { type: 'MESSAGE', content: 'On its way' },
  })
  await ask('PUT', 'segments/4711', { name: 'Friends of tulips' })
  await createGroup(herald.pool, { accountId, number: 4712 })
  const { personId } = await createPerson(herald.pool, { email: 'maria@example.com', name: 'Maria Wiśniewska' })
  await setRole(herald.pool, personId, accountId, 'viewer')
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('admin') })
  t.after(close)
  for (const [text, address] of [
    ['spring', `campaigns/${campaignId}`],
    ['parcel is', `templates/${templateId}`],
    ['tulips', 'groups/4711'],
    ['4711', 'groups/4711'],
    // A group without a name.
    ['4712', 'groups/4712'],
    ['maria@', `people/${personId}`],
    ['hk_abc', 'keys/hk_abc'],
    [campaignId, `campaigns/${campaignId}`],
    ['greenhouse', `agents/${herald.agentId}`],
  ] as const) {
    await open(page, text)
    await page.locator(`.palette a[href="#/${accountId}/${address}"]`).waitFor()
    assert.equal(await page.locator(`.palette a[href="#/${accountId}/${address}"]`).count(), 1, 'a thing is offered once')
  }
  await page.locator(`.palette a[href="#/${accountId}/agents/${herald.agentId}"]`).click()
  await page.waitForURL(new RegExp(`agents/${herald.agentId}$`))
  assert.deepEqual(problems, [])
})

test('the chosen option is always in sight', browserTest, async (t) => {
  const { page, problems, close } = await openPage({ base: herald.url, cookie: await herald.signIn('operator'), height: 400 })
  t.after(close)
  await open(page, '')
  // From the first one up is the last one.
  await page.keyboard.press('ArrowUp')
  const chosen = page.locator('.palette [aria-selected="true"]')
  await chosen.getByText('Sign out').waitFor()
  await until('it is in sight', () =>
    chosen.evaluate((element) => {
      const [own, list] = [element.getBoundingClientRect(), element.parentElement?.getBoundingClientRect()]
      return list !== undefined && own.top >= list.top && own.bottom <= list.bottom + 1
    }),
  )
  assert.deepEqual(problems, [])
})
