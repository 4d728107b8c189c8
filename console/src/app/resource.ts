import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { type ApiProblem, ask } from './api.ts'

/** What a page reads. While it is read again, `value` stays what it was. */
export type Resource<T> = {
  value: T | undefined
  problem: ApiProblem | undefined
  isLoading: boolean
  reload: () => void
}

/** Herald responds faster. A request that takes longer has lost its connection, and would occupy one of six. */
const TIMEOUT_MS = 10_000

type Read<T> = (path: string, options: { signal: AbortSignal; timeoutMs: number }) => Promise<T>

type State<T> = { path: string | undefined; value?: T; problem?: ApiProblem; isLoading: boolean }

/**
 * Reads a path of the admin API, and reads it again when the path changes. Undefined: there is nothing to read yet. A reload during a read
 * waits for its end: if it cut the read off, slow responses would never arrive while much happens. `read` stays the same.
 */
export function useResource<T>(path: string | undefined, read: Read<T> = ask): Resource<T> {
  const [state, setState] = useState<State<T>>({ path, isLoading: path !== undefined })
  const readAgain = useRef(() => {})
  const reload = useCallback(() => readAgain.current(), [])
  useEffect(() => {
    if (path === undefined) return
    const reading = new AbortController()
    const [start, stop] = oneAtATime(async () => {
      setState((last) => (last.path === path ? { ...last, isLoading: true } : { path, isLoading: true }))
      await read(path, { signal: reading.signal, timeoutMs: TIMEOUT_MS }).then(
        (value) => setState({ path, value, isLoading: false }),
        (problem: ApiProblem) => {
          if (reading.signal.aborted) return
          setState((last) => ({ ...last, path, problem, isLoading: false }))
        },
      )
    })
    readAgain.current = start
    start()
    return () => {
      readAgain.current = () => {}
      stop()
      reading.abort()
    }
  }, [path])
  const isCurrent = state.path === path
  return {
    value: isCurrent ? state.value : undefined,
    problem: isCurrent ? state.problem : undefined,
    isLoading: isCurrent ? state.isLoading : path !== undefined,
    reload,
  }
}

/** Runs the function. A start during a run makes one more run after it. */
export function oneAtATime(run: () => Promise<void>): [start: () => void, stop: () => void] {
  let [isRunning, isWanted] = [false, false]
  async function start(): Promise<void> {
    isWanted = true
    if (isRunning) return
    isRunning = true
    while (isWanted) {
      isWanted = false
      await run()
    }
    isRunning = false
  }
  const stop = () => {
    isWanted = false
  }
  return [() => void start(), stop]
}

/** Calls the function at most once in `everyMs`, and once more after the last call. */
export function useThrottled(run: () => void, everyMs: number): () => void {
  const latest = useRef(run)
  latest.current = run
  const timer = useRef<number | undefined>(undefined)
  const lastRun = useRef(0)
  useEffect(() => () => clearTimeout(timer.current), [])
  return useCallback(() => {
    if (timer.current !== undefined) return
    const wait = Math.max(0, lastRun.current + everyMs - performance.now())
    timer.current = setTimeout(() => {
      timer.current = undefined
      lastRun.current = performance.now()
      latest.current()
    }, wait)
  }, [everyMs])
}
