// The words of the page Reports.

/** Two places, so that a rate of the API, which has four, loses nothing. */
const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 2 })

export const note = 'without test messages'
export const exportCsv = 'Export the messages (CSV)'
export const exportZip = 'Export the whole campaign (ZIP)'
export const csv = 'CSV'
export const csvOf = (table: string) => `Download “${table}” as CSV`
export const csvCut = 'The file has the first 10,000 rows only. The ZIP has all.'
export const numbers = 'All counts'
export const state = 'State'
export const messages = 'Messages'
export const share = 'Share'
export const counts = {
  recipients: 'Recipients',
  accepted: 'Accepted',
  sent: 'Sent',
  delivered: 'Delivered',
  read: 'Read',
  clicked: 'Opened a link',
  replied: 'Replied',
  optedOut: 'Opted out',
  failed: 'Failed',
  expired: 'Expired',
  'smsFallback.sent': 'SMS sent',
  'smsFallback.delivered': 'SMS delivered',
  'smsFallback.failed': 'SMS failed',
  'smsFallback.skipped': 'SMS held back',
}
export const of = (share: number, base: string) =>
  `${percent.format(share)} of ${base.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase())}`
export const numbersHint = 'A message counts once for each state, when it reaches the state.'
export const overTime = { hour: 'Messages by hour (UTC)', day: 'Messages by day (UTC)' }
export const onlyDays = 'Only campaigns are also counted by hour.'
export const nothing = 'Nothing happened in this range'
export const nothingHint = 'Choose a longer range, or send a message first.'
export const list = 'Recipients'
export const which = 'List'
export const did = 'What they did'
export const columns = { recipient: 'Recipient', occurredAt: 'When', reason: 'Reason', action: 'What' }
export const actions = {
  clicked: 'opened a link',
  tapped: 'tapped a button',
  wrote: 'wrote',
  'shared-location': 'shared a location',
  'sent-file': 'sent a file',
  'opted-out': 'opted out',
  'opted-in': 'opted in again',
}
