import { quotaExceeded } from '../../accounts/quotas.ts'
import { ApiError } from '../../errors.ts'

export const EXPORTS_PER_NODE = 8

// The end of a running export is unknown. An export of a million messages takes some ten seconds.
const RETRY_AFTER_SECONDS = '10'

/** Takes an export slot for an account with this quota, or throws. The returned function releases the slot. */
export type TakeSlot = (accountId: number, quota: number) => () => void

/** Limits exports: each one holds a connection and a snapshot of the database for as long as its client takes to read it. */
export function createExportSlots(): TakeSlot {
  const taken: number[] = []
  return (accountId, quota) => {
    const own = taken.filter((id) => id === accountId).length
    if (own >= quota) throw quotaExceeded('exports', quota, own)
    if (taken.length >= EXPORTS_PER_NODE) throw nodeIsFull()
    taken.push(accountId)
    return () => void taken.splice(taken.indexOf(accountId), 1)
  }
}

function nodeIsFull(): ApiError {
  const reason = `This node already runs ${EXPORTS_PER_NODE} exports, the maximum; try again later.`
  return new ApiError('RCS_UNAVAILABLE', { headers: { 'Retry-After': RETRY_AFTER_SECONDS }, details: [{ path: '', reason }] })
}
