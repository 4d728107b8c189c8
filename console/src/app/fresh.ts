import { useEffect, useRef } from 'preact/hooks'
import type { LiveEvent } from './live.ts'
import { useThrottled } from './resource.ts'
import { useFrame } from './session.tsx'

/** Half of the second in which a change has to appear: a message emits several events within a moment. */
const AFTER_EVENT_MS = 500
const REST_MS = 5_000
const PENDING_MS = 1_000
/** For how long a page that waits for a change keeps looking every second: a message may wait for two days. */
const STEADY_MS = 30_000

/** Some changes emit no event, such as an accepted message, a failed attempt, or an attempt of a webhook. So they are polled. */
export type Pace = {
  /** How often to read when nothing has changed for a long time. */
  restMs?: number
  /** How often to read just after a change. From then on, the waits grow to `restMs`. */
  firstMs?: number
  /** A change is near: the page polls every second, and less often after half a minute without a change. */
  isPending?: boolean
  /** What is shown. Another value is a change. */
  state?: string
  /** Times at which something is due. They count as changes. */
  dueAt?: string[]
}

type Options = Pace & { everyMs?: number; isAbout?: (event: LiveEvent) => boolean }

// A `health` event comes every five seconds, and says nothing about the account.
const isOfAccount = ({ name }: LiveEvent) => name !== 'health'

/** Whether the counts or states of messages may have changed. `busy` stands for many events. */
export const isAboutMessages = (event: LiveEvent) => event.name === 'busy' || (event.name === 'event' && 'messageId' in event.data.data)

/** Reads again what a page shows after an event that it is about, at most once in `everyMs`, and polls. A hidden page reads nothing. */
export function useFresh(reload: () => void, { everyMs = AFTER_EVENT_MS, isAbout = isOfAccount, ...pace }: Options = {}): void {
  const { listen } = useFrame()
  const throttled = useThrottled(() => {
    if (isVisible()) reload()
  }, everyMs)
  const latest = useRef(isAbout)
  latest.current = isAbout
  useEffect(
    () =>
      listen((event) => {
        if (event.name === 'gap' || latest.current(event)) throttled()
      }),
    [listen, throttled],
  )
  usePolled(throttled, pace)
}

/** Reads again and again while the page is visible, and when it becomes visible. */
export function usePolled(
  reload: () => void,
  { restMs = REST_MS, firstMs = restMs, isPending = false, state = '', dueAt = [] }: Pace = {},
): void {
  const due = dueAt.join()
  useEffect(() => {
    let timer = 0
    let changedMs = Date.now()
    const dueMs = due.split(',').map((at) => Date.parse(at))
    const wait = () => {
      const now = Date.now()
      const quietMs = now - Math.max(changedMs, ...dueMs.filter((ms) => ms <= now))
      const paceMs = Math.max(isPending ? PENDING_MS : firstMs, quietMs - (isPending ? STEADY_MS : 0))
      return Math.min(restMs, paceMs, ...dueMs.filter((ms) => ms > now).map((ms) => ms - now))
    }
    const next = () => {
      clearTimeout(timer)
      timer = setTimeout(() => {
        if (isVisible()) reload()
        next()
      }, wait())
    }
    const readIfVisible = () => {
      if (!isVisible()) return
      changedMs = Date.now()
      reload()
      next()
    }
    next()
    document.addEventListener('visibilitychange', readIfVisible)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', readIfVisible)
    }
  }, [reload, restMs, firstMs, isPending, state, due])
}

const isVisible = () => document.visibilityState === 'visible'
