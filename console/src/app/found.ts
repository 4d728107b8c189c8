import type { IconName } from '../kit/icon.tsx'
import { meaningsOf } from '../pages/messages/query.ts'
import { actionsOf, hasPage, PAGES } from '../pages/pages.ts'
import { actions, pages } from '../words/en.ts'
import * as frameWords from '../words/en-frame.ts'
import * as say from '../words/en-palette.ts'
import type { Known } from './known.ts'
import { linkHere } from './place.ts'
import type { Account } from './session.tsx'

/** A page, or an action whose address only names it. */
export type Found = { text: string; icon: IconName; href: string; run?: () => Promise<void> }

/** At most so many of each kind: one letter matches many names. */
const MOST = 8

/** Everything that a text can mean: pages and actions first, then what has the text in its name, then ids, numbers and references. */
export function findAll(account: Account, known: Known[][], signOut: () => Promise<void>, text: string): Found[] {
  const wanted = text.trim().toLowerCase()
  const has = ({ name, id }: Known) => wanted !== '' && (name.toLowerCase().includes(wanted) || id.toLowerCase() === wanted)
  const all = [
    ...named(account, signOut).filter((each) => each.text.toLowerCase().includes(wanted)),
    ...known.flatMap((kind) => kind.filter(has).slice(0, MOST)),
    ...meant(known, text),
  ]
  // What has a name is not offered again by its id.
  const links = all.map(({ href }) => href)
  return all.filter(({ href }, index) => links.indexOf(href) === index)
}

/** The pages and actions. Each page declares its actions. */
function named({ role }: Account, signOut: () => Promise<void>): Found[] {
  const own = PAGES.filter((page) => hasPage(page, role))
  const links = own.map(({ name, icon }) => ({ text: pages[name], icon, href: linkHere([name]) }))
  const toDo = own.flatMap((page) =>
    actionsOf(page, role).map((action) => ({
      text: actions[action.name],
      icon: action.path === 'new' ? ('plus' as const) : page.icon,
      href: linkHere([page.name, action.path]),
    })),
  )
  return [...links, ...toDo, { text: frameWords.signOut, icon: 'log-out', href: '#sign-out', run: signOut }]
}

/** What a text can be the id, the number or the reference of: a message, a campaign, a key, or an event that was posted to each endpoint. */
function meant(known: Known[][], text: string): Found[] {
  const { messageId, recipient, campaignId, clientReferenceId } = meaningsOf(text)
  const link = (icon: IconName, title: string, path: string[], query?: Record<string, string>) => ({
    text: title,
    icon,
    href: linkHere(path, query),
  })
  const endpoints = messageId ? known.flat().filter(({ icon }) => icon === 'webhook') : []
  return [
    clientReferenceId?.startsWith('hk_') && link('key-round', say.key(clientReferenceId), ['keys', clientReferenceId]),
    messageId && link('message-square', say.message(messageId), ['messages', messageId]),
    campaignId && link('megaphone', `${say.kinds.campaigns} ${campaignId}`, ['campaigns', campaignId]),
    recipient && link('smartphone', say.numberOf(recipient), ['messages'], { recipient }),
    campaignId && link('search', say.campaignOf(campaignId), ['messages'], { campaignId }),
    clientReferenceId && link('search', say.referenceOf(clientReferenceId), ['messages'], { clientReferenceId }),
    ...endpoints.map(({ id, name, icon }) => link(icon, say.eventAt(text.trim(), name), ['webhooks', id], { eventId: text.trim() })),
  ].filter((each) => typeof each === 'object')
}
