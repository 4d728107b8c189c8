import { type Page, withCursor } from './pages-of.ts'

/** A violation of a rule, as the API reports it: where, and what would be right. */
export type Violation = { path: string; reason: string }

type Problem = { code: string; details?: Violation[]; requestId?: string; isTimeout?: boolean }

/** A request that did not succeed. `status` 0: there was no response. */
export class ApiProblem extends Error {
  readonly status: number
  readonly code: string
  readonly details: Violation[]
  readonly requestId: string | undefined
  readonly isTimeout: boolean

  constructor(status: number, { code, details = [], requestId, isTimeout = false }: Problem) {
    super(details.map(({ reason }) => reason).join(' ') || code)
    this.status = status
    this.code = code
    this.details = details
    this.requestId = requestId
    this.isTimeout = isTimeout
  }
}

/** Where the admin API is, relative to the page, so that it also works below a prefix that a proxy adds. */
const BASE = 'admin/v1'

export const urlOf = (path: string) => `${BASE}${path}`

/** An event of the window: a request was refused with 401, perhaps because the session has ended. */
export const UNAUTHORIZED = 'herald-unauthorized'

/** When the person last did something on the page. Its opening is the first thing. */
let lastInputAt = Date.now()
for (const type of ['pointerdown', 'keydown', 'wheel', 'hashchange']) {
  addEventListener(type, () => (lastInputAt = Date.now()), { capture: true, passive: true })
}

/** How long after an input a request counts as caused by it. A session ends when its person has caused none for 12 hours. */
const CAUSED_WITHIN_MS = 10_000

const background = () => Date.now() - lastInputAt > CAUSED_WITHIN_MS && { 'x-herald-background': 'true' }

type Options = { method?: string; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal; timeoutMs?: number }

/** Without a timeout, a request over a dead connection would never end, nor could a dialog be closed that waits for it. */
const TIMEOUT_MS = 30_000

/** Sends a request to /admin/v1 and returns the body of the response. Throws an ApiProblem if it fails, or an AbortError if the signal ends it. */
export async function ask<T>(path: string, { method = 'GET', body, headers, signal, timeoutMs = TIMEOUT_MS }: Options = {}): Promise<T> {
  const timeout = AbortSignal.timeout(timeoutMs)
  try {
    const response = await fetch(urlOf(path), {
      method,
      headers: {
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(method === 'GET' && background()),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    })
    return await resultOf<T>(response)
  } catch (error) {
    if (error instanceof ApiProblem || (error as Error).name === 'AbortError') throw error
    throw new ApiProblem(0, { code: 'NO_RESPONSE', isTimeout: timeout.aborted })
  }
}

/** Throws if the body was cut off, or is not Herald's: a proxy may respond with a page of its own, even with the status 200. */
async function resultOf<T>(response: Response): Promise<T> {
  if (!response.ok) throw await problemOf(response)
  const { status } = response
  if (!isJson(response) && status !== 204) throw new TypeError('the response is not JSON')
  return (isJson(response) ? await response.json() : undefined) as T
}

const isJson = (response: Response) => response.headers.get('content-type')?.startsWith('application/json') === true

/** What the response to a request that failed says. */
export async function problemOf(response: Response): Promise<ApiProblem> {
  const result: unknown = isJson(response) ? await response.json() : undefined
  if (response.status === 401) dispatchEvent(new Event(UNAUTHORIZED))
  const fallback = { code: `HTTP ${response.status}`, requestId: response.headers.get('x-request-id') ?? undefined }
  return new ApiProblem(response.status, { ...fallback, ...(result as object) } as { code: string })
}

/** Reads all pages of a list. */
export async function askAll<Item>(path: string, options?: Options): Promise<Item[]> {
  const all: Item[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: Page<Item> = await ask(withCursor(path, cursor, 200), options)
    all.push(...page.items)
    cursor = page.nextCursor
  }
  return all
}

export const post = <T>(path: string, body?: unknown, headers?: Record<string, string>) =>
  ask<T>(path, { method: 'POST', body: body ?? {}, ...(headers && { headers }) })
