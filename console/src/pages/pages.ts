import type { ComponentType } from 'preact'
import type { Place } from '../app/place.ts'
import type { IconName } from '../kit/icon.tsx'
import { words } from '../words/words.ts'
import { MessagesPage } from './messages/messages.tsx'
import { OverviewPage } from './overview/overview.tsx'
import { PhonesPage } from './phones/phones.tsx'
import { SendPage } from './send/send.tsx'
import { WebhooksPage } from './webhooks/webhooks.tsx'

type Page = {
  /** In the address. */
  name: string
  title: string
  icon: IconName
  /** Where the navigation shows it. */
  group: keyof typeof words.frame.groups | undefined
  /** Which parts the address may have behind the name, joined by slashes. All others lead to no page. */
  below: RegExp
  Page: ComponentType<{ place: Place }>
}

const NOTHING = /^$/

/** All pages, in the order of the navigation. */
export const PAGES: Page[] = [
  { name: 'overview', title: words.pages.overview, icon: 'house', group: undefined, below: NOTHING, Page: OverviewPage },
  { name: 'phones', title: words.pages.phones, icon: 'smartphone', group: undefined, below: NOTHING, Page: PhonesPage },
  { name: 'send', title: words.pages.send, icon: 'send', group: 'send', below: NOTHING, Page: SendPage },
  { name: 'messages', title: words.pages.messages, icon: 'message-square', group: 'follow', below: /^[^/]*$/, Page: MessagesPage },
  { name: 'webhooks', title: words.pages.webhooks, icon: 'webhook', group: 'connect', below: /^(new|[1-9]\d*)?$/, Page: WebhooksPage },
]

/** The page of an address. Undefined: there is none. */
export const pageAt = ({ path: [name = 'overview', ...rest] }: Place) =>
  PAGES.find((page) => page.name === name && page.below.test(rest.join('/')))
