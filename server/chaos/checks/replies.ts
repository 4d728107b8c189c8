import type { Action } from '../history/history.ts'
import { type Traced, trace } from './expected.ts'
import { type Check, countBy, unequal } from './result.ts'

// The actions of recipients at the network, against the stored actions and the messages that taps sent.

type Expected = Omit<Action, 'accountId'>

const describe = ({ phone, messageId, agentId, kind, text, buttonId, payload, url }: Expected) =>
  [phone, kind, text, buttonId, payload, url, `(${agentId}, ${messageId})`].filter((part) => part !== null).join(' ')

/** By what the phone does (its last two digits), and by the button of the message. */
function expectedAction({ message, intent: { phone, agentId, contents } }: Traced): Expected {
  const nothing = { text: null, buttonId: null, payload: null, url: null }
  const common = { phone, agentId: String(agentId), messageId: message.id, ...nothing }
  if (phone.endsWith('06')) return { ...common, kind: 'wrote', text: 'Thank you' }
  if (phone.endsWith('09')) return { ...common, kind: 'opted-out', text: 'STOP' }
  const { id = null, text = null, payload = null, url = null } = contents.button ?? {}
  return { ...common, kind: url === null ? 'tapped' : 'clicked', buttonId: id, text, payload, url }
}

// The service lets a reply be this much older than the stored time of sending.
const CLOCK_MS = 10_000

/** If the sending was stored only after the reply, or never, the reply can't be attributed to the message. */
function isSentLater({ message, at }: Traced & { at: number }): boolean {
  const sent = message.steps.find(({ kind }) => kind === 'sent')
  return sent === undefined || sent.at > at + CLOCK_MS
}

/** Every action is stored once, and every tap that asks for a message has sent one. */
export const checkReplies: Check = (history) => {
  const { messages, actions, ledger } = history
  const byId = new Map(trace(history).map((one) => [one.message.id, one]))
  const answered = ledger.filter(({ kind }) => kind === 'answered')
  const did = answered.flatMap(({ messageId, at }) => {
    const one = byId.get(messageId)
    return one === undefined ? [] : [{ ...one, at: Date.parse(at) }]
  })
  const strangers = answered.filter(({ messageId }) => !byId.has(messageId))
  const unattributed = new Set(actions.filter(({ messageId }) => messageId === null).map(({ phone }) => phone))
  const expected = did.map((one) => {
    const action = expectedAction(one)
    return isSentLater(one) && unattributed.has(action.phone) ? { ...action, messageId: null } : action
  })
  const triggering = new Set(did.filter(({ intent }) => intent.contents.triggers !== undefined).map(({ message }) => message.id))
  const triggered = countBy(
    messages.filter(({ triggeredBy }) => triggeredBy !== null),
    ({ triggeredBy }) => triggeredBy as string,
  )
  return {
    compared: answered.length,
    wrong: [
      ...strangers.map(({ phone, messageId }) => `${phone} answered ${messageId}, which is not stored here`),
      ...unequal(expected.map(describe), actions.map(describe)).map(
        ({ what, counts: [there, here] }) => `${what}: ${there} times at the network, ${here} times here`,
      ),
      ...[...triggering].filter((id) => triggered.get(id) !== 1).map((id) => `the tap on ${id} sent ${triggered.get(id) ?? 0} messages`),
      ...[...triggered.keys()].filter((id) => !triggering.has(id)).map((id) => `${id} sent a message without a tap`),
    ],
  }
}
