import { useEffect } from 'preact/hooks'
import { nameOf, useAgents } from './agents.ts'
import { useResource } from './resource.ts'
import { type Account, useFrame } from './session.tsx'

type Endpoint = { endpointId: number; url: string }

export type Known = { agents: { agentId: string; name: string }[]; endpoints: Endpoint[]; accounts: Account[] }

/** What Ctrl-K finds by a name or an id. Each opening of the palette reads it again. `opened`: how often the palette has opened. */
export function useKnown(opened: number, accounts: Account[]) {
  const { account } = useFrame()
  const ifOpen = (path: string) => (opened === 0 ? undefined : path)
  const agents = useAgents(opened > 0)
  const endpoints = useResource<{ items: Endpoint[] }>(ifOpen(`/accounts/${account.accountId}/webhook-endpoints?limit=200`))
  const reload = () => {
    for (const each of [agents, endpoints]) each.reload()
  }
  useEffect(() => {
    if (opened > 1) reload()
  }, [opened])
  const known: Known = {
    agents: (agents.agents ?? []).map((agent) => ({ agentId: agent.agentId, name: nameOf(agent) })),
    endpoints: endpoints.value?.items ?? [],
    accounts: accounts.filter(({ accountId }) => accountId !== account.accountId),
  }
  return { known, problem: agents.problem ?? endpoints.problem, reload }
}

/** What has the text in its name, or as its id. */
export function matching({ agents, endpoints, accounts }: Known, text: string): Known {
  const wanted = text.trim().toLowerCase()
  const has = (name: string, id: string | number) =>
    wanted !== '' && (name.toLowerCase().includes(wanted) || String(id).toLowerCase() === wanted)
  return {
    agents: agents.filter(({ agentId, name }) => has(`${name} ${agentId}`, agentId)),
    endpoints: endpoints.filter(({ endpointId, url }) => has(url, endpointId)),
    accounts: accounts.filter(({ accountId, name }) => has(name, accountId)),
  }
}
