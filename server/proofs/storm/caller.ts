import { setTimeout as sleep } from 'node:timers/promises'

// A caller of the API who has several nodes to go to, and goes to another where one does not answer, as a load balancer would.

export type Caller = {
  accountId: number
  agentId: string
  authorization: string
  nodeUrls: () => readonly string[]
  /** Each that was ever made, in the order of their ends. */
  tries: Try[]
}

/** One request to one node. By the clock. `status` 0: no answer came within `timeoutMs`, or ever. */
export type Try = { nodeUrl: string; request: string; sentAt: number; answeredAt: number; timeoutMs: number; status: number }

/** `status` 0: no answer came. */
export type Answer = { status: number; body: any; isReplayed: boolean; sentAt: number; answeredAt: number }

export type Request = { method: 'GET' | 'POST'; path: string; key?: string; body?: unknown }

/** For so long a caller waits for an answer. */
export const ANSWER_MS = 5_000
const AGAIN_MS = 250
/** Far longer than anything is away. */
const TIMEOUT_MS = 120_000

/** One try, at one node. */
export async function ask(caller: Caller, request: Request, nodeUrl: string, timeoutMs = ANSWER_MS): Promise<Answer> {
  const sentAt = Date.now()
  const { status, body, isReplayed } = await fetchOnce(caller, request, nodeUrl, timeoutMs)
  const answeredAt = Date.now()
  const { method, path, key = '' } = request
  caller.tries.push({ nodeUrl, request: `${method} ${path} ${key}`.trim(), sentAt, answeredAt, timeoutMs, status })
  return { status, body, isReplayed, sentAt, answeredAt }
}

async function fetchOnce({ authorization }: Caller, { method, path, key, body }: Request, nodeUrl: string, timeoutMs: number) {
  const headers = {
    authorization,
    ...(key !== undefined && { 'idempotency-key': key }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
  try {
    const answer = await fetch(`${nodeUrl}/v1${path}`, {
      method,
      headers,
      signal: AbortSignal.timeout(Math.ceil(timeoutMs)),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: await answer.json(), isReplayed: answer.headers.get('idempotent-replayed') === 'true' }
  } catch {
    return { status: 0, body: undefined, isReplayed: false }
  }
}

/** Whether to come again is all that the service says. */
export function isNoAnswer({ status }: Answer): boolean {
  return status === 0 || status === 503
}

/** Again and again, from node to node, until there is an answer, or nobody would wait any longer. `onTry` gets each. */
export async function persist(caller: Caller, request: Request, onTry: (answer: Answer) => void = () => {}): Promise<Answer> {
  const deadline = performance.now() + TIMEOUT_MS
  for (let tries = Math.floor(Math.random() * 2); ; tries++) {
    const urls = caller.nodeUrls()
    const answer = await ask(caller, request, urls[tries % urls.length] as string)
    onTry(answer)
    if (!isNoAnswer(answer) || performance.now() > deadline) return answer
    await sleep(AGAIN_MS)
  }
}
