import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { StartError } from '../options.ts'
import { lockDirectory } from './lock.ts'
import { type Log, openLog } from './log.ts'
import { applyRecord, createState, type LogRecord, type State } from './state.ts'

/**
 * The state, and the log that it comes from. A record changes the state at once. The records of one turn of the event loop are one batch of the
 * log, so that many requests share one write, and `committed` resolves when the batch is written.
 *
 * If a batch can't be written, the process ends: its state is ahead of the log, and a restart reads the log again. No response was sent for
 * such a turn.
 */
export type Store = {
  state: State
  /** Returns the offset of the record in the log. */
  append: (record: LogRecord) => number
  read: (offset: number) => LogRecord
  /** The records of committed batches, from an offset on. */
  records: (from: number) => Generator<LogRecord>
  /** Resolves once everything that was appended so far is written. */
  committed: () => Promise<void>
  /** Calls `append` just before each commit. `begin` causes a commit even if nothing else is appended. */
  beforeCommit: (append: () => void) => void
  begin: () => void
  close: () => void
}

const VERSION = 1
const SNAPSHOT_EVERY_BYTES = 64 * 1_048_576
// A snapshot of 10 MB (a million messages) is written after 64 MB of log, one of 100 MB after 400 MB.
const LOG_PER_SNAPSHOT = 4

export async function openStore(dataDir: string, snapshotEvery = SNAPSHOT_EVERY_BYTES): Promise<Store> {
  const unlock = await prepareDirectory(dataDir)
  try {
    const { log, name, state, from } = loadState(dataDir)
    const snapshots = createSnapshots(dataDir, name, from, snapshotEvery)
    return createStore(dataDir, log, state, snapshots, unlock)
  } catch (error) {
    unlock()
    if (error instanceof StartError) throw error
    throw new StartError(`The state in ${dataDir} can't be opened: ${(error as Error).message}.`)
  }
}

function createStore(dataDir: string, log: Log, state: State, snapshots: Snapshots, unlock: () => void): Store {
  const writers: (() => void)[] = []
  let commit: PromiseWithResolvers<void> | undefined

  function begin(): void {
    if (commit !== undefined) return
    commit = Promise.withResolvers()
    setImmediate(finish)
  }

  function finish(): void {
    const ending = commit
    if (ending === undefined) return
    for (const write of writers) write()
    exitOnFailure(dataDir, () => {
      log.commit()
      snapshots.write(state, log.end())
    })
    commit = undefined
    ending.resolve()
  }

  return {
    state,
    append: (record) => {
      begin()
      const offset = log.append(JSON.stringify(record))
      applyRecord(state, record, offset)
      return offset
    },
    read: (offset) => JSON.parse(exitOnFailure(dataDir, () => log.read(offset))),
    records: function* (from) {
      for (const [, line] of log.lines(from)) yield JSON.parse(line)
    },
    committed: () => commit?.promise ?? Promise.resolve(),
    beforeCommit: (append) => {
      writers.push(append)
    },
    begin,
    close: () => {
      finish()
      log.close()
      unlock()
    },
  }
}

/** Ends the process with a message if the file system failed. Any other error ends it with its stack. */
function exitOnFailure<T>(dataDir: string, access: () => T): T {
  try {
    return access()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error
    console.error(`The state in ${dataDir} can't be written, so the simulator ends: ${(error as Error).message}.`)
    process.exit(1)
  }
}

async function prepareDirectory(dataDir: string): Promise<() => void> {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    return await lockDirectory(dataDir)
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(`The simulator can't keep its state in ${dataDir}: ${(error as Error).message}.`)
  }
}

type Loaded = { log: Log; name: string; state: State; from: number }

/** Reads the last snapshot, and applies the records of the log since then. Without a snapshot, it applies the whole log. */
function loadState(dataDir: string): Loaded {
  const log = openLog(join(dataDir, 'simulator.log'))
  if (log.end() === 0) startLog(dataDir, log)
  const first = JSON.parse(log.read(0)) as Extract<LogRecord, { is: 'log' }>
  if (first.is !== 'log' || first.version !== VERSION) {
    throw new Error('simulator.log is of another version of the simulator; move it away to start with an empty state')
  }
  const snapshot = readSnapshot(dataDir, first.name, log.end())
  const position = snapshot?.position ?? 0
  // A snapshot of an older version lacks what is new.
  const state = { ...createState(), ...snapshot?.state }
  for (const [offset, line] of log.lines(position)) applyRecord(state, parseLine(line, offset), offset)
  return { log, name: first.name, state, from: position }
}

/** Opening the log has already removed an incomplete batch, so an unreadable line does not come from a crash. */
function parseLine(line: string, offset: number): LogRecord {
  try {
    return JSON.parse(line)
  } catch {
    throw new Error(`simulator.log is damaged at byte ${offset}; move it away to start with an empty state`)
  }
}

function startLog(dataDir: string, log: Log): void {
  if (existsSync(join(dataDir, 'simulator.db'))) {
    console.error(`${join(dataDir, 'simulator.db')} is of an older version and is not read: the simulator starts with an empty state.`)
  }
  log.append(JSON.stringify({ is: 'log', version: VERSION, name: randomUUID() } satisfies LogRecord))
  log.commit()
}

type Snapshot = { version: number; name: string; position: number; state: State }
type Snapshots = { write: (state: State, position: number) => void }

/** Saves the state from time to time, so that a start need not replay the whole log. Without the snapshot a start only takes longer. */
function createSnapshots(dataDir: string, name: string, from: number, every: number): Snapshots {
  const path = join(dataDir, 'simulator.snapshot')
  let nextAt = from + every
  return {
    write: (state, position) => {
      if (position < nextAt) return
      const bytes = serialize({ version: VERSION, name, position, state } satisfies Snapshot)
      writeFileSync(`${path}.new`, bytes, { mode: 0o600 })
      renameSync(`${path}.new`, path)
      nextAt = position + Math.max(every, LOG_PER_SNAPSHOT * bytes.length)
    },
  }
}

/** Returns undefined if there is no snapshot that fits the log: it belongs to another log, or the machine lost the end of the log. */
function readSnapshot(dataDir: string, name: string, end: number): Snapshot | undefined {
  try {
    const snapshot = deserialize(readFileSync(join(dataDir, 'simulator.snapshot'))) as Snapshot
    return snapshot.version === VERSION && snapshot.name === name && snapshot.position <= end ? snapshot : undefined
  } catch {
    return undefined
  }
}
