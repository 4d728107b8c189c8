import type { Health, HealthNode } from './health-types.ts'

/** A process writes its status every five seconds. Two seconds more for a slow write: a lost process has to show within ten. */
const SILENT_MS = 7_000

/** For how long a process has not written its status, by the clock of the database, which both times come from. */
function silentMs({ seenAt }: HealthNode, { checkedAt, database }: Health): number {
  return Math.max(0, Date.parse(checkedAt) + database.clockDifferenceMs - Date.parse(seenAt))
}

export type NodeState = 'live' | 'lost' | 'replaced'

/** How each process is. A lost one is replaced by a process with the same roles that started after it was last seen: one for each. */
export function statesOf(health: Health): Map<HealthNode, NodeState> {
  const isSilent = (node: HealthNode) => silentMs(node, health) > SILENT_MS
  const states = new Map<HealthNode, NodeState>(health.nodes.map((node) => [node, isSilent(node) ? 'lost' : 'live']))
  const newest = health.nodes.filter((node) => !isSilent(node))
  for (const node of health.nodes.filter(isSilent)) {
    const index = newest.findIndex(({ roles, startedAt }) => roles.join() === node.roles.join() && startedAt > node.seenAt)
    if (index === -1) continue
    newest.splice(index, 1)
    states.set(node, 'replaced')
  }
  return states
}

/** Some process has the role `api`, since it responds. */
const ROLES = ['delivery', 'webhooks'] as const

/** The roles that no live process has: nothing does their work. */
export function rolesWithout(states: Map<HealthNode, NodeState>): (typeof ROLES)[number][] {
  const live = [...states].filter(([, state]) => state === 'live').flatMap(([{ roles }]) => roles)
  return ROLES.filter((role) => !live.includes(role))
}
