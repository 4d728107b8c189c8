import type { Lane } from './lanes.ts'

type Share = {
  /** How many calls the worker can make now. */
  free: number
  /** The worker's running calls, by account. */
  calls: ReadonlyMap<number, number>
  /** How many slots the carrier and each agent have; infinite without a rate. */
  carrierSlots: number
  agentSlots: (lane: Lane) => number
}

/**
 * Decides which lane each of the next calls is for. Transactional messages come before campaigns. Within a priority, each account gets one call
 * before any account gets a second one; within an account, so does each lane. The account that waited longest comes first. So a million entries
 * of one account delay a single entry of another by at most the batch that is being sent.
 *
 * No account gets more than its share of the free calls (shareOf).
 */
export function shareOut(lanes: readonly Lane[], share: Share): Lane[] {
  const left = createLimits(lanes, share)
  const shared: Lane[] = []
  const byPriority = [...Map.groupBy(lanes, ({ priority }) => priority)].sort(([a], [b]) => a - b)
  for (const [, ofPriority] of byPriority) {
    let accounts = accountsInOrder(ofPriority)
    while (accounts.length > 0 && left.isAny()) accounts = accounts.filter((own) => shareOne(own, left, shared))
  }
  return shared
}

/**
 * How many more calls an account may make: half of the sum of the free calls and its own calls, rounded up, less its own calls. So other accounts
 * have room while the calls of one account hang. The result is negative if its own calls outnumber the free calls.
 */
export function shareOf(accountId: number, free: number, calls: ReadonlyMap<number, number>): number {
  return Math.floor((free - (calls.get(accountId) ?? 0) + 1) / 2)
}

/** Groups lanes by account. The account that waited longest comes first; within an account, the lane that was due first. */
function accountsInOrder(lanes: Lane[]): Lane[][] {
  const lastServed = (own: Lane[]) => Math.max(...own.map(({ servedAt }) => servedAt))
  const firstDue = (own: Lane[]) => Math.min(...own.map(({ dueAt }) => dueAt))
  const accounts = [...Map.groupBy(lanes, ({ accountId }) => accountId).values()]
  for (const own of accounts) own.sort((a, b) => a.dueAt - b.dueAt)
  return accounts.sort((a, b) => lastServed(a) - lastServed(b) || firstDue(a) - firstDue(b))
}

/** Gives a call to the account's next lane, and moves that lane behind its other lanes. Returns false if no lane may get one. */
function shareOne(own: Lane[], left: ReturnType<typeof createLimits>, shared: Lane[]): boolean {
  const index = own.findIndex(left.allows)
  if (index < 0) return false
  const [lane] = own.splice(index, 1) as [Lane]
  own.push(lane)
  left.use(lane)
  shared.push(lane)
  return true
}

/** What is left of the free calls, and of the limits of each lane, account and agent. */
function createLimits(lanes: readonly Lane[], { free, calls, carrierSlots, agentSlots }: Share) {
  let all = Math.min(free, carrierSlots)
  const ofLane = new Map(lanes.map((lane) => [lane, lane.due]))
  const ofAccount = new Map(lanes.map(({ accountId }) => [accountId, shareOf(accountId, free, calls)]))
  const ofAgent = new Map(lanes.map((lane) => [lane.agentId, agentSlots(lane)]))
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
