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
  patienceMs: number
  pauseMs: number
  /** A tap on its first button sends another message. */
  triggers: boolean
}

export type Templates = { plain: number; triggered: number }

const HABITS: Record<Habit, number> = { once: 70, 'twice-at-once': 10, again: 8, 'gives-up': 10, 'other-content': 2 }
// By the last digits of the number, which say what its phone does. `usual`: delivered and read.
const ENDINGS = { usual: 56, '01': 4, '02': 8, '03': 5, '04': 7, '05': 4, '06': 4, '07': 4, '08': 4, '09': 4 }
/** Those whose SMS is sent; of others it is sometimes asked for, and not needed. */
const FALLS_BACK = new Set<string>(['02', '03', '04', '08'])
// Of those whose phone would get it, a few are in such a hurry that an upset makes them expire.
const HURRIED = 0.05
// Three parts in GSM-7.
const LONG_SMS = 'Your parcel waits for you at the counter. '.repeat(10)

export function drawWanted(random: Random, n: number, agentId: string, templates: Templates): Wanted {
  const habit = weighted(random, HABITS)
  const ending = drawEnding(random)
  const phone = `+4850${String(n).padStart(5, '0')}${ending}`
  const content = drawContent(random, ending, templates)
  const fallback = drawFallback(random, ending)
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
  const patienceMs = random() < 0.6 ? between(random, 2, 60) : between(random, 60, 1_500)
  return { habit, phone, body, lifeMs, patienceMs, pauseMs: random() * 3_000, triggers: content.triggers }
}

function drawEnding(random: Random): string {
  const ending = weighted(random, ENDINGS)
  return ending === 'usual' ? String(10 + Math.floor(random() * 90)) : ending
}

function drawContent(random: Random, ending: string, { plain, triggered }: Templates) {
  const isTemplate = random() < 0.3
  const button = oneOf(random, [
    { id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'yes' },
    { id: 'more', type: 'url', text: 'More', url: 'https://example.com/more' },
    { id: 'send', type: 'trigger_template', text: 'Send it', templateId: triggered },
  ])
  if (isTemplate) return { message: { templateId: plain }, triggers: false }
  const inline = { type: 'MESSAGE', content: 'Your parcel is on its way.', ...(ending === '07' && { buttons: [button] }) }
  return { message: { inline }, triggers: ending === '07' && button.type === 'trigger_template' }
}

function drawFallback(random: Random, ending: string) {
  const isAsked = random() < (FALLS_BACK.has(ending) ? 0.8 : 0.1)
  const isLong = random() < 0.2
  const delay = random() < 0.3 ? Math.floor(random() * 5) : 0
  if (!isAsked) return undefined
  const content = isLong ? LONG_SMS : 'Your parcel is there.'
  return { smsFallback: { planParams: { sender: 'MyShop', delay }, smsMessagesPlan: [{ content, multipart: true }] } }
}

/** What happens to a campaign on its way. */
export type Course = 'undisturbed' | 'paused' | 'cancelled'
export type WantedCampaign = {
  course: Course
  group: number
  phones: string[]
  body: Record<string, unknown>
  /** From its acceptance until somebody pauses or cancels it, and from a pause until it goes on. */
  stopAfterMs: number
  resumeAfterMs: number
  /** From now, where it does not start at once. */
  startInMs: number | undefined
}

const COURSES: Record<Course, number> = { undisturbed: 2, paused: 1, cancelled: 1 }

/** To people of its own. Nobody among them is waited for until an expiry. */
export function drawCampaign(random: Random, n: number, agentId: string, people: number): WantedCampaign {
  const course = weighted(random, COURSES)
  const phones = Array.from({ length: people }, (_, person) => {
    const ending = drawEnding(random)
    return `+4860${String(n * people + person).padStart(5, '0')}${ending === '04' ? '10' : ending}`
  })
  const fallback = random() < 0.7 ? drawFallback(random, '02') : undefined
  const body = {
    name: `Campaign ${n}`,
    agentId,
    segmentIds: [n],
    message: { inline: { type: 'MESSAGE', content: 'Everything for the garden, a fifth off.' } },
    ...fallback,
  }
  const [stopAfterMs, resumeAfterMs] = [between(random, 0, 2_500), between(random, 1_000, 8_000)]
  return {
    course,
    group: n,
    phones,
    body,
    stopAfterMs,
    resumeAfterMs,
    startInMs: random() < 0.3 ? between(random, 1_000, 5_000) : undefined,
  }
}

function weighted<T extends string>(random: Random, weights: Record<T, number>): T {
  const choices = (Object.entries(weights) as [T, number][]).flatMap(([choice, weight]) => Array<T>(weight).fill(choice))
  return oneOf(random, choices)
}
