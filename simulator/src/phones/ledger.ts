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

type Noted = LedgerEntry & { seq: number; at: number }

/** Entries and totals are kept in memory until the commit of their turn: one row for all entries, one for each total that changed. */
export function createLedger(store: Store): Ledger {
  const rows = store.all<{ kind: string; total: number }>('select kind, total from counts')
  const totals = new Map(rows.map(({ kind, total }) => [kind, total]))
  const changed = new Set<string>()
  let lastSeq = store.get<{ seq: number | null }>('select max(last_seq) as seq from ledger_pages')?.seq ?? 0
  let page: Noted[] = []

  store.beforeCommit(() => {
    if (page.length === 0) return
    const entries = JSON.stringify(page)
    page = []
    store.run('insert into ledger_pages (last_seq, entries) values (?, ?)', lastSeq, entries)
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
    write: (entry) => {
      store.begin()
      const { kind, channel, phone, messageId, origin, detail } = entry
      page.push({ seq: ++lastSeq, at: Date.now(), kind, channel, phone, messageId, origin, ...(detail && { detail }) })
      totals.set(kind, (totals.get(kind) ?? 0) + 1)
      changed.add(kind)
    },
    counts: () => Object.fromEntries(totals),
  }
}

/** What is committed, in order. A page has as many entries as its turn had, so pages are read one by one until there are enough. */
export function readLedger(store: Store, after: number, limit: number) {
  const found: Noted[] = []
  let last = after
  while (found.length < limit) {
    const row = store.get<{ last_seq: number; entries: string }>(
      'select last_seq, entries from ledger_pages where last_seq > ? order by last_seq limit 1',
      last,
    )
    if (row === undefined) break
    found.push(...(JSON.parse(row.entries) as Noted[]).filter(({ seq }) => seq > after))
    last = row.last_seq
  }
  return found.slice(0, limit).map(({ seq, at, kind, channel, phone, messageId, origin, detail }) => ({
    seq,
    at: new Date(at).toISOString(),
    kind,
    channel,
    phone,
    messageId,
    ...(channel === 'sms' ? { sender: origin } : { agentId: origin }),
    ...(detail && { detail }),
  }))
}
