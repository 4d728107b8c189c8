import { Counter, type Registry } from 'prom-client'

export type DeliveryMetrics = {
  /** A call to a network, and what came of it. */
  count: (carrier: string, task: 'send' | 'revoke' | 'sms', outcome: string) => void
  /** A result that came after its lease: others have, or had, the message. */
  countRefused: (carrier: string) => void
  countExpired: (messages: number) => void
}

export function createDeliveryMetrics(registry: Registry): DeliveryMetrics {
  const registers = [registry]
  const calls = new Counter({
    name: 'herald_carrier_calls_total',
    help: 'Calls to a network, by what came of them',
    labelNames: ['carrier', 'task', 'outcome'],
    registers,
  })
  const refused = new Counter({
    name: 'herald_results_refused_total',
    help: 'Results that were not written, since the lease had gone to another worker or the message had moved on',
    labelNames: ['carrier'],
    registers,
  })
  const expired = new Counter({ name: 'herald_messages_expired_total', help: 'Messages that ran out undelivered', registers })
  return {
    count: (carrier, task, outcome) => calls.inc({ carrier, task, outcome }),
    countRefused: (carrier) => refused.inc({ carrier }),
    countExpired: (messages) => expired.inc(messages),
  }
}
