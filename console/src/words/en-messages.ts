import { count } from './numbers.ts'

// The words of the list of messages, and of one message.

export const statuses = {
  ACCEPTED: 'Accepted',
  SENDING: 'Sending',
  SENT: 'Sent',
  DELIVERED: 'Delivered',
  READ: 'Read',
  FAILED: 'Failed',
  EXPIRED: 'Expired',
}
export const smsStatuses = {
  WAITING: 'SMS waits',
  SCHEDULED: 'SMS is due',
  SENT: 'SMS sent',
  DELIVERED: 'SMS delivered',
  FAILED: 'SMS failed',
  NOT_NEEDED: 'SMS not needed',
  SKIPPED: 'SMS held back',
}
export const rcs = (status: string) => `RCS ${status.toLowerCase()}`
export const followedBy = 'followed by'
export const test = 'Test'

/** What other lists need, too. */
export const filters = { label: 'Filters', search: 'Search', find: 'Find', clear: 'Clear the filters', anyStatus: 'Any status' }
export const searchHint = 'A number, a message id, or a reference'
export const anyAgent = 'Any agent'
export const or = ' or '
export const real = 'All but tests'
export const tests = 'Tests only'
export const anyCampaign = 'Any campaign, or none'
export const from = 'Accepted from'
export const to = 'Accepted before'

export const follows = 'New messages appear'
export const pause = 'Pause'
export const resume = 'Resume'
export const paused = 'Paused'
export const arrived = (value: number) => `${count(value, 'new message')} at the top of the list.`

export const empty = 'No messages yet'
export const nothingFound = 'No message matches these filters'
export const asReference = 'Search as a reference'
export const asCampaign = 'Open as a campaign'
export const end = 'There are no more.'
export const older = 'Older'
export const newest = 'Newest'
export const shown = (value: number) => `${count(value, 'message')} shown`
export const partly = 'Herald has searched only some of the messages so far.'
export const further = 'Search further'
export const download = 'Download as CSV'
export const asJson = 'As JSON'

export const idsAndFacts = 'Ids and facts'
export const message = 'Message'
export const recipient = 'Recipient'
export const status = 'Status'
export const reference = 'Reference'
export const agent = 'Agent'
export const campaign = 'Campaign'
export const triggeredBy = 'Triggered by'
export const accepted = 'Accepted'
export const scheduled = 'Scheduled for'
export const deliveryWindow = 'Delivery window'
export const expires = 'Expires'
export const smsLabel = 'SMS label'
export const segments = (value: number) => count(value, 'SMS', 'SMS')
export const kind = 'Kind'

export const thePhone = 'The phone'
export const whatToShow = 'What to show'
export const got = 'What arrived'
export const meant = 'What was meant'
export const nothing = 'Nothing arrived'
export const nothingYet = 'Nothing arrived yet'
export const gone = 'Delivered, but the simulator no longer has it'
export const asSent = 'As Herald sent it: what arrived is not known.'

export const cancel = 'Cancel the message'
export const cancelTitle = 'Cancel this message?'
export const cancelBody = 'Its status becomes FAILED, with the reason CANCELLED. This can’t be undone.'
export const cancelSms = 'The SMS of the request is not sent either.'
export const cancelUnknown = 'If the network may have it, Herald asks to revoke it.'
export const keep = 'Keep it'
