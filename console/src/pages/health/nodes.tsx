import { Ago, Facts } from '../../kit/display.tsx'
import { Meter } from '../../kit/meter.tsx'
import { shortDuration } from '../../words/numbers.ts'
import { words } from '../../words/words.ts'
import { StatusCard } from './card.tsx'
import type { Health, HealthNode } from './health-types.ts'
import { type NodeState, statesOf } from './lost-nodes.ts'

const TONES = { live: 'good', lost: 'bad', replaced: 'plain' } as const
const RANKS = { lost: 0, live: 1, replaced: 2 }

/** The processes, the lost ones first. */
export function Nodes({ health }: { health: Health }) {
  const nodes = [...statesOf(health)].sort(([, a], [, b]) => RANKS[a] - RANKS[b])
  return (
    <section class="health-part">
      <h2>{words.health.nodes.title}</h2>
      <ul class="health-cards">
        {nodes.map(([node, state]) => (
          <NodeCard key={node.nodeId} node={node} state={state} />
        ))}
      </ul>
    </section>
  )
}

function NodeCard({ node, state }: { node: HealthNode; state: NodeState }) {
  const { nodes: w } = words.health
  return (
    <StatusCard name={node.host} note={node.pid} tone={TONES[state]} state={w.states[state]}>
      <Facts
        facts={[
          [w.roles, node.roles.join(', ')],
          [w.version, node.version],
          [w.started, <Ago at={node.startedAt} />],
          [w.seen, <Ago at={node.seenAt} />],
          [w.loopDelay, shortDuration(node.loopDelayMs)],
        ]}
      />
      <div class="pools">
        <h4>{w.pools}</h4>
        {node.pools.map(({ name, busy, max, waiting }) => (
          <Meter key={name} label={w.pool[name] + (waiting === 0 ? '' : w.waiting(waiting))} value={busy} max={max} />
        ))}
      </div>
    </StatusCard>
  )
}
