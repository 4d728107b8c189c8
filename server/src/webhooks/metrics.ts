import { Counter, Gauge, type Registry } from 'prom-client'

export type WebhookMetrics = {
  countRouted: (events: number, mayBeMore: boolean) => void
  countAttempt: (outcome: 'taken' | 'refused' | 'no-answer') => void
}

export function createWebhookMetrics(registry: Registry): WebhookMetrics {
  const registers = [registry]
  let caughtUpAt = performance.now()
  const routed = new Counter({ name: 'herald_events_total', help: 'Events that got their position in the log', registers })
  const attempts = new Counter({
    name: 'herald_webhook_attempts_total',
    help: 'Attempts to post an event, by outcome',
    labelNames: ['outcome'],
    registers,
  })
  new Gauge({
    name: 'herald_events_behind_seconds',
    help: 'Seconds since this process last found no event waiting for its position in the log',
    registers,
    collect() {
      this.set((performance.now() - caughtUpAt) / 1_000)
    },
  })
  return {
    countRouted: (events, mayBeMore) => {
      routed.inc(events)
      if (!mayBeMore) caughtUpAt = performance.now()
    },
    countAttempt: (outcome) => attempts.inc({ outcome }),
  }
}
