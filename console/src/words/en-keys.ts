import { count, listed } from './numbers.ts'

// The words of the page Keys.

export const note = 'with which your systems use the API'
export const add = 'Create a key'
export const key = 'Key'
export const label = 'The key'
export const status = 'Status'
export const may = 'Scopes'
export const from = 'Addresses'
export const created = 'Created'
export const lastUsed = 'Last used'
export const rotated = 'Secret replaced'
export const expires = 'Expires'
export const any = 'Any status'
export const clear = 'Clear the filter'
export const statuses = { ACTIVE: 'Active', EXPIRED: 'Expired', REVOKED: 'Revoked' }
export const expiresSoon = 'Expires soon'
export const empty = 'No key yet'
export const emptyHint = 'Give each system a key of its own, so that you can revoke it alone.'
export const noneFound = 'No key has this status'
export const never = 'never'
export const neverUsed = 'No system has used it yet.'
export const anywhere = 'any address'
export const fromAddresses = (addresses: string[]) =>
  `from ${addresses.length <= 3 ? listed(addresses) : count(addresses.length, 'address', 'addresses')}`
export const mayDo = (scopes?: string[]) => (scopes ? listed(scopes) : 'everything')
export const refused = 'Every request with this key gets 401.'
export const whatItMay = 'What the key may do'
export const everything = 'Everything'
export const only = 'Only this:'
export const scopes = {
  send: 'Send messages and campaigns, and pause or cancel them',
  read: 'Read everything but exports',
  export: 'Download exports of reports and messages',
  manage: 'Change templates, groups, agents, opt-outs and webhooks',
}
export const atLeastOne = 'Choose at least one, or everything.'
export const expiresHint = 'Empty: never.'
export const addresses = 'Addresses'
export const addressesHint = 'One in each line, such as 192.0.2.7 or 10.0.0.0/8. Empty: any.'
export const change = 'Change what it may do'
export const changed = 'The key is changed.'
export const changeHint = 'It applies from the next request.'
export const save = 'Save'
export const made = 'The key is created'
export const copyHint = 'Copy the secret now: it is shown only this once.'
export const credentials = 'Key and secret'
export const tryIt = 'Try it'
export const tryHint = 'This command lists the agents of the account.'
export const mayNotRead = 'The key works: the response is 403 with RCS_SCOPE, since it may not read. A wrong secret gets 401.'
export const revoke = 'Revoke'
export const revokeKey = (key: string) => `Revoke ${key}`
export const revoked = 'The key is revoked.'
export const sureRevoke = 'The next request with this key gets 401. This can’t be undone.'
export const sureLast = 'The account has no other active key.'
export const sureInUse = 'A system still uses it, and will fail.'
