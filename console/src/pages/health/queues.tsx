import { shortDuration } from '../../words/numbers.ts'
import { words } from '../../words/words.ts'
import type { Health } from './health-types.ts'
import { ageTone, eventsTone } from './troubles.ts'

/** How long what is due has waited, and how much there is of it. */
export function Queues({ health: { queue, smsQueue, webhooks, events } }: { health: Health }) {
  const { queues: w } = words.health
  const { failing } = webhooks
  const eventsMs = { oldestMs: events.behindMs }
  return (
    <section class="health-queues" aria-label={w.title}>
      <dl class="today">
        <Figure name={w.messages} tone={ageTone(queue)} of={queue} note={w.due(queue.due)} />
        <Figure name={w.sms} tone={ageTone(smsQueue)} of={smsQueue} note={w.due(smsQueue.due)} />
        <Figure name={w.events} tone={eventsTone(events)} of={eventsMs} note={w.eventsHint} />
        <Figure
          name={w.webhooks}
          tone={ageTone(webhooks) ?? (failing > 0 ? 'warn' : undefined)}
          of={webhooks}
          note={w.due(webhooks.due) + (failing > 0 ? `, ${w.fail(failing)}` : '')}
        />
      </dl>
    </section>
  )
}

type FigureProps = { name: string; of: { oldestMs: number | null }; tone: 'bad' | 'warn' | undefined; note: string }

function Figure({ name, of: { oldestMs }, tone, note }: FigureProps) {
  return (
    <div class={`card figure ${tone ? `is-late tone-${tone}` : ''}`}>
      <dt>{name}</dt>
      <dd>
        {oldestMs === null ? words.health.queues.nothing : shortDuration(Math.max(0, oldestMs))}
        <small>{note}</small>
      </dd>
    </div>
  )
}
