import { count } from './numbers.ts'

// The words of the opt-outs.

export const add = 'Add an opt-out'
export const added = (agents: number) =>
  agents === 0 ? 'Stored for agents that are assigned later.' : `Opted out of ${count(agents, 'agent')}.`
export const allAgents = 'All agents, also those assigned later'
export const anyAgent = 'Any agent'
export const stopped = { campaigns: 'Campaigns', all: 'All messages' }
export const stop = 'What is stopped'
export const stopHint = {
  campaigns: 'Single messages still go out. The recipient can opt in again by writing START.',
  all: 'Single messages fail, too. START does not end a block.',
}
export const sources = {
  word: 'wrote STOP',
  unsubscribe: 'unsubscribed on the phone',
  operator: 'by the operator',
  api: 'through the API or this page',
}
export const changes = {
  block: 'Block',
  unblock: 'Unblock',
  remove: 'Remove',
}
export const sure = {
  block: (number: string, agent: string) =>
    `This stops all messages of ${agent} to one recipient, ${number}: single messages, too. Waiting messages fail.`,
  unblock: (number: string, agent: string) =>
    `Single messages of ${agent} go out again to one recipient, ${number}. Campaigns stay stopped.`,
  remove: (number: string, agent: string) =>
    `Campaigns of ${agent} go out again to one recipient, ${number}. Do this only if the recipient has asked for it.`,
}
export const done = {
  block: 'The recipient is blocked.',
  unblock: 'The recipient is no longer blocked.',
  remove: 'The opt-out is removed.',
}
export const isInactive = 'While the agent is inactive, this can’t be changed.'
export const isBlocked = 'This recipient is blocked. To let single messages through again, press Unblock in the list.'
export const empty = 'Nobody has opted out'
export const emptyHint = 'A recipient who writes STOP, or unsubscribes on the phone, appears here.'
export const nothingFound = 'No opt-out matches these filters'
export const nothingFoundHint = 'Check the number, or choose another agent.'
