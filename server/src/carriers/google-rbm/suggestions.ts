import type { Button } from '../../content/buttons.ts'
import { encodedUrl } from '../../content/urls.ts'
import { normalisePhoneNumber } from '../../phone-numbers.ts'
import { parseTimestamp } from '../../time.ts'

// Buttons as RBM suggestions: a suggested reply or a suggested action.

type LatLong = { latitude: number; longitude: number }
type Tappable = { text: string; postbackData: string }
type Action =
  | { openUrlAction: { url: string } }
  | { dialAction: { phoneNumber: string } }
  | { viewLocationAction: { latLong: LatLong; label?: string } }
  | { shareLocationAction: Record<string, never> }
  | { createCalendarEventAction: { startTime: string; endTime: string; title: string; description?: string } }
export type Suggestion = { reply: Tappable } | { action: Tappable & Action }

/** The postback that a tap on this button will return. */
export type PostbackOf = (buttonId: string) => string

/** Omits `suggestions` if there are no buttons. */
export function suggestionsOf(buttons: Button[] | undefined, postbackOf: PostbackOf): { suggestions?: Suggestion[] } {
  return buttons === undefined || buttons.length === 0 ? {} : { suggestions: buttons.map((button) => suggestion(button, postbackOf)) }
}

function suggestion(button: Button, postbackOf: PostbackOf): Suggestion {
  const tappable = { text: button.text, postbackData: postbackOf(button.id) }
  switch (button.type) {
    // Herald looks up the payload or template when the tap arrives: a postback has no room for a payload of 2048 characters.
    case 'quick_reply':
    case 'trigger_template':
      return { reply: tappable }
    case 'url':
      return { action: { ...tappable, openUrlAction: { url: encodedUrl(button.url) } } }
    case 'call':
      return { action: { ...tappable, dialAction: { phoneNumber: dialled(button.phoneNumber) } } }
    case 'calendar':
      return { action: { ...tappable, createCalendarEventAction: calendarEvent(button) } }
    case 'location':
      return button.latitude === undefined || button.longitude === undefined
        ? { action: { ...tappable, shareLocationAction: {} } }
        : { action: { ...tappable, viewLocationAction: place({ latitude: button.latitude, longitude: button.longitude }, button.label) } }
  }
}

/** A button that calls a number. Ids of buttons that Herald adds begin with `$`, which a caller's id cannot contain. */
export function callSuggestion(phoneNumber: string, index: number, postbackOf: PostbackOf): Suggestion {
  const number = dialled(phoneNumber)
  return { action: { text: number, postbackData: postbackOf(`$call-${index + 1}`), dialAction: { phoneNumber: number } } }
}

export function mapSuggestion(latLong: LatLong, label: string | undefined, postbackOf: PostbackOf): Suggestion {
  const text = shortened(label || coordinates(latLong))
  return { action: { text, postbackData: postbackOf('$map'), viewLocationAction: place(latLong, label) } }
}

export function coordinates({ latitude, longitude }: LatLong): string {
  return `${latitude.toFixed(5)}, ${longitude.toFixed(5)}`
}

function place({ latitude, longitude }: LatLong, label: string | undefined) {
  return { latLong: { latitude, longitude }, ...(label && { label }) }
}

function calendarEvent({ startTime, endTime, title, description }: Extract<Button, { type: 'calendar' }>) {
  return { startTime: utc(startTime), endTime: utc(endTime), title, ...(description && { description }) }
}

/** Times are stored as the caller wrote them, in any form of ISO 8601; the network requires RFC 3339. */
function utc(timestamp: string): string {
  return (parseTimestamp(timestamp) as Date).toISOString()
}

function dialled(phoneNumber: string): string {
  return normalisePhoneNumber(phoneNumber) ?? phoneNumber
}

const LABEL_MAX_LENGTH = 25

function shortened(text: string): string {
  const characters = [...text]
  return characters.length <= LABEL_MAX_LENGTH
    ? text
    : `${characters
        .slice(0, LABEL_MAX_LENGTH - 1)
        .join('')
        .trimEnd()}…`
}
