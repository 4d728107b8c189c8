import type { History } from '../history/history.ts'
import type { LedgerEntry } from '../history/ledger.ts'
import { isLate, type StoredMessage } from '../history/messages.ts'
import { explainsUnknown, isDelivery, isNetwork } from './causes.ts'
import { allowedEnds, allowedSmsEnds, endOf, smsEndOf, trace } from './expected.ts'
import { type Check, countBy, duplicates, least, listCounts } from './result.ts'

// The status of messages, against the network's ledger.

export const checkEnds: Check = (history) => {
  const traced = trace(history)
  const wrong = traced.flatMap(({ message, intent }) => {
    const [end, smsEnd] = [endOf(message), smsEndOf(message)]
    const [ends, smsEnds] = [allowedEnds(intent), allowedSmsEnds(intent, end)]
    return [
      ...(ends.includes(end) ? [] : [`${message.id} to ${intent.phone} is ${end}, not ${ends.join(' or ')}`]),
      ...(smsEnds.includes(smsEnd)
        ? []
        : [`the SMS of ${message.id} to ${intent.phone}, ${end}, is ${smsEnd}, not ${smsEnds.join(' or ')}`]),
    ]
  })
  return { compared: traced.length, wrong, note: listCounts(countBy(traced, ({ message }) => message.shown.status)) }
}

/** By phone. */
function smsEntries({ ledger }: History): Map<string, LedgerEntry[]> {
  return Map.groupBy(
    ledger.filter(({ kind }) => kind.startsWith('sms-')),
    ({ phone }) => phone,
  )
}

/** The status that the API shows is what the network did. */
export const checkNetwork: Check = ({ ledger, messages }) => {
  const entries = new Map([...Map.groupBy(ledger, ({ messageId }) => messageId)].map(([id, all]) => [id, countBy(all, ({ kind }) => kind)]))
  const known = new Set(messages.map(({ id }) => id))
  const acceptedIds = [...entries].filter(([, kinds]) => kinds.has('accepted')).map(([id]) => id)
  return {
    compared: least([messages.length, acceptedIds.length]),
    wrong: [
      ...messages.flatMap((message) => contradictions(message, entries.get(message.id) ?? new Map())),
      ...acceptedIds.filter((id) => !known.has(id)).map((id) => `the network has ${id}, which is not stored here`),
    ],
  }
}

function contradictions(message: StoredMessage, kinds: Map<string, number>): string[] {
  const end = endOf(message)
  const wasLate = isLate(message)
  const did = ['accepted', 'delivered', 'read', 'refused'].map((kind) => kinds.get(kind) ?? 0)
  const isRouted = message.shown.routing === 'capability' && end === 'FAILED NOT_REACHABLE'
  if (fits(end, wasLate, isRouted, did as [number, number, number, number])) return []
  const late = wasLate ? ', and arrived late' : ''
  return [`${message.id} is ${end}${late}; the network accepted, delivered, reported read and refused it ${did.join(', ')} times`]
}

function fits(
  end: string,
  isLate: boolean,
  isRouted: boolean,
  [accepted, delivered, read, refused]: [number, number, number, number],
): boolean {
  if (end === 'READ') return accepted === 1 && delivered === 1 && read === 1
  if (end === 'DELIVERED') return accepted === 1 && delivered === 1 && read === 0
  // It may have been under way when it got its final status. If the phone got it, the timeline has to say so.
  if (end === 'EXPIRED' || end === 'FAILED CAMPAIGN_CANCELLED') return delivered === (isLate ? 1 : 0)
  // Only the network can have refused it, in response to the message or to a look-up.
  return accepted === 0 && delivered === 0 && (refused > 0 || isRouted)
}

/** No phone has a message twice: not with one id, and not with two. */
export const checkRepeats: Check = ({ ledger, messages }) => {
  const once = ledger.filter(({ kind }) => ['accepted', 'delivered', 'read'].includes(kind))
  const delivered = ledger.filter(({ kind }) => kind === 'delivered')
  const here = countBy(messages, ({ recipient }) => recipient)
  const tooMany = [...countBy(delivered, ({ phone }) => phone)].filter(([phone, count]) => count > (here.get(phone) ?? 0))
  return {
    compared: once.length,
    wrong: [
      ...duplicates(once, ({ kind, messageId }) => `${messageId} ${kind}`).map(([what, count]) => `${what} ${count} times`),
      ...tooMany.map(([phone, count]) => `${phone} has ${count} messages, and should have ${here.get(phone) ?? 0}`),
    ],
    note: `${ledger.filter(({ kind }) => kind === 'repeated').length} were sent again, and ignored by their id`,
  }
}

// The window of the SMS network: a worker has at most this many SMS under way.
export const SMS_WINDOW = 10
export const WORKERS = 3

export const checkSms: Check = (history) => {
  const { messages } = history
  const sms = smsEntries(history)
  const byPhone = new Map(messages.map((message) => [message.recipient, message]))
  const unknown = messages.filter((message) => smsEndOf(message) === 'FAILED OUTCOME_UNKNOWN')
  return {
    compared: [...sms.values()].flat().filter(({ kind }) => kind === 'sms-part').length,
    wrong: [
      ...[...sms].flatMap(([phone, entries]) => wrongSegments(phone, entries, byPhone.get(phone))),
      ...messages
        .filter((message) => smsEndOf(message).startsWith('DELIVERED') && !sms.has(message.recipient))
        .map(({ id }) => `the SMS of ${id} was never submitted`),
      ...wrongUnknown(history, unknown, sms),
    ],
    note: `${unknown.length} with an unknown outcome`,
  }
}

/** An outcome is unknown only if the SMS was under way during a fault, and for no more SMS than can be under way. */
function wrongUnknown({ faults, leaseChanges, stalls }: History, unknown: StoredMessage[], sms: Map<string, LedgerEntry[]>): string[] {
  // A fault of the network hits all workers.
  const most = (faults.filter(isDelivery).length + WORKERS * faults.filter(isNetwork).length) * SMS_WINDOW
  const claims = Map.groupBy(
    leaseChanges.filter(({ queue, lease }) => queue === 'sms_queue' && lease !== null),
    ({ entry }) => entry,
  )
  return [
    ...unknown.flatMap(({ id, recipient }) => {
      const segment = sms.get(recipient)?.findLast(({ kind }) => kind === 'sms-part')
      // If the network has nothing of it, the times of its claims count.
      const times = segment === undefined ? (claims.get(`${id} 0`) ?? []).map(({ at }) => at) : [Date.parse(segment.at)]
      if (times.some((at) => faults.some((fault) => explainsUnknown(fault, at, stalls)))) return []
      const when = times.map((at) => new Date(at).toISOString()).join(' or ')
      return [`the outcome of the SMS of ${id} is unknown; it was submitted at ${when}, when there was no fault`]
    }),
    ...(unknown.length > most ? [`${unknown.length} unknown outcomes; at most ${most} SMS were under way`] : []),
  ]
}

function wrongSegments(phone: string, entries: LedgerEntry[], message: StoredMessage | undefined): string[] {
  const numbers = entries.filter(({ kind }) => kind === 'sms-part').map(({ detail }) => Number(detail?.number ?? 1))
  const delivered = entries.filter(({ kind }) => kind === 'sms-delivered').length
  const failed = entries.filter(({ kind }) => kind === 'sms-failed').length
  const segments = message?.shown.smsFallback?.segments ?? 0
  const end = message === undefined ? 'none' : smsEndOf(message)
  const text = `${phone} got the segments ${numbers.join(', ')} of ${segments} (${delivered} delivered, ${failed} failed), and the SMS is ${end}`
  if (new Set(numbers).size < numbers.length) return [text]
  if (end.startsWith('DELIVERED')) return numbers.length === segments && delivered === segments ? [] : [text]
  if (end === 'FAILED UNDELIVERABLE') return numbers.length === segments && failed > 0 ? [] : [text]
  return end === 'FAILED OUTCOME_UNKNOWN' ? [] : numbers.length === 0 ? [] : [text]
}

/** The ledger has no gap, and still has what it had before each kill. All other checks rely on it. */
export const checkLedger: Check = ({ ledger, seenBefore }) => {
  const now = new Map(ledger.map((entry) => [entry.seq, `${entry.kind} ${entry.messageId} ${entry.phone}`]))
  const lost = seenBefore.filter(({ seq, kind, messageId, phone }) => now.get(seq) !== `${kind} ${messageId} ${phone}`)
  const gaps = ledger.filter(({ seq }, n) => seq !== n + 1).slice(0, 1)
  return {
    compared: ledger.length,
    wrong: [
      ...lost.map(({ seq, kind, messageId }) => `entry ${seq}, ${kind} ${messageId}, is gone`),
      ...gaps.map(({ seq }) => `something is missing before entry ${seq}`),
    ],
  }
}
