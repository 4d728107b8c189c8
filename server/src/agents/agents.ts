import { requireAccount } from '../accounts/accounts.ts'
import { accountTransaction, type Executor, type Pool } from '../db/pool.ts'
import { ApiError, OperatorError } from '../errors.ts'
import { type ListDefinition, type PageOf, type PageQuery, type PageRead, readPage, wholeList } from '../http/paging.ts'
import { missing } from '../refusal.ts'

export const BILLING_TYPES = ['single', 'conversational', 'basic'] as const
export type BillingType = (typeof BILLING_TYPES)[number]

/** An agent as an account sees it. */
export type Agent = { agentId: string; name: string; displayName?: string; billingType: BillingType; active: boolean }

export type AgentRecord = { agentId: string; name: string; billingType: BillingType; carrier: string }
type AgentChange = { displayName?: string; active?: false }

type AgentRow = Omit<Agent, 'displayName'> & { displayName: string | null }

const AGENT = `a.agent_id as "agentId", a.name, s.display_name as "displayName", a.billing_type as "billingType", s.active`
const RECORD = `agent_id as "agentId", name, billing_type as "billingType", carrier`

function toAgent({ displayName, ...row }: AgentRow): Agent {
  return displayName === null ? row : { ...row, displayName }
}

export const ASSIGNMENT_LIST: ListDefinition<'agentId'> = {
  fields: { agentId: { column: 's.agent_id collate "C"', type: 'text' } },
  id: 'agentId',
  defaultSort: 'agentId',
}

export async function readAssignmentsPage(
  db: Executor,
  accountId: number,
  query: PageQuery & { active?: boolean },
): Promise<PageOf<Agent>> {
  const page = readPage(ASSIGNMENT_LIST, query, 3, `assignments ${accountId}`)
  const condition = query.active === undefined ? page.condition : `s.active = ${query.active} and ${page.condition}`
  return page.toBody(await readAssignments(db, accountId, { ...page, condition }))
}

/** Lists the agents assigned to an account, also inactive ones. `name`: of the prepared statement. */
async function readAssignments(db: Executor, accountId: number, read: PageRead, name?: string): Promise<Agent[]> {
  const { rows } = await db.query<AgentRow>({
    ...(name !== undefined && { name }),
    text: `select ${AGENT} from agent_assignments s join agents a using (agent_id)
           where s.account_id = $1 and s.assigned and ${read.condition}
           order by ${read.orderBy} limit $2`,
    values: [accountId, read.fetch, ...read.values],
  })
  return rows.map(toAgent)
}

/** The carriers of the agents assigned to an account. */
export async function listAssignedCarriers(db: Executor, accountId: number): Promise<{ agentId: string; carrier: string }[]> {
  const { rows } = await db.query<{ agentId: string; carrier: string }>(
    `select a.agent_id as "agentId", a.carrier from agent_assignments s join agents a using (agent_id)
     where s.account_id = $1 and s.assigned
     order by a.agent_id collate "C"`,
    [accountId],
  )
  return rows
}

export async function listActiveAgents(db: Executor, accountId: number): Promise<Agent[]> {
  return (await readAssignments(db, accountId, wholeList(ASSIGNMENT_LIST), 'list-assigned-agents')).filter(({ active }) => active)
}

/**
 * Changes the account's assignment. Returns undefined if there is no active one. Only an operator can activate an agent again, so a change
 * that runs after a concurrent deactivation finds nothing.
 */
export async function changeAgent(db: Executor, accountId: number, agentId: string, change: AgentChange): Promise<Agent | undefined> {
  const { rows } = await db.query<AgentRow>({
    name: 'change-agent',
    text: `update agent_assignments s
           set display_name = case when $3::text is null then s.display_name else nullif($3, '') end,
               active = coalesce($4, s.active)
           from agents a
           where s.account_id = $1 and s.agent_id = $2 and s.active and a.agent_id = s.agent_id
           returning ${AGENT}`,
    values: [accountId, agentId, change.displayName ?? null, change.active ?? null],
  })
  return rows[0] && toAgent(rows[0])
}

/** For requests that name an agent. Returns its carrier. */
export async function requireActiveAgent(db: Executor, accountId: number, agentId: string): Promise<{ carrier: string }> {
  const { rows } = await db.query<{ carrier: string }>({
    name: 'find-active-agent',
    text: `select a.carrier from agent_assignments s join agents a using (agent_id) where s.account_id = $1 and s.agent_id = $2 and s.active`,
    values: [accountId, agentId],
  })
  if (rows[0] === undefined) throw new ApiError('RCS_AGENT_NOT_FOUND', { details: [NO_AGENT] })
  return rows[0]
}

const NO_AGENT = { path: '/agentId', reason: 'names no active agent of this account' }

export async function createAgent(db: Executor, agent: AgentRecord): Promise<AgentRecord> {
  const { rows } = await db.query<AgentRecord>(
    `insert into agents (agent_id, name, billing_type, carrier) values ($1, $2, $3, $4)
     on conflict (agent_id) do nothing
     returning ${RECORD}`,
    [agent.agentId, agent.name, agent.billingType, agent.carrier],
  )
  if (rows[0] === undefined) throw new OperatorError(`Agent ${agent.agentId} already exists.`)
  return rows[0]
}

/**
 * Assigning an assigned agent changes nothing: it keeps the display name, and does not activate the agent. An agent that was unassigned becomes
 * active again, without a display name.
 */
export async function assignAgent(db: Executor, agentId: string, accountId: number): Promise<Agent> {
  await db.query(
    `insert into agent_assignments as s (account_id, agent_id)
     select accounts.id, agents.agent_id from accounts, agents where accounts.id = $1 and agents.agent_id = $2
     on conflict (account_id, agent_id) do update set assigned = true, active = true where not s.assigned`,
    [accountId, agentId],
  )
  return await readAssignment(db, agentId, accountId)
}

export async function activateAgent(db: Executor, agentId: string, accountId: number): Promise<Agent> {
  await db.query('update agent_assignments set active = true where account_id = $1 and agent_id = $2 and assigned', [accountId, agentId])
  return await readAssignment(db, agentId, accountId)
}

/**
 * Ends the assignment, and removes its automatic replies. The row stays, inactive: opt-outs refer to it and count again if the agent is assigned
 * again, and receipts and replies of earlier messages are still recorded. Workers fail waiting messages, as for a deactivated agent.
 */
export async function unassignAgent(pool: Pool, agentId: string, accountId: number): Promise<Agent & { autoRepliesRemoved: number }> {
  return await accountTransaction(pool, accountId, async (tx) => {
    const { displayName: _removed, ...agent } = await readAssignment(tx, agentId, accountId)
    await tx.query(
      `update agent_assignments set assigned = false, active = false, display_name = null where account_id = $1 and agent_id = $2`,
      [accountId, agentId],
    )
    // A statement of its own, so that it sees an automatic reply that was added while the update waited for it.
    const { rowCount } = await tx.query('delete from auto_replies where account_id = $1 and agent_id = $2', [accountId, agentId])
    return { ...agent, active: false, autoRepliesRemoved: rowCount ?? 0 }
  })
}

type AgentUse = { messages: number; campaigns: number; autoReplies: number; optOuts: number }

/** Where the count of what depends on an agent stops: a queue may have millions of messages. */
export const MAX_COUNTED_USE = 10_000

/** Counts what depends on an agent of an account, or of all accounts, each up to MAX_COUNTED_USE. Changes nothing. */
export async function countAgentUse(db: Executor, agentId: string, accountId?: number): Promise<AgentUse> {
  const counted = (table: string, condition = 'true') =>
    `(select count(*) from (select from ${table} where agent_id = $1${accountId === undefined ? '' : ' and account_id = $2'} and ${condition}
      limit ${MAX_COUNTED_USE}) as counted)`
  const { rows } = await db.query<AgentUse>(
    `select ${counted('queue', "task = 'send'")} as messages,
       ${counted('campaigns', "status in ('SCHEDULED', 'RUNNING', 'PAUSED')")} as campaigns,
       ${counted('auto_replies')} as "autoReplies", ${counted('opt_outs', 'opted_out')} as "optOuts"`,
    accountId === undefined ? [agentId] : [agentId, accountId],
  )
  return rows[0] as AgentUse
}

/** Changes the given fields, for all accounts that have the agent. */
export async function updateAgent(db: Executor, agentId: string, change: Partial<Omit<AgentRecord, 'agentId'>>): Promise<AgentRecord> {
  const { rows } = await db.query<AgentRecord>(
    `update agents set name = coalesce($2, name), billing_type = coalesce($3, billing_type), carrier = coalesce($4, carrier)
     where agent_id = $1 returning ${RECORD}`,
    [agentId, change.name ?? null, change.billingType ?? null, change.carrier ?? null],
  )
  return rows[0] ?? noSuchAgent(agentId)
}

export async function findAgent(db: Executor, agentId: string): Promise<AgentRecord> {
  const { rows } = await db.query<AgentRecord>(`select ${RECORD} from agents where agent_id = $1`, [agentId])
  return rows[0] ?? noSuchAgent(agentId)
}

function noSuchAgent(agentId: string): never {
  throw missing(`There is no agent ${agentId}`, 'see "herald agent list"')
}

export async function readAssignment(db: Executor, agentId: string, accountId: number): Promise<Agent> {
  const { rows } = await db.query<AgentRow>(
    `select ${AGENT} from agent_assignments s join agents a using (agent_id)
     where s.account_id = $1 and s.agent_id = $2 and s.assigned`,
    [accountId, agentId],
  )
  return rows[0] === undefined ? await notAssigned(db, agentId, accountId) : toAgent(rows[0])
}

async function notAssigned(db: Executor, agentId: string, accountId: number): Promise<never> {
  await findAgent(db, agentId)
  await requireAccount(db, accountId)
  throw missing(`The agent ${agentId} is not assigned to account ${accountId}`, `"herald agent assign ${agentId} ${accountId}" assigns it`)
}

type AgentWithAccounts = AgentRecord & { accounts: { accountId: number; displayName?: string; active: boolean }[] }

export const AGENT_LIST: ListDefinition<'agentId'> = {
  fields: { agentId: { column: 'agent_id collate "C"', type: 'text' } },
  id: 'agentId',
  defaultSort: 'agentId',
}

export async function listAgents(db: Executor, read: PageRead = wholeList(AGENT_LIST)): Promise<AgentWithAccounts[]> {
  const { rows } = await db.query<AgentWithAccounts>(
    `select ${RECORD}, coalesce((
       select json_agg(
         json_strip_nulls(json_build_object('accountId', s.account_id, 'displayName', s.display_name, 'active', s.active)) order by s.account_id
       )
       from agent_assignments s where s.agent_id = agents.agent_id and s.assigned
     ), '[]') as accounts
     from agents where ${read.condition} order by ${read.orderBy} limit $1`,
    [read.fetch, ...read.values],
  )
  return rows
}

/** An agent with the accounts that it is assigned to. */
export async function findAgentWithAccounts(db: Executor, agentId: string): Promise<AgentWithAccounts> {
  const [agent] = await listAgents(db, { condition: 'agent_id = $2', values: [agentId], orderBy: 'agent_id', fetch: 1 })
  return agent ?? noSuchAgent(agentId)
}

export async function readAgentsPage(db: Executor, query: PageQuery): Promise<PageOf<AgentWithAccounts>> {
  const page = readPage(AGENT_LIST, query, 2, 'agents')
  return page.toBody(await listAgents(db, page))
}
