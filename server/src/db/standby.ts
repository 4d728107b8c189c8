// Where the database is a primary with a synchronous standby, what is committed is on both; what is only read need not be.

/**
 * In SQL: the commit of this statement waits for the synchronous standby, though nothing may have been changed by it.
 *
 * A primary that dies between its own commit and the standby's, and starts again, shows what it has: a key that nobody was answered for, and
 * that the standby has never seen. To answer "accepted before" from that, and to lose the primary then, is to lose what was answered. One
 * short record in the log makes it wait as a change would; and what comes later in the log has all before it. Costs nothing where a
 * statement writes anyway, and one flush of the log where it does not.
 */
export const HELD_BY_STANDBY = `pg_logical_emit_message(true, 'herald', '')`

/**
 * A standby would let us in and answer whatever only reads, from some time ago: a secret that was rotated, a service that is ready. It can't become
 * one while we are connected, since a primary has to start again for that.
 */
export const REFUSE_STANDBY = `
  do $$ begin if pg_is_in_recovery() then
    raise exception using errcode = 'read_only_sql_transaction', message = 'this server is a standby';
  end if; end $$`
