import type { Place } from '../../app/place.ts'
import { AgentList } from './agent-list.tsx'
import { AgentPage } from './agent-page.tsx'
import './agents.css'

/** The list of agents, or one agent, if the address has its id. */
export function AgentsPage({ place }: { place: Place }) {
  const [, shown] = place.path
  return shown === undefined ? <AgentList place={place} /> : <AgentPage key={shown} agentId={shown} />
}
