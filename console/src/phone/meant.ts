import { contactText } from '../../../server/src/content/text.ts'
import { encodedUrl } from '../../../server/src/content/urls.ts'
import type { Button, CarouselCard, Content } from './content.ts'
import { cardMediaOf, type Drawn, type DrawnButton, type DrawnCard, mediaOf } from './drawn.ts'
import { placeText } from './received.ts'

// What a phone will show of content that is not sent yet. A test compares it with what the network receives, for every type of content and
// button: the server's own translation is not part of the page, since its rules for phone numbers alone are larger than the whole console.

export function meantOf(content: Content): Drawn {
  const chips = (content.buttons ?? []).map(buttonOf)
  switch (content.type) {
    case 'MESSAGE':
      return { is: 'text', text: content.content, chips }
    case 'AUDIO':
      return { is: 'file', file: fileOf(content.data.audioUrl), chips }
    case 'FILE':
      return { is: 'file', file: fileOf(content.data.fileUrl, content.data.thumbnailUrl), chips }
    case 'VIDEO':
      return videoOf(content, chips)
    case 'CARD':
      return cardOf(content, chips)
    case 'CAROUSEL':
      return { is: 'carousel', width: content.data.cardWidth ?? 'MEDIUM', cards: content.data.cards.map(carouselCardOf), chips }
    case 'CONTACT':
      return contactOf(content, chips)
    case 'LOCATION':
      return locationOf(content, chips)
  }
}

type Of<Type extends Content['type']> = Extract<Content, { type: Type }>

const fileOf = (url: string, thumbnailUrl?: string) =>
  mediaOf(tryEncoded(url), thumbnailUrl === undefined ? undefined : tryEncoded(thumbnailUrl))

/** A text that is no address yet stays as it is. */
const tryEncoded = (url: string) => (URL.canParse(url) ? encodedUrl(url) : url)

/** RCS files have no caption, so a video with a text is a card. */
function videoOf({ content, data }: Of<'VIDEO'>, chips: DrawnButton[]): Drawn {
  const { videoUrl, thumbnailUrl } = data
  if (!content) return { is: 'file', file: fileOf(videoUrl, thumbnailUrl), chips }
  const media = cardMediaOf(fileOf(videoUrl, thumbnailUrl))
  return { is: 'card', card: { text: content, media, height: 'MEDIUM', buttons: [] }, chips }
}

function cardOf({ content, data = {} }: Of<'CARD'>, buttons: DrawnButton[]): Drawn {
  const { orientation = 'VERTICAL', imageAlignment = 'LEFT', height = 'MEDIUM', title, imageUrl } = data
  const isVertical = orientation === 'VERTICAL'
  return {
    is: 'card',
    card: { ...partsOf(title, content, imageUrl), height: isVertical && imageUrl !== undefined ? height : 'MEDIUM', buttons },
    ...(!isVertical && { side: imageAlignment }),
    chips: [],
  }
}

function carouselCardOf({ title, content, imageUrl, height = 'MEDIUM', buttons = [] }: CarouselCard): DrawnCard {
  return { ...partsOf(title, content, imageUrl), height: imageUrl === undefined ? 'MEDIUM' : height, buttons: buttons.map(buttonOf) }
}

function partsOf(title: string | undefined, text: string | undefined, imageUrl: string | undefined) {
  return {
    ...(title !== undefined && { title }),
    ...(text && { text }),
    ...(imageUrl !== undefined && { media: cardMediaOf(fileOf(imageUrl)) }),
  }
}

/** RCS has no contact: it is a text with a button to call each number. */
function contactOf({ content, data }: Of<'CONTACT'>, chips: DrawnButton[]): Drawn {
  const calls = data.phoneNumbers.map((number, index): DrawnButton => {
    const digits = dialled(number)
    return { key: `$call-${index + 1}`, kind: 'call', text: digits, opens: digits }
  })
  return { is: 'text', text: contactText(content, data), chips: [...calls, ...chips] }
}

/** RCS has no place: it is a text with a button that opens a map. */
function locationOf({ content, data: { latitude, longitude, label } }: Of<'LOCATION'>, chips: DrawnButton[]): Drawn {
  const name = label || placeText(latitude, longitude)
  return { is: 'text', text: content || name, chips: [{ key: '$map', kind: 'map', text: shortened(name), opens: name }, ...chips] }
}

function buttonOf(button: Button): DrawnButton {
  const { id: key, text } = button
  switch (button.type) {
    case 'quick_reply':
    case 'trigger_template':
      return { key, kind: 'reply', text }
    case 'url':
      return { key, kind: 'url', text, opens: tryEncoded(button.url) }
    case 'call':
      return { key, kind: 'call', text, opens: dialled(button.phoneNumber) }
    case 'calendar':
      return { key, kind: 'calendar', text, opens: button.title }
    case 'location': {
      const { latitude, longitude, label } = button
      if (latitude === undefined || longitude === undefined) return { key, kind: 'share-location', text }
      return { key, kind: 'map', text, opens: label || placeText(latitude, longitude) }
    }
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
