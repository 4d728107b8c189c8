import { quotaExceeded } from '../../accounts/quotas.ts'
import { ApiError } from '../../errors.ts'

export const MOST_OF_NODE = 8

// When an export ends is not known. A million messages take some ten seconds.
const RETRY_AFTER_SECONDS = '10'

/** Takes an export slot for an account that may have `quota` of them, or throws; the function that it returns releases the slot. */
export type TakePlace = (accountId: number, quota: number) => () => void

/** Each export holds a connection and a snapshot of the database for as long as its client takes to read it. */
export function createPlaces(): TakePlace {
  const taken: number[] = []
  return (accountId, quota) => {
    const own = taken.filter((id) => id === accountId).length
    if (own >= quota) throw quotaExceeded('exports', quota, own)
    if (taken.length >= MOST_OF_NODE) throw nodeIsFull()
    taken.push(accountId)
    return () => void taken.splice(taken.indexOf(accountId), 1)
  }
}

function nodeIsFull(): ApiError {
  const reason = `This node already runs ${MOST_OF_NODE} exports, which is the most; try again in a while.`
  return new ApiError('RCS_UNAVAILABLE', { headers: { 'Retry-After': RETRY_AFTER_SECONDS }, details: [{ path: '', reason }] })
}
