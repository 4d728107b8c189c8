/** Counts the running calls of a worker, in total and for each account, and the calls that have ended since its last claim. */
export function createCallCount() {
  const byAccount = new Map<number, number>()
  let total = 0
  let ended = 0
  return {
    byAccount: byAccount as ReadonlyMap<number, number>,
    total: () => total,
    endedSinceClaim: () => ended,
    claimed: () => {
      ended = 0
    },
    begin: (accountId: number) => {
      total += 1
      byAccount.set(accountId, (byAccount.get(accountId) ?? 0) + 1)
    },
    end: (accountId: number) => {
      total -= 1
      ended += 1
      const left = (byAccount.get(accountId) ?? 0) - 1
      if (left > 0) byAccount.set(accountId, left)
      else byAccount.delete(accountId)
    },
  }
}
