import { count } from './numbers.ts'

// The words of the frame of all pages.

export const skip = 'Skip to the content'
export const pages = 'Pages'
export const menu = 'Menu'
export const account = 'Account'
export const crumbs = 'Breadcrumbs'
export const accountNote = (id: number, modules: string) => `account ${id} · ${modules}`
export const suspended = 'suspended'
export const failingEndpoints = (endpoints: number) => count(endpoints, 'failing endpoint')
export const api = 'API'
export const liveStates = { live: 'live', lost: 'connection lost, trying again', connecting: 'connecting…' }
export const network = {
  simulated: 'Simulated network',
  real: 'Real network',
  both: 'Simulated and real networks',
  unknown: 'Network unknown',
}
export const signedInAs = (name: string) => `Signed in as ${name}`
export const signOut = 'Sign out'
export const noAccount = 'No account yet'
export const broken = 'This page failed'
export const brokenHint = 'The developer tools of the browser say why.'
export const noAccountHint = 'Ask an operator for a role in an account.'
export const noPage = 'There is no such page'
export const noPageHint = 'The link may be old or misspelt.'
export const toOverview = 'To the overview'
export const groups = { send: 'Send', follow: 'Follow', connect: 'Connect', operator: 'Administer' }
