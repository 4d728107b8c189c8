type Waiting = { owner: string; start: () => void }

/** Waits for a slot and returns the function that releases it; undefined if too many wait already, in total or for the owner. */
type TakeSlot = (owner: string) => Promise<(() => void) | undefined>

/** Limits what runs at once: in the process, and for each owner. The rest waits in order; owners below their limit overtake the others. */
export function createSlots(limits: { total: number; perOwner: number; waiting: number; waitingPerOwner: number }): TakeSlot {
  const running: string[] = []
  const queue: Waiting[] = []

  const isFree = (owner: string) => running.length < limits.total && running.filter((each) => each === owner).length < limits.perOwner

  function startNext(): void {
    const index = queue.findIndex(({ owner }) => isFree(owner))
    if (index !== -1) queue.splice(index, 1)[0]?.start()
  }
  function take(owner: string): () => void {
    running.push(owner)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      running.splice(running.indexOf(owner), 1)
      startNext()
    }
  }
  return async (owner) => {
    if (isFree(owner)) return take(owner)
    const own = queue.filter((each) => each.owner === owner).length
    if (queue.length >= limits.waiting || own >= limits.waitingPerOwner) return undefined
    return await new Promise((resolve) => queue.push({ owner, start: () => resolve(take(owner)) }))
  }
}
