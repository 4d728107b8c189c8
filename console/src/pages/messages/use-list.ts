import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiProblem, ask } from '../../app/api.ts'
import { isAboutMessages, useFresh } from '../../app/fresh.ts'
import { type Page, withCursor } from '../../app/pages-of.ts'
import { useResource } from '../../app/resource.ts'
import type { Message } from '../../timeline/types.ts'
import { dueTimesOf, isPending } from './pending.ts'

export const PAGE_SIZE = 50

/**
 * A page may be short although there are more messages: without an index, Herald searches for a short time only. This is what "Search further" adds
 * to the page. `items`: undefined until its first response.
 */
type Further = { path: string; items: Message[] | undefined; nextCursor: string | null; isLooking: boolean; problem?: ApiProblem }
/** How many requests "Search further" sends at most. Each searches some thousand messages. */
const MAX_LOOKS = 20

export function useList(path: string) {
  const page = useResource<Page<Message>>(path)
  const [lastSearch, setFurther] = useState<Further>()
  const searching = useRef<AbortController>(undefined)
  useEffect(() => () => searching.current?.abort(), [path])
  const further = lastSearch?.path === path ? lastSearch : undefined
  const found = page.value?.items ?? []
  const nextCursor = further?.items === undefined ? (page.value?.nextCursor ?? null) : further.nextCursor

  async function lookFurther(): Promise<void> {
    const search = new AbortController()
    searching.current = search
    let last: Further = { path, items: further?.items, nextCursor, isLooking: true }
    setFurther(last)
    try {
      for (let looks = 0; looks < MAX_LOOKS && last.nextCursor !== null; looks += 1) {
        const { items = [] }: Further = last
        const missing = PAGE_SIZE - found.length - items.length
        if (missing <= 0) break
        const next = await ask<Page<Message>>(withCursor(path, last.nextCursor, missing), { signal: search.signal })
        search.signal.throwIfAborted()
        last = { ...last, items: [...items, ...next.items], nextCursor: next.nextCursor }
        setFurther(last)
      }
      setFurther({ ...last, isLooking: false })
    } catch (error) {
      const ended: Further = { ...last, isLooking: false, ...(!search.signal.aborted && { problem: error as ApiProblem }) }
      setFurther((now) => (now === last ? ended : now))
    }
  }
  const items = [...found, ...(further?.items ?? [])]
  return {
    items,
    nextCursor,
    isLoaded: page.value !== undefined,
    isShort: nextCursor !== null && items.length < PAGE_SIZE,
    hasLookedFurther: further?.items !== undefined,
    isLooking: further?.isLooking === true,
    problem: page.problem ?? further?.problem,
    reload: page.reload,
    /** Sends the request again that failed. */
    retry: page.problem === undefined ? () => void lookFurther() : page.reload,
    lookFurther,
    /** Shows the page without what was found further on. */
    reset: () => {
      searching.current?.abort()
      setFurther(undefined)
    },
  }
}

/** For viewers who look up a number: 12 reloads a minute leave 18 of the 30 look-ups in the limit for searches. */
const LIMITED_RELOAD_MS = 5_000
/** Accepted messages emit no event. */
const POLL_MS = 2_000

const stateOf = ({ messageId, status, smsFallback }: Message) => `${messageId} ${status} ${smsFallback?.status}`

/** Reloads the list while messages arrive, and says which came since. */
export function useTail(path: string, isOn: boolean, items: Message[], reload: () => void, isLimited: boolean) {
  // A reload that is still due when the person pauses is dropped.
  const reloadIfOn = () => {
    if (isOn) reload()
  }
  useFresh(reloadIfOn, {
    isAbout: isAboutMessages,
    ...(isLimited && { everyMs: LIMITED_RELOAD_MS }),
    restMs: POLL_MS,
    isPending: items.some(isPending),
    state: items.map(stateOf).join(),
    dueAt: dueTimesOf(items),
  })

  // Ids are in the order of acceptance, so a larger id is a newer message.
  const first = useRef<{ path: string; newestId: string }>(undefined)
  const newestId = items[0]?.messageId ?? ''
  if (first.current?.path !== path && items.length > 0) first.current = { path, newestId }
  return ({ messageId }: Message) => first.current?.path === path && messageId > first.current.newestId
}
