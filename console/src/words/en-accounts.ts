import { count, isolated, number } from './numbers.ts'

const share = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 0 })

const waits = (messages: number, sms: number, campaigns: number) =>
  `${count(messages, 'message')}, ${count(sms, 'SMS', 'SMS')} and ${count(campaigns, 'running campaign')}`

/** The words of the page. */
export const accounts = {
  add: 'Add an account',
  none: 'No account matches these filters',
  showAll: 'Show all accounts',
  search: 'Name or id',
  shown: 'Show',
  filters: { all: 'All accounts', trouble: 'With trouble', suspended: 'Suspended' },
  most: (shown: number, total: number) => `${number.format(shown)} of ${number.format(total)} accounts are shown. Search for the others.`,
  summary: (ill: number, total: number) =>
    ill === 0 ? 'No account has trouble.' : `${count(ill, 'account')} of ${number.format(total)} ${ill === 1 ? 'has' : 'have'} trouble.`,
  account: 'Account',
  needsLook: 'What needs a look',
  fine: 'nothing',
  suspended: 'suspended',
  switchHere: 'Switch to this account',
  troubles: {
    late: (since: string) => `messages have waited for ${since}`,
    endpoints: (endpoints: number) => (endpoints === 1 ? 'a webhook endpoint fails' : `${number.format(endpoints)} webhook endpoints fail`),
    failed: (failed: number, accepted: number) => `${number.format(failed)} of ${number.format(accepted)} messages failed in 24 hours`,
    quota: (used: number) => `${share.format(used)} of a quota is used`,
  },
  noSuch: (id: string) => `There is no account ${id}`,
  name: 'Name',
  modules: 'May use',
  quarantine: 'SMS quarantine',
  quarantineField: 'Hours between two SMS to a recipient',
  quarantineHint: '0: none. At most 8,760, a year.',
  hours: (hours: number) => (hours === 0 ? 'none' : count(hours, 'hour')),
  quotas: 'Quotas',
  changeQuotas: 'Change the quotas',
  quota: {
    messagesPerDay: 'Messages a day',
    templates: 'Templates',
    storedBytes: 'Stored bytes',
    exports: 'Concurrent exports on a node',
  },
  byDefault: ' (default)',
  quotaHint: 'Empty: the default.',
  notNumber: 'must be a whole number',
  change: 'Change the account',
  save: 'Save',
  saved: 'Saved.',
  suspend: 'Suspend',
  resume: 'Resume',
  isSuspended: 'The account is suspended.',
  isResumed: 'The account is resumed. What has not expired is sent.',
  suspendTitle: (name: string) => `Suspend ${isolated(name)}?`,
  suspendSure: (messages: number, sms: number, campaigns: number) =>
    `This stops ${waits(messages, sms, campaigns)}. Until you resume it, its API requests get 403; what expires is never sent.`,
  suspendKept: 'What a network already has is still delivered, with its events.',
  firstHint: 'An account is a sender, such as a shop.',
}
