import { phoneOf } from '../state/state.ts'
import type { Store } from '../state/store.ts'
import { allPairs } from '../state/table.ts'
import type { Message, Messages, Received } from './messages.ts'

const time = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

type Sms = { key: string; segments: (Received | undefined)[] }

/** The numbers that have received anything, in order, after the given one. */
export function listPhones({ state }: Store, after: string, limit: number): string[] {
  const phones: string[] = []
  for (const [low, high] of allPairs(state.phones)) {
    const phone = phoneOf(low, high)
    if (phone > after) phones.push(phone)
  }
  return phones.sort((one, other) => (one < other ? -1 : 1)).slice(0, limit)
}

/** What a phone received, in order, with the segments of an SMS joined as the phone shows them. */
export function viewPhone(messages: Messages, phone: string, after: number, limit: number) {
  const page = messages
    .toPhone(phone)
    .filter(({ message }) => message.id > after)
    .slice(0, limit)
  const shown: (ReturnType<typeof viewRcs> | Sms)[] = []
  for (const received of page) {
    if (received.message.channel !== 'sms') shown.push(viewRcs(received))
    else addSegment(shown, received)
  }
  const views = shown.map((entry) => ('segments' in entry ? viewSms(entry) : entry))
  return { phone, messages: views, next: page.length === limit ? (page.at(-1)?.message.id ?? null) : null }
}

/** The last SMS of a phone, in order. */
export function viewSmsOf(messages: Messages, phone: string, limit: number) {
  const shown: Sms[] = []
  for (const received of messages.toPhone(phone)) if (received.message.channel === 'sms') addSegment(shown, received)
  return { phone, messages: shown.slice(-limit).map(viewSms) }
}

/** The RCS messages with this id, of these agents, or of all. */
export function viewMessage(messages: Messages, messageId: string, agents: Set<string>) {
  const found = messages.withId(messageId).filter(({ channel, origin }) => channel === 'rcs' && (agents.size === 0 || agents.has(origin)))
  return { messages: found.map((message) => viewRcs({ message, body: messages.bodyOf(message) })) }
}

function viewRcs({ message, body }: Received) {
  const content = JSON.parse(body)
  return {
    seq: message.id,
    channel: message.channel,
    messageId: message.messageId,
    agentId: message.origin,
    ...(message.channel === 'rcs' ? { agentMessage: content } : { agentEvent: content }),
    ...timesOf(message),
    attempts: message.attempts,
  }
}

function timesOf(message: Message) {
  return {
    acceptedAt: time(message.acceptedAt),
    deliveredAt: time(message.deliveredAt),
    readAt: time(message.readAt),
    revokedAt: time(message.revokedAt),
    expiredAt: time(message.expiredAt),
    failedAt: time(message.failedAt),
    expiresAt: time(message.expiresAt),
  }
}

/** References repeat after 256 messages: a segment belongs to the newest SMS with its reference that lacks it. */
function addSegment(shown: (object | Sms)[], received: Received): void {
  const { segment, origin } = received.message
  const { reference, total, number } = segment ?? { reference: 0, total: 1, number: 1 }
  const key = segment === undefined ? '' : `${origin}\n${reference}\n${total}`
  const open = shown.findLast((entry): entry is Sms => 'segments' in entry && key !== '' && entry.key === key)
  if (open !== undefined && open.segments[number - 1] === undefined) {
    open.segments[number - 1] = received
    return
  }
  const segments: (Received | undefined)[] = new Array(total).fill(undefined)
  segments[number - 1] = received
  shown.push({ key, segments })
}

function viewSms({ segments }: Sms) {
  const there = segments.filter((segment) => segment !== undefined)
  const messages = there.map(({ message }) => message)
  const first = messages[0] as Message
  const isWhole = there.length === segments.length && messages.every(({ deliveredAt }) => deliveredAt !== null)
  return {
    seq: Math.min(...messages.map(({ id }) => id)),
    channel: 'sms',
    messageIds: messages.map(({ messageId }) => messageId),
    sender: first.origin,
    text: there.map(({ body }) => body).join(''),
    parts: there.length,
    totalParts: segments.length,
    ...timesOf(first),
    // An SMS is delivered when its last segment is.
    deliveredAt: isWhole ? time(Math.max(...messages.map(({ deliveredAt }) => deliveredAt ?? 0))) : null,
    attempts: 1,
  }
}
