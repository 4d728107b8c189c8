import { bareAgentId } from './agents.ts'
import type { Store } from './state/store.ts'

type Setting = { min: number; max: number; default?: number } | { oneOf: readonly string[] }

const RECEIPT_SPELLINGS = ['capital-text', 'seconds', 'brief', 'lower-case', 'padded'] as const
const MS: Setting = { min: 0, max: 600_000 }

/** All faults, with their settings besides `count` and `rate`. README.md explains them. */
const FAULTS = {
  'api.latency': { ms: MS },
  'api.tooManyRequests': { retryAfterSeconds: { min: 0, max: 3600, default: 1 } },
  'api.serverError': { status: { min: 500, max: 599, default: 503 } },
  'api.dropBefore': {},
  'api.dropAfter': {},
  'api.tokenRefused': {},
  'token.slow': { ms: MS },
  'token.refused': { status: { min: 400, max: 599, default: 401 } },
  'token.shortLived': { expiresInSeconds: { min: 0, max: 3600 } },
  'webhooks.duplicated': {},
  'webhooks.lost': {},
  'webhooks.late': { ms: MS },
  'webhooks.reordered': { withinMs: MS },
  'webhooks.wrongSignature': {},
  'webhooks.revokeFailed': {},
  'smpp.bindRefused': { status: { min: 1, max: 0xffff, default: 0x0d } },
  'smpp.throttled': {},
  'smpp.queueFull': {},
  'smpp.refused': { status: { min: 1, max: 0xffff } },
  'smpp.dropUnanswered': { submits: { min: 1, max: 1_000_000 } },
  'smpp.receiptDuplicated': {},
  'smpp.receiptLost': {},
  'smpp.receiptLate': { ms: MS },
  'smpp.receiptBeforeAnswer': {},
  'smpp.hexInReceipt': {},
  'smpp.hexInAnswer': {},
  'smpp.receiptWithoutTlvs': {},
  'smpp.receiptSpelling': { spelling: { oneOf: RECEIPT_SPELLINGS } },
} as const satisfies Record<string, Record<string, Setting>>

type FaultName = keyof typeof FAULTS
type SettingsOf<Name extends FaultName> = {
  [Key in keyof (typeof FAULTS)[Name]]: (typeof FAULTS)[Name][Key] extends { oneOf: readonly (infer Choice)[] } ? Choice : number
}
type Armed = { count?: number; rate?: number } & Record<string, number | string | undefined>

export type Faults = {
  /** Returns the settings of the fault if it applies to this case, and uses one of its `count`. */
  strikes: <Name extends FaultName>(name: Name) => SettingsOf<Name> | undefined
  /** The steps of `strikes`, for a fault that spans several cases: whether it begins here, whether it is still set, and its end. */
  drawn: <Name extends FaultName>(name: Name) => SettingsOf<Name> | undefined
  armed: <Name extends FaultName>(name: Name) => SettingsOf<Name> | undefined
  useUp: (name: FaultName) => void
  /** Returns a number from 0 to 1 of the seeded generator. */
  random: () => number
  isLaunched: (agentId: string) => boolean
  describe: () => Record<string, unknown>
  /** Replaces all faults. Returns the problem of the object, or undefined. */
  replace: (input: unknown) => string | undefined
  clear: () => void
}

const FAULTS_BY_NAME = new Map<string, Record<string, Setting>>(Object.entries(FAULTS))
const PARTS = new Set(Object.keys(FAULTS).map((name) => name.split('.')[0] ?? ''))
const MAX_COUNT = 1_000_000_000

type State = { seed: number; notLaunched: string[]; armed: Map<string, Armed> }

/** After a restart, faults continue with the rest of their counts, and the generator starts again at its seed. */
export function createFaults(store: Store): Faults {
  let state: State = { seed: 1, notLaunched: [], armed: new Map() }
  let random = generator(state.seed)
  const saved = store.state.settings.get('faults')
  if (saved !== undefined) adopt(JSON.parse(saved))

  function adopt(input: unknown): string | undefined {
    const parsed = parseFaults(input)
    if (typeof parsed === 'string') return parsed
    state = parsed
    random = generator(state.seed)
    return undefined
  }
  const save = () => store.append({ is: 'setting', name: 'faults', value: JSON.stringify(describe(state)) })

  function armed<Name extends FaultName>(name: Name): SettingsOf<Name> | undefined {
    return state.armed.get(name) as SettingsOf<Name> | undefined
  }
  function drawn<Name extends FaultName>(name: Name): SettingsOf<Name> | undefined {
    const rate = state.armed.get(name)?.rate
    return rate === undefined || random() < rate ? armed(name) : undefined
  }
  /** Uses one of the fault's `count`. A fault with a rate has no end. */
  function useUp(name: FaultName): void {
    const fault = state.armed.get(name)
    if (fault?.count === undefined) return
    if (fault.count <= 1) state.armed.delete(name)
    else state.armed.set(name, { ...fault, count: fault.count - 1 })
    save()
  }

  return {
    strikes: (name) => {
      const fault = drawn(name)
      if (fault !== undefined) useUp(name)
      return fault
    },
    drawn,
    armed,
    useUp,
    random: () => random(),
    isLaunched: (agentId) => !state.notLaunched.includes(agentId),
    describe: () => describe(state),
    replace: (input) => {
      const problem = adopt(input)
      if (problem === undefined) save()
      return problem
    },
    clear: () => {
      adopt({})
      save()
    },
  }
}

function describe({ seed, notLaunched, armed }: State): Record<string, unknown> {
  const parts: Record<string, Record<string, Armed>> = {}
  for (const [name, fault] of armed) {
    const [part = '', key = ''] = name.split('.')
    parts[part] = { ...parts[part], [key]: fault }
  }
  return { seed, ...(notLaunched.length > 0 ? { agents: { notLaunched } } : {}), ...parts }
}

function parseFaults(input: unknown): State | string {
  if (!isObject(input)) return 'The faults must be a JSON object.'
  const state: State = { seed: 1, notLaunched: [], armed: new Map() }
  for (const [part, value] of Object.entries(input)) {
    const problem = parsePart(state, part, value)
    if (problem !== undefined) return problem
  }
  return state
}

function parsePart(state: State, part: string, value: unknown): string | undefined {
  if (part === 'seed') {
    if (!isWholeNumber(value, 0, 0xffffffff)) return 'seed must be a whole number from 0 to 4294967295.'
    state.seed = value
    return undefined
  }
  if (part === 'agents') return parseAgents(state, value)
  if (!PARTS.has(part)) return `${part} is no part of the faults; there are seed, agents, ${[...PARTS].join(', ')}.`
  if (!isObject(value)) return `${part} must be an object.`
  for (const [key, fault] of Object.entries(value)) {
    const parsed = parseFault(`${part}.${key}`, fault)
    if (typeof parsed === 'string') return parsed
    if (parsed !== undefined) state.armed.set(`${part}.${key}`, parsed)
  }
  return undefined
}

function parseAgents(state: State, value: unknown): string | undefined {
  if (!isObject(value) || Object.keys(value).some((key) => key !== 'notLaunched')) return 'agents may hold notLaunched and nothing else.'
  const agents = value.notLaunched ?? []
  const areNames = Array.isArray(agents) && agents.every((agent) => typeof agent === 'string')
  if (!areNames) return 'agents.notLaunched must be a list of agent ids.'
  state.notLaunched = agents.map(bareAgentId)
  return undefined
}

function parseFault(name: string, input: unknown): Armed | string | undefined {
  const settings = FAULTS_BY_NAME.get(name)
  if (settings === undefined) return `${name} is no fault; there are ${[...FAULTS_BY_NAME.keys()].join(', ')}.`
  if (!isObject(input)) return `${name} must be an object.`
  const { count, rate, ...rest } = input
  const wrong = chanceProblem(count, rate)
  if (wrong !== undefined) return `${name}${wrong}`
  const unknown = Object.keys(rest).find((key) => !Object.hasOwn(settings, key))
  if (unknown !== undefined) return `${name} has no setting ${unknown}.`
  const armed: Armed = count === undefined ? { rate: rate as number } : { count: count as number }
  for (const [key, setting] of Object.entries(settings)) {
    const value = rest[key] ?? ('default' in setting ? setting.default : undefined)
    const problem = settingProblem(setting, value)
    if (problem !== undefined) return `${name}.${key} must be ${problem}.`
    armed[key] = value as number | string
  }
  return count === 0 ? undefined : armed
}

function chanceProblem(count: unknown, rate: unknown): string | undefined {
  if ((count === undefined) === (rate === undefined)) return ' must have either count or rate.'
  if (count !== undefined) return isWholeNumber(count, 0, MAX_COUNT) ? undefined : `.count must be a whole number from 0 to ${MAX_COUNT}.`
  return typeof rate === 'number' && rate >= 0 && rate <= 1 ? undefined : '.rate must be a number from 0 to 1.'
}

function settingProblem(setting: Setting, value: unknown): string | undefined {
  if ('oneOf' in setting) return setting.oneOf.includes(value as string) ? undefined : `one of ${setting.oneOf.join(', ')}`
  return isWholeNumber(value, setting.min, setting.max) ? undefined : `a whole number from ${setting.min} to ${setting.max}`
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isWholeNumber(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max
}

/** mulberry32: small, and the same numbers everywhere for the same seed. */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
