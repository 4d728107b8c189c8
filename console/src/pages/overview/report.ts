/** The counts of messages, as reports have them. */
export type Summary = {
  accepted: number
  sent: number
  delivered: number
  read: number
  failed: number
  expired: number
  smsFallback: { sent: number; delivered: number; failed: number; skipped: number }
}

/** A day of UTC, as reports count. */
export function dayAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)
}
