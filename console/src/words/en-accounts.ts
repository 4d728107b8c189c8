import { count, isolated, number } from './numbers.ts'

// The words of the page Accounts.

const share = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 0 })

const waits = (messages: number, sms: number, campaigns: number) =>
  `${count(messages, 'message')}, ${count(sms, 'SMS', 'SMS')} and ${count(campaigns, 'running campaign')}`

export const add = 'Add an account'
export const none = 'No account matches these filters'
export const showAll = 'Show all accounts'
export const search = 'Name or id'
export const shown = 'Show'
export const filters = { all: 'All accounts', trouble: 'With problems', suspended: 'Suspended' }
export const most = (shown: number, total: number) =>
  `${number.format(shown)} of ${number.format(total)} accounts are shown. Search for the others.`
export const summary = (ill: number, total: number) =>
  ill === 0 ? 'No account has problems.' : `${count(ill, 'account')} of ${number.format(total)} ${ill === 1 ? 'has' : 'have'} problems.`
export const account = 'Account'
export const needsLook = 'What needs a look'
export const fine = 'nothing'
export const suspended = 'suspended'
export const switchHere = 'Switch to this account'
export const lateSince = (since: string) => `messages have waited for ${since}`
export const failingEndpoints = (endpoints: number) =>
  endpoints === 1 ? 'a webhook endpoint fails' : `${number.format(endpoints)} webhook endpoints fail`
export const failedOf = (failed: number, accepted: number) =>
  `${number.format(failed)} of ${number.format(accepted)} messages failed in 24 hours`
export const quotaUsed = (used: number) => `${share.format(used)} of a quota is used`
export const noSuch = (id: string) => `There is no account ${id}`
export const name = 'Name'
export const modules = 'Modules'
export const sureModules = (removed: string[]) =>
  `Without ${removed.includes('rcs') ? 'RCS, all API requests' : 'SMS, API requests with an SMS fallback'} get 403. Accepted messages are still sent.`
export const quarantine = 'SMS quarantine'
export const quarantineField = 'Hours between two SMS to a recipient'
export const quarantineHint = '0: none. At most 8,760, a year.'
export const hours = (hours: number) => (hours === 0 ? 'none' : count(hours, 'hour'))
export const quotas = 'Quotas'
export const changeQuotas = 'Change the quotas'
export const quotaNames = {
  messagesPerDay: 'Messages a day',
  templates: 'Templates',
  storedBytes: 'Stored bytes',
  exports: 'Exports at once, per process',
}
export const byDefault = ' (default)'
export const quotaHint = 'Empty: the default.'
export const notNumber = 'must be a whole number'
export const change = 'Change the account'
export const save = 'Save'
export const saved = 'Saved.'
export const suspend = 'Suspend'
export const resume = 'Resume'
export const isSuspended = 'The account is suspended.'
export const isResumed = 'The account is resumed. What has not expired is sent.'
export const suspendTitle = (name: string) => `Suspend ${isolated(name)}?`
export const suspendSure = (messages: number, sms: number, campaigns: number) =>
  `This stops ${waits(messages, sms, campaigns)}. Until you resume it, its API requests get 403; what expires is never sent.`
export const suspendKept = 'What a network already has is still delivered, with its events.'
export const firstHint = 'An account is a sender, such as a shop.'
