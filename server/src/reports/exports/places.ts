import { ApiError } from '../../errors.ts'

export const MOST_OF_ACCOUNT = 2
export const MOST_OF_NODE = 8

// Nobody knows when one of them ends. A million messages take some ten seconds.
const RETRY_AFTER_SECONDS = '10'

/** Takes a place for an export of an account, or refuses; what it returns gives it back. */
export type TakePlace = (accountId: number) => () => void

/** Each export holds a connection and a snapshot of the database for as long as its client takes to read it. */
export function createPlaces(): TakePlace {
  const taken = new Map<number, number>()
  let all = 0
  return (accountId) => {
    const own = taken.get(accountId) ?? 0
    if (own >= MOST_OF_ACCOUNT) {
      throw refusal(
        'RCS_RATE_LIMITED',
        `At most ${MOST_OF_ACCOUNT} exports of an account run at once; try again when one of them has ended.`,
      )
    }
    if (all >= MOST_OF_NODE)
      throw refusal('RCS_UNAVAILABLE', `At most ${MOST_OF_NODE} exports run at once, and as many do; try again in a while.`)
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

function refusal(code: 'RCS_RATE_LIMITED' | 'RCS_UNAVAILABLE', reason: string): ApiError {
  return new ApiError(code, { headers: { 'Retry-After': RETRY_AFTER_SECONDS }, details: [{ path: '', reason }] })
}
