import { setTimeout as sleep } from 'node:timers/promises'

// A caller of the API that knows several nodes, and goes to another one if one does not respond, as behind a load balancer.

export type Caller = {
  accountId: number
  agentId: string
  authorization: string
  nodeUrls: () => readonly string[]
  /** All calls, in the order of their ends. */
  calls: Call[]
}

/** One request to one node. Times are of the clock. `status` 0: no response came within `timeoutMs`, or the connection broke. */
export type Call = { nodeUrl: string; request: string; sentAt: number; respondedAt: number; timeoutMs: number; status: number }

export type ApiResponse = { status: number; body: any; isReplayed: boolean; sentAt: number; respondedAt: number }

export type Request = { method: 'GET' | 'POST'; path: string; key?: string; body?: unknown }

/** How long a caller waits for a response. */
export const RESPONSE_TIMEOUT_MS = 5_000
// The pause doubles up to 2 s: with 250 ms throughout, 400 waiting callers kept a starved service from recovering.
const AGAIN_MS = { first: 250, longest: 2_000 }
// Far longer than anything is away.
const TIMEOUT_MS = 120_000

/** One call to one node. */
export async function callOnce(caller: Caller, request: Request, nodeUrl: string, timeoutMs = RESPONSE_TIMEOUT_MS): Promise<ApiResponse> {
  const sentAt = Date.now()
  const response = await fetchOnce(caller, request, nodeUrl, timeoutMs)
  const respondedAt = Date.now()
  const { method, path, key = '' } = request
  caller.calls.push({ nodeUrl, request: `${method} ${path} ${key}`.trim(), sentAt, respondedAt, timeoutMs, status: response.status })
  return { ...response, sentAt, respondedAt }
}

async function fetchOnce({ authorization }: Caller, { method, path, key, body }: Request, nodeUrl: string, timeoutMs: number) {
  const headers = {
    authorization,
    ...(key !== undefined && { 'idempotency-key': key }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
  try {
    const response = await fetch(`${nodeUrl}/v1${path}`, {
      method,
      headers,
      signal: AbortSignal.timeout(Math.ceil(timeoutMs)),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: await response.json(), isReplayed: response.headers.get('idempotent-replayed') === 'true' }
  } catch {
    return { status: 0, body: undefined, isReplayed: false }
  }
}

/** No response, or a 503: the caller is to try again. */
export function isUnanswered({ status }: Pick<ApiResponse, 'status'>): boolean {
  return status === 0 || status === 503
}

/** Calls one node after the other until there is a response; stops after two minutes. `onResponse` gets the result of every call. */
export async function persist(
  caller: Caller,
  request: Request,
  onResponse: (response: ApiResponse) => void = () => {},
): Promise<ApiResponse> {
  const deadline = performance.now() + TIMEOUT_MS
  let pauseMs = AGAIN_MS.first
  for (let turn = Math.floor(Math.random() * 2); ; turn++) {
    const urls = caller.nodeUrls()
    const response = await callOnce(caller, request, urls[turn % urls.length] as string)
    onResponse(response)
    if (!isUnanswered(response) || performance.now() > deadline) return response
    await sleep(pauseMs)
    pauseMs = Math.min(pauseMs * 2, AGAIN_MS.longest)
  }
}
