// Refuses an address that has failed to prove itself too often, before anything of its requests is read. An address that has proved itself
// within the last hour is never refused: behind a proxy that is not trusted, an attacker and the network can have the same one.

const MOST_FAILURES = 30
const WINDOW_MS = 60_000
const TRUSTED_MS = 3_600_000
const MOST_ADDRESSES = 10_000

type AddressRecord = { failures: number; windowEndsAt: number; trustedUntil: number }

export type FailureGate = {
  /** How long this address is refused, in milliseconds; 0 where it is not. */
  refusedForMs: (address: string) => number
  note: (address: string, outcome: 'proved' | 'failed') => void
}

export function createFailureGate(now: () => number = () => performance.now()): FailureGate {
  const records = new Map<string, AddressRecord>()
  return {
    refusedForMs: (address) => {
      const record = records.get(address)
      if (record === undefined || record.failures < MOST_FAILURES || record.trustedUntil > now()) return 0
      return Math.max(0, record.windowEndsAt - now())
    },
    note: (address, outcome) => {
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
    },
  }
}
