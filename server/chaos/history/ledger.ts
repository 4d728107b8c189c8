/** An entry of the simulated network's ledger. `messageId`: ours by RCS, the network's own by SMS. */
export type LedgerEntry = {
  seq: number
  kind: string
  at: string
  phone: string
  messageId: string
  /** By RCS. */
  agentId?: string
  detail?: Record<string, unknown>
}

/** A request to the simulator's interface for tests. */
export type Ask = (path: string) => Promise<any>

/** All entries after `from`, in order. */
export async function readEntries({ ask }: { ask: Ask }, from = 0): Promise<LedgerEntry[]> {
  const all: LedgerEntry[] = []
  for (let after = from; ; ) {
    const { entries, next } = await ask(`ledger?after=${after}&limit=10000`)
    all.push(...entries)
    if (next === after) return all
    after = next
  }
}
