import { quotaExceeded } from '../../accounts/quotas.ts'
import { ApiError } from '../../errors.ts'

export const MOST_OF_NODE = 8

// Nobody knows when one of them ends. A million messages take some ten seconds.
const RETRY_AFTER_SECONDS = '10'

/** Takes an export slot for an account that may have `quota` of them, or throws; the function that it returns releases the slot. */
export type TakePlace = (accountId: number, quota: number) => () => void

/** Each export holds a connection and a snapshot of the database for as long as its client takes to read it. */
export function createPlaces(): TakePlace {
  const taken = new Map<number, number>()
  let all = 0
  return (accountId, quota) => {
    const own = taken.get(accountId) ?? 0
    if (own >= quota) throw quotaExceeded('exports', quota, own)
    if (all >= MOST_OF_NODE) throw refusal(`This node already runs ${MOST_OF_NODE} exports, which is the most; try again in a while.`)
    taken.set(accountId, own + 1)
    all += 1
    return () => {
      const left = (taken.get(accountId) ?? 0) - 1
      if (left > 0) taken.set(accountId, left)
      else taken.delete(accountId)
      all -= 1
    }
  }
}

function refusal(reason: string): ApiError {
  return new ApiError('RCS_UNAVAILABLE', { headers: { 'Retry-After': RETRY_AFTER_SECONDS }, details: [{ path: '', reason }] })
}
