import type { Logger } from 'pino'
import { isUnavailable } from '../../db/pool.ts'
import type { OnEvents, Outcome, SmsCarrier, SmsPart } from '../carrier.ts'
import { type BackOff, createBackOff, remainingMs, resetBackOff, startBackOff } from './back-off.ts'
import { eventOf } from './deliver-sm.ts'
import { MAX_ID_LENGTH, normaliseMessageId } from './message-ids.ts'
import type { PduOf } from './pdu.ts'
import { hasRoom, leave, openSession, tickSession, writeSubmit } from './session.ts'
import type { Answer, End, Session } from './session-state.ts'
import { DEFAULT_TIMINGS, DEFAULT_WINDOW, type SmppSettings, type SmppTimings } from './settings.ts'
import { describeStatus, STATUS, verdictOf } from './statuses.ts'
import { submitSm } from './submit-sm.ts'

export type { SmppSettings } from './settings.ts'

export type SmppDependencies = { onEvents: OnEvents; logger: Pick<Logger, 'info' | 'warn' | 'error'> }

type Waiting = { pdu: PduOf<'submit_sm'>; expiresAt: Date; sinceMs: number; resolve: (outcome: Outcome) => void }

type Carrier = SmppDependencies & {
  settings: SmppSettings
  timings: SmppTimings
  window: number
  session: Session | undefined
  boundAtMs: number | undefined
  /** Not written yet, the oldest first. They outlive a connection and go out on the next one, if it comes in time. */
  waiting: Set<Waiting>
  pumping: boolean
  reconnecting: BackOff
  /** For all submits. While it lasts, and until one is taken, nothing else is written. */
  throttled: BackOff
  /** How many in a row were turned away for now, with none taken between them. */
  turnedAway: number
  /** What was logged last about a connection that does not come about, so that it is logged once and not at every attempt. */
  trouble: string
  closing: boolean
  timer: NodeJS.Timeout
  onClosed: () => void
  closed: Promise<void>
}

/**
 * Connects at once and stays connected, as a transceiver. A part is submitted once or not at all: what was handed to the socket and not
 * answered is `unknown`, and is never written again.
 */
export function createSmppCarrier(settings: SmppSettings, dependencies: SmppDependencies): SmsCarrier {
  const timings = { ...DEFAULT_TIMINGS, ...settings.timings }
  const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>()
  const carrier: Carrier = {
    ...dependencies,
    settings,
    timings,
    window: settings.window ?? DEFAULT_WINDOW,
    session: undefined,
    boundAtMs: undefined,
    waiting: new Set(),
    pumping: false,
    reconnecting: createBackOff(timings.reconnectFirstMs, timings.reconnectLongestMs),
    throttled: createBackOff(timings.throttleFirstMs, timings.throttleLongestMs),
    turnedAway: 0,
    trouble: '',
    closing: false,
    timer: setInterval(() => tick(carrier), timings.tickMs),
    onClosed,
    closed,
  }
  connect(carrier)
  return {
    name: settings.name,
    // Waiting, then the answer, both seen with the next tick; and a second for a busy process.
    longestCallMs: timings.waitMs + timings.answerMs + 2 * timings.tickMs + 1_000,
    concurrency: carrier.window,
    messagesPerSecond: settings.messagesPerSecond,
    pausedForMs: () => pausedForMs(carrier),
    submit: (part) => submit(carrier, part),
    close: () => close(carrier),
  }
}

/** While there is no connection, what is handed over would wait here, and be lost with this process. */
function pausedForMs({ throttled, boundAtMs, timings }: Carrier): number {
  return Math.max(remainingMs(throttled, performance.now()), boundAtMs === undefined ? timings.tickMs : 0)
}

function submit(carrier: Carrier, part: SmsPart): Promise<Outcome> {
  const pdu = submitSm(part)
  if ('is' in pdu) return Promise.resolve(pdu)
  if (carrier.closing) return Promise.resolve(again(0, 'The connection is being closed.'))
  const sinceMs = performance.now()
  const backOffMs = remainingMs(carrier.throttled, sinceMs)
  if (backOffMs > 0) return Promise.resolve(again(backOffMs, 'The network is busy.'))
  return new Promise((resolve) => {
    carrier.waiting.add({ pdu, expiresAt: part.expiresAt, sinceMs, resolve })
    schedulePump(carrier)
  })
}

/** After this turn of the event loop, so that all submits of the turn go out in one piece. */
function schedulePump(carrier: Carrier): void {
  if (carrier.pumping || carrier.waiting.size === 0) return
  carrier.pumping = true
  setImmediate(() => {
    carrier.pumping = false
    pump(carrier)
  })
}

/** Writes as many as the window has room for. Nothing else writes submits: what waits was never handed to a socket. */
function pump(carrier: Carrier): void {
  const { session, waiting, throttled } = carrier
  if (session === undefined) return
  // After a pause one goes ahead, and the rest follow once it is taken.
  const window = throttled.delayMs === 0 ? carrier.window : 1
  const nowMs = performance.now()
  const now = Date.now()
  for (const one of waiting) {
    if (!hasRoom(session, window)) return
    waiting.delete(one)
    if (one.expiresAt.getTime() <= now) {
      one.resolve({ is: 'expired' })
      continue
    }
    writeSubmit(session, one.pdu, nowMs, (answer) => one.resolve(outcomeOf(carrier, answer)))
  }
}

function outcomeOf(carrier: Carrier, answer: Answer): Outcome {
  if (answer.is === 'lost') return { is: 'unknown', afterMs: 0, detail: answer.why }
  const { status, messageId, writtenAtMs } = answer
  const { throttled } = carrier
  if (status === STATUS.OK) {
    // Those written before the network said that it is busy tell nothing of how it is now.
    if (writtenAtMs >= throttled.untilMs) resetBackOff(throttled)
    carrier.turnedAway = 0
    // Without an id that can be one, no receipt will be told to be its; but the network has it.
    return { is: 'sent', carrierMessageId: messageId.length > MAX_ID_LENGTH ? '' : normaliseMessageId(messageId) }
  }
  const verdict = verdictOf(status)
  if (verdict !== 'AGAIN') return { is: 'refused', reason: verdict, detail: describeStatus(status) }
  if (status === STATUS.NOT_BOUND && carrier.session !== undefined) leave(carrier.session)
  return turnedAway(carrier, status)
}

// A full mailbox or a number that its own network does not answer for is turned away too, and no reason to let all others wait.
const TURNED_AWAY_TO_PAUSE = 5

function turnedAway(carrier: Carrier, status: number): Outcome {
  const { throttled, timings } = carrier
  const nowMs = performance.now()
  carrier.turnedAway += 1
  const isBusy = status === STATUS.THROTTLED || carrier.turnedAway >= TURNED_AWAY_TO_PAUSE || throttled.delayMs > 0
  // A whole window may be turned away at once: that is one time, not ten.
  if (isBusy && remainingMs(throttled, nowMs) === 0) {
    startBackOff(throttled, nowMs)
    carrier.logger.warn({ carrier: carrier.settings.name }, `the SMS network is busy: ${describeStatus(status)}`)
    sendAway(carrier, remainingMs(throttled, nowMs), 'The network is busy.')
  }
  return again(Math.max(remainingMs(throttled, nowMs), timings.throttleFirstMs), describeStatus(status))
}

function again(afterMs: number, detail: string): Outcome {
  return { is: 'again', afterMs, detail }
}

function sendAway(carrier: Carrier, afterMs: number, detail: string): void {
  for (const { resolve } of carrier.waiting) resolve(again(afterMs, detail))
  carrier.waiting.clear()
}

function tick(carrier: Carrier): void {
  const nowMs = performance.now()
  if (carrier.session !== undefined) tickSession(carrier.session, nowMs)
  else if (remainingMs(carrier.reconnecting, nowMs) === 0) connect(carrier)
  for (const one of carrier.waiting) {
    if (nowMs - one.sinceMs < carrier.timings.waitMs) break
    carrier.waiting.delete(one)
    const bound = carrier.boundAtMs !== undefined
    const afterMs = Math.max(carrier.timings.throttleFirstMs, bound ? 0 : remainingMs(carrier.reconnecting, nowMs))
    one.resolve(again(afterMs, bound ? 'Too many messages wait for the answer of the network.' : 'There is no connection to the network.'))
  }
}

function connect(carrier: Carrier): void {
  carrier.session = openSession(carrier.settings, carrier.timings, {
    onBound: () => bound(carrier),
    onRoom: () => schedulePump(carrier),
    onDelivery: (pdu) => deliver(carrier, pdu),
    onEnd: (end) => ended(carrier, end),
  })
}

function bound(carrier: Carrier): void {
  carrier.boundAtMs = performance.now()
  carrier.trouble = ''
  carrier.logger.info({ carrier: carrier.settings.name }, 'bound to the SMS network')
  schedulePump(carrier)
}

function ended(carrier: Carrier, end: End): void {
  const { boundAtMs, reconnecting } = carrier
  const nowMs = performance.now()
  carrier.session = undefined
  carrier.boundAtMs = undefined
  if (carrier.closing) {
    clearInterval(carrier.timer)
    carrier.onClosed()
    return
  }
  logEnd(carrier, end)
  if (boundAtMs !== undefined && nowMs - boundAtMs >= carrier.timings.steadyMs) resetBackOff(reconnecting)
  startBackOff(reconnecting, nowMs)
}

/** Never with what the network wrote: its words may hold numbers. */
function logEnd(carrier: Carrier, end: End): void {
  const { logger, settings } = carrier
  if (end.is === 'left') return
  const trouble = end.is === 'refused' ? `the bind was refused: ${describeStatus(end.status)}` : end.why
  const code = end.is === 'lost' && end.err !== undefined && 'code' in end.err ? ` (${String(end.err.code)})` : ''
  if (carrier.trouble === trouble + code) return
  carrier.trouble = trouble + code
  logger[end.is === 'refused' ? 'error' : 'warn']({ carrier: settings.name }, `no connection to the SMS network: ${carrier.trouble}`)
}

async function deliver(carrier: Carrier, pdu: PduOf<'deliver_sm'>): Promise<void> {
  try {
    await carrier.onEvents([eventOf(pdu, carrier.settings.name)])
  } catch (err) {
    const sentence = 'a receipt or a reply could not be kept: the SMS network will send it again'
    // A process that stops closes its database after a while, also when a delivery still waits for it.
    carrier.logger[isUnavailable(err) || carrier.closing ? 'warn' : 'error']({ carrier: carrier.settings.name, err }, sentence)
    throw err
  }
}

function close(carrier: Carrier): Promise<void> {
  if (carrier.closing) return carrier.closed
  carrier.closing = true
  sendAway(carrier, 0, 'The connection is being closed.')
  if (carrier.session !== undefined) leave(carrier.session)
  else {
    clearInterval(carrier.timer)
    carrier.onClosed()
  }
  return carrier.closed
}
