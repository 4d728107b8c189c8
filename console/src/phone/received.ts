import type { CardWidth, MediaHeight } from './content.ts'
import { cardMediaOf, type Drawn, type DrawnButton, type DrawnCard, mediaOf } from './drawn.ts'

// Reads the messages that the network received, in the form of Google's API. The drawn phone shows these and not what was meant.

type LatLong = { latitude?: number; longitude?: number }
type Tappable = { text: string; postbackData: string }
type Action = Tappable & {
  openUrlAction?: { url: string }
  dialAction?: { phoneNumber: string }
  viewLocationAction?: { latLong?: LatLong; query?: string; label?: string }
  shareLocationAction?: object
  createCalendarEventAction?: { title: string; startTime: string; endTime: string }
}
type Suggestion = { reply?: Tappable; action?: Action }
type ContentInfo = { fileUrl: string; thumbnailUrl?: string }
type CardContent = {
  title?: string
  description?: string
  media?: { height?: MediaHeight; contentInfo: ContentInfo }
  suggestions?: Suggestion[]
}
type RichCard = {
  standaloneCard?: { cardOrientation?: string; thumbnailImageAlignment?: 'LEFT' | 'RIGHT'; cardContent: CardContent }
  carouselCard?: { cardWidth?: CardWidth; cardContents: CardContent[] }
}
export type AgentMessage = {
  contentMessage: { text?: string; contentInfo?: ContentInfo; richCard?: RichCard; suggestions?: Suggestion[] }
}

/** What a phone shows of a message that it received. */
export function receivedOf({ contentMessage: { text = '', contentInfo, richCard, suggestions = [] } }: AgentMessage): Drawn {
  const chips = suggestions.map(buttonOf)
  if (contentInfo !== undefined) return { is: 'file', file: mediaOf(contentInfo.fileUrl, contentInfo.thumbnailUrl), chips }
  if (richCard?.carouselCard !== undefined) {
    const { cardWidth = 'MEDIUM', cardContents } = richCard.carouselCard
    return { is: 'carousel', width: cardWidth, cards: cardContents.map(cardOf), chips }
  }
  if (richCard?.standaloneCard === undefined) return { is: 'text', text, chips }
  const { cardOrientation, thumbnailImageAlignment = 'LEFT', cardContent } = richCard.standaloneCard
  return { is: 'card', card: cardOf(cardContent), ...(cardOrientation === 'HORIZONTAL' && { side: thumbnailImageAlignment }), chips }
}

function cardOf({ title, description, media, suggestions = [] }: CardContent): DrawnCard {
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { text: description }),
    ...(media !== undefined && { media: cardMediaOf(mediaOf(media.contentInfo.fileUrl, media.contentInfo.thumbnailUrl)) }),
    height: media?.height ?? 'MEDIUM',
    buttons: suggestions.map(buttonOf),
  }
}

function buttonOf({ reply, action }: Suggestion): DrawnButton {
  const { text, postbackData: key } = (reply ?? action) as Tappable
  return { key, text, ...(action === undefined ? { kind: 'reply' } : actionOf(action)) }
}

function actionOf(action: Action): Pick<DrawnButton, 'kind' | 'opens'> {
  const { openUrlAction, dialAction, viewLocationAction, createCalendarEventAction } = action
  if (openUrlAction !== undefined) return { kind: 'url', opens: openUrlAction.url }
  if (dialAction !== undefined) return { kind: 'call', opens: dialAction.phoneNumber }
  if (createCalendarEventAction !== undefined) return { kind: 'calendar', opens: createCalendarEventAction.title }
  if (viewLocationAction === undefined) return { kind: 'share-location' }
  const { label, query, latLong = {} } = viewLocationAction
  // Protocol buffers omit zeros from JSON.
  return { kind: 'map', opens: label ?? query ?? placeText(latLong.latitude ?? 0, latLong.longitude ?? 0) }
}

export function placeText(latitude: number, longitude: number): string {
  return `${latitude.toFixed(5)}, ${longitude.toFixed(5)}`
}
