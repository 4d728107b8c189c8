import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createTestDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const { pool } = await createTestDatabase()

test('a completed statement does not keep the next ones in memory during minor garbage collections', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as (options?: { type: 'minor' }) => void
  let kept = 0
  let hasCleared = false
  const registry = new FinalizationRegistry((isStatement: boolean) => {
    if (isStatement) kept -= 1
    else hasCleared = true
  })
  async function ask(): Promise<unknown> {
    const values = [[1]]
    registry.register(values, true)
    kept += 1
    return await pool.query({ name: 'kept', text: 'select $1::int[]', values })
  }
  /** Collects garbage until the registry has reported at least one object that nothing refers to. */
  async function clear(how: () => void): Promise<void> {
    hasCleared = false
    registry.register({}, false)
    await until('the registry reports collected objects', () => {
      if (!hasCleared) how()
      return hasCleared
    })
  }

  for (let n = 0; n < 200; n++) await ask()
  await clear(gc)
  const before = kept
  // A statement that survives two minor collections moves to the old generation, which minor collections do not visit.
  const old = ask()
  gc({ type: 'minor' })
  gc({ type: 'minor' })
  await old
  for (let n = 0; n < 100; n++) await ask()
  await clear(() => gc({ type: 'minor' }))
  assert.ok(kept - before < 10, `${kept - before} of 101 statements are kept`)
})
