import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from '../../src/db/pool.ts'
import { createTable } from './database.ts'

/** Measures the longest stall of this process and of the database: on a busy machine, a message can be late by that. */
export function watchStalls(pool: Pool): { end: () => Promise<number> } {
  const loop = monitorEventLoopDelay({ resolution: 5 })
  loop.enable()
  let slowestCommitMs = 0
  let isOver = false
  async function commit(): Promise<void> {
    await createTable(pool, 'stalls ()')
    while (!isOver) {
      const from = performance.now()
      await pool.query('insert into stalls default values')
      slowestCommitMs = Math.max(slowestCommitMs, performance.now() - from)
      await sleep(5)
    }
  }
  const committing = commit()
  return {
    end: async () => {
      isOver = true
      await committing
      loop.disable()
      return Math.max(loop.max / 1e6, slowestCommitMs)
    },
  }
}
