import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createBatcher } from '../../src/db/batcher.ts'
import { isUnavailable, Overloaded } from '../../src/db/pool.ts'

describe('the batcher', () => {
  test('gathers items while a batch runs, and gives every caller its own result', async () => {
    const batches: number[][] = []
    let release = () => {}
    const double = createBatcher<number, number>(
      async (items) => {
        batches.push(items)
        await new Promise<void>((resolve) => {
          release = resolve
        })
        return items.map((item) => item * 2)
      },
      { maxItems: 3 },
    )
    const first = [double(1), double(2)]
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    assert.deepEqual(batches, [[1, 2]])
    const second = [3, 4, 5, 6].map(double)
    await new Promise(setImmediate)
    assert.equal(batches.length, 1, 'one batch at a time')
    release()
    assert.deepEqual(await Promise.all(first), [2, 4])
    await new Promise(setImmediate)
    release()
    await new Promise(setImmediate)
    release()
    assert.deepEqual(await Promise.all(second), [6, 8, 10, 12])
    assert.deepEqual(batches, [[1, 2], [3, 4, 5], [6]])
  })

  test('gathers items for the given time, and does not wait for a full batch or 50 items', async () => {
    const batches: number[][] = []
    const run = async (items: number[]) => {
      batches.push(items)
      return items
    }
    // Longer than the test takes: only a full batch runs.
    const full = createBatcher<number, number>(run, { maxItems: 3, gatherMs: 3_600_000 })
    assert.deepEqual(await Promise.all([1, 2, 3].map(full)), [1, 2, 3])
    const fifty = Array.from({ length: 50 }, (_, n) => n)
    const large = createBatcher<number, number>(async (items) => items, { maxItems: 500, gatherMs: 3_600_000 })
    assert.deepEqual(await Promise.all(fifty.map(large)), fifty)
    const gathering = createBatcher<number, number>(run, { maxItems: 3, gatherMs: 50 })
    const first = gathering(4)
    // More turns of the event loop than a batcher without a time waits.
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate)
    assert.deepEqual(await Promise.all([first, gathering(5)]), [4, 5])
    assert.deepEqual(batches, [
      [1, 2, 3],
      [4, 5],
    ])
  })

  test('runs each item alone after a batch fails for its data, and fails only the bad ones', async () => {
    const runs: string[][] = []
    const run = createBatcher<string, string>(
      async (items) => {
        runs.push(items)
        if (items.includes('bad')) throw new Error(`refused with ${items.length}`)
        return items.map((item) => `${item}!`)
      },
      { maxItems: 3 },
    )
    const outcomes = await Promise.allSettled(['before', 'bad', 'after', 'next'].map(run))
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.message)),
      ['before!', 'refused with 1', 'after!', 'next!'],
    )
    assert.deepEqual(runs, [['before', 'bad', 'after'], ['before'], ['bad'], ['after'], ['next']])
    assert.equal(await run('later'), 'later!')
  })

  test('does not repeat a single item that fails', async () => {
    let runs = 0
    const run = createBatcher<string, string>(
      async () => {
        runs += 1
        throw new Error('refused')
      },
      { maxItems: 3 },
    )
    await assert.rejects(run('bad'), /^Error: refused$/)
    assert.equal(runs, 1)
  })

  test('fails all items when the database becomes unreachable while they run alone', async () => {
    const gone = Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })
    const runs: string[][] = []
    const run = createBatcher<string, string>(
      async (items) => {
        runs.push(items)
        throw items.length > 1 ? new Error('refused') : gone
      },
      { maxItems: 4 },
    )
    const outcomes = await Promise.allSettled(['one', 'two', 'three', 'four', 'five'].map(run))
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason),
      [gone, gone, gone, gone, gone],
    )
    assert.deepEqual(runs, [['one', 'two', 'three', 'four'], ['one']], 'each would wait for the same timeout')
  })

  test('runs every item once and returns its own result, for any timing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 40 }),
        async (scheduler, maxItems, count) => {
          const seen: number[] = []
          const run = createBatcher<number, string>(
            async (items) => {
              assert.ok(items.length <= maxItems)
              seen.push(...items)
              await scheduler.schedule(Promise.resolve())
              return items.map((item) => `r${item}`)
            },
            { maxItems, maxWaiting: 100 },
          )
          const results = Promise.all(
            Array.from({ length: count }, (_, item) => scheduler.schedule(Promise.resolve()).then(() => run(item))),
          )
          await scheduler.waitFor(results)
          assert.deepEqual(
            await results,
            Array.from({ length: count }, (_, item) => `r${item}`),
          )
          assert.deepEqual(
            seen.toSorted((one, two) => one - two),
            Array.from({ length: count }, (_, item) => item),
          )
        },
      ),
      { numRuns: 50 },
    )
  })

  test('fails all waiting items when the database is unreachable, and new ones when too many wait', async () => {
    const gone = Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })
    let runs = 0
    const run = createBatcher<number, number>(
      async () => {
        runs += 1
        throw gone
      },
      { maxItems: 2, maxWaiting: 5 },
    )
    const outcomes = await Promise.allSettled(Array.from({ length: 7 }, (_, item) => run(item)))
    const reasons = outcomes.map((outcome) => (outcome as PromiseRejectedResult).reason)
    assert.equal(runs, 1)
    assert.deepEqual(
      reasons.slice(0, 5),
      Array.from({ length: 5 }, () => gone),
    )
    assert.ok(reasons.slice(5).every((reason) => reason instanceof Overloaded && isUnavailable(reason)))
  })
})
