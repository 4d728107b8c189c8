/** How many calls a worker makes, in all and for each account, and how many have ended since it last claimed. */
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
