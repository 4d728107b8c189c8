import type { Store } from '../state/store.ts'

/** Everything that happens is one of these; checkers count them. */
export type LedgerKind =
  | 'accepted'
  | 'repeated'
  | 'refused'
  | 'agent-event'
  | 'delivered'
  | 'read'
  | 'revoked'
  | 'expired'
  | 'answered'
  | 'sms-part'
  | 'sms-refused'
  | 'sms-delivered'
  | 'sms-failed'
  | 'webhook-accepted'
  | 'webhook-lost'
  | 'webhook-dropped'
  | 'receipt-accepted'
  | 'receipt-lost'

export type LedgerEntry = {
  kind: LedgerKind
  channel: 'rcs' | 'sms'
  phone: string
  messageId: string
  /** The agent, or the sender of an SMS. */
  origin: string
  detail?: Record<string, unknown>
}

export type Ledger = {
  write: (entry: LedgerEntry) => void
  counts: () => Record<string, number>
}

/** Totals are kept in memory and written with each commit, one row for each kind that changed, instead of being counted. */
export function createLedger(store: Store): Ledger {
  const rows = store.all<{ kind: string; total: number }>('select kind, total from counts')
  const totals = new Map(rows.map(({ kind, total }) => [kind, total]))
  const changed = new Set<string>()

  store.beforeCommit(() => {
    for (const kind of changed) {
      store.run(
        'insert into counts (kind, total) values (?, ?) on conflict (kind) do update set total = excluded.total',
        kind,
        totals.get(kind) ?? 0,
      )
    }
    changed.clear()
  })

  return {
    write: ({ kind, channel, phone, messageId, origin, detail }) => {
      store.run(
        'insert into ledger (at, kind, channel, phone, message_id, origin, detail) values (?, ?, ?, ?, ?, ?, ?)',
        Date.now(),
        kind,
        channel,
        phone,
        messageId,
        origin,
        detail === undefined ? null : JSON.stringify(detail),
      )
      totals.set(kind, (totals.get(kind) ?? 0) + 1)
      changed.add(kind)
    },
    counts: () => Object.fromEntries(totals),
  }
}

type LedgerRow = {
  seq: number
  at: number
  kind: string
  channel: string
  phone: string
  message_id: string
  origin: string
  detail: string | null
}

export function readLedger(store: Store, after: number, limit: number) {
  const rows = store.all<LedgerRow>('select * from ledger where seq > ? order by seq limit ?', after, limit)
  return rows.map((row) => ({
    seq: row.seq,
    at: new Date(row.at).toISOString(),
    kind: row.kind,
    channel: row.channel,
    phone: row.phone,
    messageId: row.message_id,
    ...(row.channel === 'sms' ? { sender: row.origin } : { agentId: row.origin }),
    ...(row.detail === null ? {} : { detail: JSON.parse(row.detail) }),
  }))
}
