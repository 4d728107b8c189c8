import { type Followed, follow } from './ends.ts'
import type { Action, Evidence } from './evidence.ts'
import { type Comparison, countBy, unequal } from './line.ts'

// What people did with their phones, against what is kept of it here, and what it set off.

type Deed = Omit<Action, 'accountId'>

const describe = ({ phone, messageId, agentId, kind, text, buttonId, payload, url }: Deed) =>
  [phone, kind, text, buttonId, payload, url, `(${agentId}, ${messageId})`].filter((part) => part !== null).join(' ')

/** What is kept of an answer, by what its phone does (its last two digits) and the button that it has. */
function deedOf({ message, asking: { phone, agentId, contents } }: Followed): Deed {
  const nothing = { text: null, buttonId: null, payload: null, url: null }
  const common = { phone, agentId: String(agentId), messageId: message.id, ...nothing }
  if (phone.endsWith('06')) return { ...common, kind: 'wrote', text: 'Thank you' }
  if (phone.endsWith('09')) return { ...common, kind: 'opted-out', text: 'STOP' }
  const { id = null, text = null, payload = null, url = null } = contents.button ?? {}
  return { ...common, kind: url === null ? 'tapped' : 'clicked', buttonId: id, text, payload, url }
}

// By how much the service lets an answer be older than the note that its message was sent.
const CLOCK_MS = 10_000

/** Of one that was known to be sent only after its answer, or never, nobody can tell any more that the answer is to it. */
function isSentLater({ message, at }: Followed & { at: number }): boolean {
  const sent = message.steps.find(({ kind }) => kind === 'sent')
  return sent === undefined || sent.at > at + CLOCK_MS
}

/** Everything that people did is here, once, as they did it; and every tap that asks for a message has made one. */
export function judgeReplies(evidence: Evidence): Comparison {
  const { messages, actions, ledger } = evidence
  const byId = new Map(follow(evidence).map((one) => [one.message.id, one]))
  const answered = ledger.filter(({ kind }) => kind === 'answered')
  const did = answered.flatMap(({ messageId, at }) => {
    const one = byId.get(messageId)
    return one === undefined ? [] : [{ ...one, at: Date.parse(at) }]
  })
  const strangers = answered.filter(({ messageId }) => !byId.has(messageId))
  const unattributed = new Set(actions.filter(({ messageId }) => messageId === null).map(({ phone }) => phone))
  const expected = did.map((one) => {
    const deed = deedOf(one)
    return isSentLater(one) && unattributed.has(deed.phone) ? { ...deed, messageId: null } : deed
  })
  const triggering = new Set(did.filter(({ asking }) => asking.contents.triggers !== undefined).map(({ message }) => message.id))
  const triggered = countBy(
    messages.filter(({ triggeredBy }) => triggeredBy !== null),
    ({ triggeredBy }) => triggeredBy as string,
  )
  return {
    promise: 'what people answered',
    figures: `${answered.length} at the network, ${actions.length} here; ${triggering.size} taps ask for a message, ${triggered.size} made one`,
    compared: answered.length,
    wrong: [
      ...strangers.map(({ phone, messageId }) => `${phone} answered ${messageId}, which is not here`),
      ...unequal(expected.map(describe), actions.map(describe)).map(
        ({ what, counts: [there, here] }) => `${what}: ${there} times at the network, ${here} here`,
      ),
      ...[...triggering].filter((id) => triggered.get(id) !== 1).map((id) => `the tap on ${id} made ${triggered.get(id) ?? 0} messages`),
      ...[...triggered.keys()].filter((id) => !triggering.has(id)).map((id) => `${id} made a message without a tap`),
    ],
  }
}
