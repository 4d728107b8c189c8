import * as say from '../../words/en-health.ts'
import { shortDuration } from '../../words/numbers.ts'
import type { Health } from './health-types.ts'
import { ageTone, eventsTone } from './troubles.ts'

/** How long what is due has waited, and how much there is of it. */
export function Queues({ health: { queue, smsQueue, webhooks, events } }: { health: Health }) {
  const { failing } = webhooks
  const eventsMs = { oldestMs: events.behindMs }
  return (
    <section class="health-queues" aria-label={say.queues}>
      <dl class="today">
        <Figure name={say.dueMessage} tone={ageTone(queue)} of={queue} note={say.due(queue.due)} />
        <Figure name={say.dueSms} tone={ageTone(smsQueue)} of={smsQueue} note={say.due(smsQueue.due)} />
        <Figure name={say.eventLag} tone={eventsTone(events)} of={eventsMs} note={say.eventLagHint} />
        <Figure
          name={say.backlog}
          tone={ageTone(webhooks) ?? (failing > 0 ? 'warn' : undefined)}
          of={webhooks}
          note={say.due(webhooks.due) + (failing > 0 ? `, ${say.fail(failing)}` : '')}
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
        {oldestMs === null ? say.nothingDue : shortDuration(Math.max(0, oldestMs))}
        <small>{note}</small>
      </dd>
    </div>
  )
}
