import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import type { Role } from '../../../server/src/people/roles.ts'

/** What `console/src/pages/pages.ts` declares about a page. */
export type DeclaredPage = {
  name: string
  title: string
  /** The lowest role that has the page. */
  role: Role
  isInNavigation: boolean
  /** By the texts of the palette. */
  actions: { text: string; role: Role; path: string; hasPage: boolean }[]
}

const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url))

const SCRIPT = `
  import { PAGES, pageAt } from './pages/pages.ts'
  import { actions as actionNames, pages } from './words/en.ts'
  globalThis.declaredPages = PAGES.map(({ name, role = 'viewer', isInNavigation = true, actions = [] }) => ({
    name, role, isInNavigation, title: pages[name],
    actions: actions.map((action) => ({
      text: actionNames[action.name], role: action.role, path: action.path,
      hasPage: pageAt({ path: [name, action.path] }, action.role) !== undefined,
    })),
  }))
`

/** Reads the declared pages in a browser, since they import components, which Node.js can't run. */
export async function declaredPages(page: Page): Promise<DeclaredPage[]> {
  const { build } = await import('esbuild')
  const { outputFiles } = await build({
    stdin: { contents: SCRIPT, resolveDir: SOURCES, loader: 'ts' },
    bundle: true,
    format: 'iife',
    target: 'es2024',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.svg': 'dataurl', '.css': 'empty' },
    write: false,
  })
  await page.goto('about:blank')
  await page.evaluate(outputFiles[0]?.text ?? '')
  return await page.evaluate<DeclaredPage[]>('globalThis.declaredPages')
}
