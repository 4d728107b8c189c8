import type { Page } from 'playwright-core'
import type { Role } from '../../../server/src/people/roles.ts'
import { herald } from './shared.ts'

/** Who sees a page. A stranger has signed in, and has no role. */
export type Who = Role | 'nobody' | 'stranger'

/**
 * A page of the console in a state that looks different. By default, an operator sees it. `refused`: the status of a request that it shows.
 * `problem`: what the browser reports meanwhile.
 */
export type State = { name: string; role?: Who; refused?: number; problem?: string; open: (page: Page) => Promise<void> }

export const at = (path: string, accountId = herald.accountId) => `/console#/${accountId}/${path}`
export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
export const dialog = (page: Page) => page.getByRole('dialog')
export const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true })
