import assert from 'node:assert/strict'
import { after } from 'node:test'
import { createAccount, MODULES, type Module } from '../../src/accounts/accounts.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { assignAgent, type BillingType, createAgent } from '../../src/agents/agents.ts'
import type { Pool } from '../../src/db/pool.ts'
import type { Service, ServiceOptions } from '../../src/service.ts'

export type TestService = Service & { log: () => string }

/** Starts the service in this process, on free ports, until the test file ends. `env`: its settings. */
export async function startTestService(env: Record<string, string | undefined>, options?: ServiceOptions): Promise<TestService> {
  // Loading the service takes 0.6 s of CPU, and half of the files need only a caller or `call`.
  const [{ loadConfig }, { createLogger }, { startService }] = await Promise.all([
    import('../../src/config.ts'),
    import('../../src/http/log.ts'),
    import('../../src/service.ts'),
  ])
  let log = ''
  const logger = createLogger(env.HERALD_LOG_LEVEL ?? 'info', {
    write: (line) => {
      log += line
    },
  })
  const service = await startService(
    loadConfig({ HERALD_PORT: '0', HERALD_METRICS_PORT: '0', HERALD_ENCRYPTION_KEY_FILE: process.env.HERALD_TEST_KEY_FILE, ...env }),
    logger,
    options,
  )
  let stopped: Promise<void> | undefined
  function stop(): Promise<void> {
    stopped ??= service.stop()
    return stopped
  }
  after(stop)
  return { ...service, stop, log: () => log }
}

export type TestCaller = { accountId: number; integrationKey: string; secret: string; authorization: string }

export async function createCaller(pool: Pool, modules: readonly Module[] = MODULES): Promise<TestCaller> {
  const { accountId } = await createAccount(pool, 'Test', modules)
  const { integrationKey, secret } = await createKey(pool, accountId)
  return { accountId, integrationKey, secret, authorization: `Bearer ${integrationKey}:${secret}` }
}

let agents = 0

/** A new agent, assigned to the account. */
export async function createAssignedAgent(pool: Pool, accountId: number, billingType: BillingType = 'single'): Promise<string> {
  agents += 1
  const agentId = `agent-${agents}`
  await createAgent(pool, { agentId, name: `agent_${agents}`, billingType, carrier: 'simulator' })
  await assignAgent(pool, agentId, accountId)
  return agentId
}

export type ApiResponse = { status: number; headers: Headers; body: any }

/** Sends one HTTP request. A `body` that is not text or bytes is sent as JSON. */
export async function call(
  url: string,
  options: { method?: string; authorization?: string; headers?: Record<string, string>; body?: unknown } = {},
) {
  const { method = 'GET', authorization, headers = {}, body } = options
  const isRaw = typeof body === 'string' || body instanceof Uint8Array || body === undefined
  const response = await fetch(url, {
    method,
    headers: { ...(authorization && { authorization }), ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: isRaw ? (body as string) : JSON.stringify(body) }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text } as ApiResponse
}

const MAX_REPEATS = 10

/** On a busy machine, a statement may take longer than Herald allows: the response is 503. This repeats the request, as callers should. */
export async function untilAvailable(ask: () => Promise<ApiResponse>): Promise<ApiResponse> {
  let response = await ask()
  for (let repeats = 0; response.status === 503 && repeats < MAX_REPEATS; repeats += 1) response = await ask()
  return response
}

export type ErrorDetails = readonly (readonly [path: string, reason: string])[]

/** Errors that always have details, which a test need not repeat. */
export const ALWAYS_DETAILED = [401, 404, 405]

/** Asserts the status and the whole body of an error response. */
export function assertError({ status, body }: ApiResponse, expected: number, code: string, details?: ErrorDetails, message = code): void {
  const isDetailed = details === undefined && ALWAYS_DETAILED.includes(expected)
  if (isDetailed) assert.equal(body.details?.length, 1, message)
  const named = isDetailed ? body.details : details?.map(([path, reason]) => ({ path, reason }))
  const error = { statusCode: expected, code, message: code, requestId: body.requestId, ...(named && { details: named }) }
  assert.deepEqual([status, body], [expected, error], message)
}
