import { Ago, Facts } from '../../kit/display.tsx'
import { Meter } from '../../kit/meter.tsx'
import * as say from '../../words/en-health.ts'
import { shortDuration } from '../../words/numbers.ts'
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
      <h2>{say.nodes}</h2>
      <ul class="health-cards">
        {nodes.map(([node, state]) => (
          <NodeCard key={node.nodeId} node={node} state={state} />
        ))}
      </ul>
    </section>
  )
}

function NodeCard({ node, state }: { node: HealthNode; state: NodeState }) {
  return (
    <StatusCard name={node.host} note={node.pid} tone={TONES[state]} state={say.nodeStates[state]}>
      <Facts
        facts={[
          [say.roles, node.roles.join(', ')],
          [say.version, node.version],
          [say.started, <Ago at={node.startedAt} />],
          [say.seen, <Ago at={node.seenAt} />],
          [say.loopDelay, shortDuration(node.loopDelayMs)],
        ]}
      />
      <div class="pools">
        <h4>{say.pools}</h4>
        {node.pools.map(({ name, busy, max, waiting }) => (
          <Meter key={name} label={say.poolNames[name] + (waiting === 0 ? '' : say.waiting(waiting))} value={busy} max={max} />
        ))}
      </div>
    </StatusCard>
  )
}
