import type { ComponentType } from 'preact'
import type { Place } from '../app/place.ts'
import type { Role } from '../app/session.tsx'
import type { IconName } from '../kit/icon.tsx'
import type { actions, pages } from '../words/en.ts'
import type * as frameWords from '../words/en-frame.ts'
import { AccountsPage } from './accounts/accounts.tsx'
import { AgentsPage } from './agents/agents.tsx'
import { AuditPage } from './audit/audit.tsx'
import { CampaignsPage } from './campaigns/campaigns.tsx'
import { GroupsPage } from './groups/groups.tsx'
import { HealthPage } from './health/health.tsx'
import { KeysPage } from './keys/keys.tsx'
import { MePage } from './me/me.tsx'
import { MessagesPage } from './messages/messages.tsx'
import { OverviewPage } from './overview/overview.tsx'
import { PeoplePage } from './people/people.tsx'
import { PhonesPage } from './phones/phones.tsx'
import { RepliesPage } from './replies/replies.tsx'
import { ReportsPage } from './reports/reports.tsx'
import { SendPage } from './send/send.tsx'
import { TemplatesPage } from './templates/templates.tsx'
import { TokensPage } from './tokens/tokens.tsx'
import { WebhooksPage } from './webhooks/webhooks.tsx'

type Page = {
  /** In the address. */
  name: keyof typeof pages
  icon: IconName
  /** Where the navigation shows it. */
  group?: keyof typeof frameWords.groups
  /** Which parts the address may have behind the name, joined by slashes. All others lead to no page. By default, none. */
  below?: RegExp
  /** The lowest role that has the page. By default, every role. */
  role?: Role
  /** False: another link leads to the page. */
  isInNavigation?: boolean
  Page: ComponentType<{ place: Place }>
  /** What can be done on the page, for Ctrl-K. */
  actions?: Action[]
}

/** `role`: the lowest one that may do it. `path`: where it begins, behind the name of the page. */
type Action = { name: keyof typeof actions; role: Role; path: string }

const adding = (name: Action['name'], role: Role = 'admin'): Action => ({ name, role, path: 'new' })

/** All pages, in the order of the navigation. */
export const PAGES: Page[] = [
  { name: 'overview', icon: 'house', Page: OverviewPage },
  { name: 'phones', icon: 'smartphone', Page: PhonesPage },
  { name: 'send', icon: 'send', group: 'send', Page: SendPage },
  { name: 'templates', icon: 'layout-template', group: 'send', below: /^[^/]*$/, Page: TemplatesPage, actions: [adding('newTemplate')] },
  { name: 'campaigns', icon: 'megaphone', group: 'send', below: /^[^/]*$/, Page: CampaignsPage, actions: [adding('newCampaign')] },
  { name: 'groups', icon: 'users', group: 'send', below: /^(new|[1-9]\d*)?$/, Page: GroupsPage, actions: [adding('newGroup')] },
  { name: 'messages', icon: 'message-square', group: 'follow', below: /^[^/]*$/, Page: MessagesPage },
  { name: 'reports', icon: 'chart-column', group: 'follow', Page: ReportsPage },
  {
    name: 'replies',
    icon: 'message-circle-reply',
    group: 'follow',
    below: /^(automatic|number)?$/,
    Page: RepliesPage,
    actions: [{ name: 'autoReplies', role: 'viewer', path: 'automatic' }],
  },
  { name: 'webhooks', icon: 'webhook', group: 'connect', below: /^(new|[1-9]\d*)?$/, Page: WebhooksPage, actions: [adding('newEndpoint')] },
  { name: 'keys', icon: 'key-round', group: 'connect', below: /^[^/]*$/, Page: KeysPage, actions: [adding('newKey')] },
  { name: 'agents', icon: 'bot', group: 'connect', below: /^.*$/, Page: AgentsPage },
  { name: 'health', icon: 'heart-pulse', group: 'operator', role: 'operator', Page: HealthPage },
  {
    name: 'accounts',
    icon: 'building-2',
    group: 'operator',
    role: 'operator',
    below: /^(new|[1-9]\d*)?$/,
    Page: AccountsPage,
    actions: [adding('newAccount', 'operator')],
  },
  {
    name: 'people',
    icon: 'user-round',
    group: 'operator',
    role: 'admin',
    below: /^(new|[1-9]\d*)?$/,
    Page: PeoplePage,
    actions: [adding('newPerson')],
  },
  {
    name: 'tokens',
    icon: 'shield-check',
    group: 'operator',
    role: 'operator',
    below: /^(new)?$/,
    Page: TokensPage,
    actions: [adding('newToken', 'operator')],
  },
  { name: 'audit', icon: 'history', group: 'operator', role: 'admin', Page: AuditPage },
  {
    name: 'me',
    icon: 'user-round',
    isInNavigation: false,
    below: /^(password)?$/,
    Page: MePage,
    actions: [{ name: 'changePassword', role: 'viewer', path: 'password' }],
  },
]

const RANKS: Role[] = ['viewer', 'admin', 'operator']

const isAtLeast = (role: Role, needed: Role) => RANKS.indexOf(role) >= RANKS.indexOf(needed)

/** Whether a role may use a page. */
export const hasPage = ({ role: needed = 'viewer' }: Page, role: Role) => isAtLeast(role, needed)

/** What a role may do on a page. */
export const actionsOf = ({ actions = [] }: Page, role: Role) => actions.filter((action) => isAtLeast(role, action.role))

/** The page of an address. Undefined: there is none, or none for this role. */
export const pageAt = ({ path: [name = 'overview', ...rest] }: Place, role: Role) =>
  PAGES.find((page) => page.name === name && (page.below ?? /^$/).test(rest.join('/')) && hasPage(page, role))
