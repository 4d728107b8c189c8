import type { Faults } from '../faults.ts'
import { type HttpResponse, invalidField, ok, refusal } from '../http/responses.ts'
import { parseJson, textOf } from '../http/server.ts'
import { behaviourOf } from '../phones/behaviours.ts'
import type { Ledger } from '../phones/ledger.ts'
import { type Content, isSettled, type Messages } from '../phones/messages.ts'
import type { Steps } from '../phones/steps.ts'
import { refusalKey } from '../state/state.ts'
import type { Store } from '../state/store.ts'
import { isoTime } from '../timing.ts'
import { type AgentMessage, checkAgentMessage, expiryOf } from './agent-message.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i
export const isUuid = (value: string | undefined | null): value is string => typeof value === 'string' && UUID.test(value)

export type Rbm = { store: Store; ledger: Ledger; messages: Messages; steps: Steps; faults: Faults }
export type Target = { phone: string; agentId: string }

const NOT_REACHABLE = 'The phone number is not reachable by RCS, or the agent is not launched on its network.'
const TRIES_REFUSED = 2

/** Handles POST agentMessages. The response is sent once the turn is committed, so that the log has everything that a caller knows of. */
export function sendMessage(rbm: Rbm, { phone, agentId }: Target, messageId: string | null, body: Buffer): HttpResponse {
  const refuse = (response: HttpResponse, isBusy?: boolean): HttpResponse => {
    const detail = { status: response.status }
    rbm.ledger.write({ kind: 'refused', channel: 'rcs', phone, messageId: messageId ?? '', origin: agentId, detail, isBusy })
    return response
  }
  if (!isUuid(messageId)) return refuse(invalidField('messageId', 'messageId must be a UUID as in RFC 4122.'))
  const json = textOf(body)
  const message = parseJson(json) as AgentMessage | undefined
  if (message === undefined) return refuse(refusal('INVALID_ARGUMENT', 'Invalid JSON payload received.'))
  const violations = checkAgentMessage(message, body.length)
  if (violations.length > 0) return refuse(refusal('INVALID_ARGUMENT', violations[0]?.description ?? '', violations))
  const refused = refusalOf(rbm, phone, agentId, messageId)
  if (refused === 'busy') return refuse(refusal('UNAVAILABLE', 'The service is currently unavailable.'), true)
  if (refused !== undefined) return refuse(refused)
  const own = withoutOutputs(message, json)
  accept(rbm, { phone, agentId }, messageId, { body: own, expiresAt: expiryOf(message) })
  return echo(own, phone, messageId)
}

/** Removes Google's output fields. Few callers send them, so most messages are used as they are. */
function withoutOutputs(message: AgentMessage, json: string): string {
  if (!Object.hasOwn(message, 'name') && !Object.hasOwn(message, 'sendTime')) return json
  return JSON.stringify({ ...message, name: undefined, sendTime: undefined })
}

function accept({ messages, steps }: Rbm, { phone, agentId }: Target, messageId: string, content: Content): void {
  const known = messages.of(agentId, messageId)
  if (known === undefined) steps.begin(messages.add({ kind: 'accepted', channel: 'rcs', phone, messageId, origin: agentId }, content))
  else messages.note(known, { kind: 'repeated', phone })
}

/** Responds with the message as received, and adds its name and time. Serializing the message again would cost a tenth of the request rate. */
function echo(json: string, phone: string, messageId: string): HttpResponse {
  const name = `phones/${phone}/agentMessages/${messageId}`
  return { status: 200, body: `{"name":"${name}","sendTime":"${isoTime(Date.now())}",${json.slice(json.indexOf('{') + 1)}` }
}

/** Returns the refusal, if the last digits of the number require one. */
function refusalOf({ store, messages }: Rbm, phone: string, agentId: string, messageId: string): HttpResponse | 'busy' | undefined {
  const { rcs } = behaviourOf(phone)
  if (rcs === 'not-found') return refusal('NOT_FOUND', NOT_REACHABLE)
  if (rcs === 'refused') return refusal('FAILED_PRECONDITION', 'The network refused the message.')
  if (rcs !== 'busy-twice' || messages.of(agentId, messageId) !== undefined) return undefined
  const refusals = store.state.refusals.get(refusalKey(agentId, messageId)) ?? 0
  return refusals < TRIES_REFUSED ? 'busy' : undefined
}

/** Handles DELETE: revokes a message that is not delivered yet. */
export function revokeMessage({ messages }: Rbm, { phone, agentId }: Target, messageId: string): HttpResponse {
  const message = messages.of(agentId, messageId)
  if (message === undefined || message.channel !== 'rcs' || message.phone !== phone)
    return refusal('NOT_FOUND', 'There is no such message.')
  // The response to an earlier DELETE may have been lost.
  if (message.revokedAt !== null) return ok({})
  if (isSettled(message)) return refusal('NOT_FOUND', 'The message is not in the queue any more.')
  messages.note(message, { kind: 'revoked' })
  return ok({})
}
