/** Work that nobody waits for now, and that has to have ended before the end. */
export function createUnderWay() {
  const works = new Set<Promise<void>>()
  return {
    add: (work: Promise<void>): void => {
      const tracked = work.finally(() => works.delete(tracked))
      works.add(tracked)
    },
    ended: async (): Promise<void> => {
      await Promise.all(works)
    },
  }
}
