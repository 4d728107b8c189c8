import { type Static, type TProperties, type TSchema, Type } from 'typebox'
import { refTo } from '../schemas.ts'
import { Button } from './buttons.ts'
import { EmailAddress, Latitude, LocationLabel, Longitude, MediaUrl, oneOfTypes, PhoneNumber, WebUrl } from './fields.ts'
import { CARD_TEXT_MAX_LENGTH, CARD_TITLE_MAX_LENGTH, MAX_BUTTONS, MAX_CARD_BUTTONS, MAX_PHONE_NUMBERS, TEXT_MAX_LENGTH } from './limits.ts'
import { cardRules, carouselCardRules, carouselRules, contactRules, uniqueButtonIds } from './rules.ts'

// The schemas of all content types. rules.ts has the rules that a schema cannot express; they are part of the schemas here.

export const CONTENT_TYPES = ['MESSAGE', 'AUDIO', 'VIDEO', 'FILE', 'CARD', 'CAROUSEL', 'CONTACT', 'LOCATION'] as const

function content<Kind extends (typeof CONTENT_TYPES)[number], Text extends TSchema, Data extends TSchema>(
  type: Kind,
  title: string,
  fields: { content: Text; data: Data; maxButtons?: number },
  options: { description?: string; rules?: unknown } = {},
) {
  const { maxButtons = MAX_BUTTONS } = fields
  return Type.Object(
    { type: Type.Literal(type), content: fields.content, buttons: buttons(maxButtons), data: fields.data },
    { title, additionalProperties: false, ...options },
  )
}

function buttons(maxItems: number) {
  return Type.Optional(Type.Array(refTo(Button), { maxItems, description: 'Button ids are unique in the whole message.' }))
}

function text(maxLength: number, description: string) {
  return Type.Optional(Type.String({ maxLength, description }))
}

function data<Fields extends TProperties>(fields: Fields) {
  return Type.Object(fields, { additionalProperties: false })
}

const noText = text(0, 'None; an empty text counts as absent.')
const noData = Type.Optional(Type.Object({}, { maxProperties: 0, description: 'None; an empty object counts as absent.' }))
const thumbnailUrl = Type.Optional(MediaUrl('A small preview image.'))

const card = {
  title: Type.Optional(Type.String({ minLength: 1, maxLength: CARD_TITLE_MAX_LENGTH })),
  imageUrl: Type.Optional(MediaUrl('The image.')),
}

function cardHeight(description: string) {
  return Type.Optional(Type.Enum(['SHORT', 'MEDIUM', 'TALL'], { default: 'MEDIUM', description }))
}

const CarouselCard = Type.Object(
  {
    ...card,
    content: text(CARD_TEXT_MAX_LENGTH, 'The description.'),
    height: cardHeight('The height of the image. `TALL` is not allowed if `cardWidth` is `SMALL`.'),
    buttons: buttons(MAX_CARD_BUTTONS),
  },
  { additionalProperties: false, description: 'At least one of `title`, `content` and `imageUrl`.', rules: carouselCardRules },
)

export const MessageContent = oneOfTypes(
  [
    content('MESSAGE', 'A text', { content: Type.String({ minLength: 1, maxLength: TEXT_MAX_LENGTH }), data: noData }),
    content('AUDIO', 'A sound', { content: noText, data: data({ audioUrl: MediaUrl('The sound.') }) }),
    content('VIDEO', 'A video', {
      content: text(CARD_TEXT_MAX_LENGTH, 'With a text, the video is sent as a card, since RCS files have no caption.'),
      data: data({ videoUrl: MediaUrl('The video.'), thumbnailUrl }),
    }),
    content('FILE', 'A file', {
      content: noText,
      data: data({
        fileUrl: MediaUrl('The file.'),
        fileName: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
        thumbnailUrl,
      }),
    }),
    content(
      'CARD',
      'A card',
      {
        content: text(CARD_TEXT_MAX_LENGTH, 'The description.'),
        data: Type.Optional(
          data({
            ...card,
            orientation: Type.Optional(Type.Enum(['VERTICAL', 'HORIZONTAL'], { default: 'VERTICAL' })),
            height: cardHeight('The height of the image; only with `VERTICAL`.'),
            imageAlignment: Type.Optional(Type.Enum(['LEFT', 'RIGHT'], { default: 'LEFT', description: 'Only with `HORIZONTAL`.' })),
          }),
        ),
        maxButtons: MAX_CARD_BUTTONS,
      },
      {
        description:
          'At least one of `content`, `title` and `imageUrl`. With `HORIZONTAL`, an image requires a title, a content or a button.',
        rules: cardRules,
      },
    ),
    content(
      'CAROUSEL',
      'Cards to scroll through',
      {
        content: noText,
        data: data({
          cardWidth: Type.Optional(Type.Enum(['SMALL', 'MEDIUM'], { default: 'MEDIUM' })),
          cards: Type.Array(CarouselCard, { minItems: 2, maxItems: 10 }),
        }),
      },
      { rules: carouselRules },
    ),
    content(
      'CONTACT',
      'A contact',
      {
        content: text(TEXT_MAX_LENGTH, 'The text above.'),
        data: data({
          name: Type.String({ minLength: 1, maxLength: 200 }),
          phoneNumbers: Type.Array(PhoneNumber, { minItems: 1, maxItems: MAX_PHONE_NUMBERS }),
          email: Type.Optional(EmailAddress),
          organization: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
          url: Type.Optional(WebUrl('A page.')),
        }),
        maxButtons: MAX_BUTTONS - 1,
      },
      {
        description: `Sent as a text of at most ${TEXT_MAX_LENGTH} characters, content and data together, with a button to call each number. These buttons count towards the maximum of ${MAX_BUTTONS}.`,
        rules: contactRules,
      },
    ),
    content(
      'LOCATION',
      'A place',
      {
        content: text(TEXT_MAX_LENGTH, 'The text above.'),
        data: data({ latitude: Latitude, longitude: Longitude, label: Type.Optional(LocationLabel) }),
        maxButtons: MAX_BUTTONS - 1,
      },
      { description: `Sent as a text with a button that opens a map. The button counts towards the maximum of ${MAX_BUTTONS}.` },
    ),
  ],
  { $id: 'MessageContent', rules: uniqueButtonIds },
)
export type MessageContent = Static<typeof MessageContent>

/** The schemas that other schemas refer to by name. */
export const CONTENT_SCHEMAS = [Button, MessageContent]
