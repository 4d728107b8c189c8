import { Counter, Gauge, type Registry } from 'prom-client'

export type EventMetrics = {
  countRouted: (events: number, mayBeMore: boolean) => void
  /** How far the log is behind: the time since this process last found that no event waited for its position. */
  behindMs: () => number
}

export function createEventMetrics(registry: Registry): EventMetrics {
  const registers = [registry]
  let caughtUpAt = performance.now()
  const behindMs = () => performance.now() - caughtUpAt
  const routed = new Counter({ name: 'herald_events_total', help: 'Events that got their position in the log', registers })
  new Gauge({
    name: 'herald_events_behind_seconds',
    help: 'Seconds since this process last found no event waiting for its position in the log',
    registers,
    collect() {
      this.set(behindMs() / 1_000)
    },
  })
  return {
    behindMs,
    countRouted: (events, mayBeMore) => {
      routed.inc(events)
      if (!mayBeMore) caughtUpAt = performance.now()
    },
  }
}
