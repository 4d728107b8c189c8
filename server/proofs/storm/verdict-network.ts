import type { LedgerEntry } from '../ledger.ts'
import { explainsUnknown, isDelivery, isNetwork } from './causes.ts'
import { allowedEnds, allowedSmsEnds, endOf, follow, smsEndOf } from './ends.ts'
import type { Evidence } from './evidence.ts'
import { type Comparison, countBy, least, listCounts } from './line.ts'
import { isLate, type Stored } from './stored.ts'

// What became of messages, against what the network has in its books.

export function judgeEnds(evidence: Evidence): Comparison {
  const followed = follow(evidence)
  const wrong = followed.flatMap(({ message, asking: one }) => {
    const end = endOf(message)
    const smsEnd = smsEndOf(message)
    const [ends, smsEnds] = [allowedEnds(one), allowedSmsEnds(one, end)]
    return [
      ...(ends.includes(end) ? [] : [`${message.id} to ${one.phone} is ${end}, not ${ends.join(' or ')}`]),
      ...(smsEnds.includes(smsEnd) ? [] : [`the SMS of ${message.id} to ${one.phone}, ${end}, is ${smsEnd}, not ${smsEnds.join(' or ')}`]),
    ]
  })
  const ends = listCounts(countBy(followed, ({ message }) => message.shown.status))
  return { promise: 'accepted against delivered', figures: `${followed.length} messages: ${ends}`, compared: followed.length, wrong }
}

type Books = { rcs: Map<string, Map<string, number>>; sms: Map<string, LedgerEntry[]> }

function booksOf({ ledger }: Evidence): Books {
  const rcs = new Map(
    [...Map.groupBy(ledger, ({ messageId }) => messageId)].map(([id, entries]) => [id, countBy(entries, ({ kind }) => kind)]),
  )
  return {
    rcs,
    sms: Map.groupBy(
      ledger.filter(({ kind }) => kind.startsWith('sms-')),
      ({ phone }) => phone,
    ),
  }
}

/** Of each message, what the API shows is what the network did. */
export function judgeNetwork(evidence: Evidence): Comparison {
  const books = booksOf(evidence)
  const known = new Set(evidence.messages.map(({ id }) => id))
  const taken = [...books.rcs].filter(([, kinds]) => kinds.has('accepted')).map(([id]) => id)
  const late = evidence.messages.filter(isLate).length
  return {
    promise: 'what the API says against the network',
    figures: `${evidence.messages.length} shown; the network took ${taken.length}, and ${late} arrived after they had ended here`,
    compared: least([evidence.messages.length, taken.length]),
    wrong: [
      ...evidence.messages.flatMap((message) => contradictions(message, books.rcs.get(message.id) ?? new Map())),
      ...taken.filter((id) => !known.has(id)).map((id) => `the network has ${id}, which is not here`),
    ],
  }
}

function contradictions(message: Stored, kinds: Map<string, number>): string[] {
  const end = endOf(message)
  const wasLate = isLate(message)
  const did = ['accepted', 'delivered', 'read', 'refused'].map((kind) => kinds.get(kind) ?? 0)
  if (fits(end, wasLate, did as [number, number, number, number])) return []
  const late = wasLate ? ', and arrived late' : ''
  return [`${message.id} is ${end}${late}; the network took, delivered, had it read and refused it ${did.join(', ')} times`]
}

function fits(end: string, isLate: boolean, [accepted, delivered, read, refused]: [number, number, number, number]): boolean {
  if (end === 'READ') return accepted === 1 && delivered === 1 && read === 1
  if (end === 'DELIVERED') return accepted === 1 && delivered === 1 && read === 0
  // What ended here may be on its way there. Where the phone got it, the timeline has to say so.
  if (end === 'EXPIRED' || end === 'FAILED CAMPAIGN_CANCELLED') return delivered === (isLate ? 1 : 0)
  // Only the network can have said so.
  return accepted === 0 && delivered === 0 && refused > 0
}

/** No phone has a message twice: not under one id, and not under two. */
export function judgeRepeats({ ledger, messages }: Evidence): Comparison {
  const once = ledger.filter(({ kind }) => ['accepted', 'delivered', 'read'].includes(kind))
  const twice = [...countBy(once, ({ kind, messageId }) => `${messageId} ${kind}`)].filter(([, count]) => count > 1)
  const onPhones = countBy(
    ledger.filter(({ kind }) => kind === 'delivered'),
    ({ phone }) => phone,
  )
  const here = countBy(messages, ({ recipient }) => recipient)
  const tooMany = [...onPhones].filter(([phone, count]) => count > (here.get(phone) ?? 0))
  const repeated = ledger.filter(({ kind }) => kind === 'repeated').length
  return {
    promise: 'no message twice on a phone',
    figures: `${onPhones.size} phones; ${repeated} were handed over again and ignored by their id`,
    compared: once.length,
    wrong: [
      ...twice.map(([what, count]) => `${what} ${count} times`),
      ...tooMany.map(([phone, count]) => `${phone} has ${count} messages, and should have ${here.get(phone) ?? 0}`),
    ],
  }
}

// The window of the SMS network: so many, at most, are under way at a worker, and lost with it or with the network.
export const SMS_AT_ONCE = 10
export const WORKERS = 3

export function judgeSms(evidence: Evidence): Comparison {
  const { messages } = evidence
  const { sms } = booksOf(evidence)
  const byPhone = new Map(messages.map((message) => [message.recipient, message]))
  const unknown = messages.filter((message) => smsEndOf(message) === 'FAILED OUTCOME_UNKNOWN')
  const arrived = unknown.filter(({ recipient }) => sms.get(recipient)?.some(({ kind }) => kind === 'sms-delivered'))
  const submitted = [...sms.values()].flat().filter(({ kind }) => kind === 'sms-part').length
  return {
    promise: 'no SMS twice; unknown ones say so',
    figures: `${sms.size} phones got ${submitted} parts; of ${unknown.length} nobody knows the outcome, ${arrived.length} of them arrived`,
    compared: submitted,
    wrong: [
      ...[...sms].flatMap(([phone, entries]) => wrongParts(phone, entries, byPhone.get(phone))),
      ...messages
        .filter((message) => smsEndOf(message).startsWith('DELIVERED') && !sms.has(message.recipient))
        .map(({ id }) => `the SMS of ${id} never left`),
      ...wrongUnknown(evidence, unknown, sms),
    ],
  }
}

/** Nobody knows of an SMS only where it was under way when its worker or the network was upset, and of no more than can be. */
function wrongUnknown({ upsets, leaseChanges }: Evidence, unknown: Stored[], sms: Books['sms']): string[] {
  // With the network, all workers lose theirs.
  const most = (upsets.filter(isDelivery).length + WORKERS * upsets.filter(isNetwork).length) * SMS_AT_ONCE
  const claims = Map.groupBy(
    leaseChanges.filter(({ queue, lease }) => queue === 'sms_queue' && lease !== null),
    ({ entry }) => entry,
  )
  return [
    ...unknown.flatMap(({ id, recipient }) => {
      const part = sms.get(recipient)?.findLast(({ kind }) => kind === 'sms-part')
      // Where the network has nothing of it, the time that somebody took it up, to submit it or to find that it is lost.
      const times = part === undefined ? (claims.get(`${id} 0`) ?? []).map(({ at }) => at) : [Date.parse(part.at)]
      if (times.some((at) => upsets.some((upset) => explainsUnknown(upset, at)))) return []
      const when = times.map((at) => new Date(at).toISOString()).join(' or ')
      return [`the outcome of the SMS of ${id} is not known; it was handed over at ${when}, when nobody was upset`]
    }),
    ...(unknown.length > most ? [`${unknown.length} unknown ones; under way were ${most} at the most`] : []),
  ]
}

function wrongParts(phone: string, entries: LedgerEntry[], message: Stored | undefined): string[] {
  const numbers = entries.filter(({ kind }) => kind === 'sms-part').map(({ detail }) => Number(detail?.number ?? 1))
  const delivered = entries.filter(({ kind }) => kind === 'sms-delivered').length
  const failed = entries.filter(({ kind }) => kind === 'sms-failed').length
  const segments = message?.shown.smsFallback?.segments ?? 0
  const end = message === undefined ? 'none' : smsEndOf(message)
  const told = `${phone} got the parts ${numbers.join(', ')} of ${segments} (${delivered} delivered, ${failed} failed), and the SMS is ${end}`
  if (new Set(numbers).size < numbers.length) return [told]
  if (end.startsWith('DELIVERED')) return numbers.length === segments && delivered === segments ? [] : [told]
  if (end === 'FAILED UNDELIVERABLE') return numbers.length === segments && failed > 0 ? [] : [told]
  return end === 'FAILED OUTCOME_UNKNOWN' ? [] : numbers.length === 0 ? [] : [told]
}

/** Its books have no gap, and what was in them before it was killed is still there: without that, the rest would prove little. */
export function judgeLedger({ ledger, seenBefore }: Evidence): Comparison {
  const now = new Map(ledger.map((entry) => [entry.seq, `${entry.kind} ${entry.messageId} ${entry.phone}`]))
  const lost = seenBefore.filter(({ seq, kind, messageId, phone }) => now.get(seq) !== `${kind} ${messageId} ${phone}`)
  const gaps = ledger.filter(({ seq }, n) => seq !== n + 1).slice(0, 1)
  return {
    promise: 'the network forgets nothing itself',
    figures: `${ledger.length} entries, ${seenBefore.length} of them seen before it was killed`,
    compared: ledger.length,
    wrong: [
      ...lost.map(({ seq, kind, messageId }) => `entry ${seq}, ${kind} ${messageId}, is gone`),
      ...gaps.map(({ seq }) => `something is missing before entry ${seq}`),
    ],
  }
}
