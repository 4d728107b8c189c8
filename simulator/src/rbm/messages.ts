import type { Faults } from '../faults.ts'
import { type Answer, invalidField, ok, refusal } from '../http/answers.ts'
import { parseJson, textOf } from '../http/server.ts'
import { behaviourOf } from '../phones/behaviours.ts'
import type { Ledger } from '../phones/ledger.ts'
import { addMessage, countAttempt, isSettled, mark, rcsMessage } from '../phones/messages.ts'
import type { Steps } from '../phones/steps.ts'
import type { Store } from '../state/store.ts'
import { type AgentMessage, checkAgentMessage, expiryOf } from './agent-message.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i
export const isUuid = (value: string | undefined | null): value is string => typeof value === 'string' && UUID.test(value)

export type Rbm = { store: Store; ledger: Ledger; steps: Steps; faults: Faults }
export type Target = { phone: string; agentId: string }

const NOT_REACHABLE = 'The phone number is not reachable by RCS, or the agent is not launched on its network.'
const TRIES_REFUSED = 2

/** POST agentMessages: the answer, once the turn is committed. Everything is on disk before the caller hears of it. */
export function sendMessage(rbm: Rbm, { phone, agentId }: Target, messageId: string | null, body: Buffer): Answer {
  const refuse = (answer: Answer): Answer => {
    const detail = { status: answer.status }
    rbm.ledger.write({ kind: 'refused', channel: 'rcs', phone, messageId: messageId ?? '', origin: agentId, detail })
    return answer
  }
  if (!isUuid(messageId)) return refuse(invalidField('messageId', 'messageId must be a UUID as in RFC 4122.'))
  const json = textOf(body)
  const message = parseJson(json) as AgentMessage | undefined
  if (message === undefined) return refuse(refusal('INVALID_ARGUMENT', 'Invalid JSON payload received.'))
  const violations = checkAgentMessage(message, body.length)
  if (violations.length > 0) return refuse(refusal('INVALID_ARGUMENT', violations[0]?.description ?? '', violations))
  const refused = refusalOf(rbm, phone, agentId, messageId)
  if (refused !== undefined) return refuse(refused)
  const own = withoutOutputs(message, json)
  accept(rbm, { phone, agentId }, messageId, expiryOf(message), own)
  return echo(own, phone, messageId)
}

/** Without the fields that Google only ever writes. Hardly anybody sends them, so hardly ever is it written anew. */
function withoutOutputs(message: AgentMessage, json: string): string {
  if (!Object.hasOwn(message, 'name') && !Object.hasOwn(message, 'sendTime')) return json
  return JSON.stringify({ ...message, name: undefined, sendTime: undefined })
}

function accept(
  { store, ledger, steps }: Rbm,
  { phone, agentId }: Target,
  messageId: string,
  expiresAt: number | null,
  body: string,
): void {
  const id = addMessage(store, { channel: 'rcs', phone, message_id: messageId, origin: agentId, body, expires_at: expiresAt })
  ledger.write({ kind: id === undefined ? 'repeated' : 'accepted', channel: 'rcs', phone, messageId, origin: agentId })
  if (id === undefined) countAttempt(store, agentId, messageId)
  else steps.begin({ id, phone, channel: 'rcs', expiresAt })
}

/** The message as it came, with its name and time put before its own fields: writing it anew would cost a tenth of the rate. */
function echo(json: string, phone: string, messageId: string): Answer {
  const name = `phones/${phone}/agentMessages/${messageId}`
  return { status: 200, body: `{"name":"${name}","sendTime":"${new Date().toISOString()}",${json.slice(json.indexOf('{') + 1)}` }
}

/** What the phone's number makes of it. */
function refusalOf({ store }: Rbm, phone: string, agentId: string, messageId: string): Answer | undefined {
  const { rcs } = behaviourOf(phone)
  if (rcs === 'not-found') return refusal('NOT_FOUND', NOT_REACHABLE)
  if (rcs === 'refused') return refusal('FAILED_PRECONDITION', 'The network refused the message.')
  if (rcs !== 'busy-twice' || rcsMessage(store, agentId, messageId) !== undefined) return undefined
  const key = [messageId, agentId] as const
  const tries = store.get<{ tries: number }>('select tries from refused_tries where message_id = ? and agent = ?', ...key)?.tries ?? 0
  if (tries >= TRIES_REFUSED) {
    store.run('delete from refused_tries where message_id = ? and agent = ?', ...key)
    return undefined
  }
  store.run(
    `insert into refused_tries (message_id, agent, tries) values (?, ?, 1)
     on conflict (message_id, agent) do update set tries = tries + 1`,
    ...key,
  )
  return refusal('UNAVAILABLE', 'The service is currently unavailable.')
}

/** DELETE: takes a message back that no phone has yet. */
export function revokeMessage({ store, ledger }: Rbm, { phone, agentId }: Target, messageId: string): Answer {
  const message = rcsMessage(store, agentId, messageId)
  if (message === undefined || message.channel !== 'rcs' || message.phone !== phone)
    return refusal('NOT_FOUND', 'There is no such message.')
  // Asked again, since its answer was lost perhaps: it is true still.
  if (message.revoked_at !== null) return ok({})
  if (isSettled(message)) return refusal('NOT_FOUND', 'The message is not in the queue any more.')
  mark(store, message.id, 'revoked_at')
  ledger.write({ kind: 'revoked', channel: 'rcs', phone, messageId, origin: agentId })
  return ok({})
}
