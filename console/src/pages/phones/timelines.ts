import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { oneAtATime } from '../../app/resource.ts'
import type { TimelineItem } from '../../timeline/types.ts'

/** The steps of messages, by their ids, the newest message last. */
export type Timelines = Map<string, TimelineItem[]>

/** Reads the timelines of messages. A timeline that can't be read is left out: the page of its message says why. */
export function useTimelines(accountId: number, ids: string[]) {
  const [timelines, setTimelines] = useState<Timelines>(new Map())
  const latest = useRef(ids)
  latest.current = ids
  const start = useRef(() => {})
  const read = useCallback(() => start.current(), [])
  useEffect(() => {
    const closing = new AbortController()
    const [startReading, stop] = oneAtATime(async () => {
      const found = await readAll(accountId, latest.current, closing.signal)
      setTimelines((last) => inOrder(latest.current, new Map([...last, ...found])))
    })
    start.current = startReading
    return () => {
      stop()
      closing.abort()
    }
  }, [accountId])
  useEffect(read, [ids.join()])
  return { timelines, read }
}

/** The timelines of these messages, in their order. */
function inOrder(ids: string[], timelines: Timelines): Timelines {
  return new Map(ids.flatMap((id) => (timelines.has(id) ? [[id, timelines.get(id) as TimelineItem[]]] : [])))
}

const PENDING: TimelineItem['step'][] = ['accepted', 'attempt-failed', 'held-back', 'sms-scheduled', 'sms-checked', 'sms-attempt-failed']

/** Whether a message is about to change without an event, by its timeline. */
export function isPending(items: TimelineItem[]): boolean {
  const last = items.findLast(({ step }) => step !== 'webhook-attempt')
  return last !== undefined && PENDING.includes(last.step)
}

async function readAll(accountId: number, ids: string[], signal: AbortSignal): Promise<Timelines> {
  const path = (id: string) => `/accounts/${accountId}/messages/${id}/timeline`
  const reads = ids.map(async (id) => [id, (await ask<{ items: TimelineItem[] }>(path(id), { signal })).items] as const)
  const results = await Promise.allSettled(reads)
  return new Map(results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])))
}
