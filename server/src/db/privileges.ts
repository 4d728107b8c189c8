import type { Executor } from './pool.ts'
import { SERVICE_ROLE } from './service-role.ts'

const ALL = 'select, insert, update, delete'
const KEEP = 'select, insert, update'
const REPLACE = 'select, insert, delete'
const ADD = 'select, insert'

/** What the service role may do with each table. A table that is not listed here is out of its reach. */
export const TABLE_PRIVILEGES: Record<string, string> = {
  account_usage: KEEP,
  account_usage_deltas: ALL,
  account_usage_months: ALL,
  accounts: KEEP,
  admin_tokens: KEEP,
  agent_assignments: KEEP,
  agents: KEEP,
  // Nobody who controls the service can change or remove what it has recorded, or choose the id or the time of an entry.
  audit_log: 'select, insert (actor_kind, actor_id, actor_name, address, request_id, account_id, action, subject, before, after)',
  auto_replies: 'select, insert, update (keyword, template_id), delete',
  auto_reply_turns: ALL,
  campaign_copies: ALL,
  campaign_references: REPLACE,
  campaigns: ALL,
  capabilities: ALL,
  carrier_events: ALL,
  carrier_rates: KEEP,
  contents: ADD,
  erased_people: ALL,
  expiries: ALL,
  expiry_walk: 'select, update',
  group_members: ALL,
  groups: ALL,
  idempotency_keys: ALL,
  integration_key_uses: KEEP,
  integration_keys: KEEP,
  log_heads: KEEP,
  log_pages: ALL,
  message_events: ALL,
  messages: ALL,
  node_status: ALL,
  opt_outs: ALL,
  people: KEEP,
  people_links: REPLACE,
  people_roles: ALL,
  queue: ALL,
  rate_limit_windows: ALL,
  recipient_actions: ALL,
  removed_members: ALL,
  report_deltas: ALL,
  report_totals: KEEP,
  schema_migrations: 'select',
  secrets: KEEP,
  sessions: ALL,
  short_links: ALL,
  sign_in_tries: ALL,
  sms_contacts: ALL,
  sms_fallbacks: ALL,
  sms_queue: ALL,
  sms_receipts: ALL,
  sms_segments: ALL,
  template_references: REPLACE,
  template_versions: ADD,
  templates: ALL,
  webhook_attempts: ALL,
  webhook_deliveries: ALL,
  webhook_endpoints: ALL,
  webhook_secrets: ALL,
}

/** The functions that run with the privileges of the owner. */
export const OWNER_FUNCTIONS = ['create_missing_partitions()', 'drop_month(text)', 'analyze_table(text)', 'count_standbys()']

// Counters of identity columns need no privilege.
const SEQUENCES = ['group_generations']

/** Whether the role has no privileges at all: the database was restored on a server that had no such role. */
export async function hasNoPrivileges(tx: Executor): Promise<boolean> {
  const { rows } = await tx.query<{ has: boolean }>(`select has_table_privilege('${SERVICE_ROLE}', 'schema_migrations', 'select') as has`)
  return rows[0]?.has === false
}

/** Gives the role exactly these privileges, also on the partitions. */
export async function grantPrivileges(tx: Executor): Promise<void> {
  const { rows: tables } = await tx.query<{ name: string; root: string }>(
    `select relname as name, root from pg_class, lateral (select coalesce(pg_partition_root(oid)::regclass::text, relname) as root) as of
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and root = any ($1)`,
    [Object.keys(TABLE_PRIVILEGES)],
  )
  const grants = [
    ...tables.flatMap(({ name, root }) => grant(TABLE_PRIVILEGES[root] as string, name)),
    ...OWNER_FUNCTIONS.flatMap((name) => [`revoke execute on function ${name} from public`, ...grant('execute', `function ${name}`)]),
    ...SEQUENCES.flatMap((name) => grant('usage', `sequence ${name}`)),
  ]
  await tx.query(grants.join(';'))
}

const grant = (privileges: string, on: string) => [
  `revoke all on ${on} from ${SERVICE_ROLE}`,
  `grant ${privileges} on ${on} to ${SERVICE_ROLE}`,
]
