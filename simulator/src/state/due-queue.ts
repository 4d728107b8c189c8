/** An item that is due at a time. Of two items with the same time, the lower id comes first. */
type Due = { id: number; dueAt: number }

const isBefore = (one: Due, other: Due): boolean => one.dueAt < other.dueAt || (one.dueAt === other.dueAt && one.id < other.id)

/** Adds an item to a binary heap, whose first item is due first. A sorted array is a valid heap. */
export function pushDue<Item extends Due>(queue: Item[], item: Item): void {
  let at = queue.push(item) - 1
  while (at > 0) {
    const parent = (at - 1) >> 1
    const above = queue[parent] as Item
    if (isBefore(above, item)) break
    queue[at] = above
    at = parent
  }
  queue[at] = item
}

export function shiftDue<Item extends Due>(queue: Item[]): Item | undefined {
  const first = queue[0]
  const last = queue.pop()
  if (last === undefined || queue.length === 0) return first
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= queue.length) break
    if (child + 1 < queue.length && isBefore(queue[child + 1] as Item, queue[child] as Item)) child++
    const below = queue[child] as Item
    if (isBefore(last, below)) break
    queue[at] = below
    at = child
  }
  queue[at] = last
  return first
}

export const byDue = (one: Due, other: Due): number => (isBefore(one, other) ? -1 : 1)
