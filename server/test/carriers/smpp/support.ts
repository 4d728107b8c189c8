import { after } from 'node:test'
import { pino } from 'pino'
import type { CarrierEvent, OnEvents, SmsCarrier, SmsPart } from '../../../src/carriers/carrier.ts'
import { createSmppCarrier, type SmppSettings } from '../../../src/carriers/smpp/carrier.ts'
import type { SmppTimings } from '../../../src/carriers/smpp/settings.ts'

export const PASSWORD = 'pa55word'
export const FAST: Partial<SmppTimings> = { tickMs: 5, reconnectFirstMs: 10, reconnectLongestMs: 40 }

export type TestCarrier = SmsCarrier & { events: CarrierEvent[]; log: () => string }

/** A carrier with its events and its log at hand. It is closed after the tests of the file. */
export function startCarrier(port: number, settings: Partial<SmppSettings> = {}, onEvents?: OnEvents): TestCarrier {
  const events: CarrierEvent[] = []
  let lines = ''
  const write = (line: string) => {
    lines += line
  }
  const logger = pino({ level: 'trace' }, { write })
  const carrier = createSmppCarrier(
    {
      name: 'net',
      host: '127.0.0.1',
      port,
      tls: false,
      systemId: 'herald',
      password: PASSWORD,
      ...settings,
      timings: { ...FAST, ...settings.timings },
    },
    {
      logger,
      onEvents:
        onEvents ??
        (async (batch) => {
          events.push(...batch)
        }),
    },
  )
  after(() => carrier.close())
  return { ...carrier, events, log: () => lines }
}

export function part(changes: Partial<SmsPart> = {}): SmsPart {
  return {
    sender: 'Herald',
    recipient: '+48500100200',
    encoding: 'GSM7',
    text: 'Hello',
    expiresAt: new Date(Date.now() + 3_600_000),
    ...changes,
  }
}
