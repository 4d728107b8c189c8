import { Type } from 'typebox'
import { lengthOf } from '../text-length.ts'
import {
  BASIC_MAX_BYTES,
  CARD_TEXT_MAX_LENGTH,
  CARD_TITLE_MAX_LENGTH,
  MAX_BUTTONS,
  MAX_CARD_BUTTONS,
  MAX_PHONE_NUMBERS,
  TEXT_MAX_LENGTH,
} from './limits.ts'
import { buttonsOf } from './rules.ts'
import { contactText } from './text.ts'
import { type Fields, fieldsOf, isFilled, listOf } from './untrusted.ts'

// Describes what content means for phones and for billing, as far as possible for invalid content too: the caller of a text that is 80
// characters too long needs its length.

const TextFact = Type.Object(
  {
    path: Type.String({ description: 'The path of the text in the body.' }),
    characters: Type.Integer(),
    maxCharacters: Type.Integer(),
    bytes: Type.Integer({ description: 'In UTF-8.' }),
    maxBytes: Type.Optional(Type.Integer({ description: 'In Basic mode only.' })),
  },
  { additionalProperties: false },
)

const ButtonsFact = Type.Object(
  { path: Type.String({ description: 'The path of the buttons in the body.' }), count: Type.Integer(), maxCount: Type.Integer() },
  { additionalProperties: false },
)

const CardFact = Type.Object(
  {
    path: Type.String({ description: 'The path of the card in the body.' }),
    characters: Type.Integer({ description: 'Of its title and text together.' }),
    iphoneCharacters: Type.Integer({ description: 'About how many of them iPhones show at most.' }),
  },
  { additionalProperties: false },
)

export const ContentFacts = Type.Object(
  {
    texts: Type.Array(TextFact, {
      description:
        'The lengths of the content and of the titles and texts of cards, with their limits. A contact counts as the text it is sent as.',
    }),
    buttons: Type.Array(ButtonsFact, { description: 'How many buttons the message and each of its cards have, with their limits.' }),
    cards: Type.Array(CardFact, { description: 'The cards, and how much of their texts iPhones show.' }),
    billingClass: Type.Enum(['basic', 'single'], {
      description: `Outside the US: \`basic\` for a text of at most ${BASIC_MAX_BYTES} bytes and nothing else, \`single\` for all else.`,
    }),
    features: Type.Array(Type.String(), { description: 'The RCS features that a phone must support, by their names on the RCS platform.' }),
    iphone: Type.Array(
      Type.Object({ path: Type.String(), note: Type.String() }, { additionalProperties: false, description: 'A difference and its path.' }),
      { description: 'What iPhones show differently from Android phones.' },
    ),
  },
  { $id: 'ContentFacts', additionalProperties: false },
)

type Note = { path: string; note: string }

/** Returns the facts; undefined if the content type is unknown. `path` is the path of the content in the body. */
export function contentFacts(message: unknown, basic: boolean, path: string) {
  const content = fieldsOf(message)
  const textLimit = TEXT_LIMITS.get(content.type)
  if (textLimit === undefined) return undefined
  return {
    texts: textsOf(content, textLimit).map(({ text, at, max }) => ({
      path: `${path}${at}`,
      characters: lengthOf(text),
      maxCharacters: max,
      bytes: Buffer.byteLength(text),
      ...(basic && { maxBytes: BASIC_MAX_BYTES }),
    })),
    buttons: buttonCounts(content).map(({ path: at, ...counts }) => ({ path: `${path}${at}`, ...counts })),
    cards: cardsOf(content).map(({ at, title, text }) => ({
      path: `${path}${at}`,
      characters: lengthOf(`${title}${text}`),
      iphoneCharacters: CARD_TEXT_SHOWN,
    })),
    billingClass: billingClass(content),
    features: featuresOf(content),
    iphone: iphoneNotes(content).map(({ path: at, note }) => ({ path: `${path}${at}`, note })),
  }
}

// Maps, not objects: the keys come from outside and may be "constructor".
const TEXT_LIMITS = new Map<unknown, number>([
  ['MESSAGE', TEXT_MAX_LENGTH],
  ['AUDIO', 0],
  ['VIDEO', CARD_TEXT_MAX_LENGTH],
  ['FILE', 0],
  ['CARD', CARD_TEXT_MAX_LENGTH],
  ['CAROUSEL', 0],
  ['CONTACT', TEXT_MAX_LENGTH],
  ['LOCATION', TEXT_MAX_LENGTH],
])

/** Returns the texts to measure. A contact is sent as one text, so it is measured as one. */
function textsOf({ type, content, data }: Fields, limit: number): { text: string; at: string; max: number }[] {
  if (type === 'CONTACT') return [{ text: contactText(content, fieldsOf(data)), at: '', max: limit }]
  const { title, cards } = fieldsOf(data)
  return [
    { text: content, at: '/content', max: limit },
    { text: title, at: '/data/title', max: CARD_TITLE_MAX_LENGTH },
    ...listOf(cards).flatMap((card, index) => [
      { text: fieldsOf(card).title, at: `/data/cards/${index}/title`, max: CARD_TITLE_MAX_LENGTH },
      { text: fieldsOf(card).content, at: `/data/cards/${index}/content`, max: CARD_TEXT_MAX_LENGTH },
    ]),
  ].filter((found): found is { text: string; at: string; max: number } => typeof found.text === 'string')
}

function buttonCounts({ type, buttons, data }: Fields): { path: string; count: number; maxCount: number }[] {
  const { cards, phoneNumbers } = fieldsOf(data)
  return [
    { path: '/buttons', count: listOf(buttons).length, maxCount: maxButtons(type, listOf(phoneNumbers).length) },
    ...listOf(cards).map((card, index) => ({
      path: `/data/cards/${index}/buttons`,
      count: listOf(fieldsOf(card).buttons).length,
      maxCount: MAX_CARD_BUTTONS,
    })),
  ]
}

/** The phone numbers of a contact and the map of a place are buttons, too. */
function maxButtons(type: unknown, phoneNumbers: number): number {
  if (type === 'CARD') return MAX_CARD_BUTTONS
  if (type === 'LOCATION') return MAX_BUTTONS - 1
  return type === 'CONTACT' ? MAX_BUTTONS - Math.min(Math.max(phoneNumbers, 1), MAX_PHONE_NUMBERS) : MAX_BUTTONS
}

/** The cards that phones show, with their titles and texts. */
function cardsOf(message: Fields): { at: string; title: string; text: string }[] {
  const { type, content, data } = message
  const { title, cards } = fieldsOf(data)
  if (type === 'CARD') return [{ at: '', title: textOf(title), text: textOf(content) }]
  if (isVideoCard(message)) return [{ at: '', title: '', text: textOf(content) }]
  if (type !== 'CAROUSEL') return []
  return listOf(cards).map((card, index) => {
    const fields = fieldsOf(card)
    return { at: `/data/cards/${index}`, title: textOf(fields.title), text: textOf(fields.content) }
  })
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

function billingClass({ type, content, buttons }: Fields): 'basic' | 'single' {
  const isShort = typeof content === 'string' && Buffer.byteLength(content) <= BASIC_MAX_BYTES
  return type === 'MESSAGE' && isShort && listOf(buttons).length === 0 ? 'basic' : 'single'
}

const FEATURE_OF_CONTENT = new Map<unknown, string>([
  ['CARD', 'RICHCARD_STANDALONE'],
  ['CAROUSEL', 'RICHCARD_CAROUSEL'],
  ['CONTACT', 'ACTION_DIAL'],
  ['LOCATION', 'ACTION_VIEW_LOCATION'],
])
const FEATURE_OF_BUTTON = new Map<unknown, string>([
  ['url', 'ACTION_OPEN_URL'],
  ['call', 'ACTION_DIAL'],
  ['calendar', 'ACTION_CREATE_CALENDAR_EVENT'],
])

function featuresOf(content: Fields): string[] {
  const ofButtons = buttonsOf(content).map(({ button }) => {
    const { type, latitude } = fieldsOf(button)
    if (type === 'location') return latitude === undefined ? 'ACTION_SHARE_LOCATION' : 'ACTION_VIEW_LOCATION'
    return FEATURE_OF_BUTTON.get(type)
  })
  const features = [isVideoCard(content) ? 'RICHCARD_STANDALONE' : FEATURE_OF_CONTENT.get(content.type), ...ofButtons]
  return [...new Set(features.filter((feature) => feature !== undefined))].sort()
}

/** RCS files have no caption, so a video with a text is sent as a card. */
function isVideoCard({ type, content }: Fields): boolean {
  return type === 'VIDEO' && isFilled(content)
}

function iphoneNotes(content: Fields): Note[] {
  switch (content.type) {
    case 'MESSAGE':
    case 'LOCATION':
      return linkNotes(content.content, '/content')
    case 'CONTACT':
      return linkNotes(contactText(content.content, fieldsOf(content.data)), '')
    case 'FILE':
      return gifNotes(fieldsOf(content.data).fileUrl, '/data/fileUrl')
    case 'VIDEO':
      return isVideoCard(content) ? cardTextNotes({ content: content.content }, '/data', '') : []
    case 'CARD':
      return singleCardNotes(content)
    default:
      return carouselNotes(content)
  }
}

function singleCardNotes({ content, buttons, data }: Fields): Note[] {
  const { orientation, imageUrl } = fieldsOf(data)
  const isCropped = orientation === 'HORIZONTAL' && imageUrl !== undefined
  return [
    ...(isCropped ? [{ path: '/data/orientation', note: 'iPhones crop the image of a horizontal card; VERTICAL is safe.' }] : []),
    ...cardNotes({ ...fieldsOf(data), content, buttons }, '/data', ''),
  ]
}

function carouselNotes(content: Fields): Note[] {
  const { cardWidth, cards } = fieldsOf(content.data)
  return [
    ...(cardWidth === 'SMALL' ? [{ path: '/data/cardWidth', note: 'iPhones show carousels best with the width MEDIUM.' }] : []),
    ...(listOf(content.buttons).length > 0
      ? [{ path: '/buttons', note: 'iPhones may omit buttons beside a carousel; buttons on cards are shown.' }]
      : []),
    ...listOf(cards).flatMap((card, index) => cardNotes(fieldsOf(card), `/data/cards/${index}`, `/data/cards/${index}`)),
  ]
}

const LINK = /https?:\/\/\S+/gi
const CARD_TEXT_SHOWN = 150
const REPLY_BUTTONS: unknown[] = ['quick_reply', 'trigger_template']

/** `at` is the path of title, image and height, `textAt` that of text and buttons. */
function cardNotes(card: Fields, at: string, textAt: string): Note[] {
  const types = listOf(card.buttons).map((button) => fieldsOf(button).type)
  const replies = types.filter((type) => REPLY_BUTTONS.includes(type)).length
  const hasManyButtons = replies > 3 || types.length - replies > 1
  return [
    ...(card.height !== undefined ? [{ path: `${at}/height`, note: 'iPhones show all cards with the same height and ignore this.' }] : []),
    ...gifNotes(card.imageUrl, `${at}/imageUrl`),
    ...cardTextNotes(card, at, textAt),
    ...(hasManyButtons ? [{ path: `${textAt}/buttons`, note: 'Up to three replies and one other button look the same everywhere.' }] : []),
  ]
}

function cardTextNotes({ title, content }: Fields, at: string, textAt: string): Note[] {
  const [titleText, text] = [textOf(title), textOf(content)]
  const note = `Title and text over about ${CARD_TEXT_SHOWN} characters can be cut off.`
  return [
    ...(text.search(LINK) >= 0
      ? [{ path: `${textAt}/content`, note: 'A link in the text of a card is plain text; use a url button.' }]
      : []),
    ...(lengthOf(`${titleText}${text}`) > CARD_TEXT_SHOWN ? [{ path: text === '' ? `${at}/title` : `${textAt}/content`, note }] : []),
  ]
}

function gifNotes(address: unknown, path: string): Note[] {
  const isGif = typeof address === 'string' && /\.gif(?:[?#]|$)/i.test(address)
  return isGif ? [{ path, note: 'iPhones show a GIF as a still image.' }] : []
}

function linkNotes(text: unknown, path: string): Note[] {
  const links = typeof text === 'string' ? [...text.matchAll(LINK)] : []
  const last = links.at(-1)
  if (last === undefined) return []
  const isOnlyAndLast = links.length === 1 && last.index + last[0].length === (text as string).trimEnd().length
  return isOnlyAndLast ? [] : [{ path, note: 'iPhones show a link preview only if there is one link, at the end of the text.' }]
}
