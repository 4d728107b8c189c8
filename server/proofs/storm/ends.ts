import type { Stored } from './evidence.ts'

// Where a message may end, by what its phone does (its last two digits), how it was asked for, and what befell its campaign.

export type Asking = {
  phone: string
  /** It can run out within the run. */
  expires: boolean
  fallsBack: boolean
  fallsBackAfterExpiry: boolean
  isCancelled: boolean
}

const NOT_READ = new Set(['01', '09'])
const REFUSED: Record<string, string> = { '02': 'NOT_REACHABLE', '03': 'REJECTED', '08': 'NOT_REACHABLE' }

/** In the form that `endOf` has. */
export function allowedEnds({ phone, expires, isCancelled }: Asking): string[] {
  const ending = phone.slice(-2)
  const refusal = REFUSED[ending]
  const usual = refusal !== undefined ? `FAILED ${refusal}` : NOT_READ.has(ending) ? 'DELIVERED' : 'READ'
  return [...(ending === '04' ? [] : [usual]), ...(expires ? ['EXPIRED'] : []), ...(isCancelled ? ['FAILED CAMPAIGN_CANCELLED'] : [])]
}

export function endOf({ shown: { status, failure } }: Stored): string {
  return failure === undefined ? status : `${status} ${failure.reason}`
}

/** Of the SMS of a message that has come to this end. `OUTCOME_UNKNOWN`: at most once is what is promised. */
export function allowedSmsEnds(asking: Asking, end: string): string[] {
  const { phone, fallsBack, fallsBackAfterExpiry, isCancelled } = asking
  if (!fallsBack) return ['none']
  if (end === 'READ' || end === 'DELIVERED') return ['NOT_NEEDED RCS_DELIVERED']
  if (end === 'FAILED CAMPAIGN_CANCELLED') return ['SKIPPED CANCELLED']
  if (end === 'EXPIRED' && !fallsBackAfterExpiry) return ['SKIPPED EXPIRED']
  const trigger = end === 'EXPIRED' ? 'RCS_EXPIRED' : 'RCS_FAILED'
  const sent = phone.endsWith('08') ? 'FAILED UNDELIVERABLE' : `DELIVERED ${trigger}`
  // What the phone got too late makes the SMS needless, and can be answered with STOP.
  const late = end === 'EXPIRED' ? ['NOT_NEEDED RCS_DELIVERED', ...(phone.endsWith('09') ? ['SKIPPED OPTED_OUT'] : [])] : []
  return [sent, 'FAILED OUTCOME_UNKNOWN', ...late, ...(isCancelled ? ['SKIPPED CANCELLED'] : [])]
}

export function smsEndOf({ shown: { smsFallback } }: Stored): string {
  return smsFallback === undefined ? 'none' : `${smsFallback.status} ${smsFallback.reason ?? ''}`.trim()
}
