import { OperatorError } from '../errors.ts'
import type { Executor } from './pool.ts'

/**
 * The role that every connection of a service or command works as; only migrations work as the owner of the tables. It owns nothing and has
 * the privileges in db/privileges.ts, so it cannot change the audit log. All databases of a PostgreSQL server share it.
 */
export const SERVICE_ROLE = 'herald_service'

/**
 * SQL for a new connection. It fixes the search path first: "$user" in it means the schema of the user in HERALD_DATABASE_URL, and would mean
 * that of the role from then on.
 */
export const BECOME_SERVICE = `
  select set_config('search_path', '"' || array_to_string(current_schemas(false), '", "') || '"', false);
  set role ${SERVICE_ROLE}`

type ServerError = { code?: string; routine?: string }

/** Whether a connection failed because the role does not exist, or its user is not a member of it. */
export function isRoleRefused(error: unknown): boolean {
  const { code, routine } = error as ServerError
  // The routine distinguishes both from errors of other statements: unlike the message, it is not translated.
  return (code === '22023' || code === '42501') && routine === 'call_string_check_hook'
}

/**
 * Ensures that the role exists and that the owner of the tables can become it. The role belongs to all databases of the server: if two of them are
 * set up at once, the second waits and finds it done.
 */
export async function ensureServiceRole(db: Executor): Promise<void> {
  const { rows: missing } = await db.query<{ statement: string }>(MISSING)
  for (const [index, { statement }] of missing.entries()) {
    await db.query(statement).catch((error: ServerError) => {
      if (error.code === DUPLICATE_OBJECT || error.code === UNIQUE_VIOLATION) return
      if (error.code !== INSUFFICIENT_PRIVILEGE) throw error
      throw new OperatorError(
        `The user in HERALD_DATABASE_URL may not set up the role ${SERVICE_ROLE}, which Herald works as. Let an administrator run these statements in this database, then try again:`,
        ...missing.slice(index).map((each) => `${each.statement};`),
      )
    })
  }
}

const DUPLICATE_OBJECT = '42710'
const UNIQUE_VIOLATION = '23505'
const INSUFFICIENT_PRIVILEGE = '42501'

// From PostgreSQL 16 on, the creator of a role is a member who may grant it, but not become it. A role that does not exist yet will have the
// privileges of "public". A temporary table holds the rows of an import. The functions that run as the owner must find no function of the role.
const MISSING = `
  with role as (select to_regrole('${SERVICE_ROLE}')::oid as oid, quote_ident(current_schema()) as schema)
  select format('create role ${SERVICE_ROLE}') as statement from role where oid is null
  union all
  select format('grant ${SERVICE_ROLE} to %I', current_user) from role
  where not (select rolsuper from pg_roles where rolname = current_user)
    and not coalesce(pg_has_role(oid, case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end), false)
  union all
  select format('grant temporary on database %I to ${SERVICE_ROLE}', current_database()) from role
  where not coalesce(has_database_privilege(oid, current_database(), 'temporary'), has_database_privilege('public', current_database(), 'temporary'))
  union all
  select format('grant usage on schema %s to ${SERVICE_ROLE}', schema) from role
  where not coalesce(has_schema_privilege(oid, current_schema(), 'usage'), has_schema_privilege('public', current_schema(), 'usage'))
  union all
  select format('revoke create on schema %s from public', schema) from role
  where coalesce(has_schema_privilege(oid, current_schema(), 'create'), has_schema_privilege('public', current_schema(), 'create'))`
