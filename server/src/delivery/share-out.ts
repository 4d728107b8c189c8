import type { Lane } from './lanes.ts'

export type Share = {
  /** How many calls the worker can make now. */
  free: number
  /** The calls that the worker makes now, by account. */
  calls: ReadonlyMap<number, number>
  /** How many messages the carrier, and each agent, may send; infinite where no rate is set. */
  carrierTurns: number
  agentTurns: (lane: Lane) => number
}

/**
 * Says which lane each of the next calls is for. Transactional before campaign; of each kind one of every account before the second of any,
 * and of an account one of every lane; where turns are few, the account that waited longest first. So a million entries of one account
 * delay a single one of another by no more than the batch that is being sent.
 *
 * No account gets more than its share of the free calls.
 */
export function shareOut(lanes: readonly Lane[], share: Share): Lane[] {
  const left = createLimits(lanes, share)
  const shared: Lane[] = []
  const byPriority = [...Map.groupBy(lanes, ({ priority }) => priority)].sort(([a], [b]) => a - b)
  for (const [, ofPriority] of byPriority) {
    let accounts = inTurn(ofPriority)
    while (accounts.length > 0 && left.isAny()) accounts = accounts.filter((own) => takeOne(own, left, shared))
  }
  return shared
}

/**
 * How many more calls an account may make: half of the free calls and its own, rounded up, less its own. So the others have room while the calls
 * of one account hang. Negative if other accounts make most of the calls.
 */
export function shareOf(accountId: number, free: number, calls: ReadonlyMap<number, number>): number {
  return Math.floor((free - (calls.get(accountId) ?? 0) + 1) / 2)
}

/** The lanes of each account, first the account that waited longest, and of an account the lane that was due first. */
function inTurn(lanes: Lane[]): Lane[][] {
  const lastServed = (own: Lane[]) => Math.max(...own.map(({ servedAt }) => servedAt))
  const firstDue = (own: Lane[]) => Math.min(...own.map(({ dueAt }) => dueAt))
  const accounts = [...Map.groupBy(lanes, ({ accountId }) => accountId).values()]
  for (const own of accounts) own.sort((a, b) => a.dueAt - b.dueAt)
  return accounts.sort((a, b) => lastServed(a) - lastServed(b) || firstDue(a) - firstDue(b))
}

/** Takes one of the account's next lane, which then comes behind its other lanes. Says whether there was one. */
function takeOne(own: Lane[], left: ReturnType<typeof createLimits>, shared: Lane[]): boolean {
  const place = own.findIndex(left.allows)
  if (place < 0) return false
  const [lane] = own.splice(place, 1) as [Lane]
  own.push(lane)
  left.use(lane)
  shared.push(lane)
  return true
}

/** What is left of the free calls, and of the share of each lane, account and agent. */
function createLimits(lanes: readonly Lane[], { free, calls, carrierTurns, agentTurns }: Share) {
  let all = Math.min(free, carrierTurns)
  const ofLane = new Map(lanes.map((lane) => [lane, lane.due]))
  const ofAccount = new Map(lanes.map(({ accountId }) => [accountId, shareOf(accountId, free, calls)]))
  const ofAgent = new Map(lanes.map((lane) => [lane.agentId, agentTurns(lane)]))
  const less = <Key>(counts: Map<Key, number>, key: Key) => counts.set(key, (counts.get(key) ?? 0) - 1)
  return {
    isAny: () => all > 0,
    allows: (lane: Lane) =>
      all > 0 && (ofLane.get(lane) ?? 0) > 0 && (ofAccount.get(lane.accountId) ?? 0) > 0 && (ofAgent.get(lane.agentId) ?? 0) > 0,
    use: (lane: Lane) => {
      all -= 1
      less(ofLane, lane)
      less(ofAccount, lane.accountId)
      less(ofAgent, lane.agentId)
    },
  }
}
