import type { IconName } from '../../kit/icon.tsx'
import * as say from '../../words/en-phones.ts'
import type { PhoneSms } from './ledger.ts'

/** What a phone of the simulated network does by itself. */
type Behaviour = {
  rcs: 'accepted' | 'not-found' | 'refused' | 'busy-twice'
  delivers: boolean
  reads: boolean
  replies?: 'text' | 'tap' | 'stop'
  smsFails: boolean
}

type Last = {
  at: string
  kind: 'accepted' | 'refused' | 'sent' | 'answered'
  agentId: string
  messageId: string
  text: string | null
  detail?: { event?: string; [name: string]: unknown }
}

export type PhoneSummary = {
  phoneId: string
  phone: string
  online: boolean
  behaviour: Behaviour
  last: Last | null
  /** The last SMS, if it came after `last`. */
  lastSms?: PhoneSms
  /** The last three messages to it, also those that the network has not accepted. Absent in lists. */
  messageIds?: string[]
}

type Kind = keyof typeof say.behaviours

const ICONS: Record<Kind, IconName> = {
  reads: 'eye',
  neverReads: 'check',
  noRcs: 'message-square',
  refused: 'ban',
  off: 'clock',
  busy: 'refresh-cw',
  text: 'message-circle-reply',
  tap: 'mouse-pointer-click',
  noRcsNoSms: 'circle-x',
  stop: 'hand',
}

/** In the order of the last two digits, 00 to 09. */
export const KINDS = Object.keys(ICONS) as Kind[]

export function kindOf({ rcs, delivers, reads, replies, smsFails }: Behaviour): Kind {
  if (rcs === 'not-found') return smsFails ? 'noRcsNoSms' : 'noRcs'
  if (rcs === 'refused') return 'refused'
  if (rcs === 'busy-twice') return 'busy'
  if (!delivers) return 'off'
  return replies ?? (reads ? 'reads' : 'neverReads')
}

export const iconOf = (kind: Kind) => ICONS[kind]

const PHONE = /^\+[1-9]\d{6,14}$/

/** The number without spaces; undefined if it is no number with its country code. */
export function readNumber(text: string): string | undefined {
  const number = text.replace(/[\s()/.-]/g, '')
  return PHONE.test(number) ? number : undefined
}

/** The last text of a phone, as a list of conversations shows it. */
export function lastText({ last, lastSms }: PhoneSummary): string {
  if (lastSms !== undefined) return lastSms.text
  if (last === null) return say.nothing
  const { kind, text, detail } = last
  if (kind === 'refused') return say.refused
  if (kind === 'accepted') return text ?? say.aFile
  return ownTitle(detail?.event, text ?? '') ?? ''
}

/** What the owner of the phone did, by its event. */
export function ownTitle(event: string | undefined, text = ''): string | undefined {
  if (event?.startsWith('tapped')) return say.onPhone.tapped(text)
  if (event === 'text') return say.onPhone.wrote(text)
  if (event === 'location') return say.onPhone.place
  return event === 'file' ? say.onPhone.file : undefined
}
