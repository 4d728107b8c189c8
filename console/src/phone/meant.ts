import { contactText } from '../../../server/src/content/text.ts'
import { type Fields, fieldsOf, isFilled, listOf } from '../../../server/src/content/untrusted.ts'
import { encodedUrl } from '../../../server/src/content/urls.ts'
import type { Content } from './content.ts'
import { cardMediaOf, type Drawn, type DrawnButton, type DrawnCard, type DrawnMedia, mediaOf } from './drawn.ts'
import { placeText } from './received.ts'

// What a phone will show of content that is not sent yet. A test compares it with what the network receives, for every type of content and
// button: the server's own translation is not part of the page, since its rules for phone numbers alone are larger than the whole console.

/** Whether the image at the address can be shown. */
type IsShown = (url: string) => boolean

/**
 * A phone also draws what is not finished yet: values of the wrong type count as absent, and missing ones as empty. Undefined: the type of the
 * content is unknown.
 */
export function meantOf(content: Content): Drawn
export function meantOf(content: unknown, isShown?: IsShown): Drawn | undefined
export function meantOf(message: unknown, isShown: IsShown = () => true): Drawn | undefined {
  const { type, content, ...fields } = fieldsOf(message)
  const data = fieldsOf(fields.data)
  const chips = listOf(fields.buttons).flatMap(buttonOf)
  switch (type) {
    case 'MESSAGE':
      return { is: 'text', text: textOf(content), chips }
    case 'AUDIO':
      return { is: 'file', file: fileOf(isShown, data.audioUrl), chips }
    case 'FILE':
      return { is: 'file', file: fileOf(isShown, data.fileUrl, data.thumbnailUrl), chips }
    case 'VIDEO': {
      const { videoUrl, thumbnailUrl } = data
      if (!isFilled(content)) return { is: 'file', file: fileOf(isShown, videoUrl, thumbnailUrl), chips }
      // RCS files have no caption, so a video with a text is a card.
      const media = fileOf(isShown, videoUrl, thumbnailUrl, cardMediaOf)
      return { is: 'card', card: { text: content, media, height: 'MEDIUM', buttons: [] }, chips }
    }
    case 'CARD': {
      if (data.orientation !== 'HORIZONTAL') return { is: 'card', card: cardOf({ ...data, content }, chips, isShown), chips: [] }
      const side = data.imageAlignment === 'RIGHT' ? 'RIGHT' : 'LEFT'
      return { is: 'card', card: cardOf({ ...data, content, height: undefined }, chips, isShown), side, chips: [] }
    }
    case 'CAROUSEL': {
      const cards = listOf(data.cards).map(fieldsOf)
      return {
        is: 'carousel',
        width: data.cardWidth === 'SMALL' ? 'SMALL' : 'MEDIUM',
        cards: cards.map((card) => cardOf(card, listOf(card.buttons).flatMap(buttonOf), isShown)),
        chips,
      }
    }
    case 'CONTACT':
      return { is: 'text', text: contactText(content, data), chips: [...callsOf(data.phoneNumbers), ...chips] }
    case 'LOCATION': {
      // RCS has no place: it is a text with a button that opens a map.
      const name = textOf(data.label) || placeText(numberOf(data.latitude), numberOf(data.longitude))
      return {
        is: 'text',
        text: textOf(content) || name,
        chips: [{ key: '$map', kind: 'map', text: shortened(name), opens: name }, ...chips],
      }
    }
    default:
      return undefined
  }
}

const textOf = (value: unknown) => (isFilled(value) ? value : '')
const numberOf = (value: unknown) => (typeof value === 'number' ? value : 0)

/** The address of an image as phones ask for it. A text that is no address yet stays as it is. */
export const shownUrl = (url: string) => (URL.canParse(url) ? encodedUrl(url) : url)

/** `as`: what the media is drawn as, if it is not a file. */
function fileOf(isShown: IsShown, address: unknown, thumbnail?: unknown, as = (media: DrawnMedia) => media): DrawnMedia {
  const { kind, url, thumbnailUrl } = as(mediaOf(shownUrl(textOf(address)), isFilled(thumbnail) ? shownUrl(thumbnail) : undefined))
  return {
    kind: kind === 'image' && !isShown(url) ? 'file' : kind,
    url,
    ...(thumbnailUrl !== undefined && isShown(thumbnailUrl) && { thumbnailUrl }),
  }
}

function cardOf({ title, content, imageUrl, height }: Fields, buttons: DrawnButton[], isShown: IsShown): DrawnCard {
  const hasImage = isFilled(imageUrl)
  return {
    ...(isFilled(title) && { title }),
    ...(isFilled(content) && { text: content }),
    ...(hasImage && { media: fileOf(isShown, imageUrl, undefined, cardMediaOf) }),
    height: hasImage && (height === 'SHORT' || height === 'TALL') ? height : 'MEDIUM',
    buttons,
  }
}

/** RCS has no contact: it is a text with a button to call each number. */
function callsOf(phoneNumbers: unknown): DrawnButton[] {
  const numbers = listOf(phoneNumbers).filter(isFilled).map(dialled)
  return numbers.map((number, index) => ({ key: `$call-${index + 1}`, kind: 'call', text: number, opens: number }))
}

/** None if the type of the button is unknown. */
function buttonOf(value: unknown): DrawnButton[] {
  const { id, text, type, latitude, longitude, ...fields } = fieldsOf(value)
  const shared = { key: textOf(id), text: textOf(text) }
  switch (type) {
    case 'quick_reply':
    case 'trigger_template':
      return [{ ...shared, kind: 'reply' }]
    case 'url':
      return [{ ...shared, kind: type, opens: shownUrl(textOf(fields.url)) }]
    case 'call':
      return [{ ...shared, kind: type, opens: dialled(textOf(fields.phoneNumber)) }]
    case 'calendar':
      return [{ ...shared, kind: type, opens: textOf(fields.title) }]
    case 'location':
      if (typeof latitude !== 'number' || typeof longitude !== 'number') return [{ ...shared, kind: 'share-location' }]
      return [{ ...shared, kind: 'map', opens: textOf(fields.label) || placeText(latitude, longitude) }]
    default:
      return []
  }
}

/** The digits of a number with its country code; viewers get most of them masked. The server also knows national prefixes. */
const dialled = (number: string) => `+${number.replace(/[^\d•]/g, '')}`

const LABEL_MAX_LENGTH = 25

function shortened(text: string): string {
  const characters = [...text]
  if (characters.length <= LABEL_MAX_LENGTH) return text
  const start = characters.slice(0, LABEL_MAX_LENGTH - 1).join('')
  return `${start.trimEnd()}…`
}
