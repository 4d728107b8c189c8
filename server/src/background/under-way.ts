/** Work that nobody waits for now, and that has to have ended before the end. */
export function createUnderWay() {
  const works = new Set<Promise<void>>()
  return {
    add: (work: Promise<void>): void => {
      const tracked = work.finally(() => works.delete(tracked))
      works.add(tracked)
    },
    /** Waits for work that is added meanwhile, too. */
    ended: async (): Promise<void> => {
      while (works.size > 0) await Promise.all(works)
    },
  }
}
