import pg from 'pg'
import { OperatorError } from '../errors.ts'
import { timeoutClient } from './client.ts'
import { BECOME_SERVICE, isRoleRefused } from './service-role.ts'
import { REFUSE_STANDBY } from './standby.ts'

/** Runs queries: the pool, or the connection of a transaction. */
export type Executor = Pick<pg.ClientBase, 'query'>
export type Pool = pg.Pool

export type ConnectionOptions = { connectionString: string } | { host: string; port: number; user: string; database: string }

// A statement that takes longer than this is a fault: callers get a response within 5 s, whatever the database does. The client's timeout is
// a little longer: a live server reports the error first, and for a dead server the client's timeout detects the dead connection.
const STATEMENT_TIMEOUT_MS = 3_500
const DEAD_CONNECTION_TIMEOUT_MS = 4_000
const CONNECT_TIMEOUT_MS = 2_000

/**
 * Sets the format of times and numbers, whatever the defaults of the server, the database or the role are: the driver and exports rely on it. JIT
 * compilation is off: it only helps statements that take many seconds, and no statement may. It took ten seconds of one claim.
 */
const SESSION = `set datestyle = 'ISO, YMD'; set timezone = 'UTC'; set extra_float_digits = 1; set standard_conforming_strings = on; set jit = off`

/**
 * Makes a hot statement find the few rows it needs by an index. PostgreSQL plans a prepared statement once. If a table is empty then, the plan
 * is a sequential scan, which stays while the table grows, until the table is analyzed. Measured for a minute from an empty database: Herald
 * accepted 720 messages a second without `enable_material = off` and with an expensive check, and 2,790 with both fixed.
 *
 * These settings do not fix the join order. In a queue that was just emptied and vacuumed, PostgreSQL expects one row, however many were added
 * since, and would scan the whole queue for each row of the other table. So statements access queues by key: they lock rows by a subquery for
 * each id (`lateral`), and change rows by a list of ids (`any`). Bitmap scans are off because, to read the next few rows in the order of an
 * index, they would collect and sort all rows, for every page again. `test/db/plans.test.ts` checks the plans of all hot statements.
 */
const FIND_BY_INDEX = `set enable_seqscan = off; set enable_bitmapscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_material = off`

/**
 * Wraps a list parameter so that PostgreSQL does not see its length when it plans. If it does, a plan for the actual length looks cheaper than
 * a generic plan, so it plans the statement every time and never keeps a plan. A batch with one message took 2.6 ms of CPU, 1.7 of them for the
 * plan. `plan_cache_mode = force_generic_plan` would also apply to statements that are better planned every time: lists in reports took
 * three times as long with 28 months.
 */
export const listed = (parameter: string) => `(select ${parameter})`

/** Wraps the first parameters of a statement, which are lists of these types: a batch is passed as such lists. */
export const lists = (...types: string[]) => types.map((type, index) => listed(`$${index + 1}::${type}[]`)).join(', ')

type NameIn<Row> = Row extends unknown ? keyof Row : never

/** The values of such lists: one list for each name, with null in SQL if a row has no such field. */
export function columns<Row extends object>(rows: readonly Row[], ...names: NameIn<Row>[]): unknown[][] {
  return names.map((name) => rows.map((row) => (row as Record<PropertyKey, unknown>)[name]))
}

const OLDEST_POSTGRES = 15
const NEWEST_TESTED_POSTGRES = 18

/** For the first statements of every request and probe: callers learn within 3 s that the database does not respond. */
export const BEFORE_EVERY_REQUEST = { query_timeout: 2_000 }

// 64-bit integers (counts, identities) are read as numbers: none of Herald's comes near 2^53.
const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.INT8, Number)

// The parts of one process that use the hot pool all the time: accept, receipts, claim, read, results, the router, and two of webhooks.
const MAX_HOT_CONNECTIONS = 8
const MAX_CONNECTIONS = 4

/**
 * Connections with PostgreSQL's own planner settings, for everything that does not run for each message: management, reports, lists, commands,
 * retention.
 */
export function createPool(options: ConnectionOptions, onIdleError: (error: Error) => void): Pool {
  return openPool(options, onIdleError, MAX_CONNECTIONS, `${SESSION};${BECOME_SERVICE}`)
}

/**
 * Connections for hot statements, which run for each message or in the loops beside them (scripts/hot-statements.ts). They are separate, so that
 * slow reports cannot use them up.
 */
export function createHotPool(options: ConnectionOptions, onIdleError: (error: Error) => void): Pool {
  return openPool(options, onIdleError, MAX_HOT_CONNECTIONS, `${SESSION};${FIND_BY_INDEX};${BECOME_SERVICE}`)
}

/** Connections for migrations. They work as the user in HERALD_DATABASE_URL, the owner of the tables. */
export function createOwnerPool(options: ConnectionOptions, onIdleError: (error: Error) => void): Pool {
  return openPool(options, onIdleError, MAX_CONNECTIONS, SESSION)
}

function openPool(options: ConnectionOptions, onIdleError: (error: Error) => void, max: number, settings: string): Pool {
  const { connection, timeoutMs } = extractTimeout(options)
  const pool = new pg.Pool({
    ...connection,
    Client: timeoutClient(timeoutMs),
    types,
    max,
    application_name: 'herald',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
    keepAlive: true,
    onConnect: async (client) => {
      await client.query({ text: `${settings};${REFUSE_STANDBY}`, ...BEFORE_EVERY_REQUEST })
    },
  })
  // Without a listener, the loss of an idle connection (the database restarts) would end the process.
  pool.on('error', onIdleError)
  ignoreErrorsBetweenUses(pool)
  return pool
}

/** Removes the timeout of statements from a connection string that has one: pg would add its own timeout for it. */
function extractTimeout(options: ConnectionOptions): { connection: ConnectionOptions; timeoutMs: number } {
  const given = /(?<=[?&])query_timeout=(\d+)&?/
  const [, ms] = ('connectionString' in options && given.exec(options.connectionString)) || []
  if (!('connectionString' in options) || ms === undefined) return { connection: options, timeoutMs: DEAD_CONNECTION_TIMEOUT_MS }
  return { connection: { connectionString: options.connectionString.replace(given, '') }, timeoutMs: Number(ms) }
}

/**
 * When the pool passes a released connection to the next waiting caller, the connection has no error listener for a moment. A database that is
 * killed can send a result and its last error together. If the error is read in that moment, it would end the process. The next caller's
 * statement reports it.
 */
function ignoreErrorsBetweenUses(pool: Pool): void {
  pool.on('connect', (client) => client.on('error', () => {}))
}

const MAX_EXPORT_CONNECTIONS = 8
/** The application_name of export connections. */
export const EXPORTS_NAME = 'herald-export'

/**
 * Makes an export read and merge tables in the order of an index, so that its time depends on the number of rows, not on statistics. For an
 * account that is newer than the statistics, PostgreSQL expects one or two rows, and would use nested loops, or sort rows that are in order. JIT
 * and parallel workers do not help a statement that runs no faster than a client reads.
 *
 * A statement whose client has disconnected ends within half a second, if the database's operating system can detect that (Windows can't).
 */
const MERGE_BY_INDEX = `
  set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set timezone = 'UTC'; set datestyle = 'ISO, YMD';
  set enable_nestloop = off; set enable_hashjoin = off; set enable_seqscan = off; set enable_bitmapscan = off;
  set jit = off; set max_parallel_workers_per_gather = 0; ${BECOME_SERVICE};
  do $$ begin set client_connection_check_interval = '500ms'; exception when invalid_parameter_value then null; end $$`

/** Connections for exports, to the database of `pool`. They are separate, so that exports cannot use up the connections of requests and workers. */
export function createExportPool({ options }: Pool): Pool {
  const pool = new pg.Pool({
    ...options,
    Client: timeoutClient(0),
    max: MAX_EXPORT_CONNECTIONS,
    application_name: EXPORTS_NAME,
    statement_timeout: 0,
    idle_in_transaction_session_timeout: 0,
    onConnect: async (client) => {
      await client.query({ text: `${MERGE_BY_INDEX};${REFUSE_STANDBY}`, ...BEFORE_EVERY_REQUEST })
    },
  })
  // Each connection is closed when its export ends. If it breaks before that, the export fails.
  pool.on('error', () => {})
  ignoreErrorsBetweenUses(pool)
  return pool
}

// Four imports and two removals of groups. Each takes 10 to 25 s for a million members.
const MAX_LONG_CONNECTIONS = 6

/** Connections for imports and other long changes, to the database of `pool` but apart from it, so that they take none from requests. */
export function createLongPool({ options }: Pool): Pool {
  const pool = new pg.Pool({ ...options, max: MAX_LONG_CONNECTIONS, application_name: 'herald-long' })
  // A connection that breaks while it is idle is replaced. One that breaks in use fails its change.
  pool.on('error', () => {})
  ignoreErrorsBetweenUses(pool)
  return pool
}

// The database's default may differ. Statements must see what was committed while they waited for a lock.
const BEGIN = 'begin isolation level read committed'

/** Runs `work` in one transaction on one connection; commits when it returns, rolls back when it throws. */
export async function transaction<T>(pool: Pool, work: (tx: Executor) => Promise<T>): Promise<T> {
  return await runTransaction(pool, BEGIN, work)
}

/**
 * The same for one account: where a table has row-level security, the transaction finds and writes only rows of this account, whatever its
 * statements say (db/migrations/0012_service_role.sql). It takes no further round trip.
 */
export async function accountTransaction<T>(pool: Pool, accountId: number, work: (tx: Executor) => Promise<T>): Promise<T> {
  return await runTransaction(pool, `${BEGIN}; set local herald.account = ${accountId}`, work)
}

async function runTransaction<T>(pool: Pool, begin: string, work: (tx: Executor) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  let broken: Error | undefined
  // A connection that breaks between two statements emits an error event, which would end the process without a listener. The next statement
  // fails and reports it to the caller.
  const onBroken = (error: Error) => {
    broken = error
  }
  client.on('error', onBroken)
  try {
    await client.query(begin)
    const result = await work(client)
    // After a failed statement, PostgreSQL responds to COMMIT with ROLLBACK and no error. Without this check, work that swallowed the failure
    // would seem to be committed.
    const { command } = await client.query('commit')
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back because one of its statements had failed')
    return result
  } catch (error) {
    // A connection whose rollback fails is in an unknown state: the pool closes it and never reuses it.
    await client.query('rollback').catch((rollbackError: Error) => {
      broken = rollbackError
    })
    throw error
  } finally {
    client.off('error', onBroken)
    client.release(broken)
  }
}

/** Too many items are already waiting for the database. */
export class Overloaded extends Error {}

/** Whether a statement exceeded the server's statement timeout. */
export function isTimedOut(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '57014'
}

/** Whether the database is out of reach or unable to work, as opposed to a statement that it rejects. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) {
    // 08: connection; 53: out of connections, memory or disk; 57P: shut down, starting up, killed; 57014: over the statement timeout;
    // 25006: read-only, as a standby is; 25P03, 25P04: the server ended a transaction that was idle, since this process or the database had
    // stalled, or that took longer than the server allows.
    return /^(08|53|57P|57014|25006|25P03|25P04)/.test(error.code ?? '') || isLockedOut(error)
  }
  if (!(error instanceof Error)) return false
  if (error instanceof Overloaded) return true
  const { code = '', syscall } = error as NodeJS.ErrnoException
  if (/^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/.test(code)) return true
  // The Unix socket of a server that is down.
  if (code === 'ENOENT') return syscall === 'connect'
  // These errors of the driver have no code.
  return /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout exceeded when trying to connect|timeout expired|Query read timeout)/.test(
    error.message,
  )
}

/**
 * Whether the database no longer accepts Herald's connections: the password, the role or the privileges of its user were changed, or the
 * database was renamed or does not allow connections. A process that starts fails at once; for a running process the database is unavailable.
 */
export function isLockedOut(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false
  if (/^(28|3D000)/.test(error.code ?? '') || isRoleRefused(error)) return true
  // The CONNECT privilege was revoked, or the database does not allow connections. In statements these codes have other meanings. The routine in
  // the error distinguishes them: unlike the message, it is not translated.
  return /^(42501|55000)$/.test(error.code ?? '') && error.routine === 'CheckMyDatabase'
}

/** Whether the server is a standby, or a primary that is set to read-only. */
export function isReadOnlyError(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006'
}

/** Whether the database is read-only. Some providers set a primary to read-only when its disk is nearly full. */
export async function isReadOnly(db: Executor): Promise<boolean> {
  const text = `select current_setting('transaction_read_only')::bool as "isReadOnly"`
  const { rows } = await db.query<{ isReadOnly: boolean }>({ text, ...BEFORE_EVERY_REQUEST })
  return rows[0]?.isReadOnly === true
}

/** Throws an OperatorError if Herald does not run on this server. */
export async function checkServer(db: Executor): Promise<void> {
  const { rows } = await db.query<{ version: number; encoding: string }>(
    `select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding`,
  )
  const { version, encoding } = rows[0] as { version: number; encoding: string }
  const major = Math.floor(version / 10_000)
  if (major < OLDEST_POSTGRES) {
    throw new OperatorError(
      `The server is PostgreSQL ${major}; Herald needs ${OLDEST_POSTGRES} to ${NEWEST_TESTED_POSTGRES} (HERALD_DATABASE_URL).`,
    )
  }
  if (encoding !== 'UTF8') {
    throw new OperatorError(`The database has the encoding ${encoding}; Herald needs UTF8 (HERALD_DATABASE_URL).`)
  }
}
