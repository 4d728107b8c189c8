import { bareAgentId } from '../agents.ts'
import type { Faults } from '../faults.ts'
import { type Drop, type HttpResponse, invalidField, refusal } from '../http/responses.ts'
import { type Call, decodePart, type Handler, isJson } from '../http/server.ts'
import { isPhone } from '../phones/behaviours.ts'
import { type Rbm, revokeMessage, sendMessage, type Target } from './messages.ts'
import { capabilities, createBatchGet, sendEvent } from './others.ts'
import type { Tokens } from './tokens.ts'

const NO_SUCH_PATH = refusal('NOT_FOUND', 'Requested entity was not found.')

/** Handles everything under /v1: checks the token, applies the faults, then handles the request. Responses are sent after the commit. */
export function createRbmRoutes(rbm: Rbm, tokens: Tokens): Handler {
  const batchGet = createBatchGet(rbm)

  return (call) => {
    const { faults } = rbm
    if (!tokens.isValid(call.headers.authorization) || faults.strikes('api.tokenRefused')) {
      return refusal('UNAUTHENTICATED', 'Request had invalid authentication credentials. Expected OAuth 2 access token.')
    }
    const latency = faults.strikes('api.latency')
    if (latency !== undefined) return new Promise((resolve) => setTimeout(resolve, latency.ms)).then(() => withFaults(call))
    return withFaults(call)
  }

  function withFaults(call: Call): HttpResponse | Drop | Promise<HttpResponse | Drop> {
    const wrong = faultOf(rbm, call)
    if (wrong !== undefined) return rbm.store.committed().then(() => wrong)
    const response = route(call)
    const accepted = response.status === 200 && call.method === 'POST' && call.path.endsWith('/agentMessages')
    const drops = accepted && rbm.faults.strikes('api.dropAfter') !== undefined
    return rbm.store.committed().then(() => (drops ? 'drop' : response))
  }

  function route(call: Call): HttpResponse {
    if (call.method === 'POST' && !isJson(call.headers)) return refusal('INVALID_ARGUMENT', 'The content type must be application/json.')
    if (call.path === '/v1/users:batchGet') return call.method === 'POST' ? batchGet(agentOf(call), call.body) : NO_SUCH_PATH
    const [, , phones, phonePart = '', collection = '', id, ...more] = call.path.split('/')
    const known = phones === 'phones' && more.length === 0 && phoneRoute(call.method, collection, id)
    if (!known) return NO_SUCH_PATH
    const phone = decodePart(phonePart)
    if (!isPhone(phone)) return invalidField('parent', 'The phone number must be in E.164, with a leading +.')
    const agentId = agentOf(call)
    if (agentId === null) return refusal('PERMISSION_DENIED', 'The agent could not be found for this project.')
    return known(call, { phone, agentId })
  }

  function phoneRoute(method: string, collection: string, id: string | undefined): ((call: Call, to: Target) => HttpResponse) | undefined {
    const name = `${method} ${collection}${id === undefined ? '' : '/id'}`
    if (name === 'POST agentMessages') return (call, to) => notLaunched(to) ?? sendMessage(rbm, to, call.query.get('messageId'), call.body)
    if (name === 'DELETE agentMessages/id') return (_call, to) => revokeMessage(rbm, to, decodePart(id ?? '') ?? '')
    if (name === 'POST agentEvents') return (call, to) => notLaunched(to) ?? sendEvent(rbm, to, call.query.get('eventId'), call.body)
    if (name === 'GET capabilities') return (call, to) => capabilities(rbm, to, call.query.get('requestId'))
    return undefined
  }

  function notLaunched({ agentId }: Target): HttpResponse | undefined {
    return rbm.faults.isLaunched(agentId)
      ? undefined
      : refusal('PERMISSION_DENIED', 'The agent is not launched: only testers may get messages.')
  }
}

/** Returns the id without Google's suffix. */
function agentOf(call: Call): string | null {
  const agentId = call.query.get('agentId')
  return agentId ? bareAgentId(agentId) : null
}

function faultOf({ faults, ledger }: Rbm, call: Call): HttpResponse | Drop | undefined {
  if (faults.strikes('api.dropBefore')) return 'drop'
  const response = busy(faults) ?? broken(faults)
  if (response !== undefined && call.path.endsWith('/agentMessages')) {
    const messageId = call.query.get('messageId') ?? ''
    const phone = decodePart(call.path.split('/')[3] ?? '') ?? ''
    const detail = { status: response.status }
    ledger.write({ kind: 'refused', channel: 'rcs', phone, messageId, origin: agentOf(call) ?? '', detail })
  }
  return response
}

function busy(faults: Faults): HttpResponse | undefined {
  const fault = faults.strikes('api.tooManyRequests')
  return fault && { ...refusal('RESOURCE_EXHAUSTED', 'Quota exceeded.'), headers: { 'retry-after': String(fault.retryAfterSeconds) } }
}

function broken(faults: Faults): HttpResponse | undefined {
  const fault = faults.strikes('api.serverError')
  return fault && refusal(fault.status === 503 ? 'UNAVAILABLE' : 'INTERNAL', 'The service failed.', [], fault.status)
}
