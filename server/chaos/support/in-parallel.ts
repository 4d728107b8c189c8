/** Works on all items, on at most `width` of them at a time. */
export async function inParallel<T>(items: Iterable<T>, width: number, work: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]()
  async function next(): Promise<void> {
    for (let item = rest.next(); !item.done; item = rest.next()) await work(item.value)
  }
  await Promise.all(Array.from({ length: width }, next))
}
