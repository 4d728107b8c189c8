import { between, oneOf, type Random } from '../random.ts'

// What callers ask for. The n-th request is the same for a seed, whatever becomes of those before.

/** What somebody does who has a message to send. */
export type Habit =
  /** Repeats it until it is accepted, as all others do. */
  | 'once'
  /** Sends it to two nodes at once. */
  | 'twice-at-once'
  /** Sends it again after it was accepted, not knowing that. */
  | 'again'
  /** Asks once, waits for a moment, and never asks again. */
  | 'gives-up'
  /** Uses the key once more, for something else. */
  | 'other-content'

export type Wanted = {
  habit: Habit
  phone: string
  body: Record<string, unknown>
  /** How long it may wait to be sent and delivered, from the moment that it is asked for. */
  lifeMs: number | undefined
  timeoutMs: number
  pauseMs: number
  contents: Contents
}

/** What has to come out at the phone. Every message has a text of its own, but for those of a template. */
export type Contents = {
  text: string
  button?: Button | undefined
  /** What a tap on its button sends. */
  triggers?: string | undefined
  sms?: { sender: string; text: string } | undefined
}

type Button = { id: string; type: string; text: string; payload?: string; url?: string; templateId?: number }

export type Template = { id: number; text: string }
export type Templates = { plain: Template; triggered: Template }

const HABITS: Record<Habit, number> = { once: 70, 'twice-at-once': 10, again: 8, 'gives-up': 10, 'other-content': 2 }
// By the last digits of the number, which say what its phone does. `usual`: delivered and read.
const ENDINGS = { usual: 56, '01': 4, '02': 8, '03': 5, '04': 7, '05': 4, '06': 4, '07': 4, '08': 4, '09': 4 }
/** Those whose SMS is sent; of others it is sometimes asked for, and not needed. */
const FALLS_BACK = new Set<string>(['02', '03', '04', '08'])
// Of those whose phone would get it, a few are in such a hurry that an upset makes them expire.
const HURRIED = 0.05
const SENDER = 'MyShop'
// Three parts in GSM-7, with the number before it.
const LONG_SMS = 'Your parcel waits for you at the counter. '.repeat(10)

/** Who asks: by which agent, with which templates. `digit`: of the numbers that nobody else writes to. */
export type Asker = { agentId: string; digit: number; templates: Templates }

export function drawWanted(random: Random, n: number, { agentId, digit, templates }: Asker): Wanted {
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
  }
  // Most of these are shorter than what an acceptance takes on a busy machine.
  const timeoutMs = random() < 0.6 ? between(random, 2, 60) : between(random, 60, 1_500)
  return { habit, phone, body, lifeMs, timeoutMs, pauseMs: random() * 3_000, contents: { ...content.contents, sms: smsOf(fallback) } }
}

function drawEnding(random: Random): string {
  const ending = weighted(random, ENDINGS)
  return ending === 'usual' ? String(10 + Math.floor(random() * 90)) : ending
}

/** `name`: no other message has it. */
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
  const isAsked = random() < (FALLS_BACK.has(ending) ? 0.8 : 0.1)
  const isLong = random() < 0.2
  const delay = random() < 0.3 ? Math.floor(random() * 5) : 0
  if (!isAsked) return undefined
  const content = isLong ? `${name}: ${LONG_SMS}` : `Your parcel ${name} is there.`
  return { smsFallback: { planParams: { sender: SENDER, delay }, smsMessagesPlan: [{ content, multipart: true }] } }
}

function smsOf(fallback: ReturnType<typeof drawFallback>): Contents['sms'] {
  const text = fallback?.smsFallback.smsMessagesPlan[0]?.content
  return text === undefined ? undefined : { sender: SENDER, text }
}

/** What happens to a campaign on its way. */
export type Course = 'undisturbed' | 'paused' | 'cancelled'
export type WantedCampaign = {
  course: Course
  group: number
  phones: string[]
  body: Record<string, unknown>
  contents: Contents
  /** From its acceptance until somebody pauses or cancels it, and from a pause until it goes on. */
  stopAfterMs: number
  resumeAfterMs: number
  /** From now, where it does not start at once. */
  startInMs: number | undefined
  /** From its start until its messages expire, where they do. */
  lifeMs: number | undefined
}

const COURSES: Record<Course, number> = { undisturbed: 2, paused: 1, cancelled: 1 }

/** To people of its own. Every other one expires, and has people whose phone never gets it. */
export function drawCampaign(random: Random, n: number, { agentId, digit }: Omit<Asker, 'templates'>, people: number): WantedCampaign {
  const course = weighted(random, COURSES)
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
  }
  const [stopAfterMs, resumeAfterMs] = [between(random, 0, 2_500), between(random, 1_000, 8_000)]
  return {
    course,
    group: n,
    phones,
    body,
    contents: { text, sms: smsOf(fallback) },
    stopAfterMs,
    resumeAfterMs,
    startInMs: random() < 0.3 ? between(random, 1_000, 5_000) : undefined,
    lifeMs: expires ? between(random, 10_000, 30_000) : undefined,
  }
}

function weighted<T extends string>(random: Random, weights: Record<T, number>): T {
  const choices = (Object.entries(weights) as [T, number][]).flatMap(([choice, weight]) => Array<T>(weight).fill(choice))
  return oneOf(random, choices)
}
