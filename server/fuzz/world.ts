import type { Response } from './wire.ts'

// What a generated request can refer to: accounts with their credentials, and existing ids. Ids come from responses during a run, so the
// bytes repeat a request exactly, and its seed repeats only its form.

export type Ids = { templates: number[]; messages: string[]; campaigns: string[] }

export type World = {
  /** The start of the run, in ms: times in requests are drawn around it. */
  now: number
  agentId: string
  /** The agent for requests that change one: a deactivated agent sends nothing more. */
  changedAgentId: string
  groups: number[]
  /** Authorization headers. `withoutModule`: of an account without modules. */
  credentials: { own: string; other: string; withoutModule: string }
  /** The token with which a carrier signs its events. */
  webhookToken: string
  own: Ids
  other: Ids
  /** By operation. */
  cursors: Map<string, string[]>
}

const MAX_KEPT = 50

function remember<T>(list: T[], value: T): void {
  list.push(value)
  if (list.length > MAX_KEPT) list.shift()
}

type Learned = { id?: unknown; messageId?: unknown; campaignId?: unknown; nextCursor?: unknown }

/** Takes the ids and cursors from a response to the account whose ids are `own`. */
export function learn(world: World, operation: string, { status, json }: Pick<Response, 'status' | 'json'>): void {
  if (status === undefined || status >= 300 || typeof json !== 'object' || json === null) return
  const { id, messageId, campaignId, nextCursor } = json as Learned
  if (operation === 'createTemplate' && typeof id === 'number') remember(world.own.templates, id)
  if (operation === 'sendMessage' && typeof messageId === 'string') remember(world.own.messages, messageId)
  if (operation === 'createCampaign' && typeof campaignId === 'string') remember(world.own.campaigns, campaignId)
  if (typeof nextCursor !== 'string') return
  const cursors = world.cursors.get(operation) ?? []
  remember(cursors, nextCursor)
  world.cursors.set(operation, cursors)
}
