import type { FieldViolation } from '../http/responses.ts'
import { between, type Check, choice, flag, isPresent, list, record, text, timestamp, timestampMs, uri, webAddress } from './checks.ts'

// Checks messages as Google does, with the limits of each field, according to Google's documentation.

const DAY_MS = 86_400_000
const MAX_AHEAD_MS = 15 * DAY_MS
/** The whole message as JSON. Google says 250 KB, which is 250,000 bytes or more; the smaller number is safe. */
const MAX_MESSAGE_BYTES = 250_000

const label = text(25)
const postbackData = text(2048)

const reply = record({ text: label, postbackData }, { required: ['text', 'postbackData'] })

const openUrlAction = record(
  {
    url: uri(2048),
    application: choice('BROWSER', 'WEBVIEW'),
    webviewViewMode: choice('FULL', 'HALF', 'TALL'),
    description: text(Infinity),
  },
  { required: ['url'] },
)
const dialAction = record(
  { phoneNumber: text(Infinity, { test: (value) => /^[\d+*#]+$/.test(value), says: 'a phone number' }) },
  { required: ['phoneNumber'] },
)
const latLong = record({ latitude: between(-90, 90), longitude: between(-180, 180) }, { required: ['latitude', 'longitude'] })
const viewLocationAction = record({ latLong, label: text(Infinity), query: text(Infinity) }, { one: ['latLong', 'query'] })
const createCalendarEventAction = record(
  { startTime: timestamp, endTime: timestamp, title: text(100), description: text(500) },
  { required: ['startTime', 'endTime', 'title'] },
)

const ACTIONS = ['openUrlAction', 'dialAction', 'viewLocationAction', 'shareLocationAction', 'createCalendarEventAction']
const action = record(
  {
    text: label,
    postbackData,
    fallbackUrl: uri(2048),
    openUrlAction,
    dialAction,
    viewLocationAction,
    shareLocationAction: record({}),
    createCalendarEventAction,
    // Google has withdrawn this action: it knows the field, and rejects it.
    composeAction: (_value, path, violations) => {
      violations.push({ field: path, description: `${path} is not available.` })
    },
  },
  { required: ['text', 'postbackData'], one: [...ACTIONS, 'composeAction'] },
)

const suggestion = record({ reply, action }, { one: ['reply', 'action'] })

const contentInfo = record({ fileUrl: webAddress, thumbnailUrl: webAddress, forceRefresh: flag }, { required: ['fileUrl'] })
const uploadedRbmFile = record({ fileName: text(Infinity), thumbnailName: text(Infinity) }, { required: ['fileName'] })
const FILES = ['contentInfo', 'uploadedRbmFile', 'fileName']

/** Only vertical cards have a height, and a narrow carousel has no tall media. */
function cardContent(heights: string[] | undefined): Check {
  const media = record(
    { height: choice(...(heights ?? ['SHORT', 'MEDIUM', 'TALL'])), contentInfo, uploadedRbmFile, fileName: text(Infinity) },
    { one: FILES, required: heights === undefined ? [] : ['height'] },
  )
  return record(
    { title: text(200), description: text(2000), media, suggestions: list(suggestion, 0, 4) },
    {
      rule: (card, path, violations) => {
        if (['title', 'description', 'media'].some((name) => isPresent(card, name))) return
        violations.push({ field: path, description: `${path} must have a title, a description or media.` })
      },
    },
  )
}

const verticalCard = cardContent(['SHORT', 'MEDIUM', 'TALL'])
const narrowCard = cardContent(['SHORT', 'MEDIUM'])
const horizontalCard = cardContent(undefined)

/** A horizontal card with media needs something beside the picture. */
function checkHorizontalCard(card: Record<string, unknown>, path: string, violations: FieldViolation[]): void {
  if (!isPresent(card, 'media')) return
  const beside =
    isPresent(card, 'title') || isPresent(card, 'description') || (Array.isArray(card.suggestions) && card.suggestions.length > 0)
  if (!beside) violations.push({ field: path, description: `${path} with media must have a title, a description or suggestions.` })
}

// The content of a card depends on the kind of card, so the rule of the card checks it.
const anything: Check = () => {}

const standaloneCard = record(
  { cardOrientation: choice('VERTICAL', 'HORIZONTAL'), thumbnailImageAlignment: choice('LEFT', 'RIGHT'), cardContent: anything },
  {
    required: ['cardOrientation', 'cardContent'],
    rule: (card, path, violations) => {
      const isHorizontal = card.cardOrientation === 'HORIZONTAL'
      const before = violations.length
      const check = isHorizontal ? horizontalCard : verticalCard
      check(card.cardContent, `${path}.cardContent`, violations)
      if (isHorizontal && violations.length === before) {
        checkHorizontalCard(card.cardContent as Record<string, unknown>, `${path}.cardContent`, violations)
      }
    },
  },
)

const narrowCards = list(narrowCard, 2, 10)
const wideCards = list(verticalCard, 2, 10)
const carouselCard = record(
  { cardWidth: choice('SMALL', 'MEDIUM'), cardContents: anything },
  {
    required: ['cardWidth', 'cardContents'],
    rule: (carousel, path, violations) => {
      const check = carousel.cardWidth === 'SMALL' ? narrowCards : wideCards
      check(carousel.cardContents, `${path}.cardContents`, violations)
    },
  },
)

const contentMessage = record(
  {
    text: text(3072),
    contentInfo,
    uploadedRbmFile,
    fileName: text(Infinity),
    richCard: record({ standaloneCard, carouselCard }, { one: ['standaloneCard', 'carouselCard'] }),
    suggestions: list(suggestion, 0, 11),
  },
  { one: ['text', ...FILES, 'richCard'] },
)

const ttl = text(Infinity, { test: (value) => /^\d{1,12}(\.\d{1,9})?s$/.test(value), says: 'a duration in seconds, such as "3600s"' })

const agentMessage = record(
  {
    contentMessage,
    messageTrafficType: choice(
      'MESSAGE_TRAFFIC_TYPE_UNSPECIFIED',
      'AUTHENTICATION',
      'TRANSACTION',
      'PROMOTION',
      'SERVICEREQUEST',
      'ACKNOWLEDGEMENT',
    ),
    expireTime: timestamp,
    ttl,
    // Output only: Google ignores them.
    name: anything,
    sendTime: anything,
  },
  {
    required: ['contentMessage'],
    rule: (message, _path, violations) => {
      if (isPresent(message, 'expireTime') && isPresent(message, 'ttl')) {
        violations.push({ field: 'ttl', description: 'A message may have expireTime or ttl, not both.' })
        return
      }
      const aheadMs = lifetimeMs(message, Date.now())
      if (aheadMs === undefined) return
      const field = isPresent(message, 'ttl') ? 'ttl' : 'expireTime'
      if (aheadMs <= 0) violations.push({ field, description: `${field} must be in the future.` })
      if (aheadMs > MAX_AHEAD_MS) violations.push({ field, description: `${field} must not be more than 15 days ahead.` })
    },
  },
)

export type AgentMessage = {
  contentMessage: Record<string, unknown>
  expireTime?: string
  ttl?: string
}

function lifetimeMs(message: Record<string, unknown>, now: number): number | undefined {
  if (isPresent(message, 'ttl')) return Number.parseFloat(message.ttl as string) * 1000
  const expiresAt = timestampMs(message.expireTime)
  return expiresAt === undefined ? undefined : expiresAt - now
}

/** Returns when the message expires, in milliseconds since 1970; null if it never does. */
export function expiryOf(message: AgentMessage): number | null {
  const now = Date.now()
  const aheadMs = lifetimeMs(message, now)
  return aheadMs === undefined ? null : Math.round(now + aheadMs)
}

/** Returns the violations of a message; none if Google would accept it. */
export function checkAgentMessage(value: unknown, bytes: number): FieldViolation[] {
  const violations: FieldViolation[] = []
  if (bytes > MAX_MESSAGE_BYTES) {
    violations.push({ field: 'contentMessage', description: `The message must not be larger than ${MAX_MESSAGE_BYTES} bytes as JSON.` })
  }
  agentMessage(value, '', violations)
  return violations
}
