import { Counter, type Registry } from 'prom-client'

export type DeliveryMetrics = {
  /** A call to a network, and its result. */
  count: (carrier: string, task: 'send' | 'revoke' | 'sms', outcome: string) => void
  /** A result that came after its lease had ended: another worker may have claimed the message. */
  countRefused: (carrier: string) => void
  countExpired: (messages: number) => void
}

export function createDeliveryMetrics(registry: Registry): DeliveryMetrics {
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const calls = counter('herald_carrier_calls_total', 'Calls to a network, by what came of them', ['carrier', 'task', 'outcome'])
  const refused = counter(
    'herald_results_refused_total',
    'Results that were not written, since the lease had gone to another worker or the message had moved on',
    ['carrier'],
  )
  const expired = counter('herald_messages_expired_total', 'Messages that ran out undelivered')
  return {
    count: (carrier, task, outcome) => calls.inc({ carrier, task, outcome }),
    countRefused: (carrier) => refused.inc({ carrier }),
    countExpired: (messages) => expired.inc(messages),
  }
}
