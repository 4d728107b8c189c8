import type { LogEvent } from '../../app/live.ts'
import type { Tone } from '../../kit/display.tsx'
import type { IconName } from '../../kit/icon.tsx'
import { words } from '../../words/words.ts'
import type { LedgerEntry } from './ledger.ts'

export type TimelineItem = {
  occurredAt: string
  step: keyof typeof words.phones.steps
  reason: string | null
  description: string
  data: Record<string, unknown>
}

/** A line of what Herald saw, or of what the owner of the phone did. */
export type Line = { key: string; at: string; icon: IconName; tone: Tone; title: string; note: string; messageId?: string }

/** The step of an event, as the timeline will have it. Undefined for events that are about no message. */
export function itemOf({ type, occurredAt, data }: LogEvent): TimelineItem | undefined {
  const step = STEPS_OF_EVENTS[type] ?? (type === 'message.replied' ? data.action : undefined)
  if (typeof step !== 'string' || !(step in words.phones.steps)) return undefined
  return { occurredAt, step: step as TimelineItem['step'], reason: null, description: type, data }
}

const STEPS_OF_EVENTS: Record<string, TimelineItem['step']> = {
  'message.sent': 'sent',
  'message.delivered': 'delivered',
  'message.read': 'read',
  'message.failed': 'failed',
  'message.expired': 'expired',
  'message.clicked': 'clicked',
  'recipient.opted_out': 'opted-out',
  'sms.sent': 'sms-sent',
  'sms.delivered': 'sms-delivered',
  'sms.failed': 'sms-failed',
}

type Look = [icon: IconName, tone: Tone]

const SENT: Look = ['send', 'plain']
const FAILED: Look = ['circle-x', 'bad']
const TAPPED: Look = ['mouse-pointer-click', 'info']
const REPLIED: Look = ['message-circle-reply', 'info']

const LOOKS: Partial<Record<TimelineItem['step'], Look>> = {
  accepted: ['check', 'plain'],
  'attempt-failed': ['rotate-ccw', 'warn'],
  'held-back': ['pause', 'warn'],
  sent: SENT,
  delivered: ['smartphone', 'good'],
  read: ['eye', 'good'],
  failed: FAILED,
  expired: ['clock', 'bad'],
  'sms-scheduled': ['clock', 'plain'],
  'sms-attempt-failed': ['rotate-ccw', 'warn'],
  'sms-skipped': ['ban', 'warn'],
  'sms-sent': SENT,
  'sms-delivered': ['message-square', 'good'],
  'sms-failed': FAILED,
  tapped: TAPPED,
  clicked: ['link', 'info'],
  wrote: REPLIED,
  'shared-location': ['map-pin', 'info'],
  'sent-file': ['file-text', 'info'],
  'opted-out': ['hand', 'warn'],
  'opted-in': ['check', 'good'],
}

const OTHER: Look = ['info', 'plain']

/** The event of an action. Changes of state have their description instead. */
const EVENTS: Partial<Record<TimelineItem['step'], string>> = {
  tapped: 'message.replied',
  clicked: 'message.clicked',
  wrote: 'message.replied',
  'shared-location': 'message.replied',
  'sent-file': 'message.replied',
  'opted-out': 'recipient.opted_out',
}

/** `hosts`: of the endpoints, by their ids. */
export function lineOf(messageId: string, item: TimelineItem, index: number, hosts: Map<number, string>): Line {
  const { step, occurredAt: at, description, data } = item
  const key = `${messageId} ${index} ${step}`
  if (step === 'webhook-attempt') return { key, at, messageId, ...webhookLine(data, hosts) }
  const [icon, tone] = LOOKS[step] ?? OTHER
  const text = typeof data.text === 'string' ? data.text : undefined
  const title = text === undefined ? words.phones.steps[step] : words.phones.said(words.phones.steps[step], text)
  const event = EVENTS[step]
  const note = event === undefined ? description : [event, data.payload ?? data.url].filter(Boolean).join(' · ')
  return { key, at, messageId, icon, tone, title, note }
}

type WebhookLine = Pick<Line, 'icon' | 'tone' | 'title' | 'note'>

function webhookLine({ status, type, attempt, endpointId }: Record<string, unknown>, hosts: Map<number, string>): WebhookLine {
  const id = Number(endpointId)
  const isGood = typeof status === 'number' && status >= 200 && status < 300
  return {
    icon: 'webhook',
    tone: isGood ? 'good' : 'bad',
    title: words.phones.webhook(hosts.get(id) ?? words.timeline.webhook.endpoint(id), typeof status === 'number' ? status : undefined),
    note: words.phones.webhookNote(String(type ?? ''), Number(attempt)),
  }
}

/** What the owner did, as the network noted it. */
export function ownLine({ position, at, kind, detail }: LedgerEntry): Line | undefined {
  const title = titleOf(detail?.event, detail?.text)
  if ((kind !== 'sent' && kind !== 'answered') || title === undefined) return undefined
  const note = kind === 'sent' ? words.phones.byHand : words.phones.byItself
  return { key: `phone ${position}`, at, icon: 'smartphone', tone: 'info', title, note }
}

function titleOf(event: string | undefined, text = ''): string | undefined {
  if (event?.startsWith('tapped')) return words.phones.onPhone.tapped(text)
  if (event === 'text') return words.phones.onPhone.wrote(text)
  if (event === 'location') return words.phones.onPhone.place
  return event === 'file' ? words.phones.onPhone.file : undefined
}
