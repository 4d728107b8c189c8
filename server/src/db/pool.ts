import pg from 'pg'
import { OperatorError } from '../errors.ts'
import { PatientClient } from './client.ts'
import { REFUSE_STANDBY } from './standby.ts'

/** What a query runs on: the pool, or the one connection of a transaction. */
export type Executor = Pick<pg.ClientBase, 'query'>
export type Pool = pg.Pool

export type ConnectionOptions = { connectionString: string } | { host: string; port: number; user: string; database: string }

// A statement that takes longer than this is a fault: callers are answered within 5 s, whatever the database does. The client's own limit
// is a little longer, so that the server's answer comes first where the server still lives, and a dead connection is noticed where it
// does not.
const STATEMENT_TIMEOUT_MS = 3_500
const DEAD_CONNECTION_TIMEOUT_MS = 4_000
const CONNECT_TIMEOUT_MS = 2_000

/** How times and numbers are written, whatever the server, the database or the role prefers: drivers and files read one form. */
const WRITTEN_ONE_WAY = `set datestyle = 'ISO, YMD'; set timezone = 'UTC'; set extra_float_digits = 1; set standard_conforming_strings = on`

/**
 * Every statement of ours finds the few rows it needs by an index. PostgreSQL, which plans a prepared one once, would read a table that is
 * empty then from end to end, and go on so while it grows, until statistics are taken anew. Measured in one minute from an empty
 * database: 720 messages accepted in a second without the last of these settings and with a costly check, 2,790 without both faults.
 *
 * They do not fix who is looked up by whom: of a queue that has just been emptied and vacuumed it expects one row, however much has come
 * since, and would go through all of it for each. Nor may it gather rows by a bitmap: of the next few in the order of an index it would
 * collect and sort all that there are, for every page anew. So statements bind the queues by key: what is locked by a subquery for each id
 * ("lateral"), what is changed by a list of ids ("any"). Compiling, which PostgreSQL does for what it takes for dear, took ten seconds of one claim.
 */
const FIND_BY_INDEX = `${WRITTEN_ONE_WAY}; set enable_seqscan = off; set enable_bitmapscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_material = off; set jit = off`

/**
 * A list that is a parameter, in SQL, of a length that PostgreSQL does not know. Where it knows it, it plans the statement anew each time: of
 * three rows it expects less work than of some, and so never comes to keep a plan. A batch with one message took 2.6 ms of a processor, 1.7
 * of them for the plan. Not `plan_cache_mode = force_generic_plan`, which would hold for what is planned anew on purpose, too: lists in
 * reports took three times as long where there were 28 months.
 */
export const listed = (parameter: string) => `(select ${parameter})`

/** The same for lists of these types, which are the first parameters: a batch is passed as such lists. */
export const lists = (...types: string[]) => types.map((type, index) => listed(`$${index + 1}::${type}[]`)).join(', ')

type NameIn<Row> = Row extends unknown ? keyof Row : never

/** The values of such lists: one for each name, null in SQL where a row has no such field. */
export function columns<Row extends object>(rows: readonly Row[], ...names: NameIn<Row>[]): unknown[][] {
  return names.map((name) => rows.map((row) => (row as Record<PropertyKey, unknown>)[name]))
}

const OLDEST_POSTGRES = 15
const NEWEST_TESTED_POSTGRES = 18

/** For the statements that every request and probe begins with: a database that has fallen silent is told to callers within 3 s. */
export const BEFORE_EVERY_REQUEST = { query_timeout: 2_000 }

// Integers of 64 bits (counts, identities) come as numbers: none of ours comes near 2^53.
const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.INT8, Number)

export function createPool(options: ConnectionOptions, onIdleError: (error: Error) => void): Pool {
  const pool = new pg.Pool({
    ...options,
    Client: PatientClient,
    types,
    max: 10,
    application_name: 'herald',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: DEAD_CONNECTION_TIMEOUT_MS,
    idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
    keepAlive: true,
    onConnect: async (client) => {
      await client.query({ text: `${FIND_BY_INDEX};${REFUSE_STANDBY}`, ...BEFORE_EVERY_REQUEST })
    },
  })
  // Without a listener, the end of an idle connection (the database restarts) would end the process.
  pool.on('error', onIdleError)
  surviveHandOvers(pool)
  return pool
}

/**
 * From one who releases a connection to the next who waits for it, nobody listens for its errors for a moment. A database that is killed can
 * send its answer and its last words at once, which are then read in that moment, and would end the process. The next one's statement says
 * what has happened.
 */
function surviveHandOvers(pool: Pool): void {
  pool.on('connect', (client) => client.on('error', () => {}))
}

const MOST_EXPORTS = 8
/** What the database calls them. */
export const EXPORTS_NAME = 'herald-export'

/**
 * An export reads many rows in the order of an index, and merges tables by it: that takes as long as there is to read, whatever PostgreSQL knows
 * of the tables. Of an account that is newer than its statistics it expects a row or two, and would compare each with each, or sort what
 * is in order. Compiling and further processes are not worth it for what goes no faster than a client reads.
 *
 * A statement whose client has gone ends within half a second, where the database's system can tell (Windows can't).
 */
const MERGE_BY_INDEX = `
  set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set timezone = 'UTC'; set datestyle = 'ISO, YMD';
  set enable_nestloop = off; set enable_hashjoin = off; set enable_seqscan = off; set enable_bitmapscan = off;
  set jit = off; set max_parallel_workers_per_gather = 0;
  do $$ begin set client_connection_check_interval = '500ms'; exception when invalid_parameter_value then null; end $$`

/** Connections for exports, to the database of `pool` and apart from it: whatever they take, requests and workers have theirs. */
export function createExportPool({ options }: Pool): Pool {
  const pool = new pg.Pool({
    ...options,
    max: MOST_EXPORTS,
    application_name: EXPORTS_NAME,
    statement_timeout: 0,
    query_timeout: 0,
    idle_in_transaction_session_timeout: 0,
    onConnect: async (client) => {
      await client.query({ text: `${MERGE_BY_INDEX};${REFUSE_STANDBY}`, ...BEFORE_EVERY_REQUEST })
    },
  })
  // Each is closed when its export has ended, and one that breaks before fails that.
  pool.on('error', () => {})
  surviveHandOvers(pool)
  return pool
}

/** Runs `work` in one transaction on one connection; commits when it returns, rolls back when it throws. */
export async function transaction<T>(pool: Pool, work: (tx: Executor) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  let broken: Error | undefined
  // A connection that breaks between two statements says so by an event, which ends the process where nobody listens; the next
  // statement fails and tells the caller.
  const onBroken = (error: Error) => {
    broken = error
  }
  client.on('error', onBroken)
  try {
    // Whatever the database's own default is: statements count on seeing what was committed while they waited for a lock.
    await client.query('begin isolation level read committed')
    const result = await work(client)
    // After a statement that failed, PostgreSQL answers a commit with a rollback and no error: work that swallowed the failure would
    // be told that all went well.
    const { command } = await client.query('commit')
    if (command !== 'COMMIT') throw new Error('a transaction was rolled back, since one of its statements had failed')
    return result
  } catch (error) {
    // A connection whose rollback fails is in an unknown state: it is closed, never handed to the next caller.
    await client.query('rollback').catch((rollbackError: Error) => {
      broken = rollbackError
    })
    throw error
  } finally {
    client.off('error', onBroken)
    client.release(broken)
  }
}

/** Too much waits for the database already. */
export class Overloaded extends Error {}

/** A statement took longer than it may. */
export function isTimedOut(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '57014'
}

/** The database could not be asked, as opposed to: it said no. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) {
    // 08: connection; 53: out of connections, memory or disk; 57P: shut down, starting up, killed; 57014: over the statement timeout;
    // 25006: read-only, as a standby is; 25P03, 25P04: it has ended a transaction that stood still, with this process or with the database,
    // or that took longer than the server allows.
    return /^(08|53|57P|57014|25006|25P03|25P04)/.test(error.code ?? '') || isLockedOut(error)
  }
  if (!(error instanceof Error)) return false
  if (error instanceof Overloaded) return true
  const { code = '', syscall } = error as NodeJS.ErrnoException
  if (/^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/.test(code)) return true
  // The socket of a server that is down.
  if (code === 'ENOENT') return syscall === 'connect'
  // The driver gives these no code.
  return /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|timeout expired|Query read timeout)/.test(
    error.message,
  )
}

/**
 * The database does not let us in any more: the password or the rights of our user were changed, or the database was renamed or closed.
 * Whoever begins with such an address is told so at once; for one that runs, it is a database that is away.
 */
export function isLockedOut(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false
  if (/^(28|3D000)/.test(error.code ?? '')) return true
  // "connect" revoked, or a database that is closed. These codes have other meanings in statements; the routine of the server, which is not
  // translated as its words are, tells them apart.
  return /^(42501|55000)$/.test(error.code ?? '') && error.routine === 'CheckMyDatabase'
}

/** A standby, or a primary that is set to take no writes. */
export function isReadOnlyError(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006'
}

/** A primary can be set so, as some providers do when its disk is nearly full. */
export async function isReadOnly(db: Executor): Promise<boolean> {
  const text = `select current_setting('transaction_read_only')::bool as "isReadOnly"`
  const { rows } = await db.query<{ isReadOnly: boolean }>({ text, ...BEFORE_EVERY_REQUEST })
  return rows[0]?.isReadOnly === true
}

/** Refuses a server that Herald does not run on, in a sentence. */
export async function checkServer(db: Executor): Promise<void> {
  const { rows } = await db.query<{ version: number; encoding: string }>(
    `select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding`,
  )
  const { version, encoding } = rows[0] as { version: number; encoding: string }
  const major = Math.floor(version / 10_000)
  if (major < OLDEST_POSTGRES) {
    throw new OperatorError(
      `This is PostgreSQL ${major}; Herald needs ${OLDEST_POSTGRES} to ${NEWEST_TESTED_POSTGRES} (HERALD_DATABASE_URL).`,
    )
  }
  if (encoding !== 'UTF8') {
    throw new OperatorError(`The database has the encoding ${encoding}; Herald needs UTF8 (HERALD_DATABASE_URL).`)
  }
}
