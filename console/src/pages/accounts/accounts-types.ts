// The responses of the admin API about accounts.

export type Module = 'rcs' | 'sms'

export type Account = { accountId: number; name: string; modules: Module[]; quarantineHours: number; suspendedAt?: string }

/** What may need a look in an account. The counts of messages are those of the last 24 hours. */
export type Figures = {
  accountId: number
  oldestDueMs: number | null
  failingEndpoints: number
  accepted: number
  failed: number
  quotaUsed: number
}

export type Waiting = { messages: number; sms: number; campaigns: number }

export const QUOTA_NAMES = ['messagesPerDay', 'templates', 'storedBytes', 'exports'] as const
export type QuotaName = (typeof QUOTA_NAMES)[number]
/** `used`: absent for exports, which each node counts for itself. */
export type Quotas = Record<QuotaName, { quota: number; isDefault: boolean; used?: number }>

export const MODULES: Module[] = ['rcs', 'sms']
