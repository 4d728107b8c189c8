import { isUnavailable, Overloaded } from './pool.ts'

/** Larger batches save little. When each batch waited for the full time, a network with 64 open requests sent half as many receipts. */
const GATHER_UP_TO = 50

/**
 * Makes one call for many callers. Items that arrive while a batch runs form the next batch: under load the batches grow by themselves, and a
 * single item does not wait. Set `gatherMs` if no caller is in a hurry: a batch then waits that long for up to 50 items, since a statement for
 * one item costs nearly as much as a statement for several.
 *
 * `run` gets the items in the order of arrival and returns one result for each, in the same order. If it throws, each item of the batch is run
 * alone, so that one bad item does not fail the others. But if the database is out of reach, every waiting item fails at once, so that
 * later batches do not run into the same timeout one after the other.
 */
export function createBatcher<Item, Result>(
  run: (items: Item[]) => Promise<Result[]>,
  options: { maxItems: number; maxWaiting?: number; gatherMs?: number },
): (item: Item) => Promise<Result> {
  type Waiting = { item: Item; resolve: (result: Result) => void; reject: (error: unknown) => void }
  const { maxItems, maxWaiting = 20 * maxItems, gatherMs = 0 } = options
  const enough = Math.min(maxItems, GATHER_UP_TO)
  let waiting: Waiting[] = []
  let running = false
  let onEnough = () => {}

  async function runBatch(batch: Waiting[]): Promise<void> {
    try {
      const results = await run(batch.map(({ item }) => item))
      if (results.length !== batch.length) throw new Error(`a batch of ${batch.length} got ${results.length} results`)
      batch.forEach(({ resolve }, index) => {
        resolve(results[index] as Result)
      })
    } catch (error) {
      await failBatch(batch, error)
    }
  }

  async function failBatch(batch: Waiting[], error: unknown): Promise<void> {
    if (isUnavailable(error)) {
      for (const { reject } of [...batch, ...waiting.splice(0)]) reject(error)
    } else if (batch.length === 1) batch[0]?.reject(error)
    else await runEachAlone(batch)
  }

  /** The rest of the batch waits with the other items, and fails with them if the database becomes unavailable. */
  async function runEachAlone(batch: Waiting[]): Promise<void> {
    const [first, ...rest] = batch as [Waiting, ...Waiting[]]
    waiting.unshift(...rest)
    await runBatch([first])
    for (const next of rest) if (waiting[0] === next) await runBatch(waiting.splice(0, 1))
  }

  async function drain(): Promise<void> {
    // Waits for one turn of the event loop, so that requests read in the same turn share the first batch.
    await new Promise(setImmediate)
    while (waiting.length > 0) {
      if (gatherMs > 0) await gather()
      const batch = waiting.slice(0, maxItems)
      waiting = waiting.slice(maxItems)
      await runBatch(batch)
    }
    running = false
  }

  /** Waits for `gatherMs`, or until there are enough items. */
  function gather(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, gatherMs)
      onEnough = () => {
        clearTimeout(timer)
        resolve()
      }
      if (waiting.length >= enough) onEnough()
    })
  }

  return (item) =>
    new Promise((resolve, reject) => {
      if (waiting.length >= maxWaiting) {
        reject(new Overloaded(`${waiting.length} items are already waiting`))
        return
      }
      waiting.push({ item, resolve, reject })
      if (waiting.length >= enough) onEnough()
      if (running) return
      running = true
      void drain()
    })
}
