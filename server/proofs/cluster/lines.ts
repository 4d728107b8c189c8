import { seconds } from '../progress.ts'
import type { Evidence } from '../storm/evidence.ts'
import { countBy, type Line, listCounts } from '../storm/line.ts'
import type { Role } from '../storm/nodes.ts'
import type { Failover } from './failover.ts'
import { accepted, type Beat } from './pulse.ts'
import type { Stop } from './rolling.ts'
import type { Shares } from './shares.ts'
import type { Away, Misled, Unconfirmed } from './standby-away.ts'

// What the verdict on a cluster has beside that on a crash.

export type Course = { stops: Stop[]; shares: Shares; failovers: Failover[]; away: Away; misled: Misled; unconfirmed: Unconfirmed }

export function judgeCluster(course: Course, evidence: Evidence): Line[] {
  const { stops, shares, failovers, away, unconfirmed, misled } = course
  return [
    judgeStops(stops, evidence),
    judgeShares(shares),
    judgeFailovers(failovers),
    judgeComebacks(failovers, evidence),
    judgeAway(away),
    judgeUnconfirmed(unconfirmed),
    judgeMisled(misled),
  ]
}

const statusesOf = (beats: readonly Beat[]) =>
  listCounts(countBy(beats, ({ status }) => (status === 0 ? 'without an answer' : `answered ${status}`)))

const STOPPED_WITHIN_MS = 10_000

/** Whoever got no answer from a node that was stopped in order has made nothing there: it had not begun. */
export function judgeStops(stops: Stop[], { keys }: { keys: { key: string }[] }): Line {
  const made = new Set(keys.map(({ key }) => key))
  const beats = stops.flatMap((stop) => stop.beats)
  const longestMs = Math.max(...stops.map(({ tookMs }) => tookMs))
  const wrong = beats.filter(({ status, key }) => status === 0 && made.has(key)).map(({ key }) => `key ${key} was taken, and not answered`)
  wrong.push(
    ...stops.filter(({ tookMs }) => !(tookMs < STOPPED_WITHIN_MS)).map(({ node, tookMs }) => `${node} took ${seconds(tookMs)} to stop`),
  )
  if (accepted(beats).length === 0) wrong.push('nothing was asked meanwhile')
  return {
    promise: 'a node that is stopped answers what it has begun',
    figures: `${stops.length} stops, ${seconds(longestMs)} at the most; ${beats.length} requests meanwhile: ${statusesOf(beats)}`,
    wrong,
  }
}

/** Whoever serves an endpoint goes on with it, and there are two of them: one node may have both for as long as it lives. */
const LEAST_SHARES: Record<Role, number> = { api: 0.2, delivery: 0.2, webhooks: 0.001 }

export function judgeShares(shares: Shares): Line {
  const byRole = Map.groupBy(shares, ([, { role }]) => role)
  const all = [...byRole.values()].flatMap((nodes) => {
    const whole = nodes.reduce((sum, [, { done }]) => sum + done, 0)
    return nodes.map(([name, { role, done }]) => ({ name, role, share: done / whole }))
  })
  return {
    promise: 'both nodes of each role do a share',
    figures: all.map(({ name, share }) => `${name} ${Math.round(share * 100)} %`).join(', '),
    wrong: all.filter(({ role, share }) => !(share >= LEAST_SHARES[role])).map(({ name }) => `${name} did next to nothing`),
  }
}

const RESUMED_WITHIN_MS = 10_000

export function judgeFailovers(failovers: Failover[]): Line {
  const told = failovers.map(
    ({ manner, withoutServiceMs, resumedMs }) => `${manner} ${seconds(withoutServiceMs)}, ${seconds(resumedMs)} of it with a primary`,
  )
  return {
    promise: 'service goes on by itself after a failover',
    figures: `${failovers.length}; without service: ${told.join('; ')}`,
    wrong: failovers
      .filter(({ resumedMs }) => !(resumedMs < RESUMED_WITHIN_MS))
      .map(({ manner, resumedMs }) => `${manner}: accepted again only ${seconds(resumedMs)} after there was a primary`),
  }
}

/** What an old primary shows, the new one has: it goes its own way in nothing. */
export function judgeComebacks(failovers: Failover[], { messages }: { messages: { id: string }[] }): Line {
  const known = new Set(messages.map(({ id }) => id))
  const comebacks = failovers.flatMap(({ comeback }) => comeback ?? [])
  const late = comebacks.reduce((sum, { lateWrites }) => sum + lateWrites, 0)
  return {
    promise: 'a primary that comes back is left alone',
    figures: `${comebacks.length} came back; ${late} late changes waited there in vain`,
    wrong: comebacks.flatMap(({ visible, newConnections, newMessages }) => [
      ...[...visible.difference(known)].map((id) => `it shows ${id}, which the new primary does not have`),
      ...(newConnections > 0 ? [`${newConnections} nodes connected to it`] : []),
      ...(newMessages > 0 ? [`${newMessages} messages came to be there`] : []),
    ]),
  }
}

export function judgeAway({ beats, resumedMs }: Away): Line {
  const wrong = [
    ...accepted(beats).map(({ messageId }) => `${messageId} was accepted`),
    ...beats.filter(({ status }) => ![202, 503].includes(status)).map(({ key, status }) => `key ${key} was answered ${status}`),
    ...(resumedMs < RESUMED_WITHIN_MS ? [] : [`accepted again only ${seconds(resumedMs)} after it was back`]),
  ]
  if (beats.length === 0) wrong.push('nothing was asked meanwhile')
  return {
    promise: 'while the standby hangs, nothing is accepted',
    figures: `${beats.length} requests: ${statusesOf(beats)}; accepting ${seconds(resumedMs)} after it was back`,
    wrong,
  }
}

export function judgeUnconfirmed({ meanwhile, wasOnPrimary, isOnStandby }: Unconfirmed): Line {
  const wrong = accepted(meanwhile).map(({ messageId }) => `${messageId} was accepted, and the standby did not have it`)
  if (!wasOnPrimary) wrong.push('the primary had nothing that its standby had not')
  if (!isOnStandby) wrong.push('the standby never had it')
  return {
    promise: 'what only the primary has counts as not accepted',
    figures: `a message, asked for ${meanwhile.length} times: ${statusesOf(meanwhile)}; then accepted, and on both`,
    wrong,
  }
}

export function judgeMisled({ beats, ready, resumedMs }: Misled): Line {
  const wrong = [
    ...accepted(beats).map(({ messageId }) => `${messageId} was accepted at a standby`),
    ...beats.filter(({ status }) => ![202, 503].includes(status)).map(({ key, status }) => `key ${key} was answered ${status}`),
    ...ready.map((name) => `${name} said that it was ready`),
    ...(resumedMs < RESUMED_WITHIN_MS ? [] : [`accepted again only ${seconds(resumedMs)} after there was a primary`]),
  ]
  if (beats.length === 0) wrong.push('nothing was asked meanwhile')
  return {
    promise: 'a standby at the address is a database that is away',
    figures: `${beats.length} requests: ${statusesOf(beats)}; ${ready.length} nodes said that they were ready; accepting after ${seconds(resumedMs)}`,
    wrong,
  }
}
