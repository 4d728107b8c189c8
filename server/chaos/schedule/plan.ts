import { between, oneOf, type Random, streamOf } from '../support/random.ts'

// Which target gets which fault, when and for how long: a function of the seed and the length alone. Each target has a stream of its own.

/** `hung`: frozen, and killed while it is frozen. */
export type Manner = 'killed' | 'frozen' | 'hung'

export type PlannedFault = {
  target: string
  manner: Manner
  /** From the beginning of the run. */
  atMs: number
  frozenMs: number
  /** From the kill until it is started again. */
  goneMs: number
}

type Range = readonly [number, number]
type Profile = {
  manners: readonly Manner[]
  /** Between two faults. */
  calmMs: Range
  goneMs: Range
  /** Drawn from one of these, each as likely. */
  frozenMs: readonly Range[]
}

// Callers stop waiting after 5 s, networks after 10 s; the lease of an endpoint is 10 s, that of a message 30 s.
const MOMENT: Range = [200, 3_000]
const PAST_CALLERS: Range = [5_000, 9_000]
const PAST_ENDPOINT_LEASE: Range = [11_000, 16_000]
const PAST_MESSAGE_LEASE: Range = [31_000, 40_000]

const API: Profile = {
  manners: ['killed', 'frozen', 'hung'],
  calmMs: [10_000, 30_000],
  goneMs: [0, 4_000],
  frozenMs: [MOMENT, PAST_CALLERS],
}
const WORKER: Profile = { ...API, manners: ['killed', 'killed', 'frozen', 'hung'], calmMs: [6_000, 20_000] }
const DELIVERY: Profile = { ...WORKER, frozenMs: [MOMENT, PAST_CALLERS, PAST_MESSAGE_LEASE] }
const WEBHOOKS: Profile = { ...WORKER, frozenMs: [MOMENT, PAST_ENDPOINT_LEASE] }
/** So that at times only one of the two runs. */
const OFTEN_GONE = { goneMs: [5_000, 25_000] } as const

/** A service that starts waits 30 s for its database, so the database is never away for that long. */
const PROFILES: Record<string, Profile> = {
  'api-1': API,
  'api-2': API,
  'delivery-1': DELIVERY,
  'delivery-2': { ...DELIVERY, ...OFTEN_GONE },
  'webhooks-1': WEBHOOKS,
  'webhooks-2': { ...WEBHOOKS, ...OFTEN_GONE },
  database: { manners: ['killed', 'frozen'], calmMs: [10_000, 30_000], goneMs: [0, 3_000], frozenMs: [MOMENT, MOMENT, [4_000, 12_000]] },
  network: {
    manners: ['killed', 'frozen'],
    calmMs: [10_000, 30_000],
    goneMs: [0, 5_000],
    frozenMs: [MOMENT, PAST_CALLERS, PAST_ENDPOINT_LEASE],
  },
}
export const TARGETS = Object.keys(PROFILES)
// The first faults come sooner, or a short run would have none of some.
const FIRST_CALM = 0.4

/** The first fault of these targets is fixed, so that no run goes without it. */
const FIRST: Record<string, { manner: Manner; frozenMs?: Range }> = {
  'api-1': { manner: 'killed' },
  database: { manner: 'killed' },
  network: { manner: 'killed' },
  'delivery-2': { manner: 'frozen', frozenMs: PAST_MESSAGE_LEASE },
  'webhooks-2': { manner: 'frozen', frozenMs: PAST_ENDPOINT_LEASE },
}

/** A fault that a run must have had. `target`: how its name begins. */
export type RequiredFault = { target: string; manner: 'killed' | 'frozen'; leastFrozenMs: number }

/** Those that are planned as a whole in a run of this length. */
export function requiredFaults(seconds: number): RequiredFault[] {
  const kill = { manner: 'killed', leastFrozenMs: 0 } as const
  return [
    ...(seconds >= 15 ? ['api', 'database', 'network'].map((target) => ({ target, ...kill })) : []),
    ...(seconds >= 30 ? [{ target: 'webhooks', manner: 'frozen', leastFrozenMs: 10_000 } as const] : []),
    ...(seconds >= 60 ? [{ target: 'delivery', manner: 'frozen', leastFrozenMs: 30_000 } as const] : []),
  ]
}

export function planFaults(seed: number, seconds: number): PlannedFault[] {
  const all = TARGETS.flatMap((target) => planFor(target, streamOf(seed, target), seconds * 1_000))
  return contest(all, seconds * 1_000).toSorted((one, other) => one.atMs - other.atMs)
}

function planFor(target: string, random: Random, lengthMs: number): PlannedFault[] {
  const { manners, calmMs, goneMs, frozenMs } = PROFILES[target] as Profile
  const draw = (range: Range) => Math.round(between(random, ...range))
  const planned: PlannedFault[] = []
  for (let atMs = draw(calmMs) * FIRST_CALM; atMs < lengthMs; ) {
    const first = planned.length === 0 ? FIRST[target] : undefined
    const manner = first?.manner ?? oneOf(random, manners)
    const frozen = draw(first?.frozenMs ?? oneOf(random, frozenMs))
    const gone = draw(goneMs)
    const times = { atMs: Math.round(atMs), frozenMs: manner === 'killed' ? 0 : frozen, goneMs: manner === 'frozen' ? 0 : gone }
    planned.push({ target, manner, ...times })
    atMs += times.frozenMs + times.goneMs + draw(calmMs)
  }
  return planned
}

const SLEEPER = 'delivery-2'
const TAKES_OVER = 'delivery-1'
// The network hangs before the sleeper is frozen, and is killed afterwards. So it has not accepted the sleeper's calls, which a receipt would end.
const HANGS_BEFORE_MS = 1_000
const HANGS_FOR_MS = 1_500
// In between it is killed while it works, and its ledger is read before that.
const KILLED_AFTER_MS = 10_000
// From before the end of the sleeper's lease until after it wakes up.
const BEFORE_LEASE_END_MS = 28_000
const AFTER_WAKING_MS = 1_500
const APART_MS = 3_000

/**
 * The worker that is frozen past its lease wakes up while the other worker, which has claimed its entries, still waits for a network that
 * hangs. Then both have a result for the same entry; by chance that would take milliseconds of luck. No other fault hits these two meanwhile.
 */
function contest(plan: PlannedFault[], lengthMs: number): PlannedFault[] {
  const sleep = plan.find(({ target }) => target === SLEEPER)
  const drawn = plan.find(({ target }) => target === 'network')
  if (sleep === undefined || drawn === undefined) return plan
  const network = { target: 'network', frozenMs: 0, goneMs: drawn.goneMs }
  const before: PlannedFault = { ...network, manner: 'hung', atMs: sleep.atMs - HANGS_BEFORE_MS, frozenMs: HANGS_FOR_MS }
  const kill: PlannedFault = { ...network, manner: 'killed', atMs: sleep.atMs + KILLED_AFTER_MS + Math.round(drawn.atMs / 2) }
  const fromMs = sleep.atMs + BEFORE_LEASE_END_MS
  const untilMs = sleep.atMs + sleep.frozenMs + AFTER_WAKING_MS
  const meanwhile: PlannedFault = { ...network, manner: 'frozen', atMs: fromMs, frozenMs: untilMs - fromMs, goneMs: 0 }
  const added = [before, kill, meanwhile].filter(({ atMs }) => atMs < lengthMs)
  const others = plan.filter(
    (one) => !(one.target === 'network' && added.some((other) => meet(one, other))) && !(one.target === TAKES_OVER && meet(one, meanwhile)),
  )
  return [...others, ...added]
}

function meet(one: PlannedFault, other: PlannedFault): boolean {
  const endOf = ({ atMs, frozenMs, goneMs }: PlannedFault) => atMs + frozenMs + goneMs + APART_MS
  return one.atMs < endOf(other) && other.atMs < endOf(one)
}
