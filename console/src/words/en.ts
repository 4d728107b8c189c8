import { changePassword, add as newPerson } from './en-people.ts'
import { add as newToken } from './en-tokens.ts'

// The words for all pages: what can go wrong, and the names of the pages and of their actions. All words are exports of modules, since the
// bundler then shortens their names, and leaves out what nothing uses: another language is modules with the same names.

export const problems = {
  NO_RESPONSE: 'Herald does not respond. Check that it runs.',
  RCS_UNAUTHORIZED: 'You are not signed in.',
  RCS_RATE_LIMITED: 'There were too many requests.',
  RCS_UNAVAILABLE: 'Herald can’t do this now; its database may be out of reach.',
  RCS_ROLE: 'Your role does not allow it.',
  RCS_PASSWORD_REQUIRED: 'This step needs your password.',
  RCS_LINK_GONE: 'This link was used or replaced, or is older than 24 hours.',
  RCS_NOT_SIMULATED: 'No agent of this account is in the simulated network.',
  RCS_MESSAGE_NOT_FOUND: 'There is no such message in this account.',
  RCS_TEMPLATE_NOT_FOUND: 'There is no such template in this account.',
  RCS_CAMPAIGN_NOT_FOUND: 'There is no such campaign in this account.',
  RCS_TEMPLATE_IN_USE: 'The template can’t be deleted:',
  RCS_MESSAGE_STATE: 'The message can no longer be cancelled.',
  RCS_INVALID_CURSOR: 'This page of the list no longer exists.',
  RCS_EVENT_NOT_FOUND: 'The log, which keeps 30 days, no longer has this event.',
  RCS_WEBHOOK_ENDPOINT_STATE: 'The endpoint is disabled, or replays events already.',
  RCS_INSECURE_CONNECTION: 'Sign in over HTTPS, or on the machine itself.',
}

export const pages = {
  overview: 'Overview',
  phones: 'Phones',
  send: 'Send a message',
  templates: 'Templates',
  campaigns: 'Campaigns',
  groups: 'Groups',
  messages: 'Messages',
  reports: 'Reports',
  replies: 'Opt-outs and replies',
  webhooks: 'Webhooks',
  keys: 'Keys',
  agents: 'Agents',
  health: 'Health',
  accounts: 'Accounts',
  people: 'People',
  tokens: 'Tokens',
  audit: 'Audit log',
  me: 'Your profile',
}

/** What the palette finds, by the names of the actions of the pages. */
export const actions = {
  newTemplate: 'Create a template',
  newCampaign: 'Create a campaign',
  newGroup: 'Import a group',
  autoReplies: 'Show automatic replies',
  newEndpoint: 'Add an endpoint',
  newKey: 'Create a key',
  newAccount: 'Add an account',
  newPerson,
  newToken,
  changePassword,
}
