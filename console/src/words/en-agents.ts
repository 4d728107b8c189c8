import { count, countUpTo } from './numbers.ts'

// The words of the page Agents.

export const note = 'the senders that recipients see'
export const add = 'Register an agent'
export const which = 'Which agents'
export const ofAccount = 'This account'
export const all = 'All accounts'
export const agent = 'Agent'
export const label = 'The agent'
export const here = 'In this account'
export const status = 'Status'
export const any = 'Active or not'
export const active = 'Active'
export const inactive = 'Inactive'
export const clear = 'Clear the filter'
export const notAssigned = 'Not assigned'
export const empty = 'No agent yet'
export const emptyHint = 'Only an operator can assign one.'
export const noneFound = 'No agent has this status'
export const id = 'Id'
export const idHint = 'As the carrier knows it. It can’t be changed.'
export const name = 'Technical name'
export const displayName = 'Display name'
export const carrier = 'Carrier'
export const carrierHint = 'Empty: the only one that is configured.'
export const billingType = 'Billing'
export const billing = { single: 'Single message', conversational: 'Conversational', basic: 'Basic' }
export const basicHint = 'Sends only texts of at most 160 bytes, without buttons.'
export const isInactive = 'Requests get 404, and queued messages fail.'
export const onlyOperator = 'Only an operator can activate it again.'
export const rename = 'Change the display name'
export const renameHint = 'At most 31 characters, shown on this platform only. Empty: the technical name.'
export const save = 'Save'
export const renamed = 'The name is changed.'
export const actions = {
  deactivate: 'Deactivate',
  activate: 'Activate again',
  assign: 'Assign to this account',
  unassign: 'Unassign',
}
export const activated = 'The agent is active again.'
export const assigned = 'The agent is assigned to this account.'
export const ended = { deactivate: 'The agent is inactive.', unassign: 'The agent is no longer assigned to this account.' }
export const requestsFail = 'Requests with this agent get 404.'
export const nothingFails = 'No queued message and no campaign uses it.'
export const messagesFail = (messages: number) =>
  `${countUpTo(messages, 'queued message fails', 'queued messages fail')} with AGENT_INACTIVE. SMS fallbacks are sent.`
export const campaignsFail = (campaigns: number) =>
  `${count(campaigns, 'campaign is', 'campaigns are')} not over: their next messages fail, too.`
export const repliesEnd = (replies: number, isEnd: boolean) =>
  `${count(replies, 'automatic reply is', 'automatic replies are')} ${isEnd ? 'removed for good' : 'no longer sent'}.`
export const optOutsStay = (optOuts: number) =>
  `${countUpTo(optOuts, 'opt-out stays', 'opt-outs stay')}, and apply again if you assign the agent again.`
export const failedStay = 'You can activate it again, but what has failed stays failed.'
