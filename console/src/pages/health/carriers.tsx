import { Facts } from '../../kit/display.tsx'
import type { Tone } from '../../kit/tone.ts'
import { words } from '../../words/words.ts'
import { StatusCard } from './card.tsx'
import type { Carrier } from './health-types.ts'
import { isLost, isStruggling } from './troubles.ts'

/** The networks, summed over all processes that deliver. */
export function Carriers({ carriers }: { carriers: Carrier[] }) {
  const { carriers: w } = words.health
  return (
    <section class="health-part">
      <h2>{w.title}</h2>
      {carriers.length === 0 && <p class="soft">{w.none}</p>}
      <ul class="health-cards">
        {carriers.map((carrier) => (
          <CarrierCard key={carrier.name} carrier={carrier} />
        ))}
      </ul>
    </section>
  )
}

function stateOf(carrier: Carrier): { tone: Tone; state: string } {
  const { lost, struggles, works } = words.health.carriers
  if (isLost(carrier)) return { tone: 'bad', state: lost }
  return isStruggling(carrier) ? { tone: 'warn', state: struggles } : { tone: 'good', state: works }
}

function CarrierCard({ carrier }: { carrier: Carrier }) {
  const { carriers: w, nodes: ofNodes } = words.health
  const { name, kind, sessions, nodes, openCircuits } = carrier
  return (
    <StatusCard name={name} note={kind.toUpperCase()} {...stateOf(carrier)}>
      <Facts
        facts={[
          [w.sessions, sessions],
          [w.circuit, openCircuits === 0 ? w.closed : w.open(openCircuits, nodes)],
          [ofNodes.title, nodes],
        ]}
      />
      <Outcomes carrier={carrier} />
    </StatusCard>
  )
}

const TONES: Record<string, Tone> = { sent: 'good', accepted: 'good', failed: 'bad', retry: 'warn', unknown: 'warn' }

/** What became of the latest calls. */
function Outcomes({ carrier }: { carrier: Carrier }) {
  const { carriers: w } = words.health
  const outcomes = Object.entries(carrier.outcomes).filter(([, count]) => count > 0)
  return (
    <div class="outcomes">
      <h4>{w.outcomes}</h4>
      <ul>
        {outcomes.length === 0 && <li>{w.noCalls}</li>}
        {outcomes.map(([name, count]) => (
          <li class={`tone-${TONES[name] ?? 'plain'}`}>
            <i aria-hidden="true" /> {words.number(count)} {w.outcome[name] ?? name}
          </li>
        ))}
      </ul>
    </div>
  )
}
