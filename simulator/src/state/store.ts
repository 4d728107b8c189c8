import { closeSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { StartError } from '../options.ts'
import { SCHEMA } from './schema.ts'

/**
 * The one database. Statements run at once, in a transaction that all work of one turn of the event loop shares; `committed` tells when
 * it is safe. A commit of its own for each request would halve the rate.
 *
 * What can't be written ends the process: memory is ahead of the database then, and a restart is what brings them together. Nothing of
 * such a turn was answered, and the database forgets it.
 */
export type Store = {
  /** A statement that changes something. */
  run: (sql: string, ...values: SQLInputValue[]) => { changes: number; id: number }
  get: <Row>(sql: string, ...values: SQLInputValue[]) => Row | undefined
  all: <Row>(sql: string, ...values: SQLInputValue[]) => Row[]
  /** Resolves once everything that was written so far is committed. */
  committed: () => Promise<void>
  /** What is to be written just before each commit; `begin` has one follow where nothing else is written. */
  beforeCommit: (write: () => void) => void
  begin: () => void
  close: () => void
}

const BUSY = 5
// What the disk or the machine does to us, by SQLite's numbers: out of memory, read-only, I/O error, corrupt, full, can't open, no database.
const NOT_OUR_FAULT = new Set([7, 8, 10, 11, 13, 14, 26])

export function openStore(dataDir: string): Store {
  const db = openExclusively(dataDir)
  const statements = new Map<string, StatementSync>()
  const writers: (() => void)[] = []
  let commit: PromiseWithResolvers<void> | undefined

  function prepared(sql: string): StatementSync {
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = db.prepare(sql)
      statements.set(sql, statement)
    }
    return statement
  }

  function begin(): void {
    if (commit !== undefined) return
    db.exec('begin')
    commit = Promise.withResolvers()
    setImmediate(finish)
  }

  function finish(): void {
    const ending = commit
    if (ending === undefined) return
    try {
      for (const write of writers) write()
      db.exec('commit')
    } catch (error) {
      endWhereNotWritten(dataDir, error)
    }
    commit = undefined
    ending.resolve()
  }

  return {
    run: (sql, ...values) => {
      begin()
      try {
        const { changes, lastInsertRowid } = prepared(sql).run(...values)
        return { changes: Number(changes), id: Number(lastInsertRowid) }
      } catch (error) {
        endWhereNotWritten(dataDir, error)
      }
    },
    get: <Row>(sql: string, ...values: SQLInputValue[]) => prepared(sql).get(...values) as Row | undefined,
    all: <Row>(sql: string, ...values: SQLInputValue[]) => prepared(sql).all(...values) as Row[],
    committed: () => commit?.promise ?? Promise.resolve(),
    beforeCommit: (write) => {
      writers.push(write)
    },
    begin,
    close: () => {
      finish()
      db.close()
    },
  }
}

/** Ends the process with a sentence where the disk failed; an error of ours goes on as it is, and ends it with its stack. */
function endWhereNotWritten(dataDir: string, error: unknown): never {
  if (!NOT_OUR_FAULT.has(((error as { errcode?: number }).errcode ?? 0) & 0xff)) throw error
  console.error(`The state in ${dataDir} can't be written, so the simulator ends: ${(error as Error).message}.`)
  process.exit(1)
}

/** The lock goes with the process, however that ends. A predecessor that is just ending gets half a second to do so. */
function openExclusively(dataDir: string): DatabaseSync {
  let db: DatabaseSync
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const path = join(dataDir, 'simulator.db')
    // It holds secrets, so it is made for the owner's eyes only; the files beside it get the same mode.
    closeSync(openSync(path, 'a', 0o600))
    db = new DatabaseSync(path, { timeout: 500 })
  } catch (error) {
    throw new StartError(`The simulator can't keep its state in ${dataDir}: ${error instanceof Error ? error.message : error}.`)
  }
  try {
    db.exec(
      'pragma locking_mode = exclusive; pragma journal_mode = wal; pragma synchronous = normal; pragma wal_autocheckpoint = 4000; pragma cache_size = -65536',
    )
    db.exec(`begin exclusive; ${SCHEMA}; commit`)
    return db
  } catch (error) {
    if ((error as { errcode?: number }).errcode === BUSY) throw new StartError(`Another simulator runs in ${dataDir} already.`)
    throw new StartError(`The state in ${dataDir} can't be opened: ${error instanceof Error ? error.message : error}.`)
  }
}

export function readSetting(store: Store, name: string): string | undefined {
  return store.get<{ value: string }>('select value from settings where name = ?', name)?.value
}

export function writeSetting(store: Store, name: string, value: string): void {
  store.run('insert into settings (name, value) values (?, ?) on conflict (name) do update set value = excluded.value', name, value)
}
