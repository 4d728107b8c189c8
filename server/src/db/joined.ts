import { AsyncLocalStorage } from 'node:async_hooks'
import type pg from 'pg'
import type { Executor, Pool } from './pool.ts'

// Lets a change and its entry in the audit log be one transaction, although the code that makes the change takes a pool and knows nothing of
// the audit log.

type Joined = { client: Executor; savepoints: number; turn: Promise<unknown>; afterCommit: (() => void)[] }

const current = new AsyncLocalStorage<Joined>()

/**
 * Runs `work` so that all joinable pools it uses run in the transaction of `tx`. The caller calls the functions in `afterCommit` after the commit.
 */
export function joinTransaction<T>(tx: Executor, work: () => Promise<T>, afterCommit: (() => void)[] = []): Promise<T> {
  return current.run({ client: tx, savepoints: 0, turn: Promise.resolve(), afterCommit }, work)
}

/** Calls `work` after the commit of the joined transaction; at once if there is none. */
export function afterCommit(work: () => void): void {
  const joined = current.getStore()
  if (joined === undefined) work()
  else joined.afterCommit.push(work)
}

/** The same connections as `pool`. Within `joinTransaction`, everything runs in its transaction instead. */
export function joinablePool(pool: Pool): Pool {
  return new Proxy(pool, {
    get(target, property) {
      const joined = current.getStore()
      if (joined !== undefined && property === 'query') return (...args: unknown[]) => queryAlone(joined, args)
      if (joined !== undefined && property === 'connect') return async () => nestedClient(joined)
      const value = Reflect.get(target, property)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

type Query = (...args: unknown[]) => Promise<pg.QueryResult>

/**
 * Runs a statement in a savepoint: without the joined transaction it would be a transaction of its own, and callers go on after its failure.
 * Statements take turns, since a savepoint must not contain a statement of another caller.
 */
async function queryAlone(joined: Joined, args: unknown[]): Promise<pg.QueryResult> {
  const run = async () => {
    const query = joined.client.query.bind(joined.client) as Query
    const name = nextSavepoint(joined)
    await query(`savepoint ${name}`)
    try {
      const result = await query(...args)
      await query(`release savepoint ${name}`)
      return result
    } catch (error) {
      await query(`rollback to savepoint ${name}`)
      throw error
    }
  }
  const mine = joined.turn.then(run, run)
  joined.turn = mine.catch(() => {})
  return await mine
}

function nextSavepoint(joined: Joined): string {
  joined.savepoints += 1
  return `joined_${joined.savepoints}`
}

/** A client for `transaction`: its transaction becomes a savepoint. */
function nestedClient(joined: Joined): object {
  const name = nextSavepoint(joined)
  const instead: Record<string, string> = {
    commit: `release savepoint ${name}`,
    rollback: `rollback to savepoint ${name}`,
  }
  const query: Query = async (text, ...rest) => {
    const isBegin = typeof text === 'string' && text.startsWith('begin ')
    const replaced = isBegin ? `savepoint ${name}` : instead[String(text)]
    const result = await (joined.client.query.bind(joined.client) as Query)(replaced ?? text, ...rest)
    // `transaction` checks that PostgreSQL has committed.
    return text === 'commit' ? { ...result, command: 'COMMIT' } : result
  }
  return { query, on: () => {}, off: () => {}, release: () => {} }
}
