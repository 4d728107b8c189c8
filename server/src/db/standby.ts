// If the database is a primary with a synchronous standby, both have every committed change. But a row that a statement reads on the primary may
// not be on the standby yet.

/**
 * SQL that makes the commit of a statement wait for the synchronous standby, even if the statement changes nothing.
 *
 * A primary may die between its own commit and the standby's. When it starts again, it shows that commit: for example an idempotency key whose
 * caller never got a response, and which the standby does not have. If Herald responds "accepted before" because of that key, and the primary is
 * then lost, the accepted message is lost. A short record in the WAL makes the commit wait as a change would, and a standby that has the record
 * has everything before it. This costs nothing if the statement writes anyway, and one flush of the WAL if it does not.
 */
export const HELD_BY_STANDBY = `pg_logical_emit_message(true, 'herald', '')`

/**
 * SQL that fails on a standby. A standby would accept the connection and return stale rows for reads, such as a secret that has been rotated
 * since, and the service would look ready. A server can't become a standby under an open connection, since a primary must restart for that.
 */
export const REFUSE_STANDBY = `
  do $$ begin if pg_is_in_recovery() then
    raise exception using errcode = 'read_only_sql_transaction', message = 'this server is a standby';
  end if; end $$`
