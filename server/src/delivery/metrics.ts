import { Counter, type Registry } from 'prom-client'

export type DeliveryMetrics = {
  /** A call to a network, and its result. */
  count: (carrier: string, task: 'send' | 'revoke' | 'sms', outcome: string) => void
  /** A result that was not recorded: its lease had ended, or its message had moved on. */
  countRefused: (carrier: string) => void
  countExpired: (messages: number) => void
}

export function createDeliveryMetrics(registry: Registry): DeliveryMetrics {
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const calls = counter('herald_carrier_calls_total', 'Calls to a network, by outcome', ['carrier', 'task', 'outcome'])
  const refused = counter(
    'herald_results_refused_total',
    'Results that were not recorded because the lease had ended or the message had moved on',
    ['carrier'],
  )
  const expired = counter('herald_messages_expired_total', 'Messages that expired before delivery')
  return {
    count: (carrier, task, outcome) => calls.inc({ carrier, task, outcome }),
    countRefused: (carrier) => refused.inc({ carrier }),
    countExpired: (messages) => expired.inc(messages),
  }
}
