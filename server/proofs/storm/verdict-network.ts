import type { LedgerEntry } from '../ledger.ts'
import { type Asking, allowedEnds, allowedSmsEnds, endOf, smsEndOf } from './ends.ts'
import type { Evidence, Stored } from './evidence.ts'
import { countBy, type Line, listCounts } from './line.ts'

// What became of messages, against what the network has in its books.

type Followed = { message: Stored; asking: Asking }

/** How each message was asked for: by its key, by its campaign, or by a tap. Whose asking is not known is judged elsewhere. */
function follow({ asked, keys, messages }: Evidence): Followed[] {
  const byKey = new Map(asked.messages.map((one) => [one.key, one]))
  const keyOf = new Map(keys.map(({ key, id }) => [id, key]))
  const campaigns = new Map(asked.campaigns.flatMap((one) => one.ids.map((id) => [id, one])))
  return messages.flatMap((message) => {
    const phone = message.recipient
    const campaign = campaigns.get(message.campaignId ?? '')
    if (message.triggeredBy !== null) return [{ message, asking: asking(phone, {}) }]
    if (campaign !== undefined)
      return [{ message, asking: { ...asking(phone, campaign.body), isCancelled: campaign.course === 'cancelled' } }]
    const one = byKey.get(keyOf.get(message.id) ?? '')
    return one === undefined ? [] : [{ message, asking: asking(phone, one.body) }]
  })
}

function asking(phone: string, body: Record<string, unknown>): Asking {
  return {
    phone,
    expires: body.expiresAt !== undefined,
    fallsBack: body.smsFallback !== undefined,
    fallsBackAfterExpiry: body.smsFallbackAfterExpiry !== undefined,
    isCancelled: false,
  }
}

export function judgeEnds(evidence: Evidence): Line {
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
  return { promise: 'accepted against delivered', figures: `${followed.length} messages: ${ends}`, wrong }
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
export function judgeNetwork(evidence: Evidence): Line {
  const books = booksOf(evidence)
  const known = new Set(evidence.messages.map(({ id }) => id))
  const taken = [...books.rcs].filter(([, kinds]) => kinds.has('accepted')).map(([id]) => id)
  const late = evidence.messages.filter(({ isLate }) => isLate).length
  return {
    promise: 'what the API says against the network',
    figures: `${evidence.messages.length} shown; the network took ${taken.length}, and ${late} arrived after they had ended here`,
    wrong: [
      ...evidence.messages.flatMap((message) => contradictions(message, books.rcs.get(message.id) ?? new Map())),
      ...taken.filter((id) => !known.has(id)).map((id) => `the network has ${id}, which is not here`),
    ],
  }
}

function contradictions(message: Stored, kinds: Map<string, number>): string[] {
  const { id, isLate } = message
  const end = endOf(message)
  const did = ['accepted', 'delivered', 'read'].map((kind) => kinds.get(kind) ?? 0)
  if (fits(end, isLate, did as [number, number, number])) return []
  return [`${id} is ${end}${isLate ? ', and arrived late' : ''}; the network took, delivered and had it read ${did.join(', ')} times`]
}

function fits(end: string, isLate: boolean, [accepted, delivered, read]: [number, number, number]): boolean {
  if (end === 'READ') return accepted === 1 && delivered === 1 && read === 1
  if (end === 'DELIVERED') return accepted === 1 && delivered === 1 && read === 0
  // What ended here may be on its way there. Where the phone got it, the timeline has to say so.
  if (end === 'EXPIRED' || end === 'FAILED CAMPAIGN_CANCELLED') return delivered === (isLate ? 1 : 0)
  return accepted === 0 && delivered === 0
}

/** Everything that people did is here, once; and every tap that asks for a message has made one. */
export function judgeReplies({ asked, keys, messages, actions, ledger }: Evidence): Line {
  const answered = ledger.filter(({ kind }) => kind === 'answered')
  const at = countBy(answered, ({ phone }) => phone)
  const here = countBy(actions, ({ phone }) => phone)
  const phones = [...new Set([...at.keys(), ...here.keys()])]
  const tapped = new Set(answered.map(({ messageId }) => messageId))
  const idOf = new Map(keys.map(({ key, id }) => [key, id]))
  const triggering = asked.messages.filter(({ triggers }) => triggers).map(({ key }) => idOf.get(key) ?? '')
  const expected = new Set(triggering.filter((id) => tapped.has(id)))
  const triggered = countBy(
    messages.filter(({ triggeredBy }) => triggeredBy !== null),
    ({ triggeredBy }) => triggeredBy as string,
  )
  return {
    promise: 'what people answered',
    figures: `${answered.length} at the network, ${actions.length} here; ${expected.size} taps ask for a message, ${triggered.size} made one`,
    wrong: [
      ...phones
        .filter((phone) => at.get(phone) !== here.get(phone))
        .map((phone) => `${phone} answered ${at.get(phone) ?? 0} times, ${here.get(phone) ?? 0} are here`),
      ...[...expected].filter((id) => triggered.get(id) !== 1).map((id) => `the tap on ${id} made ${triggered.get(id) ?? 0} messages`),
      ...[...triggered.keys()].filter((id) => !expected.has(id)).map((id) => `${id} made a message without a tap`),
    ],
  }
}

/** No phone has a message twice: not under one id, and not under two. */
export function judgeRepeats({ ledger, messages }: Evidence): Line {
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
    wrong: [
      ...twice.map(([what, count]) => `${what} ${count} times`),
      ...tooMany.map(([phone, count]) => `${phone} has ${count} messages, and should have ${here.get(phone) ?? 0}`),
    ],
  }
}

// Of a worker's SMS, at most as many as are under way at once are lost with it, or with the network or the database.
const SMS_AT_ONCE = 10

export function judgeSms(evidence: Evidence): Line {
  const { messages, upsets } = evidence
  const { sms } = booksOf(evidence)
  const byPhone = new Map(messages.map((message) => [message.recipient, message]))
  const unknown = messages.filter((message) => smsEndOf(message) === 'FAILED OUTCOME_UNKNOWN')
  const arrived = unknown.filter(({ recipient }) => sms.get(recipient)?.some(({ kind }) => kind === 'sms-delivered'))
  const submitted = [...sms.values()].flat().filter(({ kind }) => kind === 'sms-part').length
  return {
    promise: 'no SMS twice; unknown ones say so',
    figures: `${sms.size} phones got ${submitted} parts; of ${unknown.length} nobody knows the outcome, ${arrived.length} of them arrived`,
    wrong: [
      ...[...sms].flatMap(([phone, entries]) => wrongParts(phone, entries, byPhone.get(phone))),
      ...messages
        .filter((message) => smsEndOf(message).startsWith('DELIVERED') && !sms.has(message.recipient))
        .map(({ id }) => `the SMS of ${id} never left`),
      ...(unknown.length > upsets * SMS_AT_ONCE ? [`${unknown.length} unknown ones, of at most ${upsets} times ${SMS_AT_ONCE}`] : []),
    ],
  }
}

function wrongParts(phone: string, entries: LedgerEntry[], message: Stored | undefined): string[] {
  const numbers = entries.filter(({ kind }) => kind === 'sms-part').map(({ detail }) => Number(detail?.number ?? 1))
  const delivered = entries.filter(({ kind }) => kind === 'sms-delivered').length
  const segments = message?.shown.smsFallback?.segments ?? 0
  const end = message === undefined ? 'none' : smsEndOf(message)
  const told = `${phone} got the parts ${numbers.join(', ')} of ${segments} (${delivered} delivered), and the SMS is ${end}`
  if (new Set(numbers).size < numbers.length) return [told]
  if (end.startsWith('DELIVERED')) return numbers.length === segments && delivered === segments ? [] : [told]
  if (end === 'FAILED UNDELIVERABLE') return numbers.length === segments ? [] : [told]
  return end === 'FAILED OUTCOME_UNKNOWN' ? [] : numbers.length === 0 ? [] : [told]
}

/** What was in the network's books before it was killed is still there: without that, the rest would prove little. */
export function judgeLedger({ ledger, seenBefore }: Evidence): Line {
  const now = new Map(ledger.map((entry) => [entry.seq, `${entry.kind} ${entry.messageId} ${entry.phone}`]))
  const lost = seenBefore.filter(({ seq, kind, messageId, phone }) => now.get(seq) !== `${kind} ${messageId} ${phone}`)
  return {
    promise: 'the network forgets nothing itself',
    figures: `${ledger.length} entries, ${seenBefore.length} of them seen before it was killed`,
    wrong: lost.map(({ seq, kind, messageId }) => `entry ${seq}, ${kind} ${messageId}, is gone`),
  }
}
