import { count, isolated } from './numbers.ts'

// The words of the steps to a new campaign.

const sms = (value: number) => count(value, 'SMS', 'SMS')

export const steps = { content: 'Content', groups: 'Groups', time: 'Time', sms: 'SMS', review: 'Review' }
export const stepsLabel = 'Steps'
export const back = 'Back'
export const next = 'Continue'
export const name = 'Name'
export const nameMissing = 'Enter a name.'
export const templateMissing = 'Choose an approved template.'
export const toTemplates = 'Add or approve a template'
export const noPreview = 'Choose a template to see it here'
export const findGroup = 'Find a group'
export const noGroup = 'There is no group yet.'
export const toGroups = 'Add a group'
export const groupName = (id: number, name: string | undefined) => (name === undefined ? `Group ${id}` : isolated(name))
export const groupNote = (id: number, members: number) => `group ${id}, ${count(members, 'member')}`
export const groupGone = 'This group no longer exists.'
export const groupsMissing = (max: number) => `Choose 1 to ${max} groups.`
export const nobody = 'Nobody would get the campaign.'
export const audience = 'Who gets it if it starts now'
export const members = 'Members'
export const overlap = 'In several groups'
export const optedOut = 'Opted out'
export const reached = 'Sends to'
export const tooLarge = 'The groups are too large to count overlap and opt-outs.'
export const start = 'Start'
export const starts = { now: 'Now', later: 'Later' }
export const startsAt = 'Starts at'
export const startsAtMissing = 'Enter the start time.'
export const startHint = 'In your time zone.'
export const expiresAt = 'Delivered until (optional)'
export const expiresHint = 'At most 15 days after the start. Without it, each message has 48 hours.'
export const expiresEarly = 'This must be later than the start.'
export const noModule = 'This account has no SMS module.'
export const senderMissing = 'Enter a sender.'
export const smsMissing = 'Enter the SMS text.'
export const asSent = (text: string) => `Sent as “${isolated(text)}”`
export const expires = 'Expires'
export const startsNow = 'at once'
export const after48Hours = '48 hours after each message is created'
export const rcsOnly = 'none'
export const smsBy = (sender: string, parts: number) => `from ${isolated(sender)}, ${sms(parts)} for each`
export const inAll = (parts: number) => `, at most ${sms(parts)} in all`
export const sends = {
  now: (what: string) => `Send to ${what}`,
  later: (what: string) => `Schedule for ${what}`,
}
export const alreadyCreated = 'This campaign was created before you changed it here. Herald has not created a second one.'
export const startAnew = 'Start a new campaign'
