import { between, oneOf, type Random, streamOf } from '../random.ts'

// What is going to be upset, when and how: a function of the seed and the length alone. Each victim has a stream of its own.

/** `hung`: frozen, and killed in its sleep. */
export type Manner = 'killed' | 'frozen' | 'hung'

export type Upset = {
  victim: string
  manner: Manner
  /** From the beginning. */
  atMs: number
  /** How long it is frozen. */
  frozenMs: number
  /** How long it is gone before it is started again. */
  goneMs: number
}

type Range = readonly [number, number]
type Temper = {
  manners: readonly Manner[]
  /** Between two upsets, in which it works. */
  calmMs: Range
  goneMs: Range
  /** Drawn from one of these, each as likely. */
  frozenMs: readonly Range[]
}

// Callers give up after 5 s, networks after 10 s; the lease of an endpoint is 10 s, that of a message 30 s.
const MOMENT: Range = [200, 3_000]
const PAST_CALLERS: Range = [5_000, 9_000]
const PAST_ENDPOINT_LEASE: Range = [11_000, 16_000]
const PAST_MESSAGE_LEASE: Range = [31_000, 40_000]

const API: Temper = {
  manners: ['killed', 'frozen', 'hung'],
  calmMs: [10_000, 30_000],
  goneMs: [0, 4_000],
  frozenMs: [MOMENT, PAST_CALLERS],
}
const WORKER = { ...API, calmMs: [6_000, 20_000] } as const
const DELIVERY: Temper = {
  ...WORKER,
  manners: ['killed', 'killed', 'frozen', 'hung'],
  frozenMs: [MOMENT, PAST_CALLERS, PAST_MESSAGE_LEASE],
}
const WEBHOOKS: Temper = { ...WORKER, manners: ['killed', 'killed', 'frozen', 'hung'], frozenMs: [MOMENT, PAST_ENDPOINT_LEASE] }
/** So that there is one at times and two at others. */
const AT_TIMES = { goneMs: [5_000, 25_000] } as const

/** A service that starts waits 30 s for its database, which is therefore never away for as long. */
const TEMPERS: Record<string, Temper> = {
  'api-1': API,
  'api-2': API,
  'delivery-1': DELIVERY,
  'delivery-2': { ...DELIVERY, ...AT_TIMES },
  'webhooks-1': WEBHOOKS,
  'webhooks-2': { ...WEBHOOKS, ...AT_TIMES },
  database: { manners: ['killed', 'frozen'], calmMs: [10_000, 30_000], goneMs: [0, 3_000], frozenMs: [MOMENT, MOMENT, [4_000, 12_000]] },
  network: {
    manners: ['killed', 'frozen'],
    calmMs: [10_000, 30_000],
    goneMs: [0, 5_000],
    frozenMs: [MOMENT, PAST_CALLERS, PAST_ENDPOINT_LEASE],
  },
}
export const VICTIMS = Object.keys(TEMPERS)
// The first ones come sooner, or a short run would have none of some.
const FIRST_CALM = 0.4

/** What the first upset of some is, whatever is drawn, so that no run goes without it. */
const FIRST: Record<string, { manner: Manner; frozenMs?: Range }> = {
  'api-1': { manner: 'killed' },
  database: { manner: 'killed' },
  network: { manner: 'killed' },
  'delivery-2': { manner: 'frozen', frozenMs: PAST_MESSAGE_LEASE },
  'webhooks-2': { manner: 'frozen', frozenMs: PAST_ENDPOINT_LEASE },
}

/** What the verdict wants to see done. `victim`: how its name begins. */
export type Essential = { victim: string; manner: 'killed' | 'frozen'; leastFrozenMs: number }

/** Of a run of this length: those of which the whole is planned for it. */
export function essentialUpsets(seconds: number): Essential[] {
  const kill = { manner: 'killed', leastFrozenMs: 0 } as const
  return [
    ...(seconds >= 15 ? ['api', 'database', 'network'].map((victim) => ({ victim, ...kill })) : []),
    ...(seconds >= 30 ? [{ victim: 'webhooks', manner: 'frozen', leastFrozenMs: 10_000 } as const] : []),
    ...(seconds >= 60 ? [{ victim: 'delivery', manner: 'frozen', leastFrozenMs: 30_000 } as const] : []),
  ]
}

export function planUpsets(seed: number, seconds: number): Upset[] {
  const all = VICTIMS.flatMap((victim) => planFor(victim, streamOf(seed, victim), seconds * 1_000))
  return contest(all, seconds * 1_000).toSorted((one, other) => one.atMs - other.atMs)
}

function planFor(victim: string, random: Random, lengthMs: number): Upset[] {
  const { manners, calmMs, goneMs, frozenMs } = TEMPERS[victim] as Temper
  const draw = (range: Range) => Math.round(between(random, ...range))
  const upsets: Upset[] = []
  for (let atMs = draw(calmMs) * FIRST_CALM; atMs < lengthMs; ) {
    const first = upsets.length === 0 ? FIRST[victim] : undefined
    const manner = first?.manner ?? oneOf(random, manners)
    const frozen = draw(first?.frozenMs ?? oneOf(random, frozenMs))
    const gone = draw(goneMs)
    const upset = {
      victim,
      manner,
      atMs: Math.round(atMs),
      frozenMs: manner === 'killed' ? 0 : frozen,
      goneMs: manner === 'frozen' ? 0 : gone,
    }
    upsets.push(upset)
    atMs += upset.frozenMs + upset.goneMs + draw(calmMs)
  }
  return upsets
}

const SLEEPER = 'delivery-2'
const TAKES_OVER = 'delivery-1'
// The network stands still before the sleeper does, and is killed afterwards: it has not taken what the sleeper has under way, or a receipt
// would end that.
const HANGS_BEFORE_MS = 1_000
const HANGS_FOR_MS = 1_500
// In between it is killed while it works: what is in its books then is read before.
const KILLED_AFTER_MS = 10_000
// Before the lease of what the sleeper has under way ends, and until after it wakes up.
const BEFORE_LEASE_END_MS = 28_000
const AFTER_WAKING_MS = 1_500
const APART_MS = 3_000

/**
 * The worker that sleeps past its lease wakes up while the other one, which has taken its entries up, still waits for a network that hangs:
 * then both have a result for the same entry. Left to chance, that would be a matter of milliseconds. Nothing else befalls those two
 * meanwhile.
 */
function contest(plan: Upset[], lengthMs: number): Upset[] {
  const sleep = plan.find(({ victim }) => victim === SLEEPER)
  const drawn = plan.find(({ victim }) => victim === 'network')
  if (sleep === undefined || drawn === undefined) return plan
  const network = { victim: 'network', frozenMs: 0, goneMs: drawn.goneMs }
  const before: Upset = { ...network, manner: 'hung', atMs: sleep.atMs - HANGS_BEFORE_MS, frozenMs: HANGS_FOR_MS }
  const kill: Upset = { ...network, manner: 'killed', atMs: sleep.atMs + KILLED_AFTER_MS + Math.round(drawn.atMs / 2) }
  const fromMs = sleep.atMs + BEFORE_LEASE_END_MS
  const untilMs = sleep.atMs + sleep.frozenMs + AFTER_WAKING_MS
  const meanwhile: Upset = { ...network, manner: 'frozen', atMs: fromMs, frozenMs: untilMs - fromMs, goneMs: 0 }
  const added = [before, kill, meanwhile].filter(({ atMs }) => atMs < lengthMs)
  const others = plan.filter(
    (one) => !(one.victim === 'network' && added.some((other) => meet(one, other))) && !(one.victim === TAKES_OVER && meet(one, meanwhile)),
  )
  return [...others, ...added]
}

function meet(one: Upset, other: Upset): boolean {
  const endOf = ({ atMs, frozenMs, goneMs }: Upset) => atMs + frozenMs + goneMs + APART_MS
  return one.atMs < endOf(other) && other.atMs < endOf(one)
}
