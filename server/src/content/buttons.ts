import { type Static, type TProperties, Type } from 'typebox'
import type { Violation } from '../errors.ts'
import { parseTimestamp } from '../time.ts'
import { invalid, Latitude, LocationLabel, Longitude, oneOfTypes, PhoneNumber, WebUrl } from './fields.ts'

const BUTTON_TYPES = ['url', 'quick_reply', 'call', 'calendar', 'location', 'trigger_template'] as const

function button<Kind extends (typeof BUTTON_TYPES)[number], Fields extends TProperties>(
  type: Kind,
  title: string,
  fields: Fields,
  options: { description?: string; rules?: unknown } = {},
) {
  return Type.Object(
    {
      id: Type.String({ pattern: '^[A-Za-z0-9._-]{1,64}$', description: '1 to 64 letters (A to Z, a to z), digits, `.`, `_` or `-`' }),
      type: Type.Literal(type),
      text: Type.String({ minLength: 1, maxLength: 25, description: 'The label.' }),
      ...fields,
    },
    { title, additionalProperties: false, ...options },
  )
}

export const Button = oneOfTypes(
  [
    button('url', 'Opens a web page', { url: WebUrl('The page.') }),
    button('quick_reply', 'Replies with its text', {
      payload: Type.String({ minLength: 1, maxLength: 2048, description: 'Returned to you when the button is tapped.' }),
    }),
    button('call', 'Calls a number', { phoneNumber: PhoneNumber }),
    button(
      'calendar',
      'Adds a date to the calendar',
      {
        title: Type.String({ minLength: 1, maxLength: 100 }),
        startTime: Type.String({ format: 'timestamp', description: 'ISO 8601 with `Z` or an offset.', examples: ['2026-01-31T08:00:00Z'] }),
        endTime: Type.String({ format: 'timestamp', description: 'Later than `startTime`.', examples: ['2026-01-31T09:00:00Z'] }),
        description: Type.Optional(Type.String({ maxLength: 500 })),
      },
      { rules: calendarRules },
    ),
    button(
      'location',
      'Opens a map, or asks for the recipient’s location',
      {
        latitude: Type.Optional(Latitude),
        longitude: Type.Optional(Longitude),
        label: Type.Optional(LocationLabel),
      },
      { description: 'With both coordinates it opens a map; with neither it asks for the recipient’s location.', rules: coordinateRules },
    ),
    button('trigger_template', 'Sends a template of the account', {
      templateId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'The template that a tap sends.' }),
    }),
  ],
  { $id: 'Button' },
)
export type Button = Static<typeof Button>

function calendarRules({ startTime, endTime }: Record<string, unknown>): Violation[] {
  const [start, end] = [startTime, endTime].map((time) => (typeof time === 'string' ? parseTimestamp(time) : undefined))
  return start !== undefined && end !== undefined && end <= start ? [{ path: '/endTime', reason: 'must be later than startTime' }] : []
}

function coordinateRules({ latitude, longitude, label }: Record<string, unknown>): Violation[] {
  if (latitude === undefined && longitude === undefined) {
    return label === undefined ? [] : [{ path: '/label', reason: 'requires latitude and longitude' }]
  }
  if (latitude !== undefined && longitude !== undefined) return []
  return invalid('must have both latitude and longitude, or neither to ask for the recipient’s location')
}
