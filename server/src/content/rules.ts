import type { Violation } from '../errors.ts'
import { lengthOf } from '../text-length.ts'
import { invalid } from './fields.ts'
import { BASIC_MAX_BYTES, MAX_BUTTONS, MAX_PHONE_NUMBERS, TEXT_MAX_LENGTH } from './limits.ts'
import { contactText } from './text.ts'
import { type Fields, fieldsOf, isFilled, listOf } from './untrusted.ts'

// Rules that the schemas cannot express. A field may have any type here, since the schemas report wrong types separately.

export function cardRules(content: Fields): Violation[] {
  const { title, imageUrl, orientation, height, imageAlignment } = fieldsOf(content.data)
  const isHorizontal = orientation === 'HORIZONTAL'
  const hasMore = isFilled(content.content) || title !== undefined || listOf(content.buttons).length > 0
  return [
    ...somethingToShow(content.content, title, imageUrl, 'content, data.title and data.imageUrl'),
    ...(isHorizontal && height !== undefined ? [{ path: '/data/height', reason: 'is allowed only with the orientation VERTICAL' }] : []),
    ...(!isHorizontal && imageAlignment !== undefined
      ? [{ path: '/data/imageAlignment', reason: 'is allowed only with the orientation HORIZONTAL' }]
      : []),
    // The network refuses such a card.
    ...(isHorizontal && imageUrl !== undefined && !hasMore
      ? [{ path: '/data/imageUrl', reason: 'requires a title, a content or a button in a horizontal card' }]
      : []),
  ]
}

export function carouselCardRules({ title, content, imageUrl }: Fields): Violation[] {
  return somethingToShow(content, title, imageUrl, 'title, content and imageUrl')
}

function somethingToShow(content: unknown, title: unknown, imageUrl: unknown, names: string): Violation[] {
  return isFilled(content) || title !== undefined || imageUrl !== undefined ? [] : invalid(`must have at least one of ${names}`)
}

export function carouselRules({ data }: Fields): Violation[] {
  const { cardWidth, cards } = fieldsOf(data)
  if (cardWidth !== 'SMALL') return []
  return listOf(cards).flatMap((card, index) =>
    fieldsOf(card).height === 'TALL'
      ? [{ path: `/data/cards/${index}/height`, reason: 'must be SHORT or MEDIUM if cardWidth is SMALL' }]
      : [],
  )
}

/** A contact is sent as a text with a button for each number, so the network's limits for both apply. */
export function contactRules({ content, buttons, data }: Fields): Violation[] {
  const maxButtons = MAX_BUTTONS - Math.min(listOf(fieldsOf(data).phoneNumbers).length, MAX_PHONE_NUMBERS)
  const count = listOf(buttons).length
  const length = lengthOf(contactText(content, fieldsOf(data)))
  return [
    // The schema reports a larger number of buttons.
    ...(count > maxButtons && count < MAX_BUTTONS
      ? [{ path: '/buttons', reason: `must have at most ${maxButtons} items: each phone number adds one` }]
      : []),
    // If the content alone is too long, the schema reports it.
    ...(length > TEXT_MAX_LENGTH && !(isFilled(content) && lengthOf(content) > TEXT_MAX_LENGTH)
      ? invalid(`is sent as one text of ${length} characters; content and data together must have at most ${TEXT_MAX_LENGTH}`)
      : []),
  ]
}

/** Button ids must be unique in the whole message, including the cards of a carousel. */
export function uniqueButtonIds(content: Fields): Violation[] {
  const seen = new Set<unknown>()
  return buttonsOf(content).flatMap(({ button, path }) => {
    const { id } = fieldsOf(button)
    if (typeof id !== 'string' || !seen.has(id)) {
      seen.add(id)
      return []
    }
    return [{ path: `${path}/id`, reason: 'must be unique in the message; an earlier button has the same id' }]
  })
}

/** RCS Basic: a short text and nothing else. `path` is the path of the content. */
export function basicRules(content: unknown, path: string): Violation[] {
  const { type, content: text, buttons } = fieldsOf(content)
  const bytes = typeof text === 'string' ? Buffer.byteLength(text) : 0
  return [
    ...(type !== undefined && type !== 'MESSAGE' ? [{ path: `${path}/type`, reason: 'must be MESSAGE in Basic mode' }] : []),
    ...(listOf(buttons).length > 0 ? [{ path: `${path}/buttons`, reason: 'must be empty or absent in Basic mode' }] : []),
    ...(bytes > BASIC_MAX_BYTES
      ? [{ path: `${path}/content`, reason: `has ${bytes} bytes in UTF-8; Basic mode allows ${BASIC_MAX_BYTES}` }]
      : []),
  ]
}

/** Returns all buttons of a message, including the buttons of a carousel's cards, with their paths. */
export function buttonsOf(content: Fields): { button: unknown; path: string }[] {
  const cards = listOf(fieldsOf(content.data).cards)
  return [{ owner: content, path: '' }, ...cards.map((owner, index) => ({ owner, path: `/data/cards/${index}` }))].flatMap(
    ({ owner, path }) => listOf(fieldsOf(owner).buttons).map((button, index) => ({ button, path: `${path}/buttons/${index}` })),
  )
}
