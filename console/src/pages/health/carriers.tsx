import { Facts } from '../../kit/display.tsx'
import type { Tone } from '../../kit/tone.ts'
import * as say from '../../words/en-health.ts'
import { number } from '../../words/numbers.ts'
import { StatusCard } from './card.tsx'
import type { Carrier } from './health-types.ts'
import { isLost, isStruggling } from './troubles.ts'

/** The networks, summed over all processes that deliver. */
export function Carriers({ carriers }: { carriers: Carrier[] }) {
  return (
    <section class="health-part">
      <h2>{say.carriers}</h2>
      {carriers.length === 0 && <p class="soft">{say.noCarriers}</p>}
      <ul class="health-cards">
        {carriers.map((carrier) => (
          <CarrierCard key={carrier.name} carrier={carrier} />
        ))}
      </ul>
    </section>
  )
}

function stateOf(carrier: Carrier): { tone: Tone; state: string } {
  if (isLost(carrier)) return { tone: 'bad', state: say.carrierLost }
  return isStruggling(carrier) ? { tone: 'warn', state: say.struggles } : { tone: 'good', state: say.works }
}

function CarrierCard({ carrier }: { carrier: Carrier }) {
  const { name, kind, sessions, nodes, openCircuits } = carrier
  return (
    <StatusCard name={name} note={kind.toUpperCase()} {...stateOf(carrier)}>
      <Facts
        facts={[
          [say.sessions, sessions],
          [say.circuit, openCircuits === 0 ? say.closed : say.open(openCircuits, nodes)],
          [say.nodes, nodes],
        ]}
      />
      <Outcomes carrier={carrier} />
    </StatusCard>
  )
}

const TONES: Record<string, Tone> = { sent: 'good', accepted: 'good', failed: 'bad', retry: 'warn', unknown: 'warn' }

/** What became of the latest calls. */
function Outcomes({ carrier }: { carrier: Carrier }) {
  const outcomes = Object.entries(carrier.outcomes).filter(([, count]) => count > 0)
  return (
    <div class="outcomes">
      <h4>{say.outcomes}</h4>
      <ul>
        {outcomes.length === 0 && <li>{say.noCalls}</li>}
        {outcomes.map(([name, count]) => (
          <li class={`tone-${TONES[name] ?? 'plain'}`}>
            <i aria-hidden="true" /> {number.format(count)} {say.outcomeNames[name] ?? name}
          </li>
        ))}
      </ul>
    </div>
  )
}
