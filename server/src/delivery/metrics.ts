import { Counter, type Registry } from 'prom-client'
import type { Capability } from './capabilities.ts'

export type DeliveryMetrics = {
  /** A call to a network, and its result. */
  count: (carrier: string, task: 'send' | 'revoke' | 'sms', outcome: string) => void
  /** A result that was not recorded: its lease had ended, or its message had moved on. */
  countRefused: (carrier: string) => void
  countExpired: (messages: number) => void
  /** Numbers that a network was asked about, by what it said. */
  countLookUps: (carrier: string, outcome: Capability, numbers: number) => void
}

// For how many minutes the outcomes of calls are shown to operators.
const RECENT_MINUTES = 5
const MINUTE_MS = 60_000

/** `recentCalls`: the calls to a carrier in this minute and the four before it, by outcome. */
type RecentCalls = { recentCalls: (carrier: string) => Record<string, number> }

export function createDeliveryMetrics(registry: Registry): DeliveryMetrics & RecentCalls {
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const calls = counter('herald_carrier_calls_total', 'Calls to a network, by outcome', ['carrier', 'task', 'outcome'])
  const refused = counter(
    'herald_results_refused_total',
    'Results that were not recorded because the lease had ended or the message had moved on',
    ['carrier'],
  )
  const expired = counter('herald_messages_expired_total', 'Messages that expired before delivery')
  const lookUps = counter('herald_capability_lookups_total', 'Numbers that a network was asked about before a send, by what it said', [
    'carrier',
    'outcome',
  ])
  const recent = createRecentCounts()
  return {
    count: (carrier, task, outcome) => {
      calls.inc({ carrier, task, outcome })
      recent.count(carrier, outcome)
    },
    recentCalls: recent.of,
    countRefused: (carrier) => refused.inc({ carrier }),
    countExpired: (messages) => expired.inc(messages),
    countLookUps: (carrier, outcome, numbers) => lookUps.inc({ carrier, outcome }, numbers),
  }
}

/** Counts in memory, minute by minute. There are few carriers and outcomes. */
function createRecentCounts() {
  const minutes = new Map<number, Map<string, Record<string, number>>>()
  const thisMinute = () => Math.floor(performance.now() / MINUTE_MS)

  function ofMinute(minute: number): Map<string, Record<string, number>> {
    const counts = minutes.get(minute) ?? new Map()
    if (minutes.has(minute)) return counts
    for (const old of minutes.keys()) if (old <= minute - RECENT_MINUTES) minutes.delete(old)
    minutes.set(minute, counts)
    return counts
  }

  return {
    count: (carrier: string, outcome: string): void => {
      const counts = ofMinute(thisMinute())
      const outcomes = counts.get(carrier) ?? {}
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      counts.set(carrier, outcomes)
    },
    of: (carrier: string): Record<string, number> => {
      const sum: Record<string, number> = {}
      ofMinute(thisMinute())
      for (const counts of minutes.values())
        for (const [outcome, count] of Object.entries(counts.get(carrier) ?? {})) sum[outcome] = (sum[outcome] ?? 0) + count
      return sum
    },
  }
}
