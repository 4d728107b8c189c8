import type { Scope } from '../../../../server/src/scopes.ts'
import { Pill } from '../../kit/display.tsx'
import * as keyWords from '../../words/en-keys.ts'

export type { Scope }

/** What a key is restricted to. An absent restriction: none. */
export type Restrictions = { scopes?: Scope[]; expiresAt?: string; addresses?: string[] }

export type Key = Restrictions & { integrationKey: string; createdAt: string; lastUsedAt?: string; rotatedAt?: string; revokedAt?: string }

export const STATUSES = ['ACTIVE', 'EXPIRED', 'REVOKED'] as const
type Status = (typeof STATUSES)[number]

/** The path of the keys in the admin API, or of one key. */
export const pathOf = (accountId: number, integrationKey?: string, more = '') =>
  `/accounts/${accountId}/keys${integrationKey === undefined ? '' : `/${encodeURIComponent(integrationKey)}`}${more}`

/** `inMs`: the status that the key has after this time, if nobody changes it. */
export function statusOf({ revokedAt, expiresAt }: Key, inMs = 0): Status {
  if (revokedAt !== undefined) return 'REVOKED'
  return expiresAt !== undefined && Date.parse(expiresAt) <= Date.now() + inMs ? 'EXPIRED' : 'ACTIVE'
}

/** Time enough to rotate a key before it expires. */
const SOON_MS = 14 * 86_400_000
const TONES = { ACTIVE: 'good', EXPIRED: 'bad', REVOKED: 'plain' } as const

/** How a key is, in a word and a colour. */
export function Health({ item: key }: { item: Key }) {
  const status = statusOf(key)
  if (status === 'ACTIVE' && statusOf(key, SOON_MS) === 'EXPIRED') return <Pill tone="warn">{keyWords.expiresSoon}</Pill>
  return <Pill tone={TONES[status]}>{keyWords.statuses[status]}</Pill>
}

/** Herald stores the use of a key at most once a minute, so a key that is in use was never last used longer ago than this. */
const IN_USE_MS = 120_000

/** How long ago the key was last used. */
export const unusedMs = ({ lastUsedAt }: Key) => (lastUsedAt === undefined ? Infinity : Math.max(0, Date.now() - Date.parse(lastUsedAt)))

export const isInUse = (key: Key) => unusedMs(key) < IN_USE_MS
