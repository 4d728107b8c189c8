import { nameOf, useAgents } from '../../app/agents.ts'

/** The agents of the account, to choose from, and their names. An opt-out may be of an agent that is no longer active. */
export function useAgentNames() {
  const { agents: all, problem, reload } = useAgents()
  const options = (all ?? []).map((agent) => ({ value: agent.agentId, text: nameOf(agent) }))
  const nameFor = (agentId: string) => options.find(({ value }) => value === agentId)?.text ?? agentId
  const isActive = (agentId: string) => all === undefined || all.some((agent) => agent.agentId === agentId)
  return { options, nameFor, isActive, problem, reload }
}
