import type { Tone } from '../../kit/display.tsx'
import type { IconName } from '../../kit/icon.tsx'
import { eventOf, LOOKS, REPLIES } from '../../timeline/looks.ts'
import type { Step, TimelineItem, WebhookAttempt } from '../../timeline/types.ts'
import { isAccepted } from '../../timeline/webhooks.ts'
import * as say from '../../words/en-phones.ts'
import * as timelineWords from '../../words/en-timeline.ts'
import type { LedgerEntry } from './ledger.ts'
import { ownTitle } from './phone.ts'

/** A line of what Herald saw, or of what the owner of the phone did. */
export type Line = { key: string; at: string; icon: IconName; tone: Tone; title: string; note: string; messageId?: string }

/** The steps of an action of the recipient show the event. Changes of state have their description instead. */
const ACTIONS: Step[] = ['clicked', 'opted-out', ...REPLIES]

/** `hosts`: of the endpoints, by their ids. */
export function lineOf(messageId: string, item: TimelineItem, index: number, hosts: Map<number, string>): Line {
  const { step, occurredAt: at, description, data } = item
  const key = `${messageId} ${index} ${step}`
  if (step === 'webhook-attempt') return { key, at, messageId, ...webhookLine(data as WebhookAttempt, hosts) }
  const [, tone, icon] = LOOKS[step]
  const [name] = timelineWords.steps[step]
  const title = typeof data.text === 'string' ? say.said(name, data.text) : name
  const note = ACTIONS.includes(step) ? [eventOf(step), data.payload ?? data.url].filter(Boolean).join(' · ') : description
  return { key, at, messageId, icon, tone, title, note }
}

type WebhookLine = Pick<Line, 'icon' | 'tone' | 'title' | 'note'>

function webhookLine({ status, type, attempt, endpointId }: WebhookAttempt, hosts: Map<number, string>): WebhookLine {
  return {
    icon: 'webhook',
    tone: isAccepted({ status }) ? 'good' : 'bad',
    title: say.webhook(hosts.get(endpointId) ?? timelineWords.webhook.endpoint(endpointId), status),
    note: say.webhookNote(type ?? '', attempt),
  }
}

/** What the owner did, as the network noted it. */
export function ownLine({ position, at, kind, detail }: LedgerEntry): Line | undefined {
  const title = ownTitle(detail?.event, detail?.text)
  if ((kind !== 'sent' && kind !== 'answered') || title === undefined) return undefined
  const note = kind === 'sent' ? say.byHand : say.byItself
  return { key: `phone ${position}`, at, icon: 'smartphone', tone: 'info', title, note }
}
