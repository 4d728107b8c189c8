import { nameOf, useAgents } from '../../app/agents.ts'

/** The agents of the account, to choose from, and their names. An opt-out may be of an agent that is no longer active. */
export function useAgentNames() {
  const { agents = [], problem, reload } = useAgents()
  const options = agents.map((agent) => ({ value: agent.agentId, text: nameOf(agent) }))
  const nameFor = (agentId: string) => options.find(({ value }) => value === agentId)?.text ?? agentId
  return { options, nameFor, problem, reload }
}
