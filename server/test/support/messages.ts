import { randomUUID } from 'node:crypto'
import type { Pool } from '../../src/db/pool.ts'
import {
  type ApiResponse,
  call,
  createAssignedAgent,
  createCaller,
  startTestService,
  type TestCaller,
  type TestService,
} from './service.ts'
import { TEXT } from './templates.ts'

export const RECIPIENT = '+48500100200'
export const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

export type MessageCaller = TestCaller & {
  agentId: string
  /** A valid request, with other fields. */
  request: (fields?: Record<string, unknown>) => Record<string, unknown>
  /** Sends with this key; use `newKey()` if the key does not matter. */
  send: (key: string, body: unknown) => Promise<ApiResponse>
  sendTest: (body: unknown) => Promise<ApiResponse>
  read: (messageId: string) => Promise<ApiResponse>
  /** Sends one and returns its id. */
  accepted: (fields?: Record<string, unknown>) => Promise<string>
  /** Any other request of this caller. */
  ask: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<ApiResponse>
  /** Makes an approved template and returns its id. */
  template: (message?: unknown, fields?: Record<string, unknown>) => Promise<number>
}

const NO_LIMITS = {
  HERALD_LIMITS: 'memory',
  HERALD_LIMIT_MESSAGES_PER_SECOND: '1000000',
  HERALD_LIMIT_EVENTS_PER_SECOND: '1000000',
  HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000',
}

/** The service without limits and without workers, and callers of it, each with its own account. */
export async function startMessageService({ url, pool }: { url: string; pool: Pool }, env: Record<string, string> = {}) {
  const service = await startTestService({ HERALD_DATABASE_URL: url, ...NO_LIMITS, ...env }, { roles: ['api'] })
  const newCaller = async () => callerOf(service, await createCaller(pool), pool)
  return { ...service, newCaller }
}

async function callerOf(service: TestService, caller: TestCaller, pool: Pool): Promise<MessageCaller> {
  const agentId = await createAssignedAgent(pool, caller.accountId)
  return callerAt(service.url, { ...caller, agentId })
}

/** The same caller at another node. */
export function callerAt(url: string, caller: TestCaller & { agentId: string }): MessageCaller {
  const { authorization, agentId } = caller
  const ask: MessageCaller['ask'] = (method, path, body, headers = {}) => call(`${url}/v1${path}`, { method, authorization, body, headers })
  const request: MessageCaller['request'] = (fields = {}) => ({ agentId, recipient: RECIPIENT, message: { inline: TEXT }, ...fields })
  const send: MessageCaller['send'] = (key, body) => ask('POST', '/messages', body, { 'Idempotency-Key': key })
  return {
    ...caller,
    request,
    ask,
    send,
    sendTest: (body) => ask('POST', '/messages/test', body),
    read: (messageId) => ask('GET', `/messages/${messageId}`),
    accepted: async (fields) => (await send(newKey(), request(fields))).body.messageId,
    template: async (message = TEXT, fields = {}) =>
      (await ask('POST', '/templates', { name: 'Template', status: 'APPROVED', message, ...fields })).body.id,
  }
}

export function newKey(): string {
  return randomUUID()
}

/** The rows of an account in every table that accepting a message writes to. */
export async function countRows(pool: Pool, accountId: number) {
  const { rows } = await pool.query(
    `select
       (select count(*) from messages where account_id = $1) as messages,
       (select count(*) from queue where account_id = $1) as queue,
       (select count(*) from expiries e join messages m on m.id = e.message_id where m.account_id = $1) as expiries,
       (select count(*) from idempotency_keys where account_id = $1) as keys`,
    [accountId],
  )
  return rows[0] as { messages: number; queue: number; expiries: number; keys: number }
}

export const NOTHING = { messages: 0, queue: 0, expiries: 0, keys: 0 }
export const ONE_MESSAGE = { messages: 1, queue: 1, expiries: 0, keys: 1 }

/** A valid SMS fallback, with other parameters or another text. */
export function smsFallback(planParams: Record<string, unknown> = {}, variant: Record<string, unknown> = {}) {
  return { planParams: { sender: 'MyShop', ...planParams }, smsMessagesPlan: [{ content: 'By SMS', ...variant }] }
}
