import { createHmac } from 'node:crypto'
import { oneOf } from '../chaos/support/random.ts'
import type { Operation, Parameter } from './document.ts'
import { type Owner, pathFor } from './path.ts'
import { type Context, isChance, phoneFor, valueFor, wholeBetween, wordsFor } from './values.ts'

/** A request before it is written as bytes. Everything in it is already encoded as it is sent. */
export type Parts = {
  method: string
  path: string
  query: [name: string, value: string][]
  headers: [name: string, value: string][]
  body: Buffer | undefined
  /** Whether it is still a request of its operation, so that only the documented statuses are allowed. */
  isIntact: boolean
  owner: Owner | undefined
}

const QUERY_SHARE = 0.4
const EXAMPLE_SHARE = 0.2

/** A request that the document allows. Its credentials are added later. */
export function validParts(context: Context, operation: Operation): Parts {
  const { random } = context
  const ofKind = (kind: Parameter['in']) => operation.parameters.filter((parameter) => parameter.in === kind)
  const query = ofKind('query')
    .filter(({ required = false }) => required || isChance(random, QUERY_SHARE))
    .flatMap((parameter): [string, string][] => {
      const value = queryValue(context, operation, parameter)
      return value === undefined ? [] : [[parameter.name, encodeURIComponent(value)]]
    })
  const headers = ofKind('header').map(({ name, schema }): [string, string] => [name, String(valueFor(context, schema, name))])
  const parts: Parts = {
    method: operation.method,
    ...pathFor(context, operation),
    query,
    headers,
    body: undefined,
    isIntact: true,
  }
  if (operation.body === undefined) return parts
  return operation.id === 'carrierWebhook' ? withEvent(context, parts) : withBody(parts, bodyFor(context, operation))
}

export function bodyFor(context: Context, { id, body, example }: Operation): unknown {
  const { random, world } = context
  if (id === 'admin/createAgent')
    return { ...(valueFor(context, body ?? {}, '') as object), agentId: `new-${wholeBetween(random, 0, 1e9)}` }
  if (example === undefined || !isChance(random, EXAMPLE_SHARE)) return valueFor(context, body ?? {}, '')
  const copy = structuredClone(example) as { agentId?: string }
  return 'agentId' in copy ? { ...copy, agentId: world.agentId } : copy
}

export function withBody(parts: Parts, body: unknown): Parts {
  const headers: Parts['headers'] = [...parts.headers, ['Content-Type', 'application/json']]
  return { ...parts, headers, body: Buffer.from(JSON.stringify(body) ?? '') }
}

function queryValue(context: Context, operation: Operation, { name, schema }: Parameter): string | undefined {
  if ((name !== 'cursor' && name !== 'after') || schema.type !== 'string') return String(valueFor(context, schema, name))
  const cursors = context.world.cursors.get(operation.id) ?? []
  return cursors.length === 0 ? undefined : oneOf(context.random, cursors)
}

const EVENT_TYPES = ['DELIVERED', 'READ', 'TTL_EXPIRATION_REVOKED', 'TTL_EXPIRATION_REVOKE_FAILED', 'IS_TYPING', 'UNHEARD_OF']

/** An event of a carrier, in the form that Google sends. `withEvent` signs it. */
export function eventFor({ random, world }: Context): object {
  const common = { senderPhoneNumber: phoneFor(random), agentId: `${world.agentId}@rbm.goog`, sendTime: new Date(world.now).toISOString() }
  const eventId = `event-${wholeBetween(random, 0, 1e9)}`
  return oneOf(random, [
    { ...common, eventId, eventType: oneOf(random, EVENT_TYPES), messageId: oneOf(random, world.own.messages) },
    { ...common, messageId: eventId, text: wordsFor(random, 30) },
    { ...common, messageId: eventId, suggestionResponse: { postbackData: wordsFor(random, 20), text: 'Yes', type: 'REPLY' } },
    { ...common, messageId: eventId, location: { latitude: 1, longitude: 2 } },
    { ...common, messageId: eventId, userFile: { payload: { mimeType: 'image/png', fileUri: 'https://example.com/f', fileSizeBytes: 1 } } },
    { agentId: common.agentId, eventId, newLaunchState: 'LAUNCHED' },
  ])
}

/** The event as it is posted: in base64 within JSON, with the signature over the decoded bytes. */
export function withEvent(context: Context, parts: Parts, event: unknown = eventFor(context)): Parts {
  const data = Buffer.from(JSON.stringify(event) ?? '')
  const signature = createHmac('sha512', context.world.webhookToken).update(data).digest('base64')
  const signed = withBody(parts, { message: { data: data.toString('base64'), messageId: '1' }, subscription: 'fuzz' })
  return { ...signed, headers: [...signed.headers, ['X-Goog-Signature', signature]] }
}
