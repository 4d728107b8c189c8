import type { Probe } from '../load/probes.ts'
import type { Role } from '../topology/node.ts'
import type { Compared } from './history.ts'

// What scripted cases have recorded. A random run has none of it.

/** The database was away, or no message could be committed (`servesReads`). `probes`: those that overlap. Times are of the clock. */
export type DatabaseOutage = {
  what: string
  from: number
  to: number
  servesReads: boolean
  probes: Probe[]
  /** Nodes that said during the outage that they could serve. */
  ready: string[]
  /** From its end until messages get through again, and how long that may take. */
  resumedMs: number
  limitMs: number
}

/** A campaign was stopped, and no call of it was under way. `waiting`: messages in the queue. `to`: infinite if it was cancelled. */
export type Halt = { campaignId: string; waiting: string[]; from: number; to: number }

/** A node was stopped in order. `probes`: what was sent to it meanwhile; none to a node without the API. */
export type Stop = { node: string; tookMs: number; probes: Probe[] }

/** How much each node has done, by its metrics. */
export type Share = { node: string; role: Role; done: number }

export type Failover = {
  manner: 'killed' | 'frozen' | 'cut off'
  /** From the last 202 before it to the first one after it. */
  withoutServiceMs: number
  /** From the moment that the address led to the new primary. */
  resumedMs: number
  /** What the old primary did when it came back; undefined if it was killed. */
  comeback: Comeback | undefined
}
/** `visible`: the messages that it shows. `lateWrites`: commits that wait there for ever. */
export type Comeback = { visible: Set<string>; lateWrites: number; newConnections: number; newMessages: number }

/** A message that only the primary had. `meanwhile`: the requests before its standby had it. */
export type Unconfirmed = { meanwhile: Probe[]; wasOnPrimary: boolean; isOnStandby: boolean }

/** `error`: why it failed. */
export type CaseResult = { name: string; error?: string }

/** `counters`: how often they were compared during the faults. Undefined: the run has no such case. */
export type Scripted = {
  cases?: CaseResult[]
  counters?: Compared
  outages?: DatabaseOutage[]
  halts?: Halt[]
  stops?: Stop[]
  shares?: Share[]
  failovers?: Failover[]
  unconfirmed?: Unconfirmed
}
