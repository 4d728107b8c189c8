import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import type { LogEvent } from '../../app/live.ts'
import { useThrottled } from '../../app/resource.ts'
import { itemOf, type TimelineItem } from './saw-lines.ts'

/** The steps of messages, by their ids, the newest message last. */
export type Timelines = Map<string, TimelineItem[]>

/** An event that came since the timelines were read. */
type News = { messageId: string; item: TimelineItem; at: number }

/** An event is shown at once, so its timeline may be read a little later, together with others. */
const READ_EVERY_MS = 1_000
/** For how long after an event its message still changes without another event: attempts of webhooks emit none. */
const CHANGES_FOR_MS = 6_000

/**
 * Reads the timelines of messages. An event is shown at once, and stays until a timeline that was read after it came. A timeline that can't be
 * read is left out: the page of its message says why. `read` reads the messages that had an event a moment ago; if none had, it reads all.
 */
export function useTimelines(accountId: number, ids: string[]) {
  const [timelines, setTimelines] = useState<Timelines>(new Map())
  const [news, setNews] = useState<News[]>([])
  const changedAt = useRef(new Map<string, number>())
  const latest = useRef(ids)
  latest.current = ids
  const readSoon = useReads(accountId, latest, (found, startedAt) => {
    setTimelines((last) => new Map([...last, ...found].filter(([id]) => latest.current.includes(id))))
    setNews((last) => last.filter(({ messageId, at }) => at > startedAt || (latest.current.includes(messageId) && !found.has(messageId))))
  })
  const read = useCallback(() => {
    const since = performance.now() - CHANGES_FOR_MS
    for (const [id, at] of changedAt.current) if (at < since) changedAt.current.delete(id)
    const changed = latest.current.filter((id) => changedAt.current.has(id))
    readSoon(changed.length > 0 ? changed : latest.current)
  }, [readSoon])
  const add = useCallback((event: LogEvent) => {
    const item = itemOf(event)
    const { messageId } = event.data
    if (typeof messageId !== 'string') return
    changedAt.current.set(messageId, performance.now())
    if (item !== undefined) setNews((last) => [...last, { messageId, item, at: performance.now() }])
  }, [])
  const names = ids.join()
  useEffect(() => readSoon(latest.current.filter((id) => !timelines.has(id))), [names, readSoon])
  return { timelines: withNews(inOrder(timelines, ids), news), add, read }
}

type OnRead = (found: Timelines, startedAt: number) => void

/** Collects the ids of messages, and reads the timelines of those still shown together, at most once in READ_EVERY_MS. */
function useReads(accountId: number, shown: { current: string[] }, onRead: OnRead): (ids: string[]) => void {
  const due = useRef(new Set<string>())
  const isReading = useRef(false)
  const closing = useRef(new AbortController())
  useEffect(() => () => closing.current.abort(), [])
  const readDue = useThrottled(() => {
    if (isReading.current) return
    const startedAt = performance.now()
    const ids = shown.current.filter((id) => due.current.has(id))
    due.current.clear()
    if (ids.length === 0) return
    isReading.current = true
    void readAll(accountId, ids, closing.current.signal).then((found) => {
      isReading.current = false
      if (closing.current.signal.aborted) return
      onRead(found, startedAt)
      if (due.current.size > 0) readDue()
    })
  }, READ_EVERY_MS)
  return useCallback(
    (ids) => {
      for (const id of ids) due.current.add(id)
      readDue()
    },
    [readDue],
  )
}

const PENDING: TimelineItem['step'][] = ['accepted', 'attempt-failed', 'held-back', 'sms-scheduled', 'sms-checked', 'sms-attempt-failed']

/** Whether a message is about to change without an event, by its timeline. */
export function isPending(items: TimelineItem[]): boolean {
  const last = items.findLast(({ step }) => step !== 'webhook-attempt')
  return last !== undefined && PENDING.includes(last.step)
}

/** The timelines of these messages, in their order. */
function inOrder(timelines: Timelines, ids: string[]): Timelines {
  return new Map(ids.flatMap((id) => (timelines.has(id) ? [[id, timelines.get(id) as TimelineItem[]] as const] : [])))
}

async function readAll(accountId: number, ids: string[], signal: AbortSignal): Promise<Timelines> {
  const path = (id: string) => `/accounts/${accountId}/messages/${id}/timeline`
  const reads = ids.map(async (id) => [id, (await ask<{ items: TimelineItem[] }>(path(id), { signal })).items] as const)
  const results = await Promise.allSettled(reads)
  return new Map(results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])))
}

function withNews(timelines: Timelines, news: News[]): Timelines {
  const all: Timelines = new Map(timelines)
  for (const { messageId, item } of news) {
    const items = all.get(messageId) ?? []
    const isKnown = items.some(({ step, occurredAt }) => step === item.step && occurredAt === item.occurredAt)
    if (!isKnown) all.set(messageId, [...items, item])
  }
  return all
}
