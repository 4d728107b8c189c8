import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod, RouteOptions } from 'fastify'
import { maskEntry } from '../audit/mask.ts'
import { hasChanged, lockSubject, type RecordChange, recordChange } from '../audit/record.ts'
import { joinTransaction } from '../db/joined.ts'
import { accountTransaction, type Executor, type Pool, transaction } from '../db/pool.ts'
import { normalisePhoneNumber } from '../phone-numbers.ts'
import { actorOf } from './guard.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set if the route records its change by itself: call it in the transaction of the change. Undefined for callers of /v1. */
    recordChange: RecordChange | undefined
    /**
     * Set by a handler if the responses of its path do not show the change: what the entry says, or that nothing changed. It has no effect for
     * callers of /v1, whose changes have no entries.
     */
    change: Change | 'none' | undefined
  }
  interface FastifyContextConfig {
    /**
     * How the changes of a route are recorded. By default, the handler and the entry share one transaction. `self`: the handler needs several
     * transactions, and records the change in one of them. `never`: the route changes none of Herald's data. `result`: the response is not a
     * later state of what the path names, so that the state before is not read; the handler may set `change`.
     */
    audit?: 'self' | 'never' | 'result'
  }
}

/** Records every change through this scope in the audit log, in the transaction of the change. The routes must use joinable pools. */
export function auditChanges(app: FastifyInstance, pool: Pool): void {
  const readers = new Map<string, RouteHandlerMethod>()
  app.addHook('onRoute', (route) => {
    if (route.method === 'GET') readers.set(route.url, route.handler)
    // A POST that only reads has the scope `read`.
    else if (route.method !== 'HEAD' && route.config?.scope !== 'read' && route.config?.audit !== 'never')
      route.handler = audited(app, pool, route, readers)
  })
}

/** `accountId`, `subject`: needed if the path does not name them. `isChanged`: needed if the states do not show whether something changed. */
type Change = { before?: unknown; after: unknown; accountId?: number | undefined; subject?: string; isChanged?: boolean }

function audited(app: FastifyInstance, pool: Pool, route: RouteOptions, readers: Map<string, RouteHandlerMethod>): RouteHandlerMethod {
  const { handler } = route
  const action = actionOf(route)
  const run = async (request: FastifyRequest, reply: FastifyReply) => await withheld(reply, () => handler.call(app, request, reply))
  const record = async (tx: Executor, request: FastifyRequest, { before, after, isChanged: _, ...named }: Change) => {
    const { accountId, subject } = { ...changedBy(request), ...named }
    await recordChange(tx, actorOf(request), {
      action,
      ...(accountId !== undefined && { accountId }),
      ...(maskEntry({ ...(subject !== '' && { subject }), before, after }) as object),
    })
  }
  const inTransaction = <T>(request: FastifyRequest, work: (tx: Executor) => Promise<T>) => {
    const { accountId } = request.params as { accountId?: number }
    return accountId === undefined ? transaction(pool, work) : accountTransaction(pool, Number(accountId), work)
  }
  if (route.config?.audit === 'self') {
    return async (request, reply) => {
      request.recordChange = (tx, after, before, subject) =>
        record(tx, request, { before, after, ...(subject !== undefined && { subject }) })
      return await handler.call(app, request, reply)
    }
  }
  return async (request, reply) => {
    const afterCommit: (() => void)[] = []
    const change = async (tx: Executor) => {
      const read = route.config?.audit === 'result' ? undefined : readers.get(subjectOf(route, readers))
      const subject = changedBy(request)
      if (read !== undefined || subject.subject !== '') await lockSubject(tx, subject)
      const found = read && (await withheld(reply, () => read.call(app, request, reply)).catch(() => undefined))
      const response = await run(request, reply)
      const { change = { before: found, after: response } } = request
      // A request that changes nothing leaves no entry.
      if (change !== 'none' && hasChanged(change))
        await record(tx, request, { ...(subject.subject === '' && createdBy(reply, response)), ...change })
      return response
    }
    const response = await inTransaction(request, (tx) => joinTransaction(tx, () => change(tx), afterCommit))
    for (const work of afterCommit) work()
    return response
  }
}

/** The account and the other ids of a path. Callers may write a number without its plus sign or with spaces, and it must be masked all the same. */
function changedBy({ params }: FastifyRequest): { accountId?: number; subject: string } {
  // A change of a role belongs to the account of the role.
  const { roleAccountId, accountId = roleAccountId, ...ids } = params as { accountId?: number; roleAccountId?: number; phone?: string }
  if (ids.phone !== undefined) ids.phone = normalisePhoneNumber(ids.phone) ?? ids.phone
  return { ...(accountId !== undefined && { accountId: Number(accountId) }), subject: Object.values(ids).map(String).join(' ') }
}

/** The id of what a request has created: the first id in its response. */
function createdBy({ statusCode }: FastifyReply, response: unknown): { subject?: string } {
  if (statusCode !== 201 && statusCode !== 202) return {}
  const created = Object.entries(response ?? {}).find(([name]) => /^id$|Id$|^integrationKey$/.test(name))
  return created === undefined ? {} : { subject: String(created[1]) }
}

/** The path of what a route changes: its own, or for an action such as `/keys/:key/revoke` that of the key. A POST to a list has none. */
function subjectOf({ method, url }: RouteOptions, readers: Map<string, unknown>): string {
  if (method !== 'POST') return url
  return readers.has(url) ? '' : (/^(.*\/:[^/]+)\/[^/:]+$/.exec(url)?.[1] ?? '')
}

function actionOf({ schema, method, url }: RouteOptions): string {
  const { operationId } = (schema ?? {}) as { operationId?: string }
  if (operationId === undefined) throw new Error(`the route ${method} ${url} has no operationId, which names its entries in the audit log`)
  return operationId
}

/** Runs a handler and returns what it would send, which must wait for the commit. */
async function withheld(reply: FastifyReply, handle: () => unknown): Promise<unknown> {
  let sent: unknown
  // Handlers await what `send` returns. A reply would make them wait until it is sent.
  const instead = {} as FastifyReply
  // Shadows the method of the prototype.
  reply.send = (payload?: unknown) => {
    sent = payload
    return instead
  }
  try {
    const returned = await handle()
    return returned === instead ? sent : returned
  } finally {
    Reflect.deleteProperty(reply, 'send')
  }
}
