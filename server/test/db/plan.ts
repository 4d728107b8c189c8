import type { Executor } from '../../src/db/pool.ts'

/** A node of a plan, as PostgreSQL explains it in JSON. */
export type PlanNode = {
  'Node Type': string
  Operation?: string
  'Parent Relationship'?: string
  'Subplan Name'?: string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Plans?: PlanNode[]
}

/** The plan of a prepared statement with parameters. `id`: the value of uuids, so that PostgreSQL keeps the month of the id in the plan. */
export async function planOf(client: Executor, text: string, id: string): Promise<PlanNode> {
  await client.query('deallocate all')
  await client.query(`prepare hot as ${text}`)
  const { rows: prepared } = await client.query<{ types: string[] }>('select parameter_types::text[] as types from pg_prepared_statements')
  const values = (prepared[0]?.types ?? []).map((type) => (type === 'uuid' ? `'${id}'` : 'null'))
  const { rows } = await client.query(`explain (format json) execute hot ${values.length > 0 ? `(${values})` : ''}`)
  return rows[0]['QUERY PLAN'][0].Plan
}

/** Whether a statement can wait for the lock of a row. */
export function locksRows(plan: PlanNode): boolean {
  const isLocking = plan['Node Type'] === 'LockRows' || (plan['Node Type'] === 'ModifyTable' && plan.Operation !== 'Insert')
  return isLocking || (plan.Plans ?? []).some(locksRows)
}

/** The steps and subqueries of a plan that choose between the partitions of a table. */
export function partitionedSteps(plan: PlanNode, step = plan['Subplan Name']): string[] {
  const below = plan.Plans ?? []
  const isChoosing = /Append/.test(plan['Node Type']) && below.some((child) => /_\d{4}_\d{2}$/.test(child['Relation Name'] ?? ''))
  return [
    ...(isChoosing && step !== undefined ? [step] : []),
    ...below.flatMap((child) => partitionedSteps(child, child['Subplan Name'] ?? step)),
  ]
}

/** Tables that grow with the messages. A condition on one of these columns leaves few rows; a condition on the others may leave a million. */
const NARROWING: Record<string, string[]> = {
  messages: ['id', 'recipient'],
  message_events: ['message_id'],
  sms_fallbacks: ['message_id'],
  recipient_actions: ['id', 'message_id'],
  queue: ['message_id'],
  expiries: ['message_id'],
  idempotency_keys: ['key'],
  sms_queue: ['message_id', 'recipient'],
  sms_segments: ['message_id', 'carrier_message_id'],
  sms_receipts: ['event_id', 'carrier_message_id'],
  sms_contacts: ['recipient'],
  short_links: ['code'],
  carrier_events: ['event_id'],
  opt_outs: ['phone'],
  group_members: ['phone'],
  contents: ['id'],
  log_pages: ['page_id', 'last_position', 'id'],
  webhook_deliveries: ['position'],
  webhook_attempts: ['attempted_at'],
  rate_limit_windows: ['bucket'],
  // The fold leaves few rows.
  report_totals: ['campaign_id'],
  report_deltas: ['campaign_id'],
  account_usage_deltas: ['at'],
}

/** Tables with one row, or one for each carrier or process. */
const TINY = ['expiry_walk', 'carrier_rates', 'node_status']

/** Nodes that read all rows below them, even if a limit above them needs only the first. */
const READS_ALL = /^(Sort|Incremental Sort|Aggregate|WindowAgg|Hash|Materialize|SetOp|ModifyTable)$/

/** The first column or expression of every index, by the index's name. */
export async function readIndexes(db: Executor): Promise<Map<string, string>> {
  const { rows } = await db.query<{ name: string; first: string }>(
    'select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid, 1, true) as first from pg_index',
  )
  return new Map(rows.map(({ name, first }) => [name, first]))
}

/** What is wrong with a plan: scans that read more of a table than the statement needs. A bad join order shows as such a scan, too. */
export function problemsOf(node: PlanNode, indexes: Map<string, string>, isFirstsOnly = false): string[] {
  const problem = problemOf(node, indexes, isFirstsOnly)
  const below = (node.Plans ?? []).flatMap((child) => problemsOf(child, indexes, readsFirstsOnly(node, child, isFirstsOnly)))
  return problem === undefined ? below : [problem, ...below]
}

/** Whether only the first rows of a child are read. A subquery in an expression returns one row. */
function readsFirstsOnly(node: PlanNode, child: PlanNode, isFirstsOnly: boolean): boolean {
  if (node['Node Type'] === 'Limit') return true
  if (child['Subplan Name'] !== undefined) return !child['Subplan Name'].startsWith('CTE')
  return isFirstsOnly && !READS_ALL.test(node['Node Type'])
}

function problemOf(node: PlanNode, indexes: Map<string, string>, isFirstsOnly: boolean): string | undefined {
  const { 'Node Type': type, 'Relation Name': relation, 'Index Name': index, 'Index Cond': condition } = node
  if (relation === undefined || !type.endsWith('Scan') || type === 'Tid Scan') return undefined
  const scan = `${node['Parent Relationship'] ?? ''} ${type} of ${relation} by ${index}: ${condition}`.trim()
  const table = relation.replace(/_\d{4}_\d{2}$/, '')
  if (index === undefined) return TINY.includes(table) ? undefined : scan
  const columns = NARROWING[table]
  if (columns === undefined) return undefined
  const names = (column: string) => new RegExp(`\\b${RegExp.escape(column)}\\b`).test(condition ?? '')
  if (condition !== undefined && !names(indexes.get(index) as string)) return scan
  return isFirstsOnly || columns.some(names) ? undefined : scan
}
