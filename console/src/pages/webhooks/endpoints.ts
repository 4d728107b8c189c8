import type { Tone } from '../../kit/display.tsx'
import * as webhookWords from '../../words/en-webhooks.ts'

export type Endpoint = {
  endpointId: number
  url: string
  /** Null: all. */
  types: string[] | null
  status: 'ACTIVE' | 'DISABLED'
  disabledAt?: string
  disabledBecause?: 'FAILING' | 'OPERATOR' | 'CALLER'
  failingSince?: string
  createdAt: string
  pending: number
  /** When the oldest pending event happened; absent if none is pending. */
  oldestPendingAt?: string
  failed: number
  secrets: { createdAt: string; endsAt?: string }[]
}

/** The response to a change. `missedSince`: the change enabled the endpoint, and a replay of all events since then posts what it missed. */
export type ChangedEndpoint = Endpoint & { missedSince?: string }

export type Attempt = {
  attemptId: string
  eventId?: string
  type?: string
  attempt: number
  attemptedAt: string
  status?: number
  error?: string
  durationMs: number
  response?: string
  nextAttemptAt?: string
}

export type Page<T> = { items: T[]; nextCursor: string | null }

export const isFailing = ({ failingSince, disabledBecause }: Endpoint) => failingSince !== undefined || disabledBecause === 'FAILING'

/** How an endpoint is, in a word and a colour. */
export function healthOf({ status, failingSince }: Endpoint): { text: string; tone: Tone } {
  if (status === 'DISABLED') return { text: webhookWords.disabled, tone: 'plain' }
  return failingSince === undefined ? { text: webhookWords.healthy, tone: 'good' } : { text: webhookWords.failing, tone: 'bad' }
}

/** The path of an endpoint in the admin API. */
export const pathOf = (accountId: number, endpointId: number, more = '') => `/accounts/${accountId}/webhook-endpoints/${endpointId}${more}`

export const typesOf = ({ types }: Endpoint) => types?.join(', ') ?? webhookWords.allTypes
