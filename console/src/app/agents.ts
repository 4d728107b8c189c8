import { useResource } from './resource.ts'
import { useFrame } from './session.tsx'

export type Agent = {
  agentId: string
  name: string
  displayName?: string
  billingType: 'single' | 'conversational' | 'basic'
  active: boolean
}

/** The agents of the account. They are read as soon as they are needed. */
export function useAgents(isNeeded = true) {
  const { account } = useFrame()
  const { value, ...resource } = useResource<{ items: Agent[] }>(isNeeded ? `/accounts/${account.accountId}/agents` : undefined)
  return { agents: value?.items, ...resource }
}

export const nameOf = ({ displayName, name }: Pick<Agent, 'displayName' | 'name'>) => displayName ?? name

/** The active agents. Agents of the billing type `basic` come last, since they can send only short texts. */
export function sendingAgents(agents: Agent[]): Agent[] {
  const active = agents.filter((agent) => agent.active)
  return active.toSorted((a, b) => Number(a.billingType === 'basic') - Number(b.billingType === 'basic'))
}
