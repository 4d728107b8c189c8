import { between, oneOf, type Random } from '../support/random.ts'

// What callers request. The n-th request is the same for a seed, whatever the responses before it were.

export type Habit =
  /** Repeats the request until it is accepted, as all others do. */
  | 'once'
  /** Sends it to two nodes at once. */
  | 'twice-at-once'
  /** Sends it again after it was accepted. */
  | 'again'
  /** Sends it once, waits for a moment, and never sends it again. */
  | 'stops-waiting'
  /** Uses the key once more, with other content. */
  | 'other-content'

export type DrawnMessage = {
  habit: Habit
  phone: string
  body: Record<string, unknown>
  /** Time until `sendAt`, if there is one. */
  startInMs: number | undefined
  /** Time until `expiresAt`, if there is one; or from `sendAt` on. */
  lifeMs: number | undefined
  timeoutMs: number
  pauseMs: number
  contents: Contents
}

/** What must arrive at the phone. Every message has a text of its own, except those of a template. */
export type Contents = {
  text: string
  button?: Button | undefined
  /** The text of the message that a tap on the button sends. */
  triggers?: string | undefined
  sms?: { sender: string; text: string } | undefined
}

type Button = { id: string; type: string; text: string; payload?: string; url?: string; templateId?: number }

export type Template = { id: number; text: string }
export type Templates = { plain: Template; triggered: Template }

const HABITS: Record<Habit, number> = { once: 70, 'twice-at-once': 10, again: 8, 'stops-waiting': 10, 'other-content': 2 }
// By the last digits of the number, which decide what its phone does. `usual`: delivered and read.
const ENDINGS = { usual: 56, '01': 4, '02': 8, '03': 5, '04': 7, '05': 4, '06': 4, '07': 4, '08': 4, '09': 4 }
/** The RCS message to these phones fails, so their SMS is sent. Some requests to other phones have a fallback too, which is not needed. */
const FALLS_BACK = new Set<string>(['02', '03', '04', '08'])
// This share of messages and campaigns is routed by look-ups. The faults of the network make some look-ups fail.
const ROUTED = 0.4
// This share of the other messages expires so soon that a fault makes them expire.
const HURRIED = 0.05
// This share of all messages is to be sent later.
const SCHEDULED = 0.05
const SENDER = 'MyShop'
// Three segments in GSM-7, with the name before it.
const LONG_SMS = 'Your parcel waits for you at the counter. '.repeat(10)

/** `digit`: part of the phone numbers that only this account writes to. */
export type Sender = { agentId: string; digit: number; templates: Templates }

export function drawMessage(random: Random, n: number, { agentId, digit, templates }: Sender): DrawnMessage {
  const habit = weighted(random, HABITS)
  const ending = drawEnding(random)
  const phone = `+485${digit}${String(n).padStart(5, '0')}${ending}`
  const content = drawContent(random, `${digit}-${n}`, ending, templates)
  const fallback = drawFallback(random, `${digit}-${n}`, ending)
  const isHurried = random() < HURRIED
  const lifeMs = ending === '04' ? between(random, 3_000, 15_000) : isHurried ? between(random, 4_000, 12_000) : undefined
  const afterExpiry = lifeMs !== undefined && random() < 0.7
  const body = {
    agentId,
    recipient: phone,
    clientReferenceId: `order-${n}`,
    message: content.message,
    ...fallback,
    ...(fallback !== undefined && afterExpiry && { smsFallbackAfterExpiry: { delay: Math.floor(random() * 3) } }),
    ...drawRouting(random),
  }
  // Most of these are shorter than what an acceptance takes on a busy machine.
  const startInMs = random() < SCHEDULED ? between(random, 500, 8_000) : undefined
  const timeoutMs = random() < 0.6 ? between(random, 2, 60) : between(random, 60, 1_500)
  return {
    habit,
    phone,
    body,
    startInMs,
    lifeMs,
    timeoutMs,
    pauseMs: random() * 3_000,
    contents: { ...content.contents, sms: smsOf(fallback) },
  }
}

function drawEnding(random: Random): string {
  const ending = weighted(random, ENDINGS)
  return ending === 'usual' ? String(10 + Math.floor(random() * 90)) : ending
}

/** `name`: unique to this message. */
function drawContent(
  random: Random,
  name: string,
  ending: string,
  { plain, triggered }: Templates,
): { message: object; contents: Contents } {
  const isTemplate = random() < 0.3
  const button = oneOf<Button>(random, [
    { id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'yes' },
    { id: 'more', type: 'url', text: 'More', url: 'https://example.com/more' },
    { id: 'send', type: 'trigger_template', text: 'Send it', templateId: triggered.id },
  ])
  if (isTemplate) return { message: { templateId: plain.id }, contents: { text: plain.text } }
  const text = `Your parcel ${name} is on its way.`
  if (ending !== '07') return { message: { inline: { type: 'MESSAGE', content: text } }, contents: { text } }
  return {
    message: { inline: { type: 'MESSAGE', content: text, buttons: [button] } },
    contents: { text, button, ...(button.type === 'trigger_template' && { triggers: triggered.text }) },
  }
}

function drawFallback(random: Random, name: string, ending: string) {
  const isWanted = random() < (FALLS_BACK.has(ending) ? 0.8 : 0.1)
  const isLong = random() < 0.2
  const delay = random() < 0.3 ? Math.floor(random() * 5) : 0
  if (!isWanted) return undefined
  const content = isLong ? `${name}: ${LONG_SMS}` : `Your parcel ${name} is there.`
  return { smsFallback: { planParams: { sender: SENDER, delay }, smsMessagesPlan: [{ content, multipart: true }] } }
}

const drawRouting = (random: Random) => (random() < ROUTED ? { routing: 'capability' } : {})

function smsOf(fallback: ReturnType<typeof drawFallback>): Contents['sms'] {
  const text = fallback?.smsFallback.smsMessagesPlan[0]?.content
  return text === undefined ? undefined : { sender: SENDER, text }
}

/** What an operator does to a campaign. */
export type Lifecycle = 'untouched' | 'paused' | 'cancelled'
export type DrawnCampaign = {
  lifecycle: Lifecycle
  phones: string[]
  body: Record<string, unknown>
  contents: Contents
  /** From its acceptance until it is paused or cancelled, and from a pause until it is resumed. */
  stopAfterMs: number
  resumeAfterMs: number
  /** Time until `scheduledAt`, if there is one. */
  startInMs: number | undefined
  /** From its start until its messages expire, if they do. */
  lifeMs: number | undefined
}

const LIFECYCLES: Record<Lifecycle, number> = { untouched: 2, paused: 1, cancelled: 1 }

/** To phones of its own. Every other campaign expires, and has phones that never get the message. Its group has the number `n`. */
export function drawCampaign(random: Random, n: number, { agentId, digit }: Omit<Sender, 'templates'>, people: number): DrawnCampaign {
  const lifecycle = weighted(random, LIFECYCLES)
  const expires = n % 2 === 0
  const phones = Array.from({ length: people }, (_, person) => {
    const ending = drawEnding(random)
    return `+486${digit}${String(n * people + person).padStart(5, '0')}${ending === '04' && !expires ? '10' : ending}`
  })
  const fallback = random() < 0.7 ? drawFallback(random, `${digit}-C${n}`, '02') : undefined
  const text = `Everything for the garden, a fifth off: ${digit}-C${n}.`
  const body = {
    name: `Campaign ${n}`,
    agentId,
    segmentIds: [n],
    clientReferenceId: `campaign-${n}`,
    message: { inline: { type: 'MESSAGE', content: text } },
    ...fallback,
    ...drawRouting(random),
  }
  const [stopAfterMs, resumeAfterMs] = [between(random, 0, 2_500), between(random, 1_000, 8_000)]
  const startInMs = random() < 0.3 ? between(random, 1_000, 5_000) : undefined
  const lifeMs = expires ? between(random, 10_000, 30_000) : undefined
  return { lifecycle, phones, body, contents: { text, sms: smsOf(fallback) }, stopAfterMs, resumeAfterMs, startInMs, lifeMs }
}

function weighted<T extends string>(random: Random, weights: Record<T, number>): T {
  const choices = (Object.entries(weights) as [T, number][]).flatMap(([choice, weight]) => Array<T>(weight).fill(choice))
  return oneOf(random, choices)
}
