import { Counter, type Registry } from 'prom-client'

export type WebhookMetrics = { countAttempt: (outcome: 'accepted' | 'refused' | 'no-response') => void }

export function createWebhookMetrics(registry: Registry): WebhookMetrics {
  const attempts = new Counter({
    name: 'herald_webhook_attempts_total',
    help: 'Attempts to post an event, by outcome',
    labelNames: ['outcome'],
    registers: [registry],
  })
  return { countAttempt: (outcome) => attempts.inc({ outcome }) }
}
