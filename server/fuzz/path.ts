import { oneOf } from '../chaos/support/random.ts'
import { isOfAdmin, type Operation, operationIdOf } from './document.ts'
import { type Context, isChance, phoneFor, wholeBetween } from './values.ts'
import type { Ids } from './world.ts'

// The path of a request, with ids that exist.

/**
 * The account that owns what the path names: only its credentials, and those of an operator, may succeed. `operator`: an account that is there to
 * be suspended, whose own credentials nobody has. `nobody`: the path names one account, and something of the other.
 */
export type Owner = 'own' | 'other' | 'operator' | 'nobody'

const OTHER_SHARE = 0.15
const MIXED_SHARE = 0.1

/** These change an account as a whole, and would end the run for the own one. */
const CHANGES_OF_ACCOUNT = new Set(['changeAccount', 'suspendAccount', 'resumeAccount', 'setQuotas'])

/** Ids that no two accounts have in common. */
const OWNED = /\{(id|messageId|integrationKey|autoReplyId)\}/

export function pathFor(context: Context, operation: Operation): { path: string; owner: Owner | undefined } {
  const { random, world } = context
  const account = isChance(random, OTHER_SHARE) ? 'other' : 'own'
  const isMixed = isOfAdmin(operation) && isChance(random, MIXED_SHARE)
  const isVictim = isOfAdmin(operation) && CHANGES_OF_ACCOUNT.has(operationIdOf(operation))
  const idsOf = isMixed ? (account === 'own' ? 'other' : 'own') : account
  const valueFor = (name: string) => {
    if (name === 'accountId') return isVictim ? world.victims.accountId : world[account].accountId
    return idFor(context, operation, name, world[idsOf])
  }
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(valueFor(name)))
  if (isVictim) return { path, owner: 'operator' }
  return { path, owner: isMixed && OWNED.test(operation.path) ? 'nobody' : ownerOf(operation, account) }
}

function ownerOf({ path }: Operation, account: 'own' | 'other'): Owner | undefined {
  if (path.includes('{accountId}')) return account
  if (!path.startsWith('/v1/')) return undefined
  // The agent that may be changed belongs to the own account.
  if (path.includes('{agentId}')) return 'own'
  return OWNED.test(path) ? account : undefined
}

function idFor(context: Context, operation: Operation, name: string, ids: Ids): string | number {
  const { random, world } = context
  const { victims } = world
  const choices = operation.parameters.find((parameter) => parameter.name === name)?.schema.enum
  if (choices !== undefined) return String(oneOf(random, choices))
  switch (name) {
    case 'agentId':
      return operationIdOf(operation) === 'changeAgent' ? victims.agentId : victims.assignedAgentId
    case 'messageId':
      return oneOf(random, ids.messages)
    case 'integrationKey':
      return oneOf(random, ids.keys)
    case 'autoReplyId':
      return oneOf(random, ids.autoReplies)
    case 'personId':
      return oneOf(random, victims.people)
    case 'roleAccountId':
      return ids.accountId
    case 'tokenId':
      return oneOf(random, victims.tokens)
    case 'sessionId':
      return oneOf(random, victims.sessions)
    case 'attemptId':
      return `wa-${1_767_225_600_000 + wholeBetween(random, 0, 999)}-${wholeBetween(random, 0, 99)}-1-${wholeBetween(random, 0, 99)}-503`
    case 'segmentId':
      return oneOf(random, operation.method === 'GET' ? [...victims.segments, ...world.groups] : victims.segments)
    case 'phone':
      return phoneOf(context, operation)
    case 'carrier':
      return 'simulator'
    case 'code':
      return Array.from({ length: 11 }, () => oneOf(random, [...'ABCxyz0189'])).join('')
    case 'anything':
      return `nothing-${wholeBetween(random, 0, 999)}`
    default:
      return idInList(context, operation, ids)
  }
}

/** A test waits up to 20 s for an endpoint that responds, and the run has none. */
const NO_ENDPOINT = 2_000_000_000

function idInList({ random }: Context, { path }: Operation, { templates, endpoints, campaigns }: Ids): string | number {
  if (path.includes('/templates/')) return oneOf(random, templates)
  if (path.endsWith('/webhook-endpoints/{id}/test')) return NO_ENDPOINT
  return path.includes('/webhook-endpoints/') ? oneOf(random, endpoints) : oneOf(random, campaigns)
}

function phoneOf({ random, world }: Context, { path, method }: Operation): string {
  if (path.includes('/phones/')) return oneOf(random, [...world.phones, ...world.phoneIds])
  if (path.includes('/recipients/') && method !== 'GET') return oneOf(random, world.victims.phones)
  return isChance(random, 0.5) ? oneOf(random, world.phones) : phoneFor(random)
}
