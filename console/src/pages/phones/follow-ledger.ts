import { useEffect, useState } from 'preact/hooks'
import { ApiProblem, ask } from '../../app/api.ts'
import type { LedgerEntry } from './ledger.ts'

const WAIT_SECONDS = 25
const PAGE_SIZE = 200
const RETRY_MS = 2_000
/** How much longer than its wait a response may take. A request over a dead connection would never end. */
const RESPONSE_MS = 10_000
/** Older entries are dropped from a page that stays open. */
const MAX_ENTRIES = 1_000

/** `hasOlder`: there are older entries, or may be. */
type Followed = { entries: LedgerEntry[] | undefined; hasOlder: boolean; problem: ApiProblem | undefined }
const NOTHING: Followed = { entries: undefined, hasOlder: false, problem: undefined }

/** The ledger of a phone, and what is added to it while the page is visible. The server responds as soon as there is something. */
export function useLedger(path: string | undefined): Followed {
  const [followed, setFollowed] = useState<Followed & { path?: string | undefined }>(NOTHING)
  useEffect(() => {
    if (path === undefined) return
    const reading = new AbortController()
    const add = (entries: LedgerEntry[]) => setFollowed((last) => ({ path, ...withMore(last.path === path ? last : NOTHING, entries) }))
    void follow(path, reading.signal, add, (problem) => setFollowed((last) => ({ ...last, problem })))
    return () => reading.abort()
  }, [path])
  return followed.path === path ? followed : { ...NOTHING, problem: followed.problem }
}

/** Adds a page of entries. If the first page is full, there may be older entries. */
function withMore({ entries: known = [], hasOlder }: Followed, more: LedgerEntry[]): Followed {
  const all = [...known, ...more]
  const isFull = (known.length === 0 && more.length === PAGE_SIZE) || all.length > MAX_ENTRIES
  return { entries: all.slice(-MAX_ENTRIES), hasOlder: hasOlder || isFull, problem: undefined }
}

type Page = { entries: LedgerEntry[]; next: number }

async function follow(path: string, signal: AbortSignal, add: (entries: LedgerEntry[]) => void, fail: (problem: ApiProblem) => void) {
  let after: number | undefined
  let waitSeconds = 0
  while (!signal.aborted) {
    const read = await readAfter(path, { after, waitSeconds }, signal)
    if (signal.aborted) return
    const hasWaited = waitSeconds > 0
    waitSeconds = 0
    if (read instanceof ApiProblem) {
      // After a laptop slept, the old connection is dead and a new one works. So only a second timeout is a problem.
      if (!read.isTimeout || !hasWaited) fail(read)
      // After a problem, the next request does not wait, so that its response soon removes the problem from the page.
      await beforeRetry(read)
    } else if (read !== undefined) {
      add(read.entries)
      after = read.next
      waitSeconds = WAIT_SECONDS
    }
    // A request that waits occupies one of six connections, so a hidden page sends none.
    if (document.visibilityState === 'hidden') await untilVisible(signal)
  }
}

async function beforeRetry({ isTimeout }: ApiProblem): Promise<void> {
  if (!isTimeout) await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
}

/** The last entries, or those after a position, as soon as there are any. Undefined: the page was hidden meanwhile. */
async function readAfter(
  path: string,
  from: { after: number | undefined; waitSeconds: number },
  signal: AbortSignal,
): Promise<Page | ApiProblem | undefined> {
  const query = from.after === undefined ? `limit=${PAGE_SIZE}` : `limit=${PAGE_SIZE}&after=${from.after}&wait=${from.waitSeconds}`
  const hiding = new AbortController()
  const onChange = () => document.visibilityState === 'hidden' && hiding.abort()
  document.addEventListener('visibilitychange', onChange)
  try {
    const timeoutMs = from.waitSeconds * 1_000 + RESPONSE_MS
    return await ask<Page>(`${path}/ledger?${query}`, { signal: AbortSignal.any([signal, hiding.signal]), timeoutMs })
  } catch (problem) {
    return hiding.signal.aborted ? undefined : (problem as ApiProblem)
  } finally {
    document.removeEventListener('visibilitychange', onChange)
  }
}

function untilVisible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => resolve()
    document.addEventListener('visibilitychange', end, { once: true })
    signal.addEventListener('abort', end, { once: true })
  })
}
