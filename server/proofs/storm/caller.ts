import { setTimeout as sleep } from 'node:timers/promises'

// A caller of the API who has several nodes to go to, and goes to another where one does not answer, as a load balancer would.

export type Caller = { accountId: number; agentId: string; authorization: string; nodeUrls: () => readonly string[] }

/** `status` 0: no answer came. */
export type Answer = { status: number; body: any; isReplayed: boolean }

export type Request = { method: 'GET' | 'POST'; path: string; key?: string; body?: unknown }

const NO_ANSWER: Answer = { status: 0, body: undefined, isReplayed: false }
const ANSWER_MS = 5_000
const AGAIN_MS = 250
/** Far longer than anything is away. */
const PATIENCE_MS = 120_000

/** One try, at one node. */
export async function ask(caller: Caller, { method, path, key, body }: Request, nodeUrl: string, patienceMs = ANSWER_MS): Promise<Answer> {
  const headers = {
    authorization: caller.authorization,
    ...(key !== undefined && { 'idempotency-key': key }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
  try {
    const answer = await fetch(`${nodeUrl}/v1${path}`, {
      method,
      headers,
      signal: AbortSignal.timeout(Math.ceil(patienceMs)),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: await answer.json(), isReplayed: answer.headers.get('idempotent-replayed') === 'true' }
  } catch {
    return NO_ANSWER
  }
}

/** Whether to come again is all that the service says. */
export function isNoAnswer({ status }: Answer): boolean {
  return status === 0 || status === 429 || status === 503
}

/** Again and again, from node to node, until there is an answer, or nobody would wait any longer. `onTry` gets each. */
export async function persist(caller: Caller, request: Request, onTry: (answer: Answer) => void = () => {}): Promise<Answer> {
  const giveUpAt = performance.now() + PATIENCE_MS
  for (let tries = Math.floor(Math.random() * 2); ; tries++) {
    const urls = caller.nodeUrls()
    const answer = await ask(caller, request, urls[tries % urls.length] as string)
    onTry(answer)
    if (!isNoAnswer(answer) || performance.now() > giveUpAt) return answer
    await sleep(AGAIN_MS)
  }
}
