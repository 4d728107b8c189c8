import { operationIdOf } from './document.ts'
import type { FuzzRequest } from './generate.ts'
import type { Response } from './wire.ts'

// What a generated request can refer to: accounts with their credentials, and existing ids. Ids come from responses during a run, so the
// bytes repeat a request exactly, and its seed repeats only its form.

/** Of one account. Its keys and endpoints are victims: requests may revoke and delete them. */
export type Ids = {
  accountId: number
  templates: number[]
  messages: string[]
  campaigns: string[]
  keys: string[]
  endpoints: number[]
  autoReplies: number[]
}

/** What requests may change, disable or erase without an effect on other requests. */
export type Victims = {
  /** An account that may be suspended. */
  accountId: number
  /** Changed by the own account only: a deactivated agent sends nothing more. */
  agentId: string
  /** Assigned to any account, and not. */
  assignedAgentId: string
  people: number[]
  tokens: number[]
  sessions: string[]
  /** A campaign sends to every member of its segments. */
  segments: number[]
  /** Nothing is sent to these numbers: an erasure waits up to two minutes for messages that are being sent. */
  phones: string[]
}

export type World = {
  /** The start of the run, in ms: times in requests are drawn around it. */
  now: number
  agentId: string
  groups: number[]
  /** Values of Authorization for /v1. */
  keys: { own: string; other: string; withoutModule: string }
  /** Values of Authorization for /admin/v1. */
  tokens: { operator: string; admin: string; viewer: string; other: string }
  /** An operator with sessions. There are many, since requests sign out. */
  operatorId: number
  cookies: string[]
  email: string
  password: string
  /** The token with which a carrier signs its events. */
  webhookToken: string
  own: Ids
  other: Ids
  victims: Victims
  /** Numbers of the own account that have messages, and ids of their phones. */
  phones: string[]
  phoneIds: string[]
  /** Tokens of links to set a password. */
  links: string[]
  /** By operation. */
  cursors: Map<string, string[]>
}

const MAX_KEPT = 50

function remember(list: unknown[], value: unknown): void {
  if (typeof value !== 'string' && typeof value !== 'number') return
  list.push(value)
  if (list.length > MAX_KEPT) list.shift()
}

/** By operationId: the field of the response, and where its value is kept. */
const LEARNED: Record<string, [field: string, list: (world: World) => unknown[]]> = {
  createTemplate: ['id', ({ own }) => own.templates],
  sendMessage: ['messageId', ({ own }) => own.messages],
  createCampaign: ['campaignId', ({ own }) => own.campaigns],
  createWebhookEndpoint: ['endpointId', ({ own }) => own.endpoints],
  createKey: ['integrationKey', ({ own }) => own.keys],
  createAutoReply: ['autoReplyId', ({ own }) => own.autoReplies],
  createPerson: ['personId', ({ victims }) => victims.people],
  createToken: ['tokenId', ({ victims }) => victims.tokens],
  createPersonLink: ['token', ({ links }) => links],
  createAccountPersonLink: ['token', ({ links }) => links],
}

const OWN = new Set(['own', 'admin', 'operator', 'page'])

/** Takes the ids and cursors from a response that is about the own account. */
export function learn(world: World, { operation, credentials, owner }: FuzzRequest, { status, json }: Response): void {
  if (status === undefined || status >= 300 || typeof json !== 'object' || json === null) return
  if (!OWN.has(credentials) || (owner !== undefined && owner !== 'own')) return
  const body = json as Record<string, unknown>
  const [field, list] = LEARNED[operationIdOf(operation)] ?? []
  if (field !== undefined && list !== undefined) remember(list(world), body[field])
  if (operation.id === 'admin/listPhones') for (const { phoneId } of body.items as { phoneId: string }[]) remember(world.phoneIds, phoneId)
  const cursors = world.cursors.get(operation.id) ?? []
  if (typeof body.nextCursor === 'string') remember(cursors, body.nextCursor)
  world.cursors.set(operation.id, cursors)
}
