import type { DatabaseOutage, Scripted } from '../history/scripted.ts'
import { accepted, type Probe } from '../load/probes.ts'
import { seconds } from '../support/progress.ts'
import type { Role } from '../topology/node.ts'
import { isStarved } from './causes.ts'
import { type Check, least } from './result.ts'

// What scripted cases have recorded. A check whose record the run does not have is left out.

/** By the record that it needs. */
export const SCRIPTED_CHECKS: Record<keyof Scripted, Record<string, Check>> = {
  cases: { 'every case reached its instant': (history) => checkCases(history) },
  counters: { 'counters equal rows during faults': ({ scripted }) => scripted.counters ?? { compared: 0, wrong: [] } },
  outages: { 'a database that is away is a 503 within 5 s': (history) => checkOutages(history) },
  halts: { 'a stopped campaign sends nothing': (history) => checkHalts(history) },
  stops: { 'a stopped node responds to what it has begun': (history) => checkStops(history) },
  shares: { 'both nodes of each role do a share': (history) => checkShares(history) },
  failovers: {
    'service goes on by itself after a failover': (history) => checkFailovers(history),
    'a primary that comes back is left alone': (history) => checkComebacks(history),
  },
  unconfirmed: { 'what only the primary has counts as not accepted': (history) => checkUnconfirmed(history) },
}

const checkCases: Check = ({ scripted: { cases = [] } }) => ({
  compared: cases.length,
  wrong: cases.flatMap(({ name, error }) => (error === undefined ? [] : [`${name}: ${error}`])),
})

const RESPONSE_LIMIT_MS = 5_000
const OK = { send: 202, read: 200, ready: 200 }

const checkOutages: Check = ({ scripted: { outages = [] }, stalls }) => {
  const isMeanwhile = ({ from, to }: DatabaseOutage, { sentAt, respondedAt }: Probe) => sentAt > from && respondedAt < to
  function isWrong(outage: DatabaseOutage, probe: Probe): boolean {
    const { kind, status, sentAt, respondedAt } = probe
    const isServed = status === OK[kind]
    if (isMeanwhile(outage, probe) && isServed && !(outage.servesReads && kind !== 'send')) return true
    const isLate = respondedAt - sentAt >= RESPONSE_LIMIT_MS
    return (isLate || (!isServed && status !== 503)) && !isStarved({ from: sentAt, to: respondedAt }, stalls)
  }
  const describe = ({ what, from }: DatabaseOutage, { kind, key, status, sentAt, respondedAt }: Probe) =>
    `${what}: ${kind} ${key}, ${seconds(sentAt - from)} after its begin: ${status || 'no response'} after ${respondedAt - sentAt} ms`
  const hasResumed = ({ to, resumedMs, limitMs }: DatabaseOutage) =>
    resumedMs < limitMs || isStarved({ from: to, to: to + resumedMs }, stalls)
  return {
    compared: least(outages.map((outage) => outage.probes.filter((probe) => isMeanwhile(outage, probe)).length)),
    wrong: outages.flatMap((outage) => [
      ...outage.probes.filter((probe) => isWrong(outage, probe)).map((probe) => describe(outage, probe)),
      ...outage.ready.map((node) => `${outage.what}: ${node} said that it was ready`),
      ...(hasResumed(outage) ? [] : [`${outage.what}: messages got through again only after ${seconds(outage.resumedMs)}`]),
    ]),
    note: outages.map(({ what, resumedMs }) => `${what}, resumed after ${seconds(resumedMs)}`).join('; '),
  }
}

const checkHalts: Check = ({ scripted: { halts = [] }, ledger, messages }) => {
  const accepted = ledger.filter(({ kind }) => kind === 'accepted').map(({ messageId, at }) => ({ messageId, at: Date.parse(at) }))
  const campaignOf = new Map(messages.map(({ id, campaignId }) => [id, campaignId]))
  return {
    compared: least(halts.map(({ waiting }) => waiting.length)),
    wrong: halts.flatMap(({ campaignId, waiting, from, to }) => {
      const held = new Set(waiting)
      return accepted
        .filter(({ messageId, at }) => at < to && (held.has(messageId) || (at > from && campaignOf.get(messageId) === campaignId)))
        .map(({ messageId, at }) => `${messageId} went out at ${new Date(at).toISOString()}, and campaign ${campaignId} was stopped`)
    }),
  }
}

const STOPPED_WITHIN_MS = 10_000

/** A request without a response from a node that was stopped in order has created nothing: the node had not begun it. */
const checkStops: Check = ({ scripted: { stops = [] }, keys }) => {
  const created = new Set(keys.map(({ key }) => key))
  const probes = stops.flatMap((stop) => stop.probes)
  return {
    compared: accepted(probes).length,
    wrong: [
      ...probes.filter(({ status, key }) => status === 0 && created.has(key)).map(({ key }) => `key ${key} was used, and had no response`),
      ...stops.filter(({ tookMs }) => !(tookMs < STOPPED_WITHIN_MS)).map(({ node, tookMs }) => `${node} took ${seconds(tookMs)} to stop`),
    ],
  }
}

/** A webhooks node that has an endpoint keeps it, and there are four: one node may have them all for as long as it runs. */
const LEAST_SHARES: Record<Role, number> = { api: 0.2, delivery: 0.2, webhooks: 0.001 }

const checkShares: Check = ({ scripted: { shares = [] } }) => {
  const all = [...Map.groupBy(shares, ({ role }) => role).values()].flatMap((ofRole) => {
    const whole = ofRole.reduce((sum, { done }) => sum + done, 0)
    return ofRole.map(({ node, role, done }) => ({ node, role, share: done / whole }))
  })
  return {
    compared: all.length,
    wrong: all.filter(({ role, share }) => !(share >= LEAST_SHARES[role])).map(({ node }) => `${node} did next to nothing`),
    note: all.map(({ node, share }) => `${node} ${Math.round(share * 100)} %`).join(', '),
  }
}

const RESUMED_WITHIN_MS = 10_000

const checkFailovers: Check = ({ scripted: { failovers = [] } }) => ({
  compared: failovers.length,
  wrong: failovers
    .filter(({ resumedMs }) => !(resumedMs < RESUMED_WITHIN_MS))
    .map(({ manner, resumedMs }) => `${manner}: accepted again only ${seconds(resumedMs)} after there was a primary`),
  note: failovers.map(({ manner, withoutServiceMs }) => `${manner} ${seconds(withoutServiceMs)} without service`).join(', '),
})

/** The new primary has all messages that the old one shows. */
const checkComebacks: Check = ({ scripted: { failovers = [] }, messages }) => {
  const known = new Set(messages.map(({ id }) => id))
  return {
    compared: failovers.length,
    wrong: failovers.flatMap(({ comeback }) => {
      if (comeback === undefined) return []
      const { visible, newConnections, newMessages } = comeback
      return [
        ...[...visible.difference(known)].map((id) => `the old primary shows ${id}, which the new one does not have`),
        ...(newConnections > 0 ? [`${newConnections} nodes connected to the old primary`] : []),
        ...(newMessages > 0 ? [`${newMessages} messages were stored at the old primary`] : []),
      ]
    }),
  }
}

const checkUnconfirmed: Check = ({ scripted: { unconfirmed } }) => {
  const { meanwhile, wasOnPrimary, isOnStandby } = unconfirmed as NonNullable<Scripted['unconfirmed']>
  return {
    compared: meanwhile.length,
    wrong: [
      ...accepted(meanwhile).map(({ messageId }) => `${messageId} was accepted, and the standby did not have it`),
      ...(wasOnPrimary ? [] : ['the primary had no message that its standby did not have']),
      ...(isOnStandby ? [] : ['the standby never had the message']),
    ],
  }
}
