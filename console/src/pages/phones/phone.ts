import type { IconName } from '../../kit/icon.tsx'
import { words } from '../../words/words.ts'
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

type Kind = keyof typeof words.phones.behaviours

const ICONS: Record<Kind, IconName> = {
  reads: 'eye',
  neverReads: 'check',
  noRcs: 'message-square',
  refused: 'ban',
  off: 'clock',
  busy: 'timer',
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
  if (last === null) return words.phones.nothing
  const { kind, text, detail } = last
  if (kind === 'refused') return words.phones.refused
  if (kind === 'accepted') return text ?? words.phones.aFile
  if (detail?.event?.startsWith('tapped')) return words.phones.youTapped(text ?? '')
  if (detail?.event === 'location') return words.phones.youSharedPlace
  return text === null ? words.phones.youSentFile : words.phones.you(text)
}
