import type { Button } from '../../phone/content.ts'
import type { ContentType } from './template.ts'
import { type Path, valueAt } from './values.ts'

// What the form has for each type of content and button. Which values are right is up to the check: a field is shown where it means something,
// and wherever it has a value.

export const FIELDS: Record<ContentType, string[]> = {
  MESSAGE: ['content'],
  CARD: ['imageUrl', 'orientation', 'height', 'imageAlignment', 'title', 'content'],
  CAROUSEL: ['cardWidth'],
  FILE: ['fileUrl', 'fileName', 'thumbnailUrl'],
  VIDEO: ['videoUrl', 'thumbnailUrl', 'content'],
  AUDIO: ['audioUrl'],
  CONTACT: ['name', 'phoneNumbers', 'email', 'organization', 'url', 'content'],
  LOCATION: ['latitude', 'longitude', 'label', 'content'],
}

export const CARD_FIELDS = ['imageUrl', 'height', 'title', 'content']

export const BUTTON_FIELDS: Record<Button['type'], string[]> = {
  quick_reply: ['payload'],
  url: ['url'],
  call: ['phoneNumber'],
  calendar: ['title', 'startTime', 'endTime', 'description'],
  location: ['latitude', 'longitude', 'label'],
  trigger_template: ['templateId'],
}

/** The fields that are no line of text. */
export const KINDS: Record<string, 'text' | 'image' | 'number' | 'list' | 'time' | 'template'> = {
  content: 'text',
  description: 'text',
  imageUrl: 'image',
  fileUrl: 'image',
  thumbnailUrl: 'image',
  latitude: 'number',
  longitude: 'number',
  phoneNumbers: 'list',
  startTime: 'time',
  endTime: 'time',
  templateId: 'template',
}

/** The values of fields that have only these. The one of a medium size, or the first one, is what phones do without a value. */
export const OPTIONS: Record<string, string[]> = {
  orientation: ['VERTICAL', 'HORIZONTAL'],
  height: ['SHORT', 'MEDIUM', 'TALL'],
  imageAlignment: ['LEFT', 'RIGHT'],
  cardWidth: ['SMALL', 'MEDIUM'],
}

/** The path of a field in a part of the content; a content as a whole has most of them in its data. */
export const pathOf = (name: string, at: Path): Path => (at.length > 0 || name === 'content' ? [...at, name] : ['data', name])

export function isShown(message: unknown, path: Path): boolean {
  const isHorizontal = valueAt(message, ['data', 'orientation']) === 'HORIZONTAL'
  return path.join() !== (isHorizontal ? 'data,height' : 'data,imageAlignment') || valueAt(message, path) !== undefined
}
