import { pages } from '../../words/en.ts'
import * as say from '../../words/en-health-troubles.ts'
import { shortDuration } from '../../words/numbers.ts'
import type { Backlog, Carrier, Health } from './health-types.ts'
import { rolesWithout, statesOf } from './lost-nodes.ts'

/** Something that is wrong, or soon will be, and what to do about it. */
export type Trouble = { tone: 'bad' | 'warn'; text: string; advice: string }

/** A message that could be sent waits less than a second where all is well. */
const LATE_MS = 10_000
const VERY_LATE_MS = 60_000
/** A process over 100 ms is busy. So much more delays every request. */
const LOOP_MS = 250
/** So few failures say nothing about a network. */
const FEW_CALLS = 10

const told =
  (tone: Trouble['tone']) =>
  ([text, advice]: say.Told): Trouble => ({ tone, text, advice })
const bad = told('bad')
const warn = told('warn')

/** Everything that is wrong, the worst first. Empty: all is well. */
export function troublesOf(health: Health): Trouble[] {
  const all = [...health.carriers.flatMap(ofCarrier), ...ofNodes(health), ...ofDatabase(health), ...ofQueues(health)]
  // `bad` is before `warn`.
  return all.sort((a, b) => a.tone.localeCompare(b.tone))
}

/** Without the database, there are no figures at all. */
export const withoutDatabase = (): Trouble => bad(say.noDatabase)

/** Whether Herald lost a network: it has no session, or pauses its requests after failures. */
export const isLost = ({ sessions, openCircuits }: Carrier) => sessions === 0 || openCircuits > 0

const callsOf = ({ outcomes }: Carrier) => Object.values(outcomes).reduce((sum, count) => sum + count, 0)

/** Whether most calls to the network have to be repeated. */
export function isStruggling(carrier: Carrier): boolean {
  const calls = callsOf(carrier)
  return calls >= FEW_CALLS && repeatedOf(carrier) > calls / 2
}

const repeatedOf = ({ outcomes }: Carrier) => (outcomes.retry ?? 0) + (outcomes.unknown ?? 0)

/** How bad it is that something has been due for so long. */
export function ageTone({ oldestMs }: Backlog): 'bad' | 'warn' | undefined {
  if (oldestMs === null || oldestMs <= LATE_MS) return undefined
  return oldestMs > VERY_LATE_MS ? 'bad' : 'warn'
}

export const eventsTone = ({ behindMs }: Health['events']) => (behindMs > LATE_MS ? 'bad' : undefined)

function ofCarrier(carrier: Carrier): Trouble[] {
  const { name, sessions, openCircuits, nodes } = carrier
  if (sessions === 0) return [bad(say.noSession(name))]
  if (openCircuits > 0) return [bad(say.paused(name, openCircuits, nodes))]
  return isStruggling(carrier) ? [warn(say.mostFail(name, repeatedOf(carrier), callsOf(carrier)))] : []
}

function ofNodes(health: Health): Trouble[] {
  const states = statesOf(health)
  const ofOne = health.nodes.flatMap((node) => {
    const { host, pid, loopDelayMs, pools } = node
    const name = `${host} (${pid})`
    const state = states.get(node)
    if (state !== 'live') return state === 'lost' ? bad(say.lostNode(name)) : []
    return [
      ...(loopDelayMs > LOOP_MS ? [warn(say.busyNode(name, loopDelayMs))] : []),
      ...(pools.some(({ waiting }) => waiting > 0) ? [warn(say.crowdedPool(name))] : []),
    ]
  })
  // Without events to post, an installation needs no process that posts them.
  const missing = rolesWithout(states).filter((role) => role === 'delivery' || health.webhooks.due > 0)
  return [...ofOne, ...missing.map((role) => bad([say.noRole[role], say.startRole(role)]))]
}

function ofDatabase({ database: { schema, standbys } }: Health): Trouble[] {
  return [
    ...(standbys.missing > 0 ? [bad(say.noStandby(standbys.missing, standbys.commitsWait))] : []),
    ...(schema === 'current' ? [] : [warn(say.schema(schema))]),
  ]
}

function ofQueues({ queue, smsQueue, webhooks, events }: Health): Trouble[] {
  const late = (backlog: Backlog, say: (since: string) => say.Told) => {
    const tone = ageTone(backlog)
    return tone ? [told(tone)(say(shortDuration(backlog.oldestMs ?? 0)))] : []
  }
  return [
    ...late(queue, (since) => say.late(pages.messages, since)),
    ...late(smsQueue, (since) => say.late('SMS', since)),
    ...late(webhooks, say.lateWebhooks),
    ...(eventsTone(events) ? [bad(say.lateEvents(shortDuration(events.behindMs)))] : []),
    ...(webhooks.failing > 0 ? [warn(say.failingEndpoints(webhooks.failing))] : []),
  ]
}
