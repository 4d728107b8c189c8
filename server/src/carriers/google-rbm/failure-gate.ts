// Refuses an address that has failed to prove itself too often, before anything of its requests is read. An address that has proved itself
// within the last hour is never refused: behind a proxy that is not trusted, an attacker and the network can have the same one.

const MOST_FAILURES = 30
const WINDOW_MS = 60_000
// More than a network has under way when it begins. Without this, requests sent at once would all pass before the first has failed.
const MOST_UNDER_WAY = 100
const UNDER_WAY_MS = 1_000
const TRUSTED_MS = 3_600_000
const MOST_ADDRESSES = 10_000

type AddressRecord = { failures: number; windowEndsAt: number; trustedUntil: number }

export type FailureGate = {
  /** How long this address is refused, in milliseconds; 0 where it is not. */
  refusedForMs: (address: string) => number
  /** Call it for a request that is not refused; call what it returns once, when the request is over. */
  enter: (address: string) => (outcome: 'proved' | 'failed') => void
}

export function createFailureGate(now: () => number = () => performance.now()): FailureGate {
  const records = new Map<string, AddressRecord>()
  const underWay = new Map<string, number>()

  function note(address: string, outcome: 'proved' | 'failed'): void {
    const time = now()
    const { failures, windowEndsAt, trustedUntil } = records.get(address) ?? { failures: 0, windowEndsAt: 0, trustedUntil: 0 }
    const isNewWindow = windowEndsAt <= time
    const failed = outcome === 'failed' ? 1 : 0
    // Deleted and set again, so that the map keeps addresses in the order of their last request.
    records.delete(address)
    records.set(address, {
      failures: failed + (isNewWindow ? 0 : failures),
      windowEndsAt: isNewWindow ? time + WINDOW_MS : windowEndsAt,
      trustedUntil: outcome === 'proved' ? time + TRUSTED_MS : trustedUntil,
    })
    if (records.size > MOST_ADDRESSES) records.delete(records.keys().next().value as string)
  }

  function addUnderWay(address: string, change: 1 | -1): void {
    const count = (underWay.get(address) ?? 0) + change
    if (count === 0) underWay.delete(address)
    else underWay.set(address, count)
  }

  return {
    refusedForMs: (address) => {
      const { failures = 0, windowEndsAt = 0, trustedUntil = 0 } = records.get(address) ?? {}
      if (trustedUntil > now()) return 0
      if (failures >= MOST_FAILURES && windowEndsAt > now()) return windowEndsAt - now()
      return (underWay.get(address) ?? 0) >= MOST_UNDER_WAY ? UNDER_WAY_MS : 0
    },
    enter: (address) => {
      addUnderWay(address, 1)
      return (outcome) => {
        addUnderWay(address, -1)
        note(address, outcome)
      }
    },
  }
}
