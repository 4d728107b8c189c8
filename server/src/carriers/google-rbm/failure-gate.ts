// Refuses requests from an address that sent too many requests without proof of their origin, before their body is read. An address that sent
// a proved request within the last hour is never refused: behind an untrusted proxy, an attacker and the network may have the same address.

const MAX_FAILURES = 30
const WINDOW_MS = 60_000
// More than a network has in progress when it begins to send. Without this limit, all of many concurrent requests would pass before the first
// one fails.
const MAX_CONCURRENT_REQUESTS = 100
const RETRY_CONCURRENT_MS = 1_000
const TRUSTED_MS = 3_600_000
const MAX_ADDRESSES = 10_000

type AddressRecord = { failures: number; windowEndsAt: number; trustedUntil: number }

export type FailureGate = {
  /** How long this address is refused, in milliseconds; 0 if it is not. */
  refusedForMs: (address: string) => number
  /** Call it for a request that is not refused. Call the returned function once, at the end of the request. */
  enter: (address: string) => (outcome: 'proved' | 'failed') => void
}

export function createFailureGate(now: () => number = () => performance.now()): FailureGate {
  const records = new Map<string, AddressRecord>()
  const inProgress = new Map<string, number>()

  function record(address: string, outcome: 'proved' | 'failed'): void {
    const time = now()
    const { failures, windowEndsAt, trustedUntil } = records.get(address) ?? { failures: 0, windowEndsAt: 0, trustedUntil: 0 }
    const isNewWindow = windowEndsAt <= time
    const failed = outcome === 'failed' ? 1 : 0
    // Delete before setting, so that the map keeps addresses in the order of their last request.
    records.delete(address)
    records.set(address, {
      failures: failed + (isNewWindow ? 0 : failures),
      windowEndsAt: isNewWindow ? time + WINDOW_MS : windowEndsAt,
      trustedUntil: outcome === 'proved' ? time + TRUSTED_MS : trustedUntil,
    })
    if (records.size > MAX_ADDRESSES) records.delete(records.keys().next().value as string)
  }

  function changeInProgress(address: string, change: 1 | -1): void {
    const count = (inProgress.get(address) ?? 0) + change
    if (count === 0) inProgress.delete(address)
    else inProgress.set(address, count)
  }

  return {
    refusedForMs: (address) => {
      const { failures = 0, windowEndsAt = 0, trustedUntil = 0 } = records.get(address) ?? {}
      if (trustedUntil > now()) return 0
      if (failures >= MAX_FAILURES && windowEndsAt > now()) return windowEndsAt - now()
      return (inProgress.get(address) ?? 0) >= MAX_CONCURRENT_REQUESTS ? RETRY_CONCURRENT_MS : 0
    },
    enter: (address) => {
      changeInProgress(address, 1)
      return (outcome) => {
        changeInProgress(address, -1)
        record(address, outcome)
      }
    },
  }
}
