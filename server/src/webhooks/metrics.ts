import { Counter, type Registry } from 'prom-client'

export type WebhookMetrics = {
  countRouted: (events: number) => void
  countAttempt: (outcome: 'taken' | 'refused' | 'no-answer') => void
}

export function createWebhookMetrics(registry: Registry): WebhookMetrics {
  const registers = [registry]
  const routed = new Counter({ name: 'herald_events_total', help: 'Events that were put into the log', registers })
  const attempts = new Counter({
    name: 'herald_webhook_attempts_total',
    help: 'Tries to post an event, by what came of them',
    labelNames: ['outcome'],
    registers,
  })
  return { countRouted: (events) => routed.inc(events), countAttempt: (outcome) => attempts.inc({ outcome }) }
}
