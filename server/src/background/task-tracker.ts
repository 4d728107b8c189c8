/** Tracks tasks that run in the background, so that a shutdown can wait for them. */
export function createTaskTracker() {
  const tasks = new Set<Promise<void>>()
  return {
    add: (task: Promise<void>): void => {
      const tracked = task.finally(() => tasks.delete(tracked))
      tasks.add(tracked)
    },
    /** Returns when all tasks have ended, including tasks that are added meanwhile. */
    ended: async (): Promise<void> => {
      while (tasks.size > 0) await Promise.all(tasks)
    },
  }
}
