import { type Static, Type } from 'typebox'
import type { Violation } from '../errors.ts'
import { readTimeZone } from '../time-zones.ts'
import type { Hours } from './opening.ts'

// The delivery window of a message or a campaign: the field of a request, and the text that is stored.

export const DAYS = ['MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', 'SUN'] as const
export type Day = (typeof DAYS)[number]
export const RECIPIENT = 'recipient'

const TIME = '(?:[01][0-9]|2[0-3]):[0-5][0-9]'
export const FROM = new RegExp(`^${TIME}$`)
export const TO = new RegExp(`^(?:${TIME}|24:00)$`)

export const DeliveryWindow = Type.Object(
  {
    from: Type.String({ pattern: FROM.source, description: 'a time of day from 00:00 to 23:59, such as 09:00' }),
    to: Type.String({ pattern: TO.source, description: 'a time of day from 00:00 to 24:00, such as 20:00' }),
    days: Type.Optional(
      Type.Array(Type.Enum([...DAYS]), {
        minItems: 1,
        maxItems: DAYS.length,
        description: 'The days on which the window begins. By default all.',
        rules: noDayTwice,
      }),
    ),
    timeZone: Type.Optional(
      Type.String({
        default: RECIPIENT,
        description:
          'The IANA name of a time zone, such as `Europe/Warsaw`; or `recipient`, the default: the zone of the member, or else all zones of the country of the number.',
        rules: zoneRules,
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      'When messages and their SMS may leave. Outside the window they wait until it opens, or expire. If `to` is before `from`, the window ends on the next day.',
    rules: hoursRules,
    examples: [{ from: '09:00', to: '20:00', days: ['MON', 'TUE', 'WED', 'THU', 'FRI'], timeZone: RECIPIENT }],
  },
)
export type DeliveryWindow = Static<typeof DeliveryWindow>

/** The window of a message, a campaign or an account, as the API shows it. */
export const ShownWindow = Type.Optional(
  Type.Object(
    {
      from: Type.String(),
      to: Type.String(),
      days: Type.Array(Type.Enum([...DAYS])),
      timeZone: Type.String({ description: 'The IANA name of a time zone, or `recipient`.' }),
    },
    { additionalProperties: false, description: 'When it may leave. Absent: at any time.' },
  ),
)

function hoursRules({ from, to }: Record<string, unknown>): Violation[] {
  return typeof from === 'string' && from === to ? [{ path: '/to', reason: 'must not be the same as from' }] : []
}

function noDayTwice(days: unknown[]): Violation[] {
  if (days.length > DAYS.length) return []
  return days.flatMap((day, index) => {
    const first = days.indexOf(day)
    return first < index ? [{ path: `/${index}`, reason: `is the same day as /days/${first}` }] : []
  })
}

function zoneRules(text: string): Violation[] {
  if (text === RECIPIENT || readTimeZone(text)) return []
  return [{ path: '', reason: 'must be recipient, or the IANA name of a time zone, such as Europe/Warsaw' }]
}

/** For operators. */
export function windowInWords({ from, to, days, timeZone }: Required<DeliveryWindow>): string {
  const on = days.length === DAYS.length ? '' : ` on ${days.join(', ')}`
  return `from ${from} to ${to}${on} ${timeZone === RECIPIENT ? 'in the zone of the recipient' : timeZone}`
}

/** The stored text, such as `09:00-20:00 12345 recipient`. Equal windows have the same text. */
export function textOf({ from, to, days = [...DAYS], timeZone = RECIPIENT }: DeliveryWindow): string {
  const numbers = days.map((day) => DAYS.indexOf(day) + 1).sort()
  return `${from}-${to} ${numbers.join('')} ${timeZone === RECIPIENT ? RECIPIENT : readTimeZone(timeZone)}`
}

/** Replaces the stored text of a row by the window. */
export function withWindow<Row extends Record<string, unknown>>(row: Row): Row {
  return typeof row.deliveryWindow === 'string' ? { ...row, deliveryWindow: windowOf(row.deliveryWindow) } : row
}

/** `text`: as stored. A message's text has the place of its recipient, too, which callers do not see. */
export function windowOf(text: string): Required<DeliveryWindow> {
  const { from, to, days, timeZone } = partsOf(text)
  return { from, to, days: [...days].map((number) => DAYS[Number(number) - 1] as Day), timeZone }
}

/** Where its clocks are: a zone, or the place of the recipient (places.ts), which only the text of a message has. */
export function hoursOf(text: string): Hours & { place: string } {
  const { from, to, days, timeZone, place = timeZone } = partsOf(text)
  return { from: minutesOf(from), to: minutesOf(to), days: [...days].map(Number), place }
}

/** The text for one recipient. */
export const textFor = (text: string, place: string) => (isOfRecipient(text) ? `${text} ${place}` : text)

export const isOfRecipient = (text: string) => partsOf(text).timeZone === RECIPIENT

function partsOf(text: string) {
  const [times = '', days = '', timeZone = '', place] = text.split(' ') as [string?, string?, string?, string?]
  const [from = '', to = ''] = times.split('-')
  return { from, to, days, timeZone, place }
}

function minutesOf(time: string): number {
  const [hours, minutes] = time.split(':')
  return Number(hours) * 60 + Number(minutes)
}
