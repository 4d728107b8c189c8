import type { Logger } from 'pino'
import { isUnavailable } from '../../db/pool.ts'
import type { OnEvents, SendResult, SmsCarrier, SmsSegment } from '../carrier.ts'
import { meaningOf } from '../errors.ts'
import { type BackOff, createBackOff, remainingMs, resetBackOff, startBackOff } from './back-off.ts'
import { eventOf } from './deliver-sm.ts'
import { MAX_ID_LENGTH, normaliseMessageId } from './message-ids.ts'
import type { PduOf } from './pdu.ts'
import { hasRoom, leave, openSession, tickSession, writeSubmit } from './session.ts'
import type { End, Session, SubmitOutcome } from './session-state.ts'
import { DEFAULT_TIMINGS, DEFAULT_WINDOW, type SmppSettings, type SmppTimings } from './settings.ts'
import { describeStatus, STATUS } from './statuses.ts'
import { submitSm } from './submit-sm.ts'

export type { SmppSettings } from './settings.ts'

type SmppDependencies = { onEvents: OnEvents; logger: Pick<Logger, 'info' | 'warn' | 'error'> }

type Waiting = { pdu: PduOf<'submit_sm'>; expiresAt: Date; sinceMs: number; resolve: (result: SendResult) => void }

type Carrier = SmppDependencies & {
  settings: SmppSettings
  timings: SmppTimings
  window: number
  session: Session | undefined
  boundAtMs: number | undefined
  /** Submits that are not written yet, oldest first. If the connection is lost, they go out on the next one, provided that it is bound in time. */
  waiting: Set<Waiting>
  pumping: boolean
  reconnecting: BackOff
  /** Applies to all submits. During the delay nothing is written; after it, only one submit until the network accepts one. */
  throttled: BackOff
  /** Consecutive temporary refusals. */
  temporaryRefusals: number
  /** The last logged reason for having no connection, so that each reason is logged once and not at every attempt. */
  lastReason: string
  closing: boolean
  timer: NodeJS.Timeout
  onClosed: () => void
  closed: Promise<void>
}

/**
 * Connects at once as a transceiver, and reconnects whenever the connection is lost. A segment is submitted at most once: a submit that was
 * written but got no response is `unknown`, and is never written again.
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
    temporaryRefusals: 0,
    lastReason: '',
    closing: false,
    timer: setInterval(() => tick(carrier), timings.tickMs),
    onClosed,
    closed,
  }
  connect(carrier)
  return {
    name: settings.name,
    // The wait for room in the window, the wait for the response, a tick to notice the end of each, and one second for a busy process.
    longestCallMs: timings.waitMs + timings.responseMs + 2 * timings.tickMs + 1_000,
    concurrency: carrier.window,
    messagesPerSecond: settings.messagesPerSecond,
    pausedForMs: () => pausedForMs(carrier),
    health: () => ({ circuit: carrier.throttled.failures > 0 ? 'open' : 'closed', sessions: carrier.boundAtMs === undefined ? 0 : 1 }),
    submit: (segment) => submit(carrier, segment),
    close: () => close(carrier),
  }
}

/** Without a connection a segment would wait here in memory, and be lost with this process. */
function pausedForMs({ throttled, boundAtMs, timings }: Carrier): number {
  return Math.max(remainingMs(throttled, performance.now()), boundAtMs === undefined ? timings.tickMs : 0)
}

function submit(carrier: Carrier, segment: SmsSegment): Promise<SendResult> {
  const pdu = submitSm(segment)
  if ('is' in pdu) return Promise.resolve(pdu)
  if (carrier.closing) return Promise.resolve(retry(0, 'The connection is being closed.'))
  const sinceMs = performance.now()
  const backOffMs = remainingMs(carrier.throttled, sinceMs)
  if (backOffMs > 0) return Promise.resolve(retry(backOffMs, 'The network is busy.'))
  return new Promise((resolve) => {
    carrier.waiting.add({ pdu, expiresAt: segment.expiresAt, sinceMs, resolve })
    schedulePump(carrier)
  })
}

/** Runs after this turn of the event loop, so that all submits of the turn are written together. */
function schedulePump(carrier: Carrier): void {
  if (carrier.pumping || carrier.waiting.size === 0) return
  carrier.pumping = true
  setImmediate(() => {
    carrier.pumping = false
    pump(carrier)
  })
}

/** Writes as many submits as the window has room for. Only this function writes submits, so a waiting one was never handed to a socket. */
function pump(carrier: Carrier): void {
  const { session, waiting, throttled } = carrier
  if (session === undefined) return
  // After a pause, write one submit first; the rest follow once the network accepts it.
  const window = throttled.failures === 0 ? carrier.window : 1
  const nowMs = performance.now()
  const now = Date.now()
  for (const item of waiting) {
    if (!hasRoom(session, window)) return
    waiting.delete(item)
    if (item.expiresAt.getTime() <= now) {
      item.resolve({ is: 'expired' })
      continue
    }
    writeSubmit(session, item.pdu, nowMs, (outcome) => item.resolve(resultOf(carrier, outcome)))
  }
}

function resultOf(carrier: Carrier, outcome: SubmitOutcome): SendResult {
  if (outcome.is === 'lost') return { is: 'unknown', afterMs: 0, detail: outcome.reason }
  const { status, messageId, writtenAtMs } = outcome
  const { throttled } = carrier
  if (status === STATUS.OK) {
    // A response to a submit written before the pause says nothing about the network's state now.
    if (writtenAtMs >= throttled.untilMs) resetBackOff(throttled)
    carrier.temporaryRefusals = 0
    // The network has the message even if its id is too long to be one. No receipt will match it then.
    return { is: 'sent', carrierMessageId: messageId.length > MAX_ID_LENGTH ? '' : normaliseMessageId(messageId) }
  }
  const meaning = meaningOf('smpp', status)
  if (meaning !== 'RETRY') return { is: 'failed', reason: meaning, detail: describeStatus(status) }
  if (status === STATUS.NOT_BOUND && carrier.session !== undefined) leave(carrier.session)
  return onTemporaryRefusal(carrier, status)
}

// A network also refuses a message temporarily if a mailbox is full, or if the number's own network does not respond. One such message must not
// hold up all other messages.
const REFUSALS_BEFORE_PAUSE = 5

function onTemporaryRefusal(carrier: Carrier, status: number): SendResult {
  const { throttled, timings } = carrier
  const nowMs = performance.now()
  carrier.temporaryRefusals += 1
  const isBusy = status === STATUS.THROTTLED || carrier.temporaryRefusals >= REFUSALS_BEFORE_PAUSE || throttled.failures > 0
  // The network may refuse a whole window at once. Count that as one failure, not ten.
  if (isBusy && remainingMs(throttled, nowMs) === 0) {
    startBackOff(throttled, nowMs)
    carrier.logger.warn({ carrier: carrier.settings.name, reason: describeStatus(status) }, 'the SMS network is busy; submits pause')
    releaseWaiting(carrier, remainingMs(throttled, nowMs), 'The network is busy.')
  }
  return retry(Math.max(remainingMs(throttled, nowMs), timings.throttleFirstMs), describeStatus(status))
}

function retry(afterMs: number, detail: string): SendResult {
  return { is: 'retry', afterMs, detail }
}

function releaseWaiting(carrier: Carrier, afterMs: number, detail: string): void {
  for (const { resolve } of carrier.waiting) resolve(retry(afterMs, detail))
  carrier.waiting.clear()
}

function tick(carrier: Carrier): void {
  const nowMs = performance.now()
  if (carrier.session !== undefined) tickSession(carrier.session, nowMs)
  else if (remainingMs(carrier.reconnecting, nowMs) === 0) connect(carrier)
  for (const item of carrier.waiting) {
    if (nowMs - item.sinceMs < carrier.timings.waitMs) break
    carrier.waiting.delete(item)
    const bound = carrier.boundAtMs !== undefined
    const afterMs = Math.max(carrier.timings.throttleFirstMs, bound ? 0 : remainingMs(carrier.reconnecting, nowMs))
    item.resolve(retry(afterMs, bound ? 'Too many messages await a response from the network.' : 'There is no connection to the network.'))
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
  carrier.lastReason = ''
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

/** Never logs text from the network, which may contain phone numbers. */
function logEnd(carrier: Carrier, end: End): void {
  const { logger, settings } = carrier
  if (end.is === 'left') return
  const cause = end.is === 'refused' ? `the bind was refused: ${describeStatus(end.status)}` : end.reason
  const code = end.is === 'lost' && end.err !== undefined && 'code' in end.err ? ` (${String(end.err.code)})` : ''
  const reason = cause + code
  if (carrier.lastReason === reason) return
  carrier.lastReason = reason
  logger[end.is === 'refused' ? 'error' : 'warn']({ carrier: settings.name, reason }, 'no connection to the SMS network')
}

async function deliver(carrier: Carrier, pdu: PduOf<'deliver_sm'>): Promise<void> {
  try {
    await carrier.onEvents([eventOf(pdu, carrier.settings.name)])
  } catch (err) {
    // A stopping process closes its database after a timeout, even if a delivery still waits for it. That is not a fault.
    const level = isUnavailable(err) || carrier.closing ? 'warn' : 'error'
    carrier.logger[level]({ carrier: carrier.settings.name, err }, 'failed to store a receipt or reply; the SMS network will resend it')
    throw err
  }
}

function close(carrier: Carrier): Promise<void> {
  if (carrier.closing) return carrier.closed
  carrier.closing = true
  releaseWaiting(carrier, 0, 'The connection is being closed.')
  if (carrier.session !== undefined) leave(carrier.session)
  else {
    clearInterval(carrier.timer)
    carrier.onClosed()
  }
  return carrier.closed
}
