import type { IconName } from '../../kit/icon.tsx'
import type { Button, Content } from '../../phone/content.ts'

export type Status = 'DRAFT' | 'APPROVED'
export type ContentType = Content['type']

/**
 * What a person writes. `message`: the content, which may be anything while it is written. `json`: how the person has typed it, until it is
 * changed in the form.
 */
export type Work = { name: string; description: string; basic: boolean; message: unknown; json?: string | undefined }

/** A template, as the API has it. */
export type Template = {
  id: number
  name: string
  description?: string
  basic: boolean
  status: Status
  message: Content
  createdAt: string
  updatedAt: string
}

export const NEW: Work = { name: '', description: '', basic: false, message: { type: 'MESSAGE', content: '' } }

export const workOf = ({ name, description = '', basic, message }: Template): Work => ({ name, description, basic, message })

/** The body of a request. An empty description counts as none. */
export const bodyOf = ({ name, description, basic, message }: Work, status: Status) => ({
  name,
  ...(description !== '' && { description }),
  basic,
  status,
  message,
})

/** The text as it was typed, while it says the same as the content, or is no JSON yet. */
export const jsonOf = ({ json, message }: Work): string => json ?? JSON.stringify(message, undefined, 2)

export function readJson(text: string): { value: unknown } | { message: string } {
  try {
    return { value: JSON.parse(text) }
  } catch (error) {
    return { message: (error as Error).message }
  }
}

/** Whether the person has typed something that is no JSON yet. */
export const isBroken = (work: Work) => 'message' in readJson(jsonOf(work))

export const TYPE_ICONS: Record<ContentType, IconName> = {
  MESSAGE: 'message-square',
  CARD: 'image',
  CAROUSEL: 'layout-template',
  FILE: 'file-text',
  VIDEO: 'video',
  AUDIO: 'audio-lines',
  CONTACT: 'user-round',
  LOCATION: 'map-pin',
}
export const TYPES = Object.keys(TYPE_ICONS) as ContentType[]

export const isContentType = (type: unknown): type is ContentType => typeof type === 'string' && Object.hasOwn(TYPE_ICONS, type)

export const BUTTON_ICONS: Record<Button['type'], IconName> = {
  url: 'external-link',
  quick_reply: 'message-circle-reply',
  call: 'phone',
  calendar: 'calendar-plus',
  location: 'map-pin',
  trigger_template: 'layout-template',
}
export const BUTTON_TYPES = Object.keys(BUTTON_ICONS) as Button['type'][]

type Texts = { title?: string; content?: string }

/** The first text of a content, for a list. */
export function firstTextOf({ content, data = {} }: Content): string {
  const { title, cards: [card] = [], name, label } = data as Texts & { cards?: Texts[]; name?: string; label?: string }
  return title || content || card?.title || card?.content || name || label || ''
}
