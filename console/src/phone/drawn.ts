import type { CardWidth, MediaHeight } from './content.ts'

// What a phone shows of a message. received.ts makes it from what the network received, meant.ts from the content that a caller gives.

export type Platform = 'android' | 'iphone'

export type ButtonKind = 'reply' | 'url' | 'call' | 'calendar' | 'map' | 'share-location'

export type DrawnButton = {
  /** The postback data of a received button; the id of a button that was not sent. */
  key: string
  kind: ButtonKind
  text: string
  /** What a tap opens: an address, a number, a date or a place. */
  opens?: string
}

export type DrawnMedia = { kind: 'image' | 'video' | 'audio' | 'file'; url: string; thumbnailUrl?: string }

export type DrawnCard = { title?: string; text?: string; media?: DrawnMedia; height: MediaHeight; buttons: DrawnButton[] }

/** `chips`: the buttons below the message. */
export type Drawn = { chips: DrawnButton[] } & (
  | { is: 'text'; text: string }
  | { is: 'file'; file: DrawnMedia }
  | { is: 'card'; card: DrawnCard; side?: 'LEFT' | 'RIGHT' }
  | { is: 'carousel'; width: CardWidth; cards: DrawnCard[] }
)

/** The other end of a conversation, as the head of the screen shows it. */
export type Sender = { name: string; isVerified: boolean; color: string }

/** A line of a conversation. `at`: a time of day, such as 10:30. */
export type Entry =
  | { from: 'sender'; id: string; drawn: Drawn; at?: string }
  | { from: 'sms'; id: string; text: string; at?: string }
  | { from: 'owner'; id: string; text: string; icon?: 'map-pin' | 'file-text'; at?: string }

/** A tap on a button of an entry. */
export type OnTap = (button: DrawnButton, entryId: string) => void

export const isReply = ({ kind }: DrawnButton): boolean => kind === 'reply'

const KINDS: [DrawnMedia['kind'], RegExp][] = [
  ['image', /\.(?:jpe?g|png|gif|webp)$/i],
  ['video', /\.(?:mp4|m4v|mpe?g|webm|h263|mov|3gp)$/i],
  ['audio', /\.(?:mp3|m4a|aac|ogg|oga|opus|amr|wav)$/i],
]

/** The kind of a file, by its address. A phone asks the host; without an ending that says it, the drawn phone shows a plain file. */
export function mediaOf(url: string, thumbnailUrl?: string): DrawnMedia {
  const path = pathOf(url)
  const kind = KINDS.find(([, ending]) => ending.test(path))?.[0] ?? 'file'
  return { kind, url, ...(thumbnailUrl !== undefined && { thumbnailUrl }) }
}

/** The image or video of a card. The address of an image need not end with its kind, such as `/photo-1?w=600`. */
export const cardMediaOf = (media: DrawnMedia): DrawnMedia =>
  media.kind === 'file' && media.thumbnailUrl === undefined ? { ...media, kind: 'image' } : media

/** The name under which a phone shows a file: the end of its address. */
export function fileNameOf(url: string): string {
  const name = pathOf(url).split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** The kind of a file in letters, such as PDF. */
export function endingOf(url: string): string {
  return /\.(\w{1,5})$/.exec(pathOf(url))?.[1]?.toUpperCase() ?? ''
}

function pathOf(url: string): string {
  return url.replace(/^\w+:\/\/[^/]*/, '').replace(/[?#].*$/s, '')
}

const COLORS = ['#0f7a58', '#1f5fbf', '#7a3fb0', '#a8442a', '#8a5a00', '#0b6b7a', '#a12c6b', '#4b5563']

/** Herald does not know the colours of agents, so each name always gets the same one of these. */
export function colorOf(name: string): string {
  let sum = 0
  for (const character of name) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 9973
  return COLORS[sum % COLORS.length] as string
}
