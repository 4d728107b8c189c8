import { Counter, Gauge, type Registry } from 'prom-client'

export type WebhookMetrics = {
  countRouted: (events: number, mayBeMore: boolean) => void
  countAttempt: (outcome: 'taken' | 'refused' | 'no-answer') => void
}

export function createWebhookMetrics(registry: Registry): WebhookMetrics {
  const registers = [registry]
  let caughtUpAt = performance.now()
  const routed = new Counter({ name: 'herald_events_total', help: 'Events that were put into the log', registers })
  const attempts = new Counter({
    name: 'herald_webhook_attempts_total',
    help: 'Tries to post an event, by what came of them',
    labelNames: ['outcome'],
    registers,
  })
  new Gauge({
    name: 'herald_events_behind_seconds',
    help: 'For how long this process has found no end of the events that wait for their place in the log, or could not look',
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
