import assert from 'node:assert/strict'
import { after } from 'node:test'
import { pino } from 'pino'
import type { CarrierEvent, OnEvents, SendResult, SmsCarrier, SmsSegment } from '../../../src/carriers/carrier.ts'
import { createSmppCarrier, type SmppSettings } from '../../../src/carriers/smpp/carrier.ts'
import type { SmppTimings } from '../../../src/carriers/smpp/settings.ts'
import { until } from '../../support/until.ts'

export const PASSWORD = 'pa55word'
const HOUR_MS = 3_600_000
/** Reconnects fast, and has no timeout that a busy machine could reach. A test of a timeout sets it. */
const TIMINGS: Partial<SmppTimings> = {
  tickMs: 5,
  reconnectFirstMs: 10,
  reconnectLongestMs: 40,
  connectMs: HOUR_MS,
  bindMs: HOUR_MS,
  responseMs: HOUR_MS,
  waitMs: HOUR_MS,
}

export type TestCarrier = SmsCarrier & { events: CarrierEvent[]; log: () => string }

/** A carrier with its events and its log. It is closed after the tests of the file. */
export function startCarrier(port: number, settings: Partial<SmppSettings> = {}, onEvents?: OnEvents): TestCarrier {
  const events: CarrierEvent[] = []
  let lines = ''
  const write = (line: string) => {
    lines += line
  }
  const address = { name: 'net', host: '127.0.0.1', port, tls: false, systemId: 'herald', password: PASSWORD }
  const carrier = createSmppCarrier(
    { ...address, ...settings, timings: { ...TIMINGS, ...settings.timings } },
    { logger: pino({ level: 'trace' }, { write }), onEvents: onEvents ?? (async (batch) => void events.push(...batch)) },
  )
  after(() => carrier.close())
  return { ...carrier, events, log: () => lines }
}

export async function bound(carrier: TestCarrier, times = 1): Promise<void> {
  await until(`it is bound ${times} times`, () => (carrier.log().match(/bound to/g)?.length ?? 0) >= times)
}

export function smsSegment(changes: Partial<SmsSegment> = {}): SmsSegment {
  return {
    sender: 'Herald',
    recipient: '+48500100200',
    encoding: 'GSM7',
    text: 'Hello',
    expiresAt: new Date(Date.now() + HOUR_MS),
    ...changes,
  }
}

/** Submits so many segments at once. */
export function submitMany(carrier: TestCarrier, count: number): Promise<SendResult>[] {
  return Array.from({ length: count }, () => carrier.submit(smsSegment()))
}

export async function assertOutcomes(outcomes: Promise<SendResult>[], expected: SendResult['is'][]): Promise<void> {
  assert.deepEqual(
    (await Promise.all(outcomes)).map(({ is }) => is),
    expected,
  )
}
