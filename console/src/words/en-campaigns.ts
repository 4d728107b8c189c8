import { count, listed } from './numbers.ts'

// The words of the list of campaigns.

export const add = 'New campaign'
export const statuses = { SCHEDULED: 'Scheduled', RUNNING: 'Running', PAUSED: 'Paused', COMPLETED: 'Completed', CANCELLED: 'Cancelled' }
export const none = 'No campaign yet'
export const noneHint = 'A campaign sends an approved template to all members of one or more groups.'
export const campaign = 'Campaign'
export const status = 'Status'
export const progress = 'Progress'
export const failed = 'Failed'
export const created = 'Created'
export const groups = (ids: number[]) => `${ids.length === 1 ? 'group' : 'groups'} ${listed(ids.map(String))}`
export const retries = 'retries failed messages'
export const recipients = (value: number) => count(value, 'recipient')

/** `isExact`: no upper bound. */
export const atMost = (text: string, isExact: boolean) => (isExact ? text : `at most ${text}`)
export const createdBetween = {
  createdFrom: 'Created from',
  createdTo: 'Created before',
}
