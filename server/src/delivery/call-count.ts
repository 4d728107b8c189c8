/** How many calls a worker makes, in all and for each account. */
export function createCallCount() {
  const byAccount = new Map<number, number>()
  let total = 0
  return {
    byAccount: byAccount as ReadonlyMap<number, number>,
    total: () => total,
    begin: (accountId: number) => {
      total += 1
      byAccount.set(accountId, (byAccount.get(accountId) ?? 0) + 1)
    },
    end: (accountId: number) => {
      total -= 1
      const left = (byAccount.get(accountId) ?? 0) - 1
      if (left > 0) byAccount.set(accountId, left)
      else byAccount.delete(accountId)
    },
  }
}
