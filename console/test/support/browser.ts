import assert from 'node:assert/strict'
import { after } from 'node:test'
import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, Page } from 'playwright-core'
import { launchChromium, PROGRAM, SHELL } from './chromium.ts'

// Debian's Chromium, which tests drive as a person would.

/** For the options of a test: why it is skipped, if it is. */
export const browserTest = { skip: PROGRAM === undefined && 'Chromium is missing: apt-get install chromium-headless-shell' }

/** For tests that compare pixels: the whole browser adjusts texts to the grid of the screen. */
export const pictureTest = { skip: PROGRAM !== SHELL && 'chromium-headless-shell is missing: apt-get install chromium-headless-shell' }

let starting: Promise<Browser> | undefined

async function theBrowser(): Promise<Browser> {
  starting ??= launchChromium()
  return await starting
}

after(async () => await (await starting)?.close())

type Options = { cookie?: string; base: string; isDark?: boolean; width?: number; height?: number }

/** A page of a new browser profile. `problems`: errors on the page's console, violations of the policy, and responses of 500 and above. */
export async function openPage({ cookie, base, isDark = false, width = 1400, height = 900 }: Options) {
  const context = await (await theBrowser()).newContext({
    baseURL: base,
    viewport: { width, height },
    colorScheme: isDark ? 'dark' : 'light',
    reducedMotion: 'reduce',
  })
  if (cookie !== undefined)
    await context.addCookies([{ name: 'herald-local', value: cookie, url: base, httpOnly: true, sameSite: 'Strict' }])
  const page = await context.newPage()
  const problems: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(error.stack ?? error.message))
  page.on('request', (request) => {
    if (!request.url().startsWith(base) && !request.url().startsWith('data:')) problems.push(`a request to another host: ${request.url()}`)
  })
  const close = async () => {
    // A handler of the test may be at work for a request that nobody waits for. The test may have closed the page, or opened more.
    for (const open of context.pages()) await open.unrouteAll({ behavior: 'ignoreErrors' })
    await context.close()
  }
  return { page, problems, close }
}

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** All others look at the markup and the layout, which light and dark share. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block']

/** Fails if axe finds a barrier on the page. `onlyColours`: everything else was checked with other colours. */
export async function assertAccessible(page: Page, what: string, { onlyColours = false } = {}): Promise<void> {
  // The other mode also looks into frames of other origins, of which there are none, and opens a page for that.
  const axe = new AxeBuilder({ page }).setLegacyMode()
  const { violations } = await (onlyColours ? axe.withRules(COLOUR_RULES) : axe.withTags(TAGS)).analyze()
  const found = violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, any }) => `${id}: ${target.join(' ')}: ${any[0]?.message ?? ''}`),
  )
  assert.deepEqual(found, [], what)
}
