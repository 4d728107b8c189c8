import { accounts } from './en-accounts.ts'
import { agents } from './en-agents.ts'
import { audit } from './en-audit.ts'
import { campaigns } from './en-campaigns.ts'
import { crumbs, groups as groupNames } from './en-frame.ts'
import { groups } from './en-groups.ts'
import { health } from './en-health.ts'
import { keys } from './en-keys.ts'
import { cancel, close, newest, ofLimit, older } from './en-kit.ts'
import { filters, smsStatuses, statuses } from './en-messages.ts'
import { kinds, label } from './en-palette.ts'
import { people, tokens } from './en-people.ts'
import { replies } from './en-replies.ts'
import { reports } from './en-reports.ts'
import { email } from './en-sign-in.ts'
import { templates } from './en-templates.ts'
import { failures, fallback, smsFailures, title } from './en-timeline.ts'
import { webhooks } from './en-webhooks.ts'
import { count, number, upTo } from './numbers.ts'

const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 })
const weekday = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' })

export const en = {
  kit: { cancel, close, newest, ofLimit, older },
  problems: {
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
    RCS_TEMPLATE_IN_USE: 'The template can’t be deleted:',
    RCS_MESSAGE_STATE: 'The message can no longer be cancelled.',
    RCS_INVALID_CURSOR: 'This page of the list no longer exists.',
    RCS_EVENT_NOT_FOUND: 'The log, which keeps 30 days, no longer has this event.',
    RCS_WEBHOOK_ENDPOINT_STATE: 'The endpoint is disabled, or replays events already.',
    RCS_INSECURE_CONNECTION: 'Sign in over HTTPS, or on the machine itself.',
  },
  frame: { crumbs, groups: groupNames },
  pages: {
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
  },
  templates,
  groups,
  campaigns,
  reports,
  replies,
  keys,
  agents,
  health,
  accounts,
  people,
  tokens,
  audit,
  /** What the palette finds, by the names of the actions of the pages. */
  actions: {
    newTemplate: 'Create a template',
    newCampaign: 'Create a campaign',
    newGroup: 'Import a group',
    autoReplies: 'Show automatic replies',
    newEndpoint: 'Add an endpoint',
    newKey: 'Create a key',
    newAccount: 'Add an account',
    newPerson: people.add,
    newToken: tokens.add,
    changePassword: people.me.password,
  },
  palette: { kinds, label },
  signIn: { email },
  webhooks,
  send: {
    onlyReads: 'Your role lets you read this account, but not send',
    suspended: 'The operator has suspended this account',
    noRcs: 'This account has no module rcs',
    noAgent: 'This account has no active agent',
    agent: 'Agent',
    recipient: 'To',
    content: 'Content',
    text: 'Text',
    rich: 'Card, buttons and more',
    json: 'Content in JSON',
    wrongJson: 'This is not JSON yet.',
    template: 'Template',
    chooseTemplate: 'Choose a template',
    noTemplate: 'There is no approved template.',
    sms: 'If RCS does not reach the recipient',
    noSms: 'RCS only',
    withSms: 'SMS if RCS fails',
    sender: 'Sender of the SMS',
    smsText: 'Text of the SMS',
    reference: 'Your reference (optional)',
    submit: 'Send',
    accepted: 'Herald accepted the message, and sends it.',
    follow: 'Follow it',
    seePhone: 'See the phone',
  },
  overview: {
    newNote: 'the first steps',
    counts: { accepted: 'Accepted', sent: 'Sent', delivered: 'Delivered', read: 'Read', failed: 'Failed' },
    today: 'Single messages today so far (UTC)',
    lastWeek: (value: number, day: string) => `${number.format(value)} on ${weekday.format(new Date(day))}, the whole day`,
    history: 'Single messages of the last 14 days (UTC)',
    funnel: 'How far single messages of these 14 days got',
    bySms: 'Delivered by SMS',
    failures: 'Why messages failed',
    noFailures: 'No message failed.',
    ofLast: (messages: number) => `Of the last ${count(messages, 'failed message')}.`,
    campaigns: 'Running campaigns',
    noCampaigns: 'No campaign is running.',
    processed: (value: number, all: number) => `${number.format(value)} of ${number.format(all)} processed`,
    steps: {
      label: 'The first steps',
      noAgent: 'All agents in the simulated network are inactive.',
      done: 'done',
      send: 'Send to a phone on this page',
      sendHint: 'A card with buttons. No real phone gets it.',
      sendNow: 'Send a first message',
      tap: 'Tap a button',
      tapHint: 'Be the recipient.',
      webhook: 'Add a webhook endpoint',
      webhookHint: 'Your server gets every event.',
      sendRealHint: 'Messages of this account go to real phones. Begin with your own number.',
    },
  },
  number: (value: number) => number.format(value),
  share: (value: number) => percent.format(value),
  upTo,
  /** What other pages than those of a message need of it. */
  messages: { filters, smsStatuses, statuses },
  timeline: { title, failures, fallback, smsFailures },
  count,
}
