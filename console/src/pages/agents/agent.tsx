import type { Agent } from '../../app/agents.ts'
import type { useCarriers } from '../../app/carriers.ts'
import { Pill } from '../../kit/display.tsx'
import * as agentWords from '../../words/en-agents.ts'

/** What depends on an agent in an account. */
export type Use = { messages: number; campaigns: number; autoReplies: number; optOuts: number }

/** An agent of the account. */
export type Own = { agent: Agent; use: Use }

/** An agent of the installation, as operators see it. */
export type AgentRecord = Pick<Agent, 'agentId' | 'name' | 'billingType'> & {
  carrier: string
  accounts: { accountId: number; displayName?: string; active: boolean }[]
}

export const BILLING_TYPES = ['single', 'conversational', 'basic'] as const

/** The path of the account's agents in the admin API, or of one of them. */
export const pathOf = (accountId: number, agentId?: string, more = '') =>
  `/accounts/${accountId}/assignments${agentId === undefined ? '' : `/${encodeURIComponent(agentId)}`}${more}`

/** The path of an agent of the account in the API for callers, which changes it. */
export const ownPathOf = (accountId: number, agentId: string) => `/accounts/${accountId}/agents/${encodeURIComponent(agentId)}`

export const recordPathOf = (agentId: string) => `/agents/${encodeURIComponent(agentId)}`

/** Whether the agent is active in an account. Undefined: it is not assigned to it. */
export const activeIn = (accountId: number, { accounts }: AgentRecord) => accounts.find((each) => each.accountId === accountId)?.active

export const carrierOf = (carriers: ReturnType<typeof useCarriers>['carriers'], agentId: string) =>
  carriers?.find(({ agentIds }) => agentIds.includes(agentId))?.carrier

/** Whether an account can send with an agent, in a word and a colour. `active`: undefined if the agent is not assigned to it. */
export function Health({ active }: { active: boolean | undefined }) {
  if (active === undefined) return <Pill tone="plain">{agentWords.notAssigned}</Pill>
  return active ? <Pill tone="good">{agentWords.active}</Pill> : <Pill tone="warn">{agentWords.inactive}</Pill>
}
