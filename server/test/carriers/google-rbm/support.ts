import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after } from 'node:test'
import type { RcsCarrier, RcsMessage } from '../../../src/carriers/carrier.ts'
import { createGoogleRbm } from '../../../src/carriers/google-rbm/carrier.ts'
import type { GoogleRbmSettings } from '../../../src/carriers/google-rbm/settings.ts'
import { createLogger } from '../../../src/http/log.ts'
import { startNetwork } from '../../support/network.ts'

export const POSTBACK_KEY = Buffer.alloc(32, 7)

/** A carrier that is closed after the tests of the file. */
export function connect(settings: GoogleRbmSettings, logger = createLogger('silent')): RcsCarrier {
  const carrier = createGoogleRbm(settings, { postbackKey: POSTBACK_KEY, logger })
  after(() => carrier.close())
  return carrier
}

export async function start(connections?: number) {
  const network = await startNetwork(connections)
  return { network, carrier: connect(network.settings) }
}

export function recordLog() {
  let log = ''
  const write = (line: string) => {
    log += line
  }
  return { logger: createLogger('trace', { write }), log: () => log }
}

let agents = 0

/** An agent of its own has a circuit of its own, which the failures of other tests do not close. */
export function newAgent(): string {
  agents += 1
  return `agent-${agents}`
}

export async function send(carrier: RcsCarrier, changes: Partial<RcsMessage> = {}) {
  return await carrier.send({
    messageId: randomUUID(),
    agentId: newAgent(),
    recipient: '+48500100110',
    content: { type: 'MESSAGE', content: 'CANARY-TEXT' },
    traffic: 'TRANSACTION',
    expiresAt: new Date(Date.now() + 3_600_000),
    ...changes,
  })
}

/** Sends one message for each expected result, one after the other. */
export async function sendEach(carrier: RcsCarrier, changes: Partial<RcsMessage>, expected: string[]): Promise<void> {
  const results: string[] = []
  while (results.length < expected.length) results.push((await send(carrier, changes)).is)
  assert.deepEqual(results, expected)
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

export function assertWithin(value: number | undefined, least: number, most: number): void {
  assert.ok(value !== undefined && value >= least && value <= most, `${value} is not between ${least} and ${most}`)
}
