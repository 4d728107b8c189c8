import type { MessageContent } from '../../content/content.ts'
import { contactText } from '../../content/text.ts'
import { encodedUrl } from '../../content/urls.ts'
import type { RcsMessage } from '../carrier.ts'
import { callSuggestion, coordinates, mapSuggestion, type PostbackOf, type Suggestion, suggestionsOf } from './suggestions.ts'

// Herald's content types as Google's AgentMessage.

type ContentInfo = { fileUrl: string; thumbnailUrl?: string }
type Media = { height?: string; contentInfo: ContentInfo }
type CardContent = { title?: string; description?: string; media?: Media; suggestions?: Suggestion[] }
type StandaloneCard = { cardOrientation: string; thumbnailImageAlignment?: string; cardContent: CardContent }
type CarouselCard = { cardWidth: string; cardContents: CardContent[] }
type ContentMessage = (
  | { text: string }
  | { contentInfo: ContentInfo }
  | { richCard: { standaloneCard: StandaloneCard } | { carouselCard: CarouselCard } }
) & { suggestions?: Suggestion[] }

// The network keeps a message for 15 days at most. Use a minute less: the clocks may differ, and the network permanently refuses a later
// expiry.
const MAX_LIFETIME_MS = 15 * 86_400_000 - 60_000

type AgentMessage = { contentMessage: ContentMessage; messageTrafficType: string; expireTime: string }

export function agentMessage({ content, traffic, expiresAt }: RcsMessage, postbackOf: PostbackOf): AgentMessage {
  return {
    contentMessage: contentMessage(content, postbackOf),
    messageTrafficType: traffic,
    expireTime: new Date(Math.min(expiresAt.getTime(), Date.now() + MAX_LIFETIME_MS)).toISOString(),
  }
}

function contentMessage(content: MessageContent, postbackOf: PostbackOf): ContentMessage {
  const chips = suggestionsOf(content.buttons, postbackOf)
  switch (content.type) {
    case 'MESSAGE':
      return { text: content.content, ...chips }
    case 'AUDIO':
      return { contentInfo: file(content.data.audioUrl), ...chips }
    case 'FILE':
      // A file has a name of its own only if it is uploaded first; otherwise its URL names it.
      return { contentInfo: file(content.data.fileUrl, content.data.thumbnailUrl), ...chips }
    case 'VIDEO':
      return { ...video(content), ...chips }
    case 'CARD':
      return { richCard: { standaloneCard: card(content, postbackOf) } }
    case 'CAROUSEL':
      return { richCard: { carouselCard: carousel(content, postbackOf) }, ...chips }
    case 'CONTACT':
      return contact(content, postbackOf, chips.suggestions)
    case 'LOCATION':
      return location(content, postbackOf, chips.suggestions)
  }
}

type Content<Type extends MessageContent['type']> = Extract<MessageContent, { type: Type }>

/** A file carries no caption, so a video with a text is a card. */
function video({ content, data }: Content<'VIDEO'>): ContentMessage {
  const contentInfo = file(data.videoUrl, data.thumbnailUrl)
  if (!content) return { contentInfo }
  const cardContent = { description: content, media: { height: 'MEDIUM', contentInfo } }
  return { richCard: { standaloneCard: { cardOrientation: 'VERTICAL', cardContent } } }
}

function card({ content, buttons, data = {} }: Content<'CARD'>, postbackOf: PostbackOf): StandaloneCard {
  const { title, imageUrl, orientation = 'VERTICAL', height = 'MEDIUM', imageAlignment = 'LEFT' } = data
  const isVertical = orientation === 'VERTICAL'
  return {
    cardOrientation: orientation,
    ...(!isVertical && { thumbnailImageAlignment: imageAlignment }),
    cardContent: {
      ...cardTexts(title, content),
      ...(imageUrl !== undefined && { media: { ...(isVertical && { height }), contentInfo: file(imageUrl) } }),
      ...suggestionsOf(buttons, postbackOf),
    },
  }
}

function carousel({ data: { cardWidth = 'MEDIUM', cards } }: Content<'CAROUSEL'>, postbackOf: PostbackOf): CarouselCard {
  return {
    cardWidth,
    cardContents: cards.map(({ title, content, imageUrl, height = 'MEDIUM', buttons }) => ({
      ...cardTexts(title, content),
      ...(imageUrl !== undefined && { media: { height, contentInfo: file(imageUrl) } }),
      ...suggestionsOf(buttons, postbackOf),
    })),
  }
}

/** RBM has no contact message: send a text with a button to call each number. */
function contact({ content, data }: Content<'CONTACT'>, postbackOf: PostbackOf, chips: Suggestion[] = []): ContentMessage {
  const calls = data.phoneNumbers.map((number, index) => callSuggestion(number, index, postbackOf))
  return { text: contactText(content, data), suggestions: [...calls, ...chips] }
}

/** RBM has no location message: send a text with a button that opens the map. */
function location({ content, data }: Content<'LOCATION'>, postbackOf: PostbackOf, chips: Suggestion[] = []): ContentMessage {
  const { label } = data
  return { text: content || label || coordinates(data), suggestions: [mapSuggestion(data, label, postbackOf), ...chips] }
}

function cardTexts(title: string | undefined, description: string | undefined): CardContent {
  return { ...(title !== undefined && { title }), ...(description && { description }) }
}

function file(fileUrl: string, thumbnailUrl?: string): ContentInfo {
  return { fileUrl: encodedUrl(fileUrl), ...(thumbnailUrl !== undefined && { thumbnailUrl: encodedUrl(thumbnailUrl) }) }
}
