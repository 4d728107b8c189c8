import type { Executor } from '../db/pool.ts'
import { OperatorError } from '../errors.ts'

export const BILLING_TYPES = ['single', 'conversational', 'basic'] as const
export type BillingType = (typeof BILLING_TYPES)[number]

/** An agent as an account sees it. */
export type Agent = { agentId: string; name: string; displayName?: string; billingType: BillingType; active: boolean }

type AgentRecord = { agentId: string; name: string; billingType: BillingType; carrier: string }
type AgentChange = { displayName?: string; active?: false }

type AgentRow = Omit<Agent, 'displayName'> & { displayName: string | null }

const AGENT = `a.agent_id as "agentId", a.name, s.display_name as "displayName", a.billing_type as "billingType", s.active`
const RECORD = `agent_id as "agentId", name, billing_type as "billingType", carrier`

function toAgent({ displayName, ...row }: AgentRow): Agent {
  return displayName === null ? row : { ...row, displayName }
}

export async function listActiveAgents(db: Executor, accountId: number): Promise<Agent[]> {
  const { rows } = await db.query<AgentRow>({
    name: 'list-active-agents',
    text: `select ${AGENT} from agent_assignments s join agents a using (agent_id)
           where s.account_id = $1 and s.active
           order by s.agent_id collate "C"`,
    values: [accountId],
  })
  return rows.map(toAgent)
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

/** Assigning again changes nothing: it keeps the display name, and does not activate the agent. */
export async function assignAgent(db: Executor, agentId: string, accountId: number): Promise<Agent> {
  await db.query(
    `insert into agent_assignments (account_id, agent_id)
     select accounts.id, agents.agent_id from accounts, agents where accounts.id = $1 and agents.agent_id = $2
     on conflict do nothing`,
    [accountId, agentId],
  )
  return await readAssignment(db, agentId, accountId)
}

export async function activateAgent(db: Executor, agentId: string, accountId: number): Promise<Agent> {
  await db.query('update agent_assignments set active = true where account_id = $1 and agent_id = $2', [accountId, agentId])
  return await readAssignment(db, agentId, accountId)
}

async function readAssignment(db: Executor, agentId: string, accountId: number): Promise<Agent> {
  const { rows } = await db.query<AgentRow>(
    `select ${AGENT} from agent_assignments s join agents a using (agent_id) where s.account_id = $1 and s.agent_id = $2`,
    [accountId, agentId],
  )
  if (rows[0] === undefined) {
    throw new OperatorError(
      `The agent ${agentId} is not assigned to account ${accountId}, or one of the two does not exist; see "herald agent list" and "herald account list".`,
    )
  }
  return toAgent(rows[0])
}

type AgentWithAccounts = AgentRecord & { accounts: { accountId: number; displayName?: string; active: boolean }[] }

export async function listAgents(db: Executor): Promise<AgentWithAccounts[]> {
  const { rows } = await db.query<AgentWithAccounts>(
    `select ${RECORD}, coalesce((
       select json_agg(
         json_strip_nulls(json_build_object('accountId', s.account_id, 'displayName', s.display_name, 'active', s.active)) order by s.account_id
       )
       from agent_assignments s where s.agent_id = agents.agent_id
     ), '[]') as accounts
     from agents order by agent_id collate "C"`,
  )
  return rows
}
